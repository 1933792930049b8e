"""Programs that a signal ends: long loops let Python handle signals, a few times a second.

    program = interruptible(program, processor_of())    # after verification, before compilation

Python handles signals between its own instructions, so Ctrl-C would wait for compiled code. Long
kernels and loops of unknown length therefore call ``tracejit_poll``, which reads the processor's
clock, and every tenth of a second, on the main thread, asks Python to run the handlers of signals.
If one raises, a flag in the call's workspace makes all threads skip the rest of their iterations,
and the program returns -1. Handlers that return disturb nothing.

Sorts and routines of libraries have no polls. Programs in which these are long run apart from the
main thread (`tracejit.runtime.apart`), which waits and handles signals. What the main thread has
given up ends at its next poll.

    for i in range(4096): body          # 1e7 operations each
    for i in range(4096):
        if tracejit_poll(state) == 0: body

Exported libraries are not changed: nothing there asks Python.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tvm_ffi import structural_map

from tracejit.backends.abi import STATE_WORDS, SignalRecord, SignalState
from tracejit.backends.explanation import WHOLE_LOOP
from tracejit.backends.tvm.cpu.processor import Processor
from tracejit.backends.tvm.ir.tir import (
    PARALLEL,
    SERIAL,
    AllocBuffer,
    Buffer,
    Evaluate,
    Expr,
    For,
    IfThenElse,
    SeqStmt,
    Stmt,
    While,
    buffer,
    const,
    i32,
    loop,
    seq,
    store,
    tirx,
)
from tracejit.backends.tvm.program.program import (
    Argument,
    Branch,
    Call,
    Kernel,
    Loop,
    Node,
    Program,
    walk,
)

LONG = 10**9
"""Operations and bytes of a program that may take a tenth of a second."""
APART = 10**10
"""Operations without polls of a program that runs apart; a change of threads takes 0.1 ms."""
SPAN = 10**7
"""Operations and bytes between two looks at the clock, which takes ten nanoseconds."""
_PROCEDURE = 1000
"""The weight of a call of a procedure, where a store counts as one."""
MOST_ITERATIONS, _MOST_IN_REGISTERS = 1 << 10, 1 << 15
"""The most iterations of a loop between two looks at the clock, and of one in registers."""
_SORTS = frozenset({"sort", "top-k"})
_LINEAR_ALGEBRA = ("linalg.", "cholesky", "triangular-solve")

# The instruction that reads a clock, and ticks in about a tenth of a second: between 2 and 4 GHz,
# and between 24 MHz and 1 GHz.
_CLOCKS = {
    "x86_64": ("call i64 @llvm.readcyclecounter()", 1 << 28),
    "aarch64": ('call i64 asm sideeffect "mrs $0, cntvct_el0", "=r"()', 1 << 22),
}


def interruptible(program: Program, target: Processor) -> Program:
    """The program with polls in its long kernels and loops; itself if it is short."""
    work = {kernel.name: _work(kernel) + _routine_work(kernel) for kernel in program.kernels}
    calls = [node.kernel for node in walk(program.calls) if isinstance(node, Call)]
    loops = any(isinstance(node, Loop) and _is_long(node, work) for node in walk(program.calls))
    whole = [kernel for kernel in program.kernels if _may_go_on(kernel)]
    is_long = sum(work[name] for name in calls) >= LONG
    if target.architecture not in _CLOCKS or not (loops or whole or is_long):
        return program
    looked_after = {name for name in work if is_long and work[name] >= SPAN}
    offset = -(-program.workspace_bytes // 64) * 64
    kernels, polled = [], set()
    for kernel in program.kernels:
        state = buffer("polled", [STATE_WORDS], "int64")
        body = (
            _counting(kernel.body, state, _iterations(kernel))
            if kernel in whole
            else _guarded(kernel.body, state, _work(kernel))
            if _work(kernel) >= LONG
            else kernel.body
        )
        if not body.same_as(kernel.body):
            polled.add(kernel.name)
            work[kernel.name] = _routine_work(kernel)
            kernel = replace(kernel, body=body, parameters=[*kernel.parameters, state])
        kernels.append(kernel)
    given = Argument.workspace(offset)
    return replace(
        program,
        kernels=kernels,
        calls=[_passing(node, polled, given) for node in program.calls],
        workspace_bytes=offset + 8 * STATE_WORDS,
        state=given,
        polled=frozenset(polled | looked_after),
        runs_apart=sum(work[name] for name in calls) >= APART,
    )


def _may_go_on(kernel: Kernel) -> bool:
    """Whether a kernel is a loop in registers that is long, or of unknown length."""
    if kernel.stats.schedule != WHOLE_LOOP:
        return False
    repeated = kernel.stats.repeated
    return repeated is None or repeated * _work(kernel) >= LONG // 10


def _work(kernel: Kernel) -> int:
    """Operations, and bytes read and written."""
    told = kernel.stats
    return told.flops + 16 * told.transcendentals + told.bytes_read + told.bytes_written


def _routine_work(kernel: Kernel) -> int:
    """About the operations of sorts and factorisations, which `_work` does not count."""
    told = kernel.stats
    nbytes = told.bytes_read + told.bytes_written
    if any(op.startswith(_LINEAR_ALGEBRA) for op in told.ops):
        return 8 * int((nbytes / 8) ** 1.5)
    return 0 if _SORTS.isdisjoint(told.ops) else 2 * nbytes * nbytes.bit_length()


def _is_long(node: Loop, work: dict[str, int]) -> bool:
    if node.steps is None:
        return True
    inside = [each for each in walk([*node.condition, *node.body]) if isinstance(each, Call)]
    return node.steps * (100 + sum(work[call.kernel] for call in inside)) >= LONG // 10


def _passing(node: Node, polled: set[str], state: Argument) -> Node:
    """The node with the state as the last argument of polled kernels."""

    def all_passing(nodes: Any) -> list[Node]:
        return [_passing(each, polled, state) for each in nodes]

    if isinstance(node, Call):
        return replace(node, arguments=[*node.arguments, state]) if node.kernel in polled else node
    if isinstance(node, Loop):
        return replace(node, condition=all_passing(node.condition), body=all_passing(node.body))
    return Branch(node.selector, [all_passing(branch) for branch in node.branches])


def _iterations(kernel: Kernel) -> int:
    """The iterations of a loop in registers that are a millisecond's work at most."""
    work = _work(kernel) + _routine_work(kernel)
    return max(min(SPAN // max(work, 1), _MOST_IN_REGISTERS), 64)


def _counting(body: Stmt, state: Buffer, most: int) -> Stmt:
    """A kernel whose loops end when ``tracejit_count`` returns 0 for the next row of iterations."""
    if isinstance(body, SeqStmt):
        return seq(*[_counting(each, state, most) for each in body.seq])
    if not isinstance(body, While):
        return body
    left = buffer("left", [1], "int32")
    least = i32(most // 8)
    counted = tirx.call_extern("int32", "tracejit_count", state.data, least, i32(most))
    given = seq(AllocBuffer(left), store(left, i32(0), least))
    # Innermost loops first: their replacements are not visited again.
    rows = [(While, lambda each: _in_counted_rows(each, left, counted))]
    return seq(given, structural_map(body, rows))


def _in_counted_rows(given: Any, left: Buffer, counted: Expr) -> Stmt:
    """The loop in rows of as many iterations as are ``left``, which the loops inside it share.

    When none is left, ``counted`` says how many the next row has. 0 ends the loop, and then the one
    around it.

        while condition:              goes_on = condition
            first                     while goes_on:
            if holds: step                do: left -= 1; first; if holds and left > 0: step
                                          goes_on = left <= 0 and (left = count()) > 0
    """
    body = given.body
    *first, last = body.seq if isinstance(body, SeqStmt) else [body]
    is_step = isinstance(last, IfThenElse) and last.else_case is None
    # A loop in registers ends with its step, and its condition is that of the last one.
    holds, step = (last.condition, last.then_case) if is_step else (given.condition, body)
    if not is_step:
        first = []
    # One exit, behind the condition: LLVM then finds what the loop may keep in registers.
    goes_on = tirx.all(holds, left[0] > i32(0))
    once = seq(*first, IfThenElse(goes_on, step, Evaluate(tirx.break_loop())))
    row = While(const(True, "bool"), seq(store(left, i32(0), left[0] - i32(1)), once))
    again = buffer("again", [1], "int32")
    # With iterations left, it is the condition that has ended the loop. To ask it again here would
    # keep its value through every iteration, which costs a short one a quarter of its time.
    asked = seq(store(left, i32(0), counted), store(again, i32(0), left[0]))
    rows = seq(row, store(again, i32(0), i32(0)), IfThenElse(left[0] <= i32(0), asked, None))
    start = [AllocBuffer(again), store(again, i32(0), i32(1))]
    return IfThenElse(given.condition, seq(*start, While(again[0] > i32(0), rows)), None)


def _guarded(body: Stmt, state: Buffer, work: float) -> Stmt:
    """A statement that takes ``work``, with a poll about every `SPAN` of it."""
    return _polled(body, state, work)[0]


def _polled(body: Stmt, state: Buffer, work: float) -> tuple[Stmt, float]:
    """The same, and how much of the work is done even if a signal has ended the call."""
    if work < 2 * SPAN:
        return body, work
    if isinstance(body, SeqStmt):
        weights = [_weight(each) for each in body.seq]
        whole = sum(weights) or 1.0
        pairs = zip(body.seq, weights, strict=True)
        parts = [_polled(each, state, work * weight / whole) for each, weight in pairs]
        return seq(*[part for part, _ in parts]), sum(left for _, left in parts)
    if not isinstance(body, For) or body.kind not in (SERIAL, PARALLEL):
        return body, work
    extent = max(_most(body.extent) or 1, 1)
    one = work / extent
    if body.kind == PARALLEL and one < SPAN / 100:
        return body, work
    if one < SPAN / 2 and body.kind != PARALLEL:
        return _in_rows(body, state, int(SPAN / one)), 0.0
    inside, left = _polled(body.body, state, one)
    # Polls in inner loops are enough: around what packs operands, they cost a product 3 %.
    if left * extent > LONG / 2:
        inside, left = _unless_ended(inside, state), 0.0
    return For(body.loop_var, body.min, body.extent, body.kind, inside), left * extent


def _in_rows(given: Any, state: Buffer, length: int) -> Stmt:
    """The loop in rows of ``length`` iterations, with a poll before each."""
    kind = str(given.loop_var.ty)
    step, begin = const(length, kind), given.min

    def row(number: Expr) -> Stmt:
        first = number * step
        inner = loop(
            tirx.min(step, given.extent - first),
            lambda i: _with(given.body, given.loop_var, begin + first + i),
            dtype=kind,
        )
        return _unless_ended(inner, state)

    rows = tirx.floordiv(given.extent + const(length - 1, kind), step)
    return loop(rows, row, dtype=kind)


def _with(body: Stmt, variable: Expr, value: Expr) -> Stmt:
    """The body with a value in place of a variable."""
    replaced = [(tirx.Var, lambda node: value if node.same_as(variable) else node)]
    return structural_map(body, replaced)


def _unless_ended(body: Stmt, state: Buffer) -> Stmt:
    ended = tirx.call_extern("int32", "tracejit_poll", state.data)
    return IfThenElse(ended == i32(0), body, None)


def _weight(body: Stmt) -> float:
    """How much work a statement is, compared with others of the kernel."""
    if isinstance(body, SeqStmt):
        return sum(map(_weight, body.seq))
    if isinstance(body, For):
        return (_most(body.extent) or 1) * _weight(body.body)
    if isinstance(body, IfThenElse):
        return _weight(body.then_case)
    if isinstance(body, tirx.AttrStmt):
        return _weight(body.body)
    return _PROCEDURE if isinstance(body, Evaluate) else 1.0


def _most(extent: Expr) -> int | None:
    """A bound of an extent, where it is seen."""
    if isinstance(extent, tirx.IntImm):
        return int(extent)
    if isinstance(extent, (tirx.Min, tirx.Max)):
        known = [each for each in map(_most, (extent.a, extent.b)) if each is not None]
        return (min if isinstance(extent, tirx.Min) else max)(known, default=None)
    return None


def polling(target: Processor) -> str:
    """``int32 tracejit_poll(ptr state)``: other than 0 if a signal has ended the call; and
    ``int32 tracejit_count(ptr state, i32 least, i32 most)``: how many iterations may follow, 0 if
    it has.

    A clock that went back, as a virtual machine's may, delays a look by one period at most.
    """
    clock, period = _CLOCKS[target.architecture]
    is_intrinsic = "@" in clock
    declared = "declare i64 @llvm.readcyclecounter()\n" if is_intrinsic else ""
    return f"""{declared}define i32 @tracejit_poll(ptr %state) {{
entry:
  %flag = load atomic i32, ptr %state monotonic, align 8
  %set = icmp ne i32 %flag, 0
  br i1 %set, label %ended, label %look
look:
  %now = {clock}
  %next_at = getelementptr i64, ptr %state, i64 {SignalState.NEXT:d}
  %next = load atomic i64, ptr %next_at monotonic, align 8
  %left = sub i64 %next, %now
  %before = add i64 %left, -1
  %early = icmp ult i64 %before, {period}
  br i1 %early, label %on, label %due
due:
  %record_at = getelementptr i64, ptr %state, i64 {SignalState.RECORD:d}
  %record = load ptr, ptr %record_at
  %self = load ptr, ptr %record
  %thread = call i64 %self()
  %main_at = getelementptr i64, ptr %record, i64 {SignalRecord.MAIN:d}
  %main = load i64, ptr %main_at
  %is_main = icmp eq i64 %thread, %main
  br i1 %is_main, label %wait, label %apart
apart:
  %given_up_at = getelementptr i64, ptr %record, i64 {SignalRecord.GIVEN_UP:d}
  %given_up = load atomic i64, ptr %given_up_at monotonic, align 8
  %is_given_up = icmp eq i64 %thread, %given_up
  br i1 %is_given_up, label %end, label %on
end:
  store atomic i32 1, ptr %state monotonic, align 8
  br label %ended
wait:
  %later = add i64 %now, {period}
  store atomic i64 %later, ptr %next_at monotonic, align 8
  %first = icmp eq i64 %next, 0
  br i1 %first, label %on, label %ask
ask:
  %take_at = getelementptr i64, ptr %record, i64 {SignalRecord.TAKE:d}
  %take = load ptr, ptr %take_at
  %lock = call i32 %take()
  %check_at = getelementptr i64, ptr %record, i64 {SignalRecord.CHECK:d}
  %check = load ptr, ptr %check_at
  %raised = call i32 %check()
  %is_raised = icmp ne i32 %raised, 0
  br i1 %is_raised, label %keep, label %give
keep:
  %fetch_at = getelementptr i64, ptr %record, i64 {SignalRecord.FETCH:d}
  %fetch = load ptr, ptr %fetch_at
  %kind = getelementptr i64, ptr %record, i64 {SignalRecord.TYPE:d}
  %value = getelementptr i64, ptr %record, i64 {SignalRecord.VALUE:d}
  %trace = getelementptr i64, ptr %record, i64 {SignalRecord.TRACEBACK:d}
  call void %fetch(ptr %kind, ptr %value, ptr %trace)
  store atomic i32 1, ptr %state monotonic, align 8
  br label %give
give:
  %give_at = getelementptr i64, ptr %record, i64 {SignalRecord.GIVE:d}
  %release = load ptr, ptr %give_at
  call void %release(i32 %lock)
  br i1 %is_raised, label %ended, label %on
on:
  ret i32 0
ended:
  ret i32 1
}}
define i32 @tracejit_count(ptr %state, i32 %least, i32 %most) {{
entry:
  %ended = call i32 @tracejit_poll(ptr %state)
  %is_ended = icmp ne i32 %ended, 0
  br i1 %is_ended, label %stop, label %on
stop:
  ret i32 0
on:
  %now = {clock}
  %last_at = getelementptr i64, ptr %state, i64 {SignalState.LAST:d}
  %last = load i64, ptr %last_at
  store i64 %now, ptr %last_at
  %length_at = getelementptr i64, ptr %state, i64 {SignalState.LENGTH:d}
  %length = load i64, ptr %length_at
  %took = sub i64 %now, %last
  %is_slow = icmp ugt i64 %took, {period // 64}
  %less = lshr i64 %length, 3
  %more = shl i64 %length, 1
  %wanted = select i1 %is_slow, i64 %less, i64 %more
  %bound = zext i32 %most to i64
  %is_most = icmp ugt i64 %wanted, %bound
  %bounded = select i1 %is_most, i64 %bound, i64 %wanted
  %lower = zext i32 %least to i64
  %is_least = icmp ult i64 %bounded, %lower
  %made = select i1 %is_least, i64 %lower, i64 %bounded
  store i64 %made, ptr %length_at
  %count = trunc i64 %made to i32
  ret i32 %count
}}
"""
