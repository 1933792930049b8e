"""RaggedDot: a sum of products for each element, over the groups that its row or its sum meets."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tracejit.backends.tvm.codegen.access_analysis import Accesses
from tracejit.backends.tvm.codegen.kernel_frame import Frame
from tracejit.backends.tvm.codegen.root_rules import Results
from tracejit.backends.tvm.codegen.scalar.convolution import Products
from tracejit.backends.tvm.codegen.scalar.elements import ElementLoops
from tracejit.backends.tvm.codegen.scalar.table import scalar
from tracejit.backends.tvm.ir.affine import Index, Opaque, index_variables
from tracejit.backends.tvm.ir.tir import (
    AllocBuffer,
    Expr,
    IfThenElse,
    Stmt,
    buffer,
    const,
    loop,
    seq,
    store,
    tirx,
)
from tracejit.graph import Instruction
from tracejit.ops.element_types import convert_element_type
from tracejit.ops.grouped import RAGGED_DOT, RaggedMode, ragged_of

Body = Callable[[Expr], Sequence[Stmt]]


@scalar.attach(RAGGED_DOT)
def ragged_dot(frame: Frame, instruction: Instruction, results: Results) -> Stmt:
    """The groups are searched for each row, or for each term of a sum that they divide."""
    frame.schedule = "scalar groups"
    meaning, shape = ragged_of(instruction), instruction.array_shape
    numbers = meaning.numbers
    lhs, rhs = (convert_element_type(o, shape.element_type) for o in instruction.operands[:2])
    sizes = instruction.operands[2]
    count = sizes.array_shape.dimensions[-1]
    group = instruction.attributes["rhs_group_dims"]
    dtype = frame.index_dtype
    ranks = lhs.array_shape.rank, rhs.array_shape.rank
    left = (*numbers.lhs_batch_dimensions, *numbers.lhs_contracting_dimensions)
    right = (*numbers.rhs_batch_dimensions, *numbers.rhs_contracting_dimensions, *group)
    # The result's dimensions: its group, the batch, then the free dimensions of each side.
    has_own_group = meaning.mode is RaggedMode.CONTRACTING
    kept = [
        *numbers.lhs_batch_dimensions,
        *(d for d in range(ranks[0]) if d not in left),
    ]
    columns = [d for d in range(ranks[1]) if d not in right]
    over = [lhs.array_shape.dimensions[d] for d in numbers.lhs_contracting_dimensions]

    def everywhere(scope: Accesses, at: Sequence[Index], along: Sequence[Index]) -> None:
        variables = index_variables([*at, *along])
        for operand in (lhs, rhs, sizes):
            scope.value(operand, [Opaque(None, variables)] * operand.array_shape.rank)

    elements = ElementLoops(frame, shape.dimensions, over, [instruction], results, everywhere)
    total = Products(shape.element_type)
    start, end = (buffer(name, (1,), "int64", scope="local") for name in ("start", "end"))
    zero = const(0, "int32")

    def places() -> tuple[dict[int, Expr], dict[int, Expr]]:
        """The indices of both sides, but for the group's, by dimension."""
        emitter = elements.emitter()
        at = [emitter.expression(index) for index in elements.at][has_own_group:]
        along = [emitter.expression(index) for index in elements.over]
        a = dict(zip(kept, at[: len(kept)], strict=True))
        b = dict(zip(numbers.rhs_batch_dimensions, at, strict=False))
        a |= dict(zip(numbers.lhs_contracting_dimensions, along, strict=False))
        b |= dict(zip(numbers.rhs_contracting_dimensions, along, strict=False))
        return a, b | dict(zip(columns, at[len(kept) :], strict=True))

    def product(number: Expr) -> list[Stmt]:
        a, b = places()
        b |= dict.fromkeys(group, number)
        emitter = elements.emitter()
        x = emitter.value(lhs, _opaque(a))
        return total.add(emitter, x, emitter.value(rhs, _opaque(b)))

    def in_groups(body: Body) -> Stmt:
        """``body`` for each group that has the position along the ragged dimension."""
        a, _ = places()
        position = tirx.Cast("int64", a[meaning.ragged])

        def one(number: Expr) -> Stmt:
            emitter = elements.emitter()
            prefix = [a[d] for d in meaning.prefix] if sizes.array_shape.rank > 1 else []
            size = emitter.value(sizes, _opaque(dict(enumerate([*prefix, number]))))
            begin = store(end, zero, start[zero] + tirx.Cast("int64", size))
            is_inside = tirx.And(start[zero] <= position, position < end[zero])
            return seq(
                *emitter.allocations,
                *emitter.statements,
                begin,
                IfThenElse(is_inside, seq(*body(number)), None),
                store(start, zero, end[zero]),
            )

        return seq(store(start, zero, const(0, "int64")), loop(count, one, dtype=dtype))

    def sums() -> Stmt:
        if meaning.mode is RaggedMode.BATCH:
            return elements.steps(lambda: product(const(0, dtype)))
        if not has_own_group:
            return in_groups(lambda number: [elements.steps(lambda: product(number))])
        own = elements.emitter().expression(elements.at[0])
        return elements.steps(
            lambda: [
                in_groups(lambda n: [IfThenElse(own.equal(n), seq(*product(n)), None)]),
            ]
        )

    def element() -> list[Stmt]:
        made = [AllocBuffer(start), AllocBuffer(end), *total.begin(), sums()]
        value = elements.emitter().settled(total.value(), shape.element_type)
        return [*made, *elements.finish([value])]

    return elements.kernel(element)


def _opaque(where: dict[int, Expr]) -> list[Opaque]:
    return [Opaque(where[d], frozenset()) for d in range(len(where))]
