"""Forward mode: `jvp`, `linearize`, `linear_transpose`.

jvp(f, (x,), (x_dot,))                 (y, y_dot)
y, push = linearize(f, x); push(x_dot)
linear_transpose(f, x)(y_bar)

The reverse pass is linear in its cotangent; differentiating it once more, in the cotangent, gives
the forward derivative. What only the reverse pass needed is not part of the result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, ParamSpec, TypeVar, overload

from tracejit import tree
from tracejit.autodiff.reverse import is_differentiable, pullback
from tracejit.errors import ArgumentError, DerivativeError
from tracejit.graph import Instruction
from tracejit.ops.constants import parameter
from tracejit.ops.layout import full
from tracejit.trace.convert import in_words
from tracejit.tracebacks import api_boundary
from tracejit.transforms.gradient import Aux, like_arguments, output_like, seeds_of, split_aux
from tracejit.transforms.jit.signature import Parameters, title_of
from tracejit.transforms.jit.staging import Output, outputs_of
from tracejit.transforms.recorded import Input, Run, run
from tracejit.traversal import in_order, substitute

Function = Callable[..., Any]
P = ParamSpec("P")
R = TypeVar("R")


@overload
def jvp(
    function: Callable[P, R],
    primals: Sequence[Any],
    tangents: Sequence[Any],
    has_aux: Literal[False] = False,
) -> tuple[R, R]: ...


@overload
def jvp(
    function: Function, primals: Sequence[Any], tangents: Sequence[Any], has_aux: bool
) -> Any: ...


@api_boundary
def jvp(
    function: Function, primals: Sequence[Any], tangents: Sequence[Any], has_aux: bool = False
) -> Any:
    """(value, derivative of the value along ``tangents``), or (value, derivative, aux).

    ``primals`` and ``tangents`` are tuples or lists of equal trees; a tangent has the shape and
    dtype of its primal. Integer results have a derivative of zeros of their own dtype. Raises
    `ArgumentError` for trees that differ and `DerivativeError` for an operation without a
    derivative, naming its line.

    >>> tj.jvp(np.sin, (0.0,), (1.0,))
    (np.float64(0.0), np.float64(1.0))
    """
    recorded = _Recorded(function, primals, has_aux)
    derivative = recorded.pushed(tangents)
    values = recorded.ran.finish([*recorded.outputs, *derivative, *recorded.aux.outputs])
    count = len(recorded.outputs)
    value = tree.unflatten(recorded.structure, values[:count])
    pushed = tree.unflatten(recorded.structure, values[count : 2 * count])
    return (
        (value, pushed, recorded.aux.refilled(values[2 * count :]))
        if has_aux
        else (
            value,
            pushed,
        )
    )


@overload
def linearize(
    function: Callable[P, R], *primals: Any, has_aux: Literal[False] = False
) -> tuple[R, Callable[P, R]]: ...


@overload
def linearize(function: Function, *primals: Any, has_aux: bool) -> Any: ...


@api_boundary
def linearize(function: Function, *primals: Any, has_aux: bool = False) -> Any:
    """(value, push), or (value, push, aux): ``push(*tangents)`` is the derivative along them.

    Raises `ArgumentError` for what is no function of the primals.

    >>> tj.linearize(np.sin, 0.0)[1](2.0)
    np.float64(2.0)
    """
    recorded = _Recorded(function, primals, has_aux)

    def push(*tangents: Any) -> Any:
        return tree.unflatten(recorded.structure, recorded.ran.finish(recorded.pushed(tangents)))

    values = recorded.ran.finish([*recorded.outputs, *recorded.aux.outputs])
    count = len(recorded.outputs)
    value = tree.unflatten(recorded.structure, values[:count])
    return (value, push, recorded.aux.refilled(values[count:])) if has_aux else (value, push)


@api_boundary
def linear_transpose(function: Function, *primals: Any) -> Function:
    """The transpose of ``function``, which must be linear: from cotangents of its result.

    Of ``primals`` only shapes and dtypes count. The transpose returns a tuple with one tree for
    each of them.

    Raises `DerivativeError` where the derivative of ``function`` depends on the primals.

    >>> tj.linear_transpose(lambda x: 2 * x, 1.0)(3.0)
    (6.0,)
    """
    recorded = _Recorded(function, primals, False)

    def transposed(cotangent: Any) -> tuple[Any, ...]:
        seeds = seeds_of(cotangent, recorded.outputs, recorded.structure)
        roots = [output.instruction for output in recorded.outputs]
        results = pullback(roots, [one.parameter for one in recorded.inputs], seeds)
        known = {one.parameter for one in recorded.inputs}
        if any(one in known for one in in_order([r for r in results if r is not None])):
            title = title_of(function)
            raise DerivativeError(f"linear_transpose: {title} is not linear in its arguments")
        made = [output_like(one, c) for one, c in zip(recorded.inputs, results, strict=True)]
        return like_arguments(primals, recorded.ran.finish(made))

    return transposed


class _Recorded:
    """A function recorded on its primals, ready to be pushed forward along tangents."""

    def __init__(self, function: Function, primals: Sequence[Any], has_aux: bool) -> None:
        if not isinstance(primals, tuple | list):
            raise ArgumentError(
                f"jvp: primals must be a tuple or list, not {type(primals).__name__}"
            )
        parameters = Parameters(function, title_of(function))

        def finish(result: Any) -> tuple[tuple[Output, ...], tree.Structure, Aux]:
            value, aux = split_aux(result, parameters) if has_aux else (result, None)
            return *outputs_of(value, parameters.title), Aux(aux)

        positions = range(len(primals))
        self.primals = tuple(primals)
        self.ran: Run = run(function, parameters, self.primals, {}, positions, finish)
        self.outputs, self.structure, self.aux = self.ran.result
        self.inputs: list[Input] = [i for p in positions for i in self.ran.inputs_of(p)]

    def pushed(self, tangents: Sequence[Any]) -> list[Output]:
        """The derivatives of the outputs along the tangents."""
        arriving = self._seeds(tangents)
        active = [o for o in self.outputs if is_differentiable(o.instruction)]
        cotangents = [parameter(n, o.instruction.shape) for n, o in enumerate(active)]
        pulled = pullback(
            [o.instruction for o in active], [i.parameter for i in self.inputs], cotangents
        )
        pairs = [
            (result, tangent)
            for result, tangent in zip(pulled, arriving, strict=True)
            if result is not None
        ]
        derivatives = pullback(
            [result for result, _ in pairs], cotangents, [tangent for _, tangent in pairs]
        )
        # Linear in the cotangents, the derivatives do not depend on them; loops may mention them.
        zeros = {c: full(c.array_shape, 0) for c in cotangents}
        reached = iter(substitute([d for d in derivatives if d is not None], zeros))
        following = iter([None if d is None else next(reached) for d in derivatives])
        made = []
        for output in self.outputs:
            found = next(following) if is_differentiable(output.instruction) else None
            shape = output.instruction.array_shape
            made.append(
                Output(full(shape, 0) if found is None else found, output.is_weak, output.is_scalar)
            )
        return made

    def _seeds(self, tangents: Sequence[Any]) -> list[Instruction]:
        structure = tree.structure(self.primals)
        if not isinstance(tangents, list | tuple):
            raise ArgumentError(
                f"jvp: the tangents must be a tuple or a list, one for each primal, not "
                f"{in_words(type(tangents))}"
            )
        given = tree.structure(tuple(tangents))
        if given != structure:
            raise ArgumentError(
                f"jvp: the tangents must be a tree like the primals, {structure}, not {given}"
            )
        likes = [
            Output(one.parameter, one.abstract.is_weak, one.abstract.is_scalar)
            for one in self.inputs
        ]
        return seeds_of(tuple(tangents), likes, structure, "jvp: the tangent of an argument")
