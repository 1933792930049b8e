"""Shape functions: the shapes of an op's outputs from those of its inputs and its attributes.

def rows_of_three(c):
    c.set_output(0, c.matrix(c.dim(c.input(0), 0), 3))

A shape is a tuple of sizes; an unknown size, or a whole unknown shape, is None.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import Any

from tracejit.custom_ops.definition import Argument, Definition
from tracejit.custom_ops.users_functions import raised_by
from tracejit.errors import ArgumentError, ShapeError

Size = int | None
Sizes = tuple[Size, ...] | None


class InferenceContext:
    """What a shape function sees, and where it puts its results.

    ``inputs`` has one shape for each array among the inputs, in order. A function may also return
    the shapes: one for an op with one output, else a sequence of them.
    """

    def __init__(
        self, definition: Definition, attrs: Mapping[str, Any], inputs: Sequence[Sizes]
    ) -> None:
        self._definition = definition
        self._inputs = tuple(inputs)
        self.attrs = dict(attrs)
        count = len(definition.flat_types(definition.outputs, attrs))
        self._outputs: list[Sizes] = [None] * count

    @property
    def num_inputs(self) -> int:
        return len(self._inputs)

    @property
    def num_outputs(self) -> int:
        return len(self._outputs)

    @property
    def outputs(self) -> tuple[Sizes, ...]:
        """The shapes set so far."""
        return tuple(self._outputs)

    def get_attr(self, name: str) -> Any:
        """An attribute's value. Raises `ArgumentError` for a name the op does not have."""
        if name not in self.attrs:
            raise ArgumentError(f"{self._definition.name}: has no attribute {name!r}")
        return self.attrs[name]

    def input(self, which: int | str) -> Sizes:
        """The shape of an input, by its number among all arrays or by its name."""
        places = self._places(self._definition.inputs, which, self.num_inputs)
        return self._inputs[places[0]]

    def inputs(self, name: str) -> list[Sizes]:
        """The shapes of all arrays of one input."""
        places = self._places(self._definition.inputs, name, self.num_inputs)
        return [self._inputs[place] for place in places]

    def set_output(self, which: int | str, shape: Any) -> None:
        """Sets the shape of an output, by number or name; of a list by name, all its shapes."""
        places = self._places(self._definition.outputs, which, self.num_outputs)
        is_list = isinstance(which, str) and self._definition.is_list(
            next(o for o in self._definition.outputs if o.name == which)
        )
        shapes = list(shape) if is_list else [shape]
        if len(shapes) != len(places):
            raise self._error(f"output {which!r} has {len(places)} arrays, not {len(shapes)}")
        for place, one in zip(places, shapes, strict=True):
            self._outputs[place] = self.make_shape(one)

    def _places(self, arguments: Sequence[Argument], which: int | str, count: int) -> range:
        if isinstance(which, int):
            if not -count <= which < count:
                raise self._error(f"there is no array number {which} of {count}")
            return range(which % count, which % count + 1)
        start = 0
        for argument in arguments:
            own = len(self._definition.types(argument, self.attrs))
            if argument.name == which:
                return range(start, start + own)
            start += own
        raise self._error(f"has no input or output {which!r}")

    def _error(self, sentence: str) -> ShapeError:
        return ShapeError(f"{self._definition.name}: {sentence}")

    def make_shape(self, shape: Any) -> Sizes:
        """A shape from any sequence of sizes; None is a shape that is not known."""
        if shape is None:
            return None
        try:
            sizes = tuple(None if size is None else operator.index(size) for size in shape)
        except TypeError:
            raise self._error(f"a shape is a sequence of integers or None, not {shape!r}") from None
        if any(size is not None and size < 0 for size in sizes):
            raise self._error(f"the sizes of {list(sizes)} must not be negative")
        return sizes

    def unknown_shape(self) -> Sizes:
        return None

    def unknown_dim(self) -> Size:
        return None

    def scalar(self) -> Sizes:
        return ()

    def vector(self, size: Size) -> Sizes:
        return (size,)

    def matrix(self, rows: Size, columns: Size) -> Sizes:
        return (rows, columns)

    def rank(self, shape: Sizes) -> int | None:
        """The number of dimensions; None for an unknown shape."""
        return None if shape is None else len(shape)

    def dim(self, shape: Sizes, number: int) -> Size:
        """One size; a negative number counts from the back."""
        if shape is None:
            return None
        if not -len(shape) <= number < len(shape):
            raise self._error(f"dimension {number} is out of range for {list(shape)}")
        return shape[number]

    def with_rank(self, shape: Sizes, rank: int) -> Sizes:
        """``shape``, of exactly this rank. Raises `ShapeError` for another one."""
        if shape is None:
            return (None,) * rank
        if len(shape) != rank:
            raise self._error(f"shape {list(shape)} must have rank {rank}, it has {len(shape)}")
        return shape

    def with_rank_at_least(self, shape: Sizes, rank: int) -> Sizes:
        """``shape``, of this rank or more. Raises `ShapeError` for a smaller one."""
        if shape is not None and len(shape) < rank:
            raise self._error(f"shape {list(shape)} must have at least rank {rank}")
        return shape

    def with_rank_at_most(self, shape: Sizes, rank: int) -> Sizes:
        """``shape``, of this rank or less. Raises `ShapeError` for a greater one."""
        if shape is not None and len(shape) > rank:
            raise self._error(f"shape {list(shape)} must have at most rank {rank}")
        return shape

    def with_value(self, size: Size, value: int) -> Size:
        """``size``, which must be ``value``. Raises `ShapeError` for another one."""
        return self._merged_size(size, value)

    def merge(self, first: Sizes, second: Sizes) -> Sizes:
        """Both shapes as one, known where either is. Raises `ShapeError` where they differ."""
        if first is None or second is None:
            return second if first is None else first
        if len(first) != len(second):
            raise self._error(f"shapes {list(first)} and {list(second)} must be equal")
        try:
            return tuple(map(self._merged_size, first, second))
        except ShapeError:
            raise self._error(f"shapes {list(first)} and {list(second)} must be equal") from None

    def _merged_size(self, first: Size, second: Size) -> Size:
        if first is None or second is None:
            return second if first is None else first
        if first != second:
            raise self._error(f"size {first} must be {second}")
        return first

    def add(self, first: Size, second: Size) -> Size:
        return None if first is None or second is None else first + second

    def subtract(self, first: Size, second: Size) -> Size:
        """The difference. Raises `ShapeError` where it is negative."""
        if first is None or second is None:
            return None
        if first < second:
            raise self._error(f"size {first} is less than {second}")
        return first - second

    def multiply(self, first: Size, second: Size) -> Size:
        return None if first is None or second is None else first * second

    def divide(self, size: Size, divisor: int, evenly: bool = True) -> Size:
        """The quotient, rounded down. Raises `ShapeError` where ``evenly`` leaves a rest."""
        if size is None:
            return None
        if divisor <= 0 or (evenly and size % divisor):
            raise self._error(f"size {size} is not divided by {divisor}")
        return size // divisor

    def concatenate(self, first: Sizes, second: Sizes) -> Sizes:
        """The sizes of one after those of the other."""
        return None if first is None or second is None else first + second

    def subshape(self, shape: Sizes, start: int, end: int | None = None) -> Sizes:
        """Some of the dimensions, as a slice takes them."""
        return None if shape is None else shape[start:end]

    def replace_dim(self, shape: Sizes, number: int, size: Size) -> Sizes:
        """``shape`` with another size of one dimension."""
        if shape is None:
            return None
        self.dim(shape, number)
        made = list(shape)
        made[number] = size
        return tuple(made)

    def num_elements(self, shape: Sizes) -> int | None:
        """The product of the sizes; None where any is unknown."""
        total = 1
        for size in shape if shape is not None else (None,):
            if size is None:
                return None
            total *= size
        return total


