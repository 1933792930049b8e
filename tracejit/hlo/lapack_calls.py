"""XLA's calls of LAPACK that are ops of ours: factors, triangular systems, eigenvectors.

as_op(instruction)      the tuple or array that a call of ``lapack_dpotrf_ffi`` … computes, or None

JAX lowers linear algebra on the CPU to these. Read as ops they are compiled without a call of
Python and have derivatives. The calls without an op run by SciPy: see `numpy.lapack_calls`.
Results that JAX ignores are filled in: a call's ``info`` is 1 where a result is NaN, else 0.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from tracejit import ops
from tracejit.graph import Instruction
from tracejit.ops.computations import scalar_computation
from tracejit.ops.custom import LINEAR_ALGEBRA, custom_call
from tracejit.shapes import ElementType, Shape, TupleShape

Operands = Sequence[Instruction]
Shapes = Sequence[Shape]
Config = Mapping[str, str]
ROUTINE = re.compile(r"lapack_([sdcz])([a-z0-9]+)_ffi")
_ENTRY = re.compile(r"(\w+) = (-?\w+)")


def config_of(text: str) -> dict[str, str]:
    """The attributes of a call: letters for the numbers that LAPACK takes as characters."""
    letters = ("uplo", "side", "diag", "trans_x", "mode", "sort", "compute_left", "compute_right")
    found = dict(_ENTRY.findall(text))
    return {k: chr(int(v)) if k in letters and v.isdigit() else v for k, v in found.items()}


def as_op(instruction: Instruction) -> Instruction | None:
    """What a call of LAPACK computes, where ops do; None for every other call."""
    name = ROUTINE.fullmatch(instruction.attributes["custom_call_target"])
    rule = RULES.get(name[2]) if name else None
    if rule is None or not all(isinstance(o.shape, Shape) for o in instruction.operands):
        return None
    config = config_of(instruction.attributes["backend_config"])
    shapes = [shape for shape in instruction.element_shapes if isinstance(shape, Shape)]
    made = rule(instruction.operands, shapes, config)
    if made is None:
        return None
    return ops.tuple_(made) if isinstance(instruction.shape, TupleShape) else made[0]


def _info(result: Instruction, shape: Shape) -> Instruction:
    """1 for each matrix, or vector, of a batch with NaN in it; 0 for the others."""
    inner = range(shape.rank, result.array_shape.rank)
    anywhere = ops.reduce(
        ops.ne(result, result),
        ops.constant(False),
        scalar_computation("or", ElementType.PRED),
        tuple(inner),
    )
    return ops.convert_element_type(anywhere, shape.element_type)


def unused(shape: Shape) -> Instruction:
    """A result with any contents, such as one that was not asked for."""
    return ops.broadcast(ops.constant(0, shape.element_type), shape.dimensions)


def _of_library(name: str, operands: Sequence[Instruction], *shapes: Shape) -> list[Instruction]:
    """The results of one of our own targets for linear algebra."""
    call = custom_call(LINEAR_ALGEBRA + name, operands, TupleShape(shapes))
    return list(ops.elements_of(call))


def _potrf(operands: Operands, shapes: Shapes, config: Config) -> list[Instruction]:
    factor = ops.cholesky(operands[0], config.get("uplo") != "U")
    return [factor, _info(factor, shapes[1])]


def _trsm(operands: Operands, shapes: Shapes, config: Config) -> list[Instruction]:
    transposed = {"N": "NO_TRANSPOSE", "T": "TRANSPOSE", "C": "ADJOINT"}[config["trans_x"]]
    lower, left, unit = (config[key] == is_so for key, is_so in _TRIANGULAR)
    a, b = operands
    return [ops.triangular_solve(a, b, left, lower, unit, transposed)]


_TRIANGULAR = (("uplo", "L"), ("side", "L"), ("diag", "U"))


def _syevd(operands: Operands, shapes: Shapes, config: Config) -> list[Instruction]:
    vectors, values, info = shapes
    name = "eigh_u" if config.get("uplo") == "U" else "eigh_l"
    w, v = _of_library(name, operands, values, vectors)
    return [v, w, _info(w, info)]


def _gesdd(operands: Operands, shapes: Shapes, config: Config) -> list[Instruction] | None:
    (a,), (_, values, left, right, info) = operands, shapes
    if config.get("mode") == "N":
        (s,) = _of_library("svdvals", operands, values)
        return [a, s, unused(left), unused(right), _info(s, info)]
    is_thin = min(a.array_shape.dimensions[-2:]) == left.dimensions[-1] == right.dimensions[-2]
    u, s, vh = _of_library("svd" if is_thin else "svd_full", operands, left, values, right)
    return [a, s, u, vh, _info(s, info)]


def _geev(operands: Operands, shapes: Shapes, config: Config) -> list[Instruction] | None:
    if config.get("compute_left") != "N":
        return None
    *values, left, right, info = shapes
    w, v = _of_library("eig", operands, values[0].with_element_type(right.element_type), right)
    parts = [w] if len(values) == 1 else [ops.real(w), ops.imag(w)]
    return [*parts, unused(left), v, _info(parts[0], info)]


RULES: dict[str, Callable[[Operands, Shapes, Config], list[Instruction] | None]] = {
    "geev": _geev,
    "gesdd": _gesdd,
    "gesvd": _gesdd,
    "heevd": _syevd,
    "potrf": _potrf,
    "syevd": _syevd,
    "trsm": _trsm,
}
