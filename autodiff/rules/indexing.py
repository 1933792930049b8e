"""Gather and Scatter.

A Gather clamps its indices and a Scatter drops those out of range, so a Gather's derivative clamps
before it scatters, and a Scatter's keeps what it gathers only where the window lies inside.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from tracejit.autodiff.composition import pullback_through
from tracejit.autodiff.reverse import Cotangent, Cotangents, differentiate
from tracejit.autodiff.rules.reduction import index_type, listed
from tracejit.autodiff.scatter_windows import Windows, index_limits
from tracejit.errors import DerivativeError
from tracejit.graph import Computation, Instruction, Op
from tracejit.ops.comparison import eq, lt, ne
from tracejit.ops.computations import scalar_computation
from tracejit.ops.constants import constant, elements_of, iota, parameter
from tracejit.ops.element_types import convert_element_type
from tracejit.ops.elementwise import ADD, MAX, MIN, MUL, SUB, add, and_, clamp, div, mul, select
from tracejit.ops.elementwise_unary import neg
from tracejit.ops.indexing import (
    GATHER,
    SCATTER,
    ScatterDimensionNumbers,
    replace_computation,
    scatter,
)
from tracejit.ops.layout import full, full_like, pad, reshape, scalar_like
from tracejit.ops.lifting import applied_to_elements
from tracejit.ops.reduction import sort
from tracejit.shapes import Shape

# What one operand's new value is: one op of the old value and the update, the update itself, the
# old value itself, or something else.
Combination = Op | Literal["update", "old"] | None
SUPPORTED = (ADD, SUB, MUL, MAX, MIN, "update", "old")


@differentiate.attach(GATHER)
def gather_rule(instruction: Instruction, cotangent: Instruction) -> Cotangents:
    operand, indices = instruction.operands
    attributes = instruction.attributes
    sizes, vector_dim = attributes["slice_sizes"], attributes["index_vector_dim"]
    limits = [operand.array_shape.dimensions[d] - sizes[d] for d in attributes["start_index_map"]]
    inside = clamp(scalar_like(indices, 0), indices, index_limits(indices, vector_dim, limits))
    numbers = ScatterDimensionNumbers(
        update_window_dims=attributes["offset_dims"],
        inserted_window_dims=attributes["collapsed_slice_dims"],
        scatter_dims_to_operand_dims=attributes["start_index_map"],
        index_vector_dim=vector_dim,
        input_batching_dims=attributes["operand_batching_dims"],
        scatter_indices_batching_dims=attributes["start_indices_batching_dims"],
    )
    added = scalar_computation("add", operand.array_shape.element_type)
    is_sorted = attributes["indices_are_sorted"]
    return [
        scatter(full_like(operand, 0), inside, cotangent, added, numbers, is_sorted),
        None,
    ]


@differentiate.attach(SCATTER)
def scatter_rule(instruction: Instruction, cotangent: Instruction | Cotangents) -> Cotangents:
    count = len(instruction.operands) // 2
    inputs, updates = instruction.operands[:count], instruction.operands[count + 1 :]
    indices = instruction.operands[count]
    windows = Windows(
        instruction.attributes, inputs[0].array_shape, indices, updates[0].array_shape
    )
    kinds = _combinations(instruction.attributes["to_apply"], count)
    arriving = listed(cotangent)
    wanted = [k for k, c in zip(kinds, arriving, strict=True) if c is not None]
    if not all(kind in SUPPORTED for kind in wanted):
        return _combined_rule(instruction, windows, arriving)
    results = elements_of(instruction)
    to_inputs: list[Cotangent] = []
    to_updates: list[Cotangent] = []
    for kind, part, operand, update, result in zip(
        kinds, arriving, inputs, updates, results, strict=True
    ):
        back = (None, None) if part is None else _rule(kind, windows, part, operand, update, result)
        to_inputs.append(back[0])
        to_updates.append(back[1])
    return [*to_inputs, None, *to_updates]


def _combinations(computation: Computation, count: int) -> list[Combination]:
    """What the computation does with each of ``count`` operands, where it keeps them apart."""
    root = computation.root
    roots = (root,) if count == 1 else elements_of(root)
    kinds: list[Combination] = []
    for index, made in enumerate(roots):
        old, update = computation.parameters[index], computation.parameters[count + index]
        if made in (old, update):
            kinds.append("old" if made is old else "update")
        elif made.operands == (old, update):
            kinds.append(made.op)
        else:
            swapped = made.operands == (update, old) and made.op in (ADD, MUL, MAX, MIN)
            kinds.append(made.op if swapped else None)
    return kinds


def _rule(
    kind: Combination,
    windows: Windows,
    cotangent: Instruction,
    operand: Instruction,
    update: Instruction,
    result: Instruction,
) -> tuple[Cotangent, Cotangent]:
    """The cotangents of one operand and of its updates."""
    if kind == "old":
        return cotangent, None
    if kind == "update":
        # Read first, so that the zeros may be written where the cotangent lies.
        back = _where(_last_writers(windows), windows.gather(cotangent))
        return windows.scatter(cotangent, full_like(update, 0), _replace(update)), back
    if kind in (ADD, SUB):
        back = _where(windows.inside(), windows.gather(cotangent))
        return cotangent, back if kind is ADD else neg(back)
    if kind in (MAX, MIN):
        return _extremum_rule(windows, cotangent, operand, update, result)
    back_operand, _, back_update = pullback_through(
        lambda x, indices, u: [_product(replace(windows, indices=indices), x, u)],
        [operand, windows.indices, update],
        [cotangent],
    )
    return back_operand, back_update


def _replace(array: Instruction) -> Computation:
    return replace_computation(array.array_shape.element_type)


def _where(mask: Instruction, array: Instruction, otherwise: int = 0) -> Instruction:
    return select(mask, array, full_like(array, otherwise))


def _last_writers(windows: Windows) -> Instruction:
    """For each update whether the result holds it: it was not dropped, and none came after it."""
    if windows.attributes["unique_indices"]:
        return windows.inside()
    shape = windows.update.with_element_type(index_type(windows.update.size + 1))
    numbers = reshape(iota(Shape(shape.element_type, (shape.size,))), shape.dimensions)
    numbers = add(numbers, full(shape, 1))
    nothing = full(windows.operand.with_element_type(shape.element_type), 0)
    written = windows.scatter(nothing, numbers, _replace(numbers))
    return eq(windows.gather(written), numbers)


def _extremum_rule(
    windows: Windows,
    cotangent: Instruction,
    operand: Instruction,
    update: Instruction,
    result: Instruction,
) -> tuple[Cotangent, Cotangent]:
    """Everything that equals the extremum has an equal share of the cotangent."""
    element_type = operand.array_shape.element_type
    kept = eq(operand, result)
    taken = and_(windows.inside(), eq(update, windows.gather(result)))
    ties = windows.scatter(
        convert_element_type(kept, element_type),
        convert_element_type(taken, element_type),
        scalar_computation("add", element_type),
    )
    share = div(cotangent, ties)
    return _where(kept, share), _where(taken, windows.gather(share))


def _combined(
    windows: Windows,
    computation: Computation,
    inputs: Sequence[Instruction],
    updates: Sequence[Instruction],
) -> list[Instruction]:
    """A Scatter to different places as an elementwise computation between gather and scatter."""
    inside = windows.inside()
    # What is dropped computes with ones, so that it makes no infinities or NaN on the way.
    present = [_where(inside, windows.gather(x), 1) for x in inputs]
    given = [_where(inside, u, 1) for u in updates]
    made = applied_to_elements(computation, [*present, *given])
    return [windows.scatter(x, new, _replace(x)) for x, new in zip(inputs, made, strict=True)]


def _combined_rule(
    instruction: Instruction, windows: Windows, cotangents: Sequence[Cotangent]
) -> Cotangents:
    """The derivative of any computation, given that no two updates go to one place."""
    if not instruction.attributes["unique_indices"]:
        raise DerivativeError(
            "scatter: where indices may repeat, only adding, subtracting, multiplying, replacing "
            "and taking the maximum or minimum have a derivative; unique_indices=True says that "
            "they do not repeat",
            instruction.source,
        )
    count = len(instruction.operands) // 2

    def function(*arrays: Instruction) -> Sequence[Instruction]:
        inputs, indices, updates = arrays[:count], arrays[count], arrays[count + 1 :]
        moved = replace(windows, indices=indices)
        return _combined(moved, instruction.attributes["to_apply"], inputs, updates)

    return pullback_through(function, instruction.operands, cotangents)


def _product(windows: Windows, operand: Instruction, update: Instruction) -> Instruction:
    """A Scatter that multiplies, as a graph whose derivative is right at zeros too.

    Where indices may repeat the updates are sorted by their places; then each is multiplied by the
    one before it if that goes to the same place, by the product of the two before, of the four
    before and so on, so that the last of each place has the product of all.
    """
    times = scalar_computation("mul", operand.array_shape.element_type)
    if windows.attributes["unique_indices"]:
        return _combined(windows, times, [operand], [update])[0]
    count, size = windows.update.size, windows.operand.size
    place_type = index_type(2 * count + size + 1)
    key, value = Shape(place_type), Shape(operand.array_shape.element_type)
    places, products = elements_of(
        sort(
            [
                reshape(windows.targets(place_type), (count,)),
                reshape(update, (count,)),
            ],
            _by_place(key, value),
            is_stable=True,
        )
    )
    before, one = constant(-1, place_type), scalar_like(products, 1)
    distance = 1
    while distance < count:
        shift = [(distance, -distance, 0)]
        same = eq(pad(places, before, shift), places)
        products = select(same, mul(pad(products, one, shift), products), products)
        distance *= 2
    is_last = ne(pad(places, before, [(-1, 1, 0)]), places)
    # The others go nowhere, to numbers beyond the operand, all different.
    nowhere = add(iota(places.array_shape), full_like(places, size + count))
    flat = scatter(
        reshape(operand, (size,)),
        select(is_last, places, nowhere),
        products,
        times,
        ScatterDimensionNumbers((), (0,), (0,), 1),
        unique_indices=True,
    )
    return reshape(flat, operand.array_shape.dimensions)


def _by_place(key: Shape, value: Shape) -> Computation:
    """The comparator that puts pairs in the order of their places."""
    parameters = tuple(parameter(i, s) for i, s in enumerate((key, key, value, value)))
    return Computation("by_place", parameters, lt(parameters[0], parameters[1]))
