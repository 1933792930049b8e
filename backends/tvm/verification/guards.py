"""Run-time checks of the accesses of a kernel that could not be proven.

    checked = guarded(kernel, unproven, is_racy=False)

Before each statement with such an access the kernel compares its offset with the size of the
buffer, and where it lies outside calls `abi.OUTSIDE`, which raises: the access is not made. A
kernel calls back from serial loops only, so that all its loops become serial; so do those of a
kernel whose iterations may write what others touch. A call of a routine is checked by its contract.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from tvm.ir import Call as IrCall
from tvm.ir import Expr as IrExpr
from tvm.ir import Op, TensorLoad

from tracejit.backends.abi import ALIGNMENT, OUTSIDE
from tracejit.backends.tvm.ir.tir import (
    PARALLEL,
    SERIAL,
    VECTORIZED,
    AllocBuffer,
    Buffer,
    BufferStore,
    DeclBuffer,
    Evaluate,
    Expr,
    For,
    IfThenElse,
    Stmt,
    While,
    i64,
    nbytes,
    seq,
    tirx,
)
from tracejit.backends.tvm.program.program import Argument, Call, Kernel, Loop, Node, Program
from tracejit.backends.tvm.verification.accesses import Access
from tracejit.backends.tvm.verification.routines import Elements, Touched, touched

_CHOSEN = str(Op.get("prim.if_then_else").name)
_OPERANDS = ("a", "b", "condition", "true_value", "false_value", "value", "base", "stride")
_LISTS = ("indices", "args", "vectors")


def guarded(kernel: Kernel, unproven: Iterable[Access], is_racy: bool) -> Kernel:
    """The kernel with a check before each ``unproven`` access, or if it only ``is_racy`` without
    parallel loops.

    A kernel that calls back allocates nothing: its local buffers become scratch parameters.
    """
    accesses = [*unproven]
    made = _Guards(kernel, accesses)
    body = seq(made.statement(kernel.body))
    said = [f"{len(accesses)} accesses checked"] * bool(accesses) + ["serial"] * is_racy
    return replace(
        kernel,
        parameters=[*kernel.parameters, *made.allocated],
        body=body,
        scratch=kernel.scratch + len(made.allocated),
        stats=replace(kernel.stats, schedule=", ".join([kernel.stats.schedule, *said])),
    )


def with_scratch(program: Program, kernels: Sequence[Kernel]) -> Program:
    """The program with other ``kernels``, and workspace for their additional parameters."""
    before = {kernel.name: len(kernel.parameters) for kernel in program.kernels}
    after = {kernel.name: kernel for kernel in kernels}
    begin = -(-program.workspace_bytes // ALIGNMENT) * ALIGNMENT
    end = begin

    def call(node: Call) -> Call:
        nonlocal end
        arguments, offset = [*node.arguments], begin
        for parameter in after[node.kernel].parameters[before[node.kernel] :]:
            arguments.append(Argument.workspace(offset))
            offset += -(-nbytes(parameter) // ALIGNMENT) * ALIGNMENT
        end = max(end, offset)
        return Call(node.kernel, arguments)

    def calls(nodes: Sequence[Node]) -> list[Node]:
        made: list[Node] = []
        for node in nodes:
            if isinstance(node, Call):
                made.append(call(node))
            elif isinstance(node, Loop):
                condition, body = calls(node.condition), calls(node.body)
                made.append(replace(node, condition=condition, body=body))
            else:
                made.append(replace(node, branches=[calls(each) for each in node.branches]))
        return made

    made = calls(program.calls)
    size = program.workspace_bytes if end == begin else end
    return replace(program, kernels=kernels, calls=made, workspace_bytes=size)


class _Guards:
    def __init__(self, kernel: Kernel, unproven: Sequence[Access]) -> None:
        self._unproven = {hash(access.node) for access in unproven}
        self.allocated: list[Buffer] = []
        self._kernel = kernel
        self._reads = {hash(parameter) for parameter in kernel.parameters[: kernel.reads]}

    def statement(self, s: Any) -> list[Stmt]:
        """A statement and its checks. Declarations stay in the sequence that they are in."""
        if isinstance(s, tirx.SeqStmt):
            return [made for each in s for made in self.statement(each)]
        if isinstance(s, AllocBuffer) and self._unproven:
            self.allocated.append(s.buffer)
            return []
        if isinstance(s, AllocBuffer | DeclBuffer):
            return [s]
        if isinstance(s, For):
            return [*self._checks(s.min), *self._checks(s.extent), self._loop(s)]
        if isinstance(s, While):
            checks = [*self._checks(s.condition)]
            return [*checks, While(s.condition, seq(self.statement(s.body), checks))]
        if isinstance(s, IfThenElse):
            cases = [None if c is None else self._body(c) for c in (s.then_case, s.else_case)]
            return [*self._checks(s.condition), IfThenElse(s.condition, *cases)]
        if isinstance(s, tirx.AttrStmt):
            return [tirx.AttrStmt(s.node, s.attr_key, s.value, self._body(s.body))]
        if isinstance(s, BufferStore):
            checks = [*self._checks(s.value), *self._all(s.indices)]
            if hash(s) in self._unproven:
                checks += self._check(s.buffer, s.indices, "a store to")
            return [*checks, s]
        return [*self._checks(s.value), s]

    def _body(self, statement: Stmt) -> Stmt:
        return seq(self.statement(statement))

    def _loop(self, s: Any) -> Stmt:
        kind = int(s.kind)
        is_serial = kind == int(PARALLEL) or (kind == int(VECTORIZED) and bool(self._unproven))
        body = self._body(s.body)
        return For(s.loop_var, s.min, s.extent, SERIAL if is_serial else s.kind, body)

    # Expressions

    def _all(self, expressions: Iterable[Expr]) -> list[Stmt]:
        return [check for each in expressions for check in self._checks(each)]

    def _checks(self, e: Any) -> Iterator[Stmt]:
        """Checks of the accesses in an expression, those in an index first."""
        name = str(e.op.name) if isinstance(e, IrCall) and hasattr(e.op, "name") else ""
        if name == _CHOSEN:
            condition, *ways = e.args
            yield from self._checks(condition)
            for holds, way in zip((condition, tirx.Not(condition)), ways, strict=True):
                if checks := [*self._checks(way)]:
                    yield IfThenElse(holds, seq(checks), None)
            return
        for operand in _OPERANDS:
            if isinstance(each := getattr(e, operand, None), IrExpr):
                yield from self._checks(each)
        for operands in _LISTS:
            for each in getattr(e, operands, ()):
                if isinstance(each, IrExpr):
                    yield from self._checks(each)
        if hash(e) in self._unproven:
            if isinstance(e, TensorLoad):
                yield from self._check(e.source, e.indices, "a load from")
            else:
                effects = touched(e, self._reads)
                if effects is not None:
                    yield from self._routine(effects)

    def _routine(self, effects: Touched) -> Iterator[Stmt]:
        """Checks of all accesses of a routine's call."""
        if effects.accesses is not None:
            yield from self._nest(effects.accesses)
        for what, regions in (
            ("a load from", effects.reads),
            ("a store to", (*effects.writes, *effects.scratch)),
        ):
            for region in regions:
                yield self._region(region, what)

    def _nest(self, s: Any) -> list[Stmt]:
        """The checks of a contract's loop nest, which is not run itself."""
        if isinstance(s, tirx.SeqStmt):
            return [made for each in s for made in self._nest(each)]
        if isinstance(s, For):
            return [For(s.loop_var, s.min, s.extent, SERIAL, seq(self._nest(s.body)))]
        if isinstance(s, IfThenElse):
            if isinstance(s.condition, tirx.Var):
                return self._nest(s.then_case)
            cases = [None if c is None else seq(self._nest(c)) for c in (s.then_case, s.else_case)]
            return [IfThenElse(s.condition, *cases)]
        if isinstance(s, BufferStore):
            return self._check(s.buffer, s.indices, "a store to")
        if isinstance(s.value, TensorLoad):
            return self._check(s.value.source, s.value.indices, "a load from")
        return []

    def _region(self, region: Elements, what: str) -> Stmt:
        low: Expr = i64(0)
        for term, factor in region.first:
            low = low + tirx.Cast("int64", term) * factor
        high, is_any = low, tirx.const(True, "bool")
        for extent, step in region.dimensions:
            count = tirx.Cast("int64", extent)
            span = (count - 1) * step
            low, high = low + tirx.min(span, i64(0)), high + tirx.max(span, i64(0))
            is_any = tirx.And(is_any, count > 0)
        outside = self._outside(region.buffer, low, high, what)
        return IfThenElse(is_any, outside, None)

    def _check(self, memory: Buffer, indices: Sequence[Expr], what: str) -> list[Stmt]:
        low, high = (
            _flat([_lane(index, is_last) for index in indices], memory) for is_last in (False, True)
        )
        return [self._outside(memory, low, high, what)]

    def _outside(self, memory: Buffer, low: Expr, high: Expr, what: str) -> Stmt:
        """Raise if elements ``low`` or ``high`` lie outside of a buffer."""
        size = 1
        for extent in memory.shape:
            size *= int(extent)
        kernel, stats = self._kernel, self._kernel.stats
        where = "" if stats.source is None else f" ({stats.source})"
        text = (
            f"{', '.join(stats.ops) or kernel.name}: {what} buffer {memory.name} of {size} "
            f"elements in kernel {kernel.name}, {stats.schedule or 'no schedule'}, has index "
            f"{{}}{where}"
        )

        def fail(index: Expr) -> Stmt:
            return Evaluate(tirx.call_packed(OUTSIDE, text, index))

        return seq(IfThenElse(low < 0, fail(low), None), IfThenElse(high >= size, fail(high), None))


def _lane(index: Any, is_last: bool) -> Expr:
    """The first or the last lane of a vector of indices, which is the greatest."""
    if isinstance(index, tirx.Ramp):
        return index.base + index.stride * (index.lanes - 1) if is_last else index.base
    return index.value if isinstance(index, tirx.Broadcast) else index


def _flat(indices: Sequence[Expr], memory: Buffer) -> Expr:
    offset: Expr = i64(0)
    for index, extent in zip(indices, memory.shape, strict=True):
        offset = offset * int(extent) + tirx.Cast("int64", index)
    return offset
