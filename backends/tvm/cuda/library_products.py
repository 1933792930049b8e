"""Matrix products that cuBLAS may compute, as strides of its matrices.

    frame.library = library_product(tiles)          # None where the library has nothing to gain

When: after a product's own kernel is written, which runs where the library is not installed.
Operands must lie in memory as strided matrices. Before: relu(x @ w + b) in one kernel; after: the
same kernel, or else x @ w + b by the library and relu by a kernel that writes over it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from tracejit.backends.tvm.codegen.access_analysis import Accesses, Load
from tracejit.backends.tvm.codegen.kernel_frame import memory_buffer
from tracejit.backends.tvm.codegen.loop_nest import Axis
from tracejit.backends.tvm.codegen.scalar.elements import place, shared_loop
from tracejit.backends.tvm.codegen.scalar.loops import store_results
from tracejit.backends.tvm.codegen.stores import identity
from tracejit.backends.tvm.cuda.schedule.product import Tiled
from tracejit.backends.tvm.ir.tir import Buffer, Expr, Stmt
from tracejit.backends.tvm.program.program import LibraryCall
from tracejit.cuda.cublas import DATA_TYPES, Matrix, Product
from tracejit.graph import Instruction
from tracejit.ops.elementwise import ADD
from tracejit.ops.layout import BROADCAST_IN_DIM, RESHAPE, SLICE, TRANSPOSE

LEAST_SIDE = 16
LEAST_PRODUCTS = 1 << 20
"""Smaller products are left to kernels of our own."""
_MOVES = frozenset({BROADCAST_IN_DIM, RESHAPE, SLICE, TRANSPOSE})
_WITH_BIAS = frozenset({"float32", "float16", "bfloat16"})
"""Element types of results to which the library adds a bias."""
_HALVES = frozenset({"float16", "bfloat16"})


def library_product(tiles: Tiled) -> LibraryCall | None:
    """The library's call for a product whose kernel is written; None where there is none."""
    return _Found(tiles).call()


