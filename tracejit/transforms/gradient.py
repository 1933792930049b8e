"""`grad` and its kin: a function is recorded, and reverse mode runs over its graph.

grad(loss)(w, x)                              d loss / d w, of w's structure
value_and_grad(loss, argnums=(0, 1), has_aux=True)
y, pull = vjp(f, x); (x_bar,) = pull(y_bar)

Outside jit the function's own ``if`` and ``while`` see values, since the arguments are known.
Complex numbers follow JAX: the gradient of a real function of z = x + iy is df/dx - i df/dy, and
``holomorphic=True`` gives the complex derivative.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Literal, ParamSpec, TypeVar, cast, overload

from tracejit import tree
from tracejit.autodiff.budget import memory_budget as budget
from tracejit.autodiff.masks import nan_safe as masked
from tracejit.autodiff.reverse import pullback
from tracejit.errors import ArgumentError, DerivativeError, ShapeError
from tracejit.graph import Instruction
from tracejit.ops.constants import constant
from tracejit.ops.layout import full
from tracejit.trace.context import current_trace
from tracejit.trace.convert import as_instruction
from tracejit.trace.hash_consing import memory_of
from tracejit.trace.tracer import Tracer
from tracejit.tracebacks import api_boundary
from tracejit.transforms.jit.signature import Parameters, Transformed, as_numbers, title_of
from tracejit.transforms.jit.staging import Output, outputs_of
from tracejit.transforms.recorded import Input, Run, run
from tracejit.transforms.transform_of_jit import as_compiled

Function = Callable[..., Any]
P = ParamSpec("P")
R = TypeVar("R")


def grad(
    function: Callable[P, Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    memory_budget: int | None = None,
    nan_safe: bool = True,
) -> Transformed[P, Any]:
    """The gradient of ``function``, which must return one real number.

    It has the structure of the argument ``argnums`` (a tuple of them for several). With
    ``has_aux`` the function returns (value, aux), and its gradient (gradient, aux).
    ``allow_int`` gives integer arguments a gradient of zero. ``memory_budget`` is how many bytes
    the states may take that are kept of each loop of unknown length (default 64 MiB); with less,
    more steps are computed again. With ``nan_safe``, what a `where` does not take adds nothing to
    the gradient, even where its derivative is infinite or NaN: ``where(x > 0, sqrt(x), 0)`` has
    the gradient 0 at 0. False saves that little work; 0 times infinity is NaN then. Raises
    `DerivativeError`, before anything runs, for a result that is no real number, for arguments
    that have no gradient, and for an operation without one, naming its line.

    >>> tj.grad(lambda x: np.sum(x**2))(np.array([1.0, 2.0]))
    array([2., 4.])
    """
    both = value_and_grad(
        function, argnums, has_aux, holomorphic, allow_int, memory_budget, nan_safe
    )

    @api_boundary
    @functools.wraps(function)
    def gradient(*args: Any, **kwargs: Any) -> Any:
        value, gradients = both(*args, **kwargs)
        return (gradients, value[1]) if has_aux else gradients

    return cast(Transformed[P, Any], gradient)


def value_and_grad(
    function: Callable[P, R],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    memory_budget: int | None = None,
    nan_safe: bool = True,
) -> Transformed[P, tuple[R, Any]]:
    """Like `grad`, but returns (value, gradient), or ((value, aux), gradient).

    Raises as `grad` does.

    >>> tj.value_and_grad(lambda x: x**2)(3.0)
    (9.0, 6.0)
    """
    parameters = Parameters(function, title_of(function))
    numbers = as_numbers(argnums)

    @api_boundary
    @functools.wraps(function)
    def value_and_gradient(*args: Any, **kwargs: Any) -> Any:
        wanted = positions_of(numbers, args, parameters)

        def finish(result: Any) -> tuple[Output, Aux]:
            value, aux = split_aux(result, parameters) if has_aux else (result, None)
            return _loss(value, holomorphic, parameters), Aux(aux)

        def results() -> list[Output]:
            seed = constant(1, loss.instruction.array_shape.element_type)
            with budget(memory_budget), masked(nan_safe):
                cotangents = pullback([loss.instruction], [one.parameter for one in chosen], [seed])
            gradients = [output_like(one, c) for one, c in zip(chosen, cotangents, strict=True)]
            return [loss, *gradients, *aux.outputs]

        memory = memory_of(function) if current_trace() is None else None
        ran = run(function, parameters, args, kwargs, wanted, finish, memory=memory)
        chosen = [one for position in wanted for one in ran.inputs_of(position)]
        for one in chosen:
            _require_gradient(one, ran, holomorphic, allow_int)
        loss, aux = ran.result
        asked = (*key, *[one.asked_of for one in chosen])
        value, *rest = ran.answer(asked, [loss, *aux.outputs], results)
        gradient = like_arguments([args[p] for p in wanted], rest[: len(chosen)])
        if isinstance(argnums, int):
            (gradient,) = gradient
        return ((value, aux.refilled(rest[len(chosen) :])) if has_aux else value), gradient

    which = argnums if isinstance(argnums, int) else numbers
    key = ("grad", which, has_aux, holomorphic, allow_int, memory_budget, nan_safe)
    return cast(Transformed[P, tuple[R, Any]], as_compiled(function, value_and_gradient, key))


@overload
def vjp(
    function: Callable[P, R],
    *primals: Any,
    has_aux: Literal[False] = False,
    memory_budget: int | None = None,
    nan_safe: bool = True,
) -> tuple[R, Callable[[Any], tuple[Any, ...]]]: ...


@overload
def vjp(
    function: Function,
    *primals: Any,
    has_aux: bool,
    memory_budget: int | None = None,
    nan_safe: bool = True,
) -> Any: ...


@api_boundary
def vjp(
    function: Function,
    *primals: Any,
    has_aux: bool = False,
    memory_budget: int | None = None,
    nan_safe: bool = True,
) -> Any:
    """(value, pull), or (value, pull, aux): ``pull`` maps cotangents of the value to the primals'.

    ``pull`` takes one tree of the value's structure, shapes and dtypes, and returns a tuple with
    one tree for each primal. ``memory_budget`` and ``nan_safe`` are as in `grad`. Raises
    `DerivativeError` for an operation without a derivative when ``pull`` is called.

    >>> tj.vjp(lambda x: x**2, 3.0)[1](1.0)
    (6.0,)
    """
    parameters = Parameters(function, title_of(function))
    wanted = range(len(primals))

    def finish(result: Any) -> tuple[tuple[Output, ...], tree.Structure, Aux]:
        value, aux = split_aux(result, parameters) if has_aux else (result, None)
        return *outputs_of(value, parameters.title), Aux(aux)

    ran = run(function, parameters, primals, {}, wanted, finish)
    outputs, structure, aux = ran.result
    chosen = [one for position in wanted for one in ran.inputs_of(position)]

    @api_boundary
    def pull(cotangent: Any) -> tuple[Any, ...]:
        seeds = seeds_of(cotangent, outputs, structure)
        roots, inputs = [o.instruction for o in outputs], [o.parameter for o in chosen]
        with budget(memory_budget), masked(nan_safe):
            results = pullback(roots, inputs, seeds)
        gradients = [output_like(one, c) for one, c in zip(chosen, results, strict=True)]
        return like_arguments(primals, ran.finish(gradients))

    values = ran.finish([*outputs, *aux.outputs])
    value = tree.unflatten(structure, values[: len(outputs)])
    return (value, pull, aux.refilled(values[len(outputs) :])) if has_aux else (value, pull)


class Aux:
    """What a function returns besides: its traced leaves come out as values, others stay."""

    def __init__(self, aux: Any) -> None:
        leaves, self._structure = tree.flatten(aux)
        self._leaves = [
            Output(leaf.instruction, leaf.is_weak, leaf.is_scalar)
            if isinstance(leaf, Tracer)
            else leaf
            for leaf in leaves
        ]

    @property
    def outputs(self) -> list[Output]:
        return [leaf for leaf in self._leaves if isinstance(leaf, Output)]

    def refilled(self, values: Sequence[Any]) -> Any:
        """The tree, with ``values`` in place of the traced leaves."""
        following = iter(values)
        leaves = [next(following) if isinstance(leaf, Output) else leaf for leaf in self._leaves]
        return tree.unflatten(self._structure, leaves)


def positions_of(
    numbers: Sequence[int], args: tuple[Any, ...], parameters: Parameters
) -> tuple[int, ...]:
    for number in numbers:
        if not -len(args) <= number < len(args):
            raise ArgumentError(
                f"grad: {parameters.title} was called with {len(args)} positional arguments, "
                f"argnums asks for number {number}"
            )
    return tuple(number % len(args) for number in numbers)


def split_aux(result: Any, parameters: Parameters) -> tuple[Any, Any]:
    """(value, aux) as the function returned them. Raises `ArgumentError` for anything else."""
    if not isinstance(result, tuple) or len(result) != 2:
        raise ArgumentError(
            f"{parameters.title} must return (value, aux) for has_aux=True, not "
            f"{type(result).__name__}"
        )
    return result


def _loss(value: Any, holomorphic: bool, parameters: Parameters) -> Output:
    """The one real number (complex, if ``holomorphic``) that the function returned."""
    outputs, structure = outputs_of(value, parameters.title)
    if not structure.is_leaf():
        raise DerivativeError(
            f"grad: {parameters.title} must return one number; it returns {structure}. "
            f"For a value and more, return a pair and pass has_aux=True"
        )
    shape = outputs[0].instruction.array_shape
    if shape.rank:
        raise DerivativeError(
            f"grad: {parameters.title} must return one number; it returns {shape}. Sum it, or use "
            f"vjp"
        )
    element_type = shape.element_type
    if holomorphic and not element_type.is_complex:
        raise DerivativeError(
            f"grad: with holomorphic=True {parameters.title} must return a complex number, "
            f"not {shape}"
        )
    if element_type.is_complex and not holomorphic:
        raise DerivativeError(
            f"grad: {parameters.title} must return a real number, not {shape}; pass "
            f"holomorphic=True for a holomorphic function, or return a real part"
        )
    if not element_type.is_differentiable:
        raise DerivativeError(f"grad: {parameters.title} must return a real number, not {shape}")
    return outputs[0]


def _require_gradient(one: Input, ran: Run, holomorphic: bool, allow_int: bool) -> None:
    element_type = one.abstract.shape.element_type
    described = ran.trace.arguments[one.parameter].describe
    if holomorphic and not element_type.is_complex:
        raise DerivativeError(
            f"grad: with holomorphic=True {described()} must be complex, not {one.abstract.shape}"
        )
    if not element_type.is_differentiable and not allow_int:
        raise DerivativeError(
            f"grad: {described()} must be real or complex, not {one.abstract.shape}; convert it, "
            f"or pass allow_int=True for a gradient of zero"
        )


def output_like(one: Input, cotangent: Instruction | None) -> Output:
    """A gradient, handed out in the form of its argument; zero where there is no path."""
    made = full(one.abstract.shape, 0) if cotangent is None else cotangent
    return Output(made, one.abstract.is_weak, one.abstract.is_scalar)


def like_arguments(arguments: Sequence[Any], gradients: Sequence[Any]) -> tuple[Any, ...]:
    """One tree for each argument, of its structure, with the gradients for leaves."""
    structure = tree.structure(tuple(arguments))
    made: tuple[Any, ...] = tree.unflatten(structure, gradients)
    return made


def seeds_of(
    cotangent: Any,
    outputs: Sequence[Output],
    structure: tree.Structure,
    what: str = "vjp: the cotangent of a result",
) -> list[Instruction]:
    """The leaves of a tree of cotangents as instructions, each of its output's shape and type.

    Raises `ArgumentError`, `ShapeError` or `DerivativeError` for a tree that does not fit.
    """
    leaves, given = tree.flatten(cotangent)
    if given != structure:
        raise ArgumentError(f"{what} must be in a tree {structure}, not {given}")
    seeds = []
    for leaf, output in zip(leaves, outputs, strict=True):
        shape = output.instruction.array_shape
        seed = as_instruction(leaf)
        if output.is_weak or type(leaf) in (int, float, complex):
            seed = constant(leaf, shape.element_type) if not isinstance(leaf, Tracer) else seed
        if seed.array_shape.dimensions != shape.dimensions:
            raise ShapeError(f"{what} {shape} is {seed.shape}")
        if seed.array_shape.element_type is not shape.element_type:
            raise DerivativeError(f"{what} {shape} is {seed.shape}")
        seeds.append(seed)
    return seeds
