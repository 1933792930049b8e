"""`checkpoint`: the reverse pass computes a function's intermediate values again, or keeps some.

g = checkpoint(f)                                         keeps only f's arguments
g = checkpoint(f, policy=checkpoint_policies.dots_saveable)      keeps the results of contractions
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar, cast

from tracejit.autodiff.reverse import Cotangent, Nested, pullback
from tracejit.graph import Instruction
from tracejit.ops.constants import PARAMETER, elements_of, tuple_
from tracejit.ops.contraction import DOT_GENERAL
from tracejit.ops.control import Derivative, optimization_barrier
from tracejit.ops.convolution import CONV_GENERAL_DILATED
from tracejit.tracebacks import api_boundary
from tracejit.transforms.call_with_derivative import call_with, users
from tracejit.transforms.jit.signature import Numbers, Parameters, as_numbers, title_of
from tracejit.traversal import instructions, rebuild, substitute

Function = Callable[..., Any]
F = TypeVar("F", bound=Function)
Policy = Callable[[Instruction], bool]
"""Whether the value of an instruction is kept from the forward pass to the reverse pass."""


class checkpoint_policies:
    """Ready policies, and `save_only_ops` to make one."""

    @staticmethod
    def everything_saveable(instruction: Instruction) -> bool:
        """Keeps every value, as without `checkpoint`."""
        return True

    @staticmethod
    def nothing_saveable(instruction: Instruction) -> bool:
        """Keeps nothing but the arguments: the default."""
        return False

    @staticmethod
    def dots_saveable(instruction: Instruction) -> bool:
        """Keeps the results of contractions and convolutions, which cost most to compute."""
        return instruction.op in (DOT_GENERAL, CONV_GENERAL_DILATED)

    @staticmethod
    def dots_with_no_batch_dims_saveable(instruction: Instruction) -> bool:
        """Keeps the results of contractions without batch dimensions: those with weights."""
        if instruction.op is DOT_GENERAL:
            return not instruction.attributes["lhs_batch_dims"]
        return False

    # JAX's other names of both.
    checkpoint_dots = dots_saveable
    checkpoint_dots_with_no_batch_dims = dots_with_no_batch_dims_saveable

    @staticmethod
    def save_from_both_policies(first: Policy, second: Policy) -> Policy:
        """Keeps what one of two policies keeps."""
        return lambda instruction: first(instruction) or second(instruction)

    @staticmethod
    def save_only_ops(names: Iterable[str]) -> Policy:
        """Keeps the results of the ops with these names: DotGeneral, Tanh."""
        wanted = frozenset(names)
        return lambda instruction: instruction.op.name in wanted


def checkpoint(
    function: F,
    *,
    policy: Policy | None = None,
    prevent_cse: bool = True,
    static_argnums: Numbers = (),
) -> F:
    """``function``, whose reverse pass recomputes values of the forward pass.

    That costs time and saves memory. ``policy`` says which values are kept. ``static_argnums`` are
    positions of arguments that are no arrays. With ``prevent_cse`` False the compiler may find
    that values are computed twice, and keep them.

    Raises `ArgumentError` for what is no function.

    >>> tj.grad(tj.checkpoint(lambda x: np.sin(np.sin(x))))(0.0)
    1.0
    """
    parameters = Parameters(function, title_of(function))
    statics = as_numbers(static_argnums)

    @api_boundary
    @functools.wraps(function)
    def checkpointed(*args: Any, **kwargs: Any) -> Any:
        static = {number % len(args) for number in statics}
        passed = tuple(argument for n, argument in enumerate(args) if n not in static)

        @functools.wraps(function)
        def of_passed(*given: Any, **named: Any) -> Any:
            following = iter(given)
            return users(function)(
                *[a if n in static else next(following) for n, a in enumerate(args)], **named
            )

        own = Parameters(of_passed, parameters.title)
        own.names = tuple(parameters.name_of(n) for n in range(len(args)) if n not in static)
        return call_with(
            of_passed, own, passed, kwargs, lambda signature: _recomputing(policy, prevent_cse)
        )

    return cast(F, checkpointed)


remat = checkpoint


def _recomputing(policy: Policy | None, prevent_cse: bool) -> Derivative:
    def derivative(instruction: Instruction, cotangent: Nested) -> Sequence[Nested]:
        computation = instruction.attributes["to_apply"]
        plain = instruction.operands
        again = plain
        if prevent_cse and plain:
            again = elements_of(optimization_barrier(tuple_(plain)))
        kept: dict[Instruction, Instruction] = dict(zip(computation.parameters, plain, strict=True))
        made = dict(zip(computation.parameters, again, strict=True))
        saved: dict[Instruction, Instruction] = {}
        for one in instructions(computation):
            if one.op is PARAMETER:
                continue
            made[one] = rebuild(one, [made[o] for o in one.operands])
            if policy is not None:
                kept[one] = rebuild(one, [kept[o] for o in one.operands])
                if policy(one):
                    saved[made[one]] = kept[one]
        arriving: list[Cotangent] = list(cotangent)  # type: ignore[arg-type]
        results = pullback(elements_of(made[computation.root]), again, arriving)
        # What is kept is not computed again.
        reached = substitute([r for r in results if r is not None], saved)
        following = iter(reached)
        return [None if r is None else next(following) for r in results]

    return derivative


__all__ = ["Policy", "checkpoint", "checkpoint_policies", "remat"]
