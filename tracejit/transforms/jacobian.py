"""Whole derivatives: `jacrev`, `jacfwd`, `hessian`, and `hvp` for a product with a Hessian.

jacrev(f)(x)     one reverse pass for every element of the result, batched
jacfwd(f)(x)     one forward pass for every element of the argument, batched
hessian(f)(x)    jacfwd(jacrev(f))
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any, ParamSpec, cast

import numpy as np

from tracejit import tree
from tracejit.errors import ArgumentError, DerivativeError
from tracejit.loading import load
from tracejit.shapes import Shape
from tracejit.trace.body import Abstract
from tracejit.trace.tracer import Tracer
from tracejit.tracebacks import api_boundary
from tracejit.transforms.forward import jvp, linearize
from tracejit.transforms.gradient import grad, positions_of, vjp
from tracejit.transforms.jit.signature import Parameters, Transformed, as_numbers, title_of
from tracejit.transforms.transform_of_jit import as_compiled
from tracejit.transforms.vmap import vmap

Function = Callable[..., Any]
P = ParamSpec("P")


def jacrev(
    function: Callable[P, Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    sparse: bool = False,
) -> Transformed[P, Any]:
    """The Jacobian of ``function``, by reverse mode: for many arguments and few results.

    It is a tree of the result's structure, each leaf a tree of the argument's structure (a tuple
    of them for several ``argnums``), whose arrays have the result's dimensions, then the
    argument's. With ``has_aux`` the function returns (result, aux), and its Jacobian (Jacobian,
    aux). With ``sparse`` it is a SciPy csr_array [size of the result, size of the argument], for
    functions from one array to one array: which elements can differ from zero is read off the
    graph, and columns that share no row are computed together. Raises `DerivativeError` as `grad`
    does.

    >>> tj.jacobian(lambda x: x**2)(np.array([1.0, 2.0]))
    array([[2., 0.],
           [0., 4.]])
    """
    if sparse:
        return cast(Transformed[P, Any], _sparse(function, argnums, has_aux, holomorphic))
    made = _jacobian(function, argnums, has_aux, holomorphic, allow_int, _by_rows)
    return cast(Transformed[P, Any], made)


jacobian = jacrev


def jacfwd(
    function: Callable[P, Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    sparse: bool = False,
) -> Transformed[P, Any]:
    """The Jacobian of ``function``, by forward mode: for few arguments and many results.

    The result is that of `jacrev`.

    Raises `DerivativeError` for a result or an argument that has no derivative.

    >>> tj.jacfwd(lambda x: x**2)(np.array([1.0, 2.0]))
    array([[2., 0.],
           [0., 4.]])
    """
    if sparse:
        return cast(Transformed[P, Any], _sparse(function, argnums, has_aux, holomorphic))
    made = _jacobian(function, argnums, has_aux, holomorphic, False, _by_columns)
    return cast(Transformed[P, Any], made)


def hessian(
    function: Callable[P, Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    sparse: bool = False,
) -> Transformed[P, Any]:
    """The second derivatives of ``function``, as the Jacobian of its Jacobian.

    With ``sparse`` a SciPy csr_array, as in `jacrev`, for a function that returns one number.

    Raises `DerivativeError` for a result or an argument that has no derivative.

    >>> tj.hessian(lambda x: np.sum(x**3))(np.array([1.0, 2.0]))
    array([[ 6.,  0.],
           [ 0., 12.]])
    """
    if sparse:
        made = _sparse(grad(function, argnums), argnums, has_aux, holomorphic)
        return cast(Transformed[P, Any], made)
    inner = jacrev(function, argnums, has_aux, holomorphic)
    return jacfwd(inner, argnums, has_aux, holomorphic)


@api_boundary
def hvp(function: Function, primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
    """The Hessian of ``function`` at ``primals`` times ``tangents``, without the Hessian.

    ``function`` returns one real number. The product is a tuple with one tree for each primal.

    Raises `DerivativeError` for a result or an argument that has no derivative.

    >>> tj.hvp(lambda x: np.sum(x**3), (np.array([1.0, 2.0]),), (np.array([1.0, 0.0]),))
    (array([6., 0.]),)
    """
    gradient = grad(function, argnums=tuple(range(len(primals))))
    return jvp(gradient, primals, tangents)[1]


def _sparse(
    function: Function, argnums: int | Sequence[int], has_aux: bool, holomorphic: bool
) -> Function:
    if has_aux or holomorphic or not isinstance(argnums, int):
        raise ArgumentError(
            "jacobian: sparse=True is for one real argument, without has_aux and holomorphic"
        )
    made: Function = load("tracejit.transforms.sparse").sparse_jacobian(function, argnums)
    return made


# derivative(function of the chosen arguments, those arguments, has_aux) -> (value, per leaf of the
# value, per leaf of the arguments: an array of the value's dimensions, then the argument's), aux
_Derivative = Callable[[Function, tuple[Any, ...], bool], tuple[Any, list[list[Any]], Any]]


def _jacobian(
    function: Function,
    argnums: int | Sequence[int],
    has_aux: bool,
    holomorphic: bool,
    allow_int: bool,
    derivative: _Derivative,
) -> Function:
    parameters = Parameters(function, title_of(function))
    numbers = as_numbers(argnums)

    @api_boundary
    @functools.wraps(function)
    def jacobian(*args: Any, **kwargs: Any) -> Any:
        wanted = positions_of(numbers, args, parameters)

        def of_chosen(*chosen: Any) -> Any:
            given = list(args)
            for position, argument in zip(wanted, chosen, strict=True):
                given[position] = argument
            return function(*given, **kwargs)

        of_chosen.__name__ = parameters.title
        chosen = tuple(args[position] for position in wanted)
        for position, argument in zip(wanted, chosen, strict=True):
            name = f"argument {parameters.name_of(position)} of {parameters.title}"
            for leaf in tree.leaves(argument):
                _require_argument(name, Abstract.of(leaf).shape, holomorphic, allow_int)
        value, blocks, aux = derivative(of_chosen, chosen, has_aux)
        for leaf in tree.leaves(value):
            _require_result(parameters.title, Abstract.of(leaf).shape, holomorphic)
        of_arguments = tree.structure(chosen)
        made = []
        for row in blocks:
            part = tree.unflatten(of_arguments, row)
            made.append(part[0] if isinstance(argnums, int) else part)
        result = tree.unflatten(tree.structure(value), made)
        return (result, aux) if has_aux else result

    chosen = argnums if isinstance(argnums, int) else numbers
    key = (derivative.__name__, chosen, has_aux, holomorphic, allow_int)
    return as_compiled(function, jacobian, key)


def _by_rows(
    function: Function, arguments: tuple[Any, ...], has_aux: bool
) -> tuple[Any, list[list[Any]], Any]:
    value, pull, *rest = vjp(function, *arguments, has_aux=has_aux)
    pulled = vmap(pull)(_basis(value))
    columns = tree.leaves(pulled)
    blocks = []
    for shape, start, end in _parts(value):
        blocks.append(
            [_reshaped(c[start:end], (*shape.dimensions, *np.shape(c)[1:])) for c in columns]
        )
    return value, blocks, rest[0] if has_aux else None


def _by_columns(
    function: Function, arguments: tuple[Any, ...], has_aux: bool
) -> tuple[Any, list[list[Any]], Any]:
    value, push, *rest = linearize(function, *arguments, has_aux=has_aux)
    pushed = vmap(lambda tangents: push(*tangents), out_axes=-1)(_basis(arguments))
    blocks = [
        [
            _reshaped(row[..., start:end], (*np.shape(row)[:-1], *shape.dimensions))
            for shape, start, end in _parts(arguments)
        ]
        for row in tree.leaves(pushed)
    ]
    return value, blocks, rest[0] if has_aux else None


def _parts(value: Any) -> list[tuple[Shape, int, int]]:
    """For each leaf its shape, and where its elements stand among those of all leaves."""
    shapes = [Abstract.of(leaf).shape for leaf in tree.leaves(value)]
    ends = list(accumulate((shape.size for shape in shapes), initial=0))
    return list(zip(shapes, ends, ends[1:], strict=False))


def _basis(value: Any) -> Any:
    """A tree like ``value`` with a row in front for each element of all its leaves.

    Row i is 1 in element i and 0 elsewhere.
    """
    parts = _parts(value)
    total = parts[-1][2] if parts else 0
    leaves = []
    for shape, start, _ in parts:
        unit = np.eye(total, math.prod(shape.dimensions), -start, shape.dtype)
        leaves.append(unit.reshape(total, *shape.dimensions))
    return tree.unflatten(tree.structure(value), leaves)


def _reshaped(array: Any, dimensions: tuple[int, ...]) -> Any:
    """With these dimensions; a NumPy scalar when there is none."""
    made = array.reshape(dimensions)
    return made if dimensions or isinstance(made, Tracer) else made[()]


def _require_argument(name: str, shape: Shape, holomorphic: bool, allow_int: bool) -> None:
    element_type = shape.element_type
    if holomorphic and not element_type.is_complex:
        raise DerivativeError(
            f"jacobian: with holomorphic=True {name} must be complex, not {shape}"
        )
    if element_type.is_complex and not holomorphic:
        raise DerivativeError(
            f"jacobian: {name} is {shape}; pass holomorphic=True for a holomorphic function, or "
            f"give real and imaginary parts as arguments of their own"
        )
    if not element_type.is_differentiable and not allow_int:
        raise DerivativeError(f"jacobian: {name} must be real or complex, not {shape}")


def _require_result(title: str, shape: Shape, holomorphic: bool) -> None:
    if shape.element_type.is_complex and not holomorphic:
        raise DerivativeError(
            f"jacobian: {title} must return real numbers, not {shape}; pass holomorphic=True for "
            f"a holomorphic function"
        )
    if not shape.element_type.is_differentiable:
        raise DerivativeError(f"jacobian: {title} must return real numbers, not {shape}")
