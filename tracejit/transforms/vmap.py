"""`vmap`: a function of single arrays becomes one of whole batches.

vmap(f)(xs)                               f of every xs[i], stacked
vmap(f, in_axes=(None, 1), out_axes=1)    the same first argument for all; columns of the second

The function is recorded once, on one element, and its graph is batched op by op: a product of
matrices becomes a batched product, not a loop.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast

import numpy as np
import optree

from tracejit import tree
from tracejit.batching.batch import Batched, batch
from tracejit.errors import ArgumentError, ShapeError
from tracejit.ops.constants import iota
from tracejit.ops.dimensions import moved
from tracejit.shapes import ElementType, Shape
from tracejit.trace.context import current_trace
from tracejit.trace.named_axes import MappedAxis, over_batch
from tracejit.trace.recording import recording
from tracejit.trace.tracer import Tracer
from tracejit.tracebacks import api_boundary
from tracejit.transforms.jit.signature import Parameters, title_of
from tracejit.transforms.jit.staging import Output, outputs_of
from tracejit.transforms.recorded import Run, run
from tracejit.transforms.transform_of_jit import as_compiled
from tracejit.traversal import in_order
from tracejit.tree_keys import NAMESPACE

Function = Callable[..., Any]
F = TypeVar("F", bound=Callable[..., Any])
Axes = Any  # an int, None, or a tree of them


def vmap(
    function: F,
    in_axes: Axes = 0,
    out_axes: Axes = 0,
    axis_size: int | None = None,
    axis_name: str | None = None,
) -> F:
    """``function`` mapped over one dimension of its arguments.

    ``in_axes`` says which: an int for all positional arguments, or a tuple (or list) with one
    entry for each, which may be an int, None for an argument that is the same for all, or a tree
    of these that the argument's tree begins with. Keyword arguments are mapped over dimension 0.
    ``out_axes`` says where the new dimension stands in the results, None for a result that is
    the same for all. Negative numbers count from the back. ``axis_size`` is needed only when
    nothing is mapped. ``axis_name`` is what collective functions (`lax.psum` …) call the axis.

    Raises `ArgumentError` for axes that do not fit the arguments' or results' trees, `ShapeError`
    for sizes that differ, `UnsupportedError` for an op that cannot be batched, naming its line.

    >>> tj.vmap(np.dot, in_axes=(0, None))(np.ones((3, 2)), np.ones(2))
    array([2., 2., 2.])
    """
    parameters = Parameters(function, title_of(function))

    @api_boundary
    @functools.wraps(function)
    def mapped(*args: Any, **kwargs: Any) -> Any:
        axes = _axes_of_leaves(in_axes, args, kwargs, parameters)
        size = _size(axes, args, kwargs, axis_size, parameters)
        named = None if axis_name is None else _Named(function, axis_name, size)
        ran = run(
            named or function,
            parameters,
            args,
            kwargs,
            (),
            lambda result: outputs_of(result, parameters.title),
            axes,
        )
        return _batched(ran, size, out_axes, named)

    key = ("vmap", repr((in_axes, out_axes, axis_size, axis_name)))
    return cast(F, as_compiled(function, mapped, key))


class _Named:
    """A function that runs with a name for the axis it is mapped over."""

    def __init__(self, function: Function, name: str, size: int) -> None:
        functools.update_wrapper(self, function)
        self._function = function
        self._name = name
        self._size = size
        self.axis: MappedAxis | None = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        trace = current_trace()
        assert trace is not None, "vmap records"
        index = trace.parameter(Shape(ElementType.S32), lambda: f"the index along {self._name!r}")
        self.axis = MappedAxis(self._name, self._size, index)
        function = recording(self._function) if trace.record_numpy else self._function
        with self.axis.bound():
            return function(*args, **kwargs)


def _batched(ran: Run, size: int, out_axes: Axes, named: _Named | None = None) -> Any:
    outputs, structure = ran.result
    wanted = _prefix(out_axes, structure, f"out_axes of {ran.title}")
    known = {
        one.element: Batched(moved(one.parameter, one.axis, 0), True)
        for one in ran.inputs.values()
        if one.axis is not None
    }
    channel = -1
    if named is not None and named.axis is not None:
        numbers = iota(Shape(ElementType.S32, (size,)))
        known[named.axis.index] = Batched(numbers, True)
        channel = named.axis.channel
    instructions = [output.instruction for output in outputs]
    with over_batch(channel):
        values = batch([*instructions, *ran.trace.effects], known, size)
    done = in_order([effect.value for effect in values[len(outputs) :]])
    ran.perform([instruction for instruction in done if instruction.has_effect])
    made = [
        _placed(value, output, axis, size, ran.title)
        for value, output, axis in zip(values[: len(outputs)], outputs, wanted, strict=True)
    ]
    return tree.unflatten(structure, ran.finish(made))


def _placed(value: Batched, output: Output, axis: int | None, size: int, title: str) -> Output:
    """A result with the batch where ``out_axes`` wants it."""
    if axis is None:
        if value.is_batched:
            raise ArgumentError(
                f"vmap: out_axes of {title} says None for a result {output.instruction.shape} "
                f"that is not the same for all"
            )
        return Output(value.value, output.is_weak, output.is_scalar)
    rank = output.instruction.array_shape.rank + 1
    if not -rank <= axis < rank:
        raise ArgumentError(
            f"vmap: out_axes of {title} says {axis} for a result of rank {rank} with the batch"
        )
    return Output(moved(value.stretched(size), 0, axis % rank), False, False)


def _axes_of_leaves(
    in_axes: Axes, args: tuple[Any, ...], kwargs: dict[str, Any], parameters: Parameters
) -> list[int | None]:
    """The dimension that each leaf of (args, kwargs) is mapped over, counted from the front."""
    what = f"in_axes of {parameters.title}"
    if isinstance(in_axes, list):
        in_axes = tuple(in_axes)
    if isinstance(in_axes, tuple) and len(in_axes) != len(args):
        raise ArgumentError(
            f"vmap: {what} has {len(in_axes)} entries for {len(args)} positional arguments"
        )
    given = in_axes if isinstance(in_axes, tuple) else (in_axes,) * len(args)
    axes: list[int | None] = []
    for position, (argument, entry) in enumerate(zip(args, given, strict=True)):
        leaves, structure = tree.flatten(argument)
        name = f"argument {parameters.name_of(position)} of {parameters.title}"
        entries = _prefix(entry, structure, f"in_axes for {name}")
        axes += [_axis(leaf, a, name) for leaf, a in zip(leaves, entries, strict=True)]
    for leaf in tree.leaves(kwargs):
        axes.append(_axis(leaf, 0, f"a keyword argument of {parameters.title}"))
    return axes


def _axis(leaf: Any, axis: int | None, name: str) -> int | None:
    if axis is None:
        return None
    rank = np.ndim(leaf) if not isinstance(leaf, Tracer) else leaf.ndim
    if not -rank <= axis < rank:
        raise ShapeError(
            f"vmap: {name} has rank {rank} and is to be mapped over dimension {axis}; pass None in "
            f"in_axes for what is the same for all"
        )
    return axis % rank


def _prefix(axes: Axes, structure: tree.Structure, what: str) -> list[int | None]:
    """One entry for each leaf, from a tree that ``structure`` begins with."""

    def is_entry(value: Any) -> bool:
        return value is None or isinstance(value, int)

    full = tree.unflatten(structure, range(structure.num_leaves))
    try:
        entries: list[Any] = optree.broadcast_prefix(
            axes, full, is_leaf=is_entry, none_is_leaf=True, namespace=NAMESPACE
        )
    except ValueError as error:
        raise ArgumentError(f"vmap: {what} does not fit: {axes!r} for {structure}") from error
    leaves = optree.tree_leaves(full, none_is_leaf=True, namespace=NAMESPACE)
    chosen = [e for e, leaf in zip(entries, leaves, strict=True) if leaf is not None]
    for entry in chosen:
        if not is_entry(entry) or isinstance(entry, bool):
            raise ArgumentError(f"vmap: {what} must hold integers and None, not {entry!r}")
    return chosen


def _size(
    axes: Sequence[int | None],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    axis_size: int | None,
    parameters: Parameters,
) -> int:
    """The size of the batch, on which all mapped arguments agree."""
    leaves, structure = tree.flatten((args, kwargs))
    sizes = {
        number: int(np.shape(leaf)[axis] if not isinstance(leaf, Tracer) else leaf.shape[axis])
        for number, (leaf, axis) in enumerate(zip(leaves, axes, strict=True))
        if axis is not None
    }
    if axis_size is None and not sizes:
        raise ArgumentError(
            f"vmap: no argument of {parameters.title} is mapped; pass axis_size, or an axis in "
            f"in_axes"
        )
    found = set(sizes.values()) | ({axis_size} if axis_size is not None else set())
    if len(found) > 1:
        listed = ", ".join(
            f"{parameters.describe(structure, number, range(len(args)))}: {size}"
            for number, size in sizes.items()
        )
        wanted = "" if axis_size is None else f"; axis_size is {axis_size}"
        raise ShapeError(f"vmap: mapped dimensions must be equally long; {listed}{wanted}")
    return int(found.pop())