class _Found:
    """One product: its axes, operands and epilogue."""

    def __init__(self, tiles: Tiled) -> None:
        self.tiles = tiles
        self.frame, self.instruction = tiles.frame, tiles.instruction
        self.shape = tiles.instruction.array_shape

    def call(self) -> LibraryCall | None:
        tiles, parts = self.tiles, self.tiles.parts
        operands, result = parts.lhs.array_shape.dtype.name, self.shape.dtype.name
        sizes = tiles.batches, tiles.rows, tiles.columns, tiles.depth
        fits = (result == operands) or (operands in _HALVES and result == "float32")
        same = parts.rhs.array_shape.dtype.name == operands
        if not (fits and same and operands in DATA_TYPES):
            return None
        if min(sizes[1:]) < LEAST_SIDE or math.prod(sizes) < LEAST_PRODUCTS:
            return None
        if max(map(len, (tiles.batch_axes, *tiles.side_axes, tiles.over_axes))) > 1:
            return None
        loads = [self._strided(side) for side in range(2)]
        matrices = [self._matrix(side, load) for side, load in enumerate(loads)]
        if None in matrices:
            return None
        lhs, rhs = matrices
        assert lhs is not None
        assert rhs is not None
        bias = self._bias()
        precision = self.instruction.attributes["operand_precision"]
        tf32 = operands == "float32" and precision == ("high", "high")
        offset = None if bias is None else bias.address.constant * self.shape.dtype.itemsize
        product = Product(*sizes, operands, result, lhs, rhs, offset, tf32)
        given = [load.instruction for load in loads if load is not None]
        memories = [tiles.visible[each] for each in given]
        if bias is not None:
            memories.append(tiles.visible[bias.instruction])
        done = self.instruction if bias is None else self._added
        target, after = self._rest(done)
        return LibraryCall(product.to_json(), [*memories, target], after)

    def _strided(self, side: int) -> Load | None:
        """The load of an operand that lies in memory; None where it is computed."""
        operand = (self.tiles.parts.lhs, self.tiles.parts.rhs)[side]
        return self._moved(operand, self.tiles.loads[side])

    def _moved(self, value: Instruction, loads: Sequence[Load]) -> Load | None:
        """The one load of a value that is only moved."""
        while value not in self.tiles.visible:
            if value.op not in _MOVES:
                return None
            value = value.operands[0]
        if len(loads) != 1 or not loads[0].known or loads[0].instruction is not value:
            return None
        return loads[0]

    def _matrix(self, side: int, load: Load | None) -> Matrix | None:
        """How an operand lies in memory; None where its elements are not side by side."""
        if load is None:
            return None
        batch = self._step(load, self.tiles.batch_axes)
        free = self._step(load, self.tiles.side_axes[side])
        over = self._step(load, self.tiles.over_axes)
        extents = (self.tiles.rows, self.tiles.columns)[side], self.tiles.depth
        offset = load.address.constant * load.instruction.array_shape.dtype.itemsize
        down, across = (free, over) if side == 0 else (over, free)
        (high, wide) = extents if side == 0 else extents[::-1]
        if batch < 0:
            return None
        if across == 1 and down >= wide:
            return Matrix(False, down, batch, offset)
        if down == 1 and across >= high:
            return Matrix(True, across, batch, offset)
        return None

    def _step(self, load: Load, axes: Sequence[Axis]) -> int:
        """How far neighbours on an axis lie apart in memory."""
        return load.address.coefficient(axes[0].last) if axes else 0

    def _bias(self) -> Load | None:
        """A vector that is added to every row, before anything else happens to the product."""
        tiles = self.tiles
        self._added = self.instruction
        if self.shape.dtype.name not in _WITH_BIAS or len(tiles.results) != 1:
            return None
        readers = _readers(tiles.results[0][0], self.instruction)
        if len(readers) != 1 or readers[0].op is not ADD:
            return None
        x, y = readers[0].operands
        other = y if x is self.instruction else x
        if other is self.instruction:
            return None
        scope = Accesses(tiles.visible.__contains__)
        scope.value(other, tiles.at)
        load = self._moved(other, scope.loads)
        if load is None:
            return None
        axes = tiles.side_axes[1], tiles.side_axes[0], tiles.batch_axes
        if [self._step(load, each) for each in axes] != [1, 0, 0]:
            return None
        self._added = readers[0]
        return load

    def _rest(self, done: Instruction) -> tuple[Buffer, Stmt | None]:
        """Where the library's result goes, and the loops that process it further, if any."""
        results = self.tiles.results
        own = next((memory for root, memory in results if root is done), None)
        if own is not None and len(results) == 1:
            return own, None
        if own is None and not (self.frame.shared or self.frame.in_place):
            kind = done.array_shape.element_type
            own = next((t for r, t in results if r.array_shape.element_type is kind), None)
        if own is None:
            own = self._scratch(done)
        memory = own

        def element(number: Expr) -> list[Stmt]:
            tiles = self.tiles
            axes = [*tiles.batch_axes, *tiles.side_axes[0], *tiles.side_axes[1]]
            place(number, axes, tiles.positions, tiles.dtype)
            scope = tiles.emitter()
            kind = self.shape.element_type
            address = scope.expression(identity(self.shape.dimensions)(tiles.at))
            scope.given[done] = scope.hold(scope.load(memory, address, kind), kind)
            stores = store_results(scope, results, self.shape.dimensions, tiles.at)
            return [*scope.allocations, *scope.statements, *stores]

        return memory, shared_loop(self.shape.size, element, self.tiles.dtype)

    def _scratch(self, done: Instruction) -> Buffer:
        memory = memory_buffer(done.array_shape, "product")
        self.frame.scratch.append(memory)
        return memory


def _readers(root: Instruction, anchor: Instruction) -> list[Instruction]:
    """The instructions of an epilogue that read its anchor."""
    found: list[Instruction] = []
    seen: set[Instruction] = set()
    stack = [root]
    while stack:
        each = stack.pop()
        if each in seen or each is anchor:
            continue
        seen.add(each)
        if anchor in each.operands:
            found.append(each)
        stack += each.operands
    return found
