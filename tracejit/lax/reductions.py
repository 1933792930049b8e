"""Reductions, windows, sorting and normalisation, spelled as in `jax.lax`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tracejit import tree
from tracejit.graph import Instruction
from tracejit.lax.computations import scalar_function
from tracejit.lax.elementwise import operands
from tracejit.ops import normalisation, reduction, windows
from tracejit.ops.constants import elements_of
from tracejit.ops.windows import Padding
from tracejit.shapes import element_type_of
from tracejit.trace.convert import operand
from tracejit.trace.examples import documented
from tracejit.trace.public import public
from tracejit.trace.tracer import lift

Reducer = Callable[..., Any]


def _pairs(operands_: Any, init_values: Any) -> tuple[list[Instruction], list[Instruction], Any]:
    arrays, structure = tree.flatten(operands_)
    values = [operand(a).natural for a in arrays]
    inits = tree.leaves(init_values)
    starts = [operand(i).to(v.array_shape.element_type) for i, v in zip(inits, values, strict=True)]
    return values, starts, structure


def _computation(function: Reducer, values: Sequence[Instruction], structure: Any) -> Any:
    """A reducer of two trees of numbers as a computation."""
    types = [v.array_shape.element_type for v in values]
    count = len(types)

    def flat(*numbers: Any) -> Any:
        both = (tree.unflatten(structure, part) for part in (numbers[:count], numbers[count:]))
        return function(*both)

    flat.__name__ = getattr(function, "__name__", "reducer")
    return scalar_function(flat, types * 2)


def _results(made: Instruction, structure: Any) -> Any:
    return tree.unflatten(structure, [lift(e) for e in elements_of(made)])


@public
def reduce(
    operands_: Any, init_values: Any, computation: Reducer, dimensions: Sequence[int]
) -> Any:
    """The elements along ``dimensions`` combined by an associative function of two numbers.

    Raises `ArgumentError` for what is no array of numbers, `ShapeError` for shapes that do not
    fit and `DimensionError` for an axis that the array lacks.

    >>> tj.lax.reduce(np.array([1.0, 2.0, 3.0]), 0.0, np.add, (0,))
    np.float64(6.0)
    """
    values, inits, structure = _pairs(operands_, init_values)
    reducer = _computation(computation, values, structure)
    return _results(reduction.reduce(values, inits, reducer, dimensions), structure)


def _reduction(title: str, builder: Callable[..., Instruction]) -> Any:
    def record(operand_: Any, axes: Sequence[int]) -> Any:
        return lift(builder(operand(operand_).natural, tuple(axes)))

    record.__name__ = record.__qualname__ = title
    record.__doc__ = documented(str(builder.__doc__), f"lax.{title}")
    return public(record)


reduce_sum = _reduction("reduce_sum", reduction.reduce_sum)
reduce_prod = _reduction("reduce_prod", reduction.reduce_prod)
reduce_max = _reduction("reduce_max", reduction.reduce_max)
reduce_min = _reduction("reduce_min", reduction.reduce_min)
reduce_and = _reduction("reduce_and", reduction.reduce_and)
reduce_or = _reduction("reduce_or", reduction.reduce_or)
reduce_xor = _reduction("reduce_xor", reduction.reduce_xor)


@public
def argmax(operand_: Any, axis: int, index_dtype: Any) -> Any:
    """Where the first greatest element along ``axis`` is.

    Raises `ArgumentError` for what is no array of numbers, `DimensionError` for an axis that
    the array lacks and `ConcretizationError` for an option that is unknown while tracing.

    >>> tj.lax.argmax(np.array([1.0, 5.0, 3.0]), 0, np.int32)
    np.int32(1)
    """
    return lift(reduction.argmax(operand(operand_).natural, axis, element_type_of(index_dtype)))


@public
def argmin(operand_: Any, axis: int, index_dtype: Any) -> Any:
    """Where the first least element along ``axis`` is.

    Raises `ArgumentError` for what is no array of numbers, `DimensionError` for an axis that
    the array lacks and `ConcretizationError` for an option that is unknown while tracing.

    >>> tj.lax.argmin(np.array([1.0, 5.0, 3.0]), 0, np.int32)
    np.int32(0)
    """
    return lift(reduction.argmin(operand(operand_).natural, axis, element_type_of(index_dtype)))


@public
def reduce_window(
    operand_: Any,
    init_value: Any,
    computation: Reducer,
    window_dimensions: Sequence[int],
    window_strides: Sequence[int] | None = None,
    padding: Padding = "VALID",
    base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> Any:
    """The elements within each position of a window combined by an associative function.

    Raises `ArgumentError` for what is no array of numbers, `ShapeError` for shapes that do not
    fit and `AttributeValueError` for an option or a size out of range.

    >>> tj.lax.reduce_window(np.array([1.0, 3.0, 2.0]), -np.inf, np.maximum, (2,))
    array([3., 3.])
    """
    values, inits, structure = _pairs(operand_, init_value)
    made = windows.reduce_window(
        values,
        inits,
        _computation(computation, values, structure),
        window_dimensions,
        window_strides,
        padding,
        base_dilation,
        window_dilation,
    )
    return _results(made, structure)


def _cumulative(title: str, name: str) -> Any:
    def record(operand_: Any, axis: int = 0, reverse: bool = False) -> Any:
        return lift(windows.cumulative(name, operand(operand_).natural, axis, reverse))

    record.__name__ = record.__qualname__ = title
    about = f"Each element combined by {name} with all before it (after it, if reverse)."
    record.__doc__ = documented(about, f"lax.{title}")
    return public(record)


cumsum = _cumulative("cumsum", "add")
cumprod = _cumulative("cumprod", "mul")
cummax = _cumulative("cummax", "max")
cummin = _cumulative("cummin", "min")


@public
def sort(operand_: Any, dimension: int = -1, is_stable: bool = True, num_keys: int = 1) -> Any:
    """The elements in rising order; several arrays all in the order of the first ``num_keys``.

    Where elements of the first are equal, those of the second decide, and so on. Raises
    `AttributeValueError` for more keys than arrays.

    >>> tj.lax.sort(np.array([3.0, 1.0, 2.0]))
    array([1., 2., 3.])
    """
    many = isinstance(operand_, list | tuple)
    values = [operand(o).natural for o in (operand_ if many else [operand_])]
    types = (value.array_shape.element_type for value in values)
    order = reduction.sort_order(*types, num_keys=num_keys)
    made = reduction.sort(values, order, dimension, is_stable)
    results = [lift(e) for e in elements_of(made)]
    return tuple(results) if many else results[0]


@public
def sort_key_val(keys: Any, values: Any, dimension: int = -1, is_stable: bool = True) -> Any:
    """(keys, values): the keys in rising order along ``dimension``, the values in that of the keys.

    Raises `ShapeError` for arrays of two shapes.

    >>> tj.lax.sort_key_val(np.array([3, 1, 2]), np.array([30, 10, 20]))
    (array([1, 2, 3]), array([10, 20, 30]))
    """
    return sort((keys, values), dimension, is_stable)


def _approximate(title: str, name: str, is_max: bool) -> Any:
    def record(
        operand_: Any,
        k: int,
        reduction_dimension: int = -1,
        recall_target: float = 0.95,
        reduction_input_size_override: int = -1,
        aggregate_to_topk: bool = True,
    ) -> Any:
        value = lift(operand(operand_).natural, False)
        moved = value.swapaxes(reduction_dimension, -1)
        values, indices = top_k(moved if is_max else -moved, k)
        made = (values if is_max else -values), indices
        return tuple(one.swapaxes(reduction_dimension, -1) for one in made)

    record.__name__ = record.__qualname__ = title
    about = (
        f"(values, indices) of the ``k`` {name} elements along one dimension: exactly these, "
        "whatever ``recall_target`` allows."
    )
    record.__doc__ = documented(about, f"lax.{title}")
    return public(record)


approx_max_k = _approximate("approx_max_k", "greatest", True)
approx_min_k = _approximate("approx_min_k", "least", False)


@public
def top_k(operand_: Any, k: int) -> Any:
    """(values, indices) of the ``k`` greatest along the last dimension.

    Raises `ArgumentError` for what is no array of numbers, `ShapeError` for shapes that do not
    fit, `AttributeValueError` for an option or a size out of range and `ConcretizationError`
    for an option that is unknown while tracing.

    >>> tj.lax.top_k(np.array([3.0, 1.0, 2.0]), 2)
    (array([3., 2.]), array([0, 2], dtype=int32))
    """
    made = reduction.top_k(operand(operand_).natural, k)
    return tuple(lift(e, False) for e in elements_of(made))


@public
def batch_norm_training(
    operand_: Any, scale: Any, offset: Any, epsilon: float, feature_index: int
) -> Any:
    """(output, batch_mean, batch_var): normalised per feature over all other dimensions.

    Raises `ArgumentError` for what is no array of numbers, `ShapeError` for shapes that do not
    fit, `DimensionError` for an axis that the array lacks, `AttributeValueError` for an option
    or a size out of range and `ConcretizationError` for an option that is unknown while
    tracing.

    >>> tj.lax.batch_norm_training(np.array([[1.0], [3.0]]), np.ones(1), np.zeros(1), 1e-5, 1)[1]
    array([2.])
    """
    values = operands(operand_, scale, offset)
    made = normalisation.batch_norm_training(
        values[0], values[1], values[2], epsilon, feature_index
    )
    return tuple(lift(e) for e in elements_of(made))


@public
def batch_norm_inference(
    operand_: Any,
    scale: Any,
    offset: Any,
    mean: Any,
    variance: Any,
    epsilon: float,
    feature_index: int,
) -> Any:
    """Normalised per feature by estimates of mean and variance.

    Raises `ArgumentError` for what is no array of numbers, `ShapeError` for shapes that do not
    fit, `DimensionError` for an axis that the array lacks, `AttributeValueError` for an option
    or a size out of range and `ConcretizationError` for an option that is unknown while
    tracing.

    >>> tj.lax.batch_norm_inference(
    ...     np.array([[1.0], [3.0]]),
    ...     np.ones(1),
    ...     np.zeros(1),
    ...     np.array([2.0]),
    ...     np.ones(1),
    ...     1e-5,
    ...     1,
    ... ).round(4)
    array([[-1.],
           [ 1.]])
    """
    v = operands(operand_, scale, offset, mean, variance)
    made = normalisation.batch_norm_inference(v[0], v[1], v[2], v[3], v[4], epsilon, feature_index)
    return lift(made)


@public
def batch_norm_grad(
    operand_: Any,
    scale: Any,
    mean: Any,
    variance: Any,
    grad_output: Any,
    epsilon: float,
    feature_index: int,
) -> Any:
    """(grad_operand, grad_scale, grad_offset) of `batch_norm_training`.

    Raises `ArgumentError` for what is no array of numbers, `ShapeError` for shapes that do not
    fit, `DimensionError` for an axis that the array lacks, `AttributeValueError` for an option
    or a size out of range and `ConcretizationError` for an option that is unknown while
    tracing.

    >>> tj.lax.batch_norm_grad(
    ...     np.array([[1.0], [3.0]]),
    ...     np.ones(1),
    ...     np.array([2.0]),
    ...     np.ones(1),
    ...     np.array([[1.0], [0.0]]),
    ...     1e-5,
    ...     1,
    ... )[2]
    array([1.])
    """
    v = operands(operand_, scale, mean, variance, grad_output)
    made = normalisation.batch_norm_grad(v[0], v[1], v[2], v[3], v[4], epsilon, feature_index)
    return tuple(lift(e) for e in elements_of(made))
