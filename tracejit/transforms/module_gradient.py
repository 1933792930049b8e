"""The gradient of a whole module: graph in, graph out.

gradient_of(tj.hlo.parse(text))                the gradient with respect to every parameter
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tracejit.autodiff.reverse import is_differentiable, pullback
from tracejit.errors import DerivativeError
from tracejit.graph import Computation, Instruction, Module
from tracejit.ops.constants import elements_of, parameter, tuple_
from tracejit.ops.inlining import inlined
from tracejit.ops.layout import full
from tracejit.tracebacks import api_boundary


@api_boundary
def gradient_of(
    module: Module,
    argnums: Sequence[int] | None = None,
    *,
    value: bool = False,
    cotangents: bool = False,
) -> Module:
    """A module with the same parameters that returns the gradient of ``module``'s result.

    One array for each of the parameters ``argnums`` (None: all floating and complex arrays among
    them), a tuple unless it is one; with ``value`` the module's own results come first.
    ``module`` must return one real number; with ``cotangents`` it may return anything, and the new
    module takes a cotangent for each floating or complex result after its own parameters. Raises
    `DerivativeError` for other results, for a parameter without a gradient, and for an op without
    a derivative, naming its line.

    >>> tj.compile(tj.gradient_of(tj.jit(np.square).lower(2.0).module))(3.0)
    array(6.)
    """
    entry = inlined(module.entry)
    results = elements_of(entry.root)
    wrt = [entry.parameters[n] for n in _numbers(replace(module, entry=entry), argnums)]
    outputs = [result for result in results if is_differentiable(result)]
    given: list[Instruction] = []
    if cotangents:
        first = len(entry.parameters)
        given = [parameter(first + i, o.shape) for i, o in enumerate(outputs)]
        seeds = given
    else:
        _require_number(module, results)
        seeds = [full(o.array_shape, 1) for o in outputs]
    found = pullback(outputs, wrt, seeds)
    gradients = [
        full(p.array_shape, 0) if gradient is None else gradient
        for p, gradient in zip(wrt, found, strict=True)
    ]
    made = [*results, *gradients] if value else gradients
    root = made[0] if len(made) == 1 else tuple_(made)
    computation = Computation(
        f"{entry.name}_gradient", (*entry.parameters, *given), root, entry.effects
    )
    return Module(
        f"{module.name}_gradient", computation, module.replica_count, module.num_partitions
    )


def _numbers(module: Module, argnums: Sequence[int] | None) -> list[int]:
    parameters = module.entry.parameters
    usable = [n for n, p in enumerate(parameters) if is_differentiable(p)]
    if argnums is None:
        if not usable:
            raise DerivativeError(
                f"grad: module {module.name} has no floating or complex parameter"
            )
        return usable
    for number in argnums:
        if not 0 <= number < len(parameters):
            raise DerivativeError(
                f"grad: module {module.name} has {len(parameters)} parameters, and no number "
                f"{number}"
            )
        if number not in usable:
            raise DerivativeError(
                f"grad: parameter {number} of module {module.name} is "
                f"{parameters[number].shape}, which has no gradient"
            )
    return list(argnums)


def _require_number(module: Module, results: Sequence[Instruction]) -> None:
    shapes = [result.shape for result in results]
    if (
        len(results) != 1
        or not is_differentiable(results[0])
        or results[0].array_shape.rank
        or results[0].array_shape.element_type.is_complex
    ):
        listed = ", ".join(map(str, shapes))
        raise DerivativeError(
            f"grad: module {module.name} must return one real number, not {listed}; with "
            "cotangents it may return anything"
        )
