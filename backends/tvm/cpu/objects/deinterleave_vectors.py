"""A TIR pass that replaces strided vector loads and stores by contiguous ones and shuffles.

    module = strided(module)            # once, after loops are vectorised

TVM accesses vectors of every second, third or fourth element, or in reverse order, element by
element. Here whole vectors are loaded and shuffled in registers; interleaved stores, such as real
and imaginary parts or coordinates of points, are joined.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tvm
from tvm import sym, tirx
from tvm.ir import TensorLoad
from tvm_ffi import StructuralMutator, structural_mutate, structural_walk

from tracejit.backends.tvm.ir.tir import AllocBuffer, Buffer, Expr, Stmt, buffer, i32

MOST_STRIDE = 4
"""The least elements used from a loaded vector; for fewer, each element is loaded on its own."""

LEAST_LANES = 4


def strided(module: Any) -> Any:
    """An IRModule whose strided accesses are whole vectors where possible."""
    functions = {
        variable: function.with_body(_Strided().statement(function.body))
        for variable, function in module.functions.items()
    }
    return tvm.IRModule(functions, attrs=module.attrs)


class _Strided:
    def __init__(self) -> None:
        self._analyzer = sym.Analyzer()
        self._own: set[str] = set()

    def statement(self, body: Any) -> Any:
        structural_walk(body, [(AllocBuffer, lambda node: self._own.add(str(node.buffer.name)))])
        return structural_mutate(body, [(TensorLoad, self._load), (tirx.SeqStmt, self._several)])

    def _load(self, node: Any, mutator: StructuralMutator) -> Any:
        made = mutator.default_mutate(node)
        ramp = _ramp(made)
        if ramp is None:
            return made
        base, stride, lanes = ramp
        if stride < 0:
            # Loaded forwards from the last element, then reversed.
            base, stride = base + (lanes - 1) * stride, -stride
            order = range(lanes - 1, -1, -1)
        else:
            order = range(lanes)
        starts, places = self._vectors(made.source, base, stride, lanes)
        read = [_vector(made.source, start, lanes) for start in starts]
        if stride == 1:
            read = read[:1]
        return tirx.Shuffle(read, [i32(places[lane]) for lane in order])

    def _vectors(
        self, memory: Buffer, base: Expr, stride: int, lanes: int
    ) -> tuple[list[Expr], list[int]]:
        """The first indices of ``stride`` vectors that contain all elements, and the lane of each
        element.

        Nothing is read before the first element or after the last one, unless it is known to
        exist. Different residues of the same elements then load the same vectors.
        """
        after = self._after(memory, base, stride)
        if after is not None:
            base = base - after
            starts = [base + number * lanes for number in range(stride)]
            return starts, [after + stride * lane for lane in range(lanes)]
        last = stride * (lanes - 1) - (lanes - 1)
        offsets = [*(number * lanes for number in range(stride - 1)), last]
        places = []
        for lane in range(lanes):
            number = min(stride * lane // lanes, stride - 1)
            places.append(number * lanes + stride * lane - offsets[number])
        return [base + offset for offset in offsets], places

    def _after(self, memory: Buffer, base: Expr, stride: int) -> int | None:
        """The offset modulo the stride, if it is known."""
        (size,) = memory.shape
        if not isinstance(size, tirx.IntImm) or int(size) % stride:
            return None
        known = self._analyzer.modular_set(base)
        return int(known.base) % stride if int(known.coeff) % stride == 0 else None

    def _several(self, node: Any, mutator: StructuralMutator) -> Any:
        made = mutator.default_mutate(node)
        if not isinstance(made, tirx.SeqStmt):
            return made
        left = list(made.seq)
        statements: list[Stmt] = []
        while left:
            together = self._together(left)
            statements += together or left[:1]
            left = left[self._stride(left[0]) if together else 1 :]
        return statements[0] if len(statements) == 1 else tirx.SeqStmt(statements)

    def _stride(self, statement: Stmt) -> int:
        """The stride of a statement that stores a vector; 0 for any other statement."""
        if not isinstance(statement, tirx.BufferStore) or str(statement.buffer.name) in self._own:
            # A kernel's own accumulators are promoted to registers.
            return 0
        ramp = _ramp(statement)
        return 0 if ramp is None else ramp[1]

    def _together(self, statements: Sequence[Stmt]) -> list[Stmt]:
        """The leading statements, if they store all residues of a stride, as stores of whole
        vectors; else empty.
        """
        stride = self._stride(statements[0])
        if stride < 2 or len(statements) < stride:
            return []
        first, *others = statements[:stride]
        base, _, lanes = _ramp(first) or (i32(0), 0, 0)
        for number, other in enumerate(others, 1):
            if self._stride(other) != stride or not other.buffer.same_as(first.buffer):
                return []
            place, _, count = _ramp(other) or (i32(0), 0, 0)
            if count != lanes or not self._analyzer.can_prove_equal(place, base + number):
                return []
        made: list[Stmt] = []
        values = [_held(each.value, lanes, made) for each in statements[:stride]]
        for vector in range(stride):
            numbers = range(vector * lanes, (vector + 1) * lanes)
            order = [i32(number % stride * lanes + number // stride) for number in numbers]
            ramp = tirx.Ramp(base + vector * lanes, 1, lanes)
            made.append(tirx.BufferStore(first.buffer, tirx.Shuffle(values, order), [ramp]))
        return made


def _held(value: Expr, lanes: int, before: list[Stmt]) -> Expr:
    """A value that no later store changes; the statements that compute it are added to
    ``before``.
    """
    if isinstance(value, TensorLoad) and str(value.source.scope()) == "local":
        return value
    dtype = str(value.ty).partition("x")[0]
    local = buffer("part", (lanes,), dtype, scope="local")
    whole = tirx.Ramp(i32(0), 1, lanes)
    before += [AllocBuffer(local), tirx.BufferStore(local, value, [whole])]
    return tirx.BufferLoad(local, [whole])


def _ramp(node: Any) -> tuple[Expr, int, int] | None:
    """The base, stride and lanes of a strided load or store; None for scalars and contiguous
    vectors.
    """
    if len(node.indices) != 1:
        return None
    line = _line(node.indices[0])
    if line is None:
        return None
    base, stride, lanes = line
    if stride in (0, 1) or abs(stride) > MOST_STRIDE or lanes < LEAST_LANES:
        return None
    return base, stride, lanes


def _line(index: Expr) -> tuple[Expr, int, int] | None:
    """The base, distance and number of evenly spaced elements.

    They may be written as sums and products with numbers that are equal in every lane.
    """
    if isinstance(index, tirx.Ramp | tirx.Broadcast):
        is_ramp = isinstance(index, tirx.Ramp)
        stride = index.stride if is_ramp else i32(0)
        if not isinstance(stride, tirx.IntImm) or not isinstance(index.lanes, tirx.IntImm):
            return None
        return index.base if is_ramp else index.value, int(stride), int(index.lanes)
    if not isinstance(index, tirx.Add | tirx.Sub | tirx.Mul):
        return None
    a, b = _line(index.a), _line(index.b)
    if a is None or b is None:
        return None
    if isinstance(index, tirx.Add):
        return a[0] + b[0], a[1] + b[1], a[2]
    if isinstance(index, tirx.Sub):
        return a[0] - b[0], a[1] - b[1], a[2]
    if a[1] and b[1]:
        return None
    same, other = (a, b) if not a[1] else (b, a)
    if not other[1]:
        return same[0] * other[0], 0, a[2]
    if not isinstance(same[0], tirx.IntImm):
        return None
    return other[0] * same[0], other[1] * int(same[0]), a[2]


def _vector(memory: Buffer, start: Expr, lanes: int) -> Expr:
    return tirx.BufferLoad(memory, [tirx.Ramp(start, 1, lanes)])
