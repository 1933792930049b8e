"""DotGeneral: a library or tiles of the result for matrices, reductions by teams for vectors."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tracejit.backends.tvm.codegen.access_analysis import Accesses
from tracejit.backends.tvm.codegen.kernel_frame import Frame
from tracejit.backends.tvm.codegen.root_rules import Results
from tracejit.backends.tvm.codegen.scalar.contraction import as_reduction
from tracejit.backends.tvm.codegen.scalar.elements import ElementLoops
from tracejit.backends.tvm.cuda.library_products import library_product
from tracejit.backends.tvm.cuda.products import Sum
from tracejit.backends.tvm.cuda.schedule.product import Dimensions, tiled, tiles_pay
from tracejit.backends.tvm.cuda.schedule.reduce import Reductions, reduce_by_teams
from tracejit.backends.tvm.cuda.table import rooted
from tracejit.backends.tvm.ir.affine import Index
from tracejit.backends.tvm.ir.tir import Stmt
from tracejit.graph import Instruction
from tracejit.ops.contraction import DOT_GENERAL

LONG = 32
"""Products of a result from which threads share them."""


@rooted.attach(DOT_GENERAL)
def dot_general(frame: Frame, instruction: Instruction, results: Results) -> Stmt:
    """Batch, then rows, then columns, with the epilogue of each element."""
    parts = Dimensions(instruction)
    if tiles_pay(parts):
        tiles = tiled(frame, instruction, results, parts)
        frame.library = library_product(tiles)
        if not instruction.array_shape.element_type.is_complex:
            return tiles.statement()
    if math.prod(parts.summed_sizes) >= LONG:
        return by_teams(frame, instruction, parts, results)
    return by_threads(frame, instruction, parts, results)


def by_teams(frame: Frame, instruction: Instruction, parts: Dimensions, results: Results) -> Stmt:
    """A reduction of the products, as products with vectors are."""
    total = as_reduction(instruction)
    kept, over = instruction.array_shape.dimensions, parts.summed_sizes
    work = Reductions(
        frame,
        [total],
        kept,
        over,
        lambda at, along: [*at, *along],
        results,
        anchors=(instruction,),
    )
    return reduce_by_teams(work)


def by_threads(frame: Frame, instruction: Instruction, parts: Dimensions, results: Results) -> Stmt:
    """Each thread sums the products of its element."""
    frame.schedule = "thread an element"
    lhs, rhs = parts.lhs, parts.rhs

    def locate(number: int, at: Sequence[Index], over: Sequence[Index]) -> list[Index]:
        batch = at[: len(parts.batch_sizes)]
        first = len(batch) + (len(parts.free[0]) if number else 0)
        return parts.locate(number, batch, at[first : first + len(parts.free[number])], over)

    def ask(scope: Accesses, at: Sequence[Index], over: Sequence[Index]) -> None:
        scope.value(lhs, locate(0, at, over))
        scope.value(rhs, locate(1, at, over))

    shape = instruction.array_shape
    elements = ElementLoops(
        frame, shape.dimensions, parts.summed_sizes, [instruction], results, ask
    )
    total = Sum(shape.element_type)

    def step() -> list[Stmt]:
        emitter = elements.emitter()
        a = emitter.value(lhs, locate(0, elements.at, elements.over))
        b = emitter.value(rhs, locate(1, elements.at, elements.over))
        return total.add(emitter, a, b)

    def thread() -> list[Stmt]:
        begin = total.begin()
        steps = elements.steps(step)
        value = elements.emitter().settled(total.value(), shape.element_type)
        return [*begin, steps, *elements.finish([value])]

    return elements.kernel(thread)