def unchanged_shape(c: InferenceContext) -> None:
    """The output has the shape of the first input."""
    c.set_output(0, c.input(0))


def scalar_shape(c: InferenceContext) -> None:
    """Every output is a scalar."""
    for number in range(c.num_outputs):
        c.set_output(number, c.scalar())


def merged_shape(c: InferenceContext) -> None:
    """All inputs have one shape, and so have all outputs."""
    shape = c.unknown_shape()
    for number in range(c.num_inputs):
        shape = c.merge(shape, c.input(number))
    for number in range(c.num_outputs):
        c.set_output(number, shape)


def infer(
    definition: Definition, attrs: Mapping[str, Any], inputs: Sequence[Sizes]
) -> tuple[Sizes, ...]:
    """What the op's shape function says of its outputs; unknown shapes where it has none."""
    context = InferenceContext(definition, attrs, inputs)
    if definition.shape_function is None:
        return context.outputs
    with raised_by(definition.name, "the shape function"):
        returned = definition.shape_function(context)
    if returned is None:
        return context.outputs
    shapes = [returned]
    outputs = definition.outputs
    if len(outputs) != 1 or definition.is_list(outputs[0]):
        shapes = list(returned)
    if len(shapes) != context.num_outputs:
        raise ShapeError(
            f"{definition.name}: the shape function must return {context.num_outputs} shapes, "
            f"not {len(shapes)}"
        )
    for number, shape in enumerate(shapes):
        context.set_output(number, shape)
    return context.outputs
