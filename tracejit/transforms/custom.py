"""Functions whose derivatives the user writes: `custom_vjp` and `custom_jvp`.

@custom_vjp
def f(x): ...
f.defvjp(forward, backward)
# forward(x) -> (result, kept); backward(kept, cotangent) -> (x_bar,)

@custom_jvp
def g(x, y): ...
@g.defjvp
def derivative(primals, tangents): ...      -> (result, tangent of the result)
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Generic, ParamSpec, TypeVar

import numpy as np

from tracejit import tree
from tracejit.autodiff.reverse import Found, Nested, pullback
from tracejit.errors import ArgumentError, DerivativeError
from tracejit.graph import Instruction
from tracejit.ops.constants import parameter
from tracejit.ops.control import Derivative
from tracejit.ops.layout import full
from tracejit.tracebacks import api_boundary
from tracejit.transforms.call_with_derivative import (
    Signature,
    call_with,
    leaves_like,
    record_on,
    users,
)
from tracejit.transforms.jit.signature import Numbers, Parameters, as_numbers, title_of

Function = Callable[..., Any]
P = ParamSpec("P")
R = TypeVar("R")


class _Custom(Generic[P, R]):
    """What both kinds share: a function with some arguments excluded from the derivative."""

    def __init__(self, function: Callable[P, R], nondiff_argnums: Numbers = ()) -> None:
        functools.update_wrapper(self, function)
        self._function = function
        self._parameters = Parameters(function, title_of(function))
        self._static = as_numbers(nondiff_argnums)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    @api_boundary
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        result: R = self._call(args, kwargs)
        return result

    def _call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if kwargs:
            names = self._parameters.names
            unknown = [name for name in kwargs if name not in names[len(args) :]]
            if unknown or list(names[len(args) : len(args) + len(kwargs)]) != sorted(
                kwargs, key=names.index
            ):
                raise ArgumentError(
                    f"{self._parameters.title}: arguments of a function with a custom derivative "
                    f"are given by position, not as {', '.join(kwargs)}"
                )
            args = (*args, *(kwargs[name] for name in sorted(kwargs, key=names.index)))
        static = {number % len(args) for number in self._static if number < len(args)}
        held = [argument for n, argument in enumerate(args) if n in static]
        passed = tuple(argument for n, argument in enumerate(args) if n not in static)

        @functools.wraps(self._function)
        def of_passed(*given: Any) -> Any:
            following, kept = iter(given), iter(held)
            return users(self._function)(
                *[next(kept) if n in static else next(following) for n in range(len(args))]
            )

        parameters = Parameters(of_passed, self._parameters.title)
        parameters.names = tuple(
            self._parameters.name_of(n) for n in range(len(args)) if n not in static
        )
        return call_with(
            of_passed,
            parameters,
            passed,
            {},
            lambda signature: self._derivative(signature, args, held, static),
        )

    def _derivative(
        self, signature: Signature, args: tuple[Any, ...], held: list[Any], static: set[int]
    ) -> Derivative:
        raise NotImplementedError


class custom_vjp(_Custom[P, R]):
    """A function whose reverse-mode derivative is given by `defvjp`.

    ``nondiff_argnums`` are positions of arguments that are passed on as they are: functions,
    strings, numbers that choose a variant. They come first in the call of ``backward``. Other
    arguments and the result are trees of arrays. Values of an enclosing trace that the function
    uses without taking them as arguments have no derivative; asking for one raises.
    """

    def defvjp(self, forward: Function, backward: Function) -> None:
        """Sets the rule: ``forward(*args) -> (result, kept)``, ``backward(kept, cotangent)``.

        ``kept`` is any tree. ``backward`` returns a tuple with one tree for each argument, or
        None where it is zero.
        """
        self._forward, self._backward = forward, backward

    def _derivative(
        self, signature: Signature, args: tuple[Any, ...], held: list[Any], static: set[int]
    ) -> Derivative:
        title = signature.title
        if not hasattr(self, "_forward"):
            raise DerivativeError(f"{title}: no derivative was given; call {title}.defvjp")

        def derivative(instruction: Instruction, cotangent: Nested) -> Sequence[Found]:
            count = len(signature.arguments)
            seeds = _filled(cotangent, instruction)

            def both(*values: Any) -> Any:
                arrays, arriving = values[:count], values[count:]
                passed = iter(signature.arguments_of(arrays)[0])
                kept_args = iter(held)
                full_args = [
                    next(kept_args) if n in static else next(passed) for n in range(len(args))
                ]
                returned = users(self._forward)(*full_args)
                if not isinstance(returned, tuple) or len(returned) != 2:
                    raise ArgumentError(
                        f"{title}: the forward function of defvjp must return (result, kept), not "
                        f"{type(returned).__name__}"
                    )
                result, kept = returned
                leaves_like(result, signature.results, "the result of defvjp's forward", title)
                backward = users(self._backward)(*held, kept, signature.result_of(arriving))
                return _for_arguments(backward, signature, arrays, title)

            made = record_on(
                both,
                title,
                [*instruction.operands[:count], *seeds],
                [*signature.arguments, *signature.results],
                tuple,
                lambda results: leaves_like(
                    results, signature.arguments, "the cotangent from defvjp's backward", title
                ),
            )
            return [*made, *_captured(instruction, count, title)]

        return derivative


class custom_jvp(_Custom[P, R]):
    """A function whose forward-mode derivative is given by `defjvp`; reverse mode follows from it.

    ``nondiff_argnums`` are as in `custom_vjp`; they come first in the call of the rule.
    """

    def defjvp(self, rule: Function) -> Function:
        """Sets the rule: ``rule(primals, tangents) -> (result, tangent of the result)``.

        The tangent must be linear in ``tangents``. Returns the rule, so that this is a decorator.
        """
        self._rule = rule
        return rule

    def defjvps(self, *rules: Function | None) -> None:
        """Sets one rule for each argument: ``rule(tangent, result, *args)``; None means zero."""

        def rule(*given: Any) -> Any:
            *held, primals, tangents = given
            result = self._call(tuple(_merged_arguments(held, primals, self._static)), {})
            terms = [
                users(one)(tangent, result, *primals)
                for one, tangent in zip(rules, tangents, strict=True)
                if one is not None
            ]
            return result, functools.reduce(
                lambda total, term: tree.map(lambda a, b: a + b, total, term), terms
            )

        self._rule = rule

    def _derivative(
        self, signature: Signature, args: tuple[Any, ...], held: list[Any], static: set[int]
    ) -> Derivative:
        title = signature.title
        if not hasattr(self, "_rule"):
            raise DerivativeError(f"{title}: no derivative was given; call {title}.defjvp")

        def derivative(instruction: Instruction, cotangent: Nested) -> Sequence[Found]:
            count = len(signature.arguments)
            operands = instruction.operands[:count]
            tangents = [parameter(count + n, o.shape) for n, o in enumerate(operands)]

            def both(*values: Any) -> Any:
                primals = signature.arguments_of(values[:count])[0]
                along = signature.arguments_of(values[count:])[0]
                returned = users(self._rule)(*held, primals, along)
                if not isinstance(returned, tuple) or len(returned) != 2:
                    raise ArgumentError(
                        f"{title}: the rule of defjvp must return (result, tangent), not "
                        f"{type(returned).__name__}"
                    )
                return returned[1]

            made = record_on(
                both,
                title,
                [*operands, *tangents],
                [*signature.arguments, *signature.arguments],
                tuple,
                lambda result: leaves_like(
                    result, signature.results, "the tangent from defjvp's rule", title
                ),
            )
            pulled = pullback(made, tangents, _filled(cotangent, instruction))
            return [*pulled, *_captured(instruction, count, title)]

        return derivative


def _merged_arguments(
    held: Sequence[Any], passed: Sequence[Any], static: Sequence[int]
) -> list[Any]:
    kept, following = iter(held), iter(passed)
    count = len(held) + len(passed)
    positions = {number % count for number in static}
    return [next(kept) if n in positions else next(following) for n in range(count)]


def _filled(cotangent: Nested, instruction: Instruction) -> list[Instruction]:
    """The cotangents of the results, zeros where none arrives."""
    assert isinstance(cotangent, Sequence)
    made = []
    for part, shape in zip(cotangent, instruction.element_shapes, strict=True):
        if isinstance(part, Instruction):
            made.append(part)
            continue
        made.append(full(shape, 0))  # type: ignore[arg-type]
    return made


def _captured(instruction: Instruction, count: int, title: str) -> list[Found]:
    return [
        DerivativeError(
            f"{title}: its derivative was given for its arguments only, and it also uses a value "
            f"{operand.shape} of the function around it; pass that as an argument",
            instruction.source,
        )
        for operand in instruction.operands[count:]
    ]


def _for_arguments(
    backward: Any, signature: Signature, arrays: Sequence[Any], title: str
) -> list[Any]:
    """One cotangent for each array of the arguments; zeros where ``backward`` returned None."""
    arguments = signature.arguments_of(arrays)[0]
    if not isinstance(backward, tuple) or len(backward) != len(arguments):
        found = len(backward) if isinstance(backward, tuple) else type(backward).__name__
        raise ArgumentError(
            f"{title}: the backward function of defvjp must return a tuple of {len(arguments)}, "
            f"one for each argument, not {found}"
        )
    made: list[Any] = []
    for argument, given in zip(arguments, backward, strict=True):
        of_argument = tree.structure(argument)
        if given is None:
            made += [None] * of_argument.num_leaves
            continue
        leaves, structure = tree.flatten(given)
        if structure != of_argument:
            raise ArgumentError(
                f"{title}: a cotangent from defvjp's backward is a tree {structure}, its argument "
                f"{of_argument}"
            )
        made += leaves
    kinds = signature.arguments
    return [
        np.zeros(kind.shape.dimensions, kind.shape.dtype) if leaf is None else leaf
        for leaf, kind in zip(made, kinds, strict=True)
    ]
