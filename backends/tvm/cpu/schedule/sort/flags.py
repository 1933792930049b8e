"""Stable argsort of booleans: the indices of the true elements, then those of the false ones.

A vector of indices is compressed by a mask, so one pass finds all true elements in order, and
another the false ones. The second pass is skipped if the first finds ``kept`` indices.
"""

from __future__ import annotations

from tracejit.backends.tvm.analysis.sort_keys import Order
from tracejit.backends.tvm.codegen.kernel_frame import Frame
from tracejit.backends.tvm.cpu.llvm.builder import Value
from tracejit.backends.tvm.cpu.llvm.kinds import BOOL
from tracejit.backends.tvm.cpu.llvm.procedures import Procedure
from tracejit.backends.tvm.cpu.machine import machine_of
from tracejit.backends.tvm.cpu.schedule.sort.quicksort import VECTOR_BYTES, rows_in_memory
from tracejit.backends.tvm.cpu.schedule.sort.quicksort_code import SortCode, SortPlan
from tracejit.backends.tvm.cpu.schedule.sort.rows import Sorting
from tracejit.backends.tvm.ir.contracts import span
from tracejit.backends.tvm.ir.tir import PARALLEL, SERIAL, Expr, Stmt, i64, loop, tirx
from tracejit.shapes import ElementType


def suits_flags(frame: Frame, work: Sorting, order: Order) -> bool:
    """Whether only indices are wanted, in the order of booleans in contiguous rows."""
    return (
        machine_of(frame).vector_bytes == VECTOR_BYTES
        and order.element_type is ElementType.PRED
        and [operand for _, operand in work.targets] == [None]
        and work.operands[0].array_shape.size == rows_in_memory(work) * work.length
    )


def flag_sort(frame: Frame, work: Sorting, order: Order) -> Stmt:
    """The statement of the whole kernel."""
    ((target, _),) = work.targets
    kind = str(target.dtype)
    plan = SortPlan(kind, VECTOR_BYTES * 8 // int(kind[3:]), order.descending, order.total)
    flags = frame.inputs[work.operands[order.operand]]
    rows, length, kept = rows_in_memory(work), work.length, work.kept
    places = _places(plan)

    def row(number: Expr) -> Stmt:
        source = tirx.address_of(flags[number * length])
        result = tirx.address_of(target[number * kept])
        return places.called([source, result, i64(length), i64(kept)])

    if rows == 1:
        return row(i64(0))
    is_shared = frame.is_shared(rows * length * 2)
    return loop(rows, row, PARALLEL if is_shared else SERIAL, dtype="int64")


def _places(plan: SortPlan) -> Procedure:
    """Store the first ``kept`` indices of a row of ``length`` flags."""
    code = SortCode(plan, "places", ("flags", "target"), ("length", "kept"))
    code.touches([span("flags", 0, "length")], [span("target", 0, "kept")])
    found = code.variable("0")

    def find(holds: bool) -> None:
        has_room = code.holds("slt", code.read(found), "%kept")
        code.when(has_room, lambda: _find(code, found, holds))

    find(plan.descending)
    find(not plan.descending)
    return code


def _find(code: SortCode, found: str, holds: bool) -> None:
    """Append the indices of elements whose flag is ``holds``, while there is room."""
    lanes = str(code.lanes)
    blocks, rest = code.quotient("%length", lanes)

    def goes_on(block: str) -> str:
        is_before = code.holds("slt", block, blocks)
        has_room = code.holds("slt", code.read(found), "%kept")
        return code.made(f"and i1 {is_before}, {has_room}")

    def whole(block: str) -> list[str]:
        first = code.product(block, lanes)
        flags = code.made(f"load <{lanes} x i8>, ptr {code.address('%flags', first)}, align 1")
        mask = _mask(code, flags, holds)
        number = code.read(found)
        packed = code.packed(_counted(code, first), mask)
        after = code.sum(number, code.count(mask))
        address = code.at("%target", number)
        fits = code.holds("sle", code.sum(number, lanes), "%kept")
        code.branches(
            fits,
            lambda: code.put(packed, address),
            lambda: code.put_some(packed, address, _both(code, number, after)),
        )
        code.write(found, after)
        return [code.sum(block, "1")]

    code.carried(["0"], goes_on, whole)

    def single(index: str) -> None:
        place = code.sum(code.difference("%length", rest), index)
        flag = code.made(f"load i8, ptr {code.address('%flags', place)}, align 1")
        number = code.read(found)
        is_one = code.made(f"icmp {'ne' if holds else 'eq'} i8 {flag}, 0")
        has_room = code.holds("slt", number, "%kept")

        def put() -> None:
            element = code.kind.llvm
            narrow = place if element == "i64" else code.made(f"trunc i64 {place} to {element}")
            code.act(
                f"store {element} {narrow}, ptr {code.at('%target', number)}, align {code.bytes}"
            )
            code.write(found, code.sum(number, "1"))

        code.when(code.made(f"and i1 {is_one}, {has_room}"), put)

    code.when(code.holds("sgt", rest, "0"), lambda: code.loop(rest, single))


def _mask(code: SortCode, flags: str, holds: bool) -> Value:
    """The mask of bytes that are zero, or not zero."""
    kind = f"<{code.lanes} x i8>"
    how = "ne" if holds else "eq"
    return code.emit(BOOL, f"icmp {how} {kind} {flags}, zeroinitializer")


def _counted(code: SortCode, first: str) -> Value:
    """A vector of consecutive indices from ``first`` on."""
    element = code.kind.llvm
    narrow = first if element == "i64" else code.made(f"trunc i64 {first} to {element}")
    return code.splat(narrow) + Value(code, code.kind, code.numbers(range(code.lanes)))


def _both(code: SortCode, number: str, after: str) -> Value:
    """The lanes that match and that still have room."""
    return code.below(code.difference(code.lesser(after, "%kept"), number))
