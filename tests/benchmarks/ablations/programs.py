"""The programs that passes are left out of, with the arrays to time them on.

programs(npbench, pyhpc)      the corpus of `tests.artifacts`, benchmarks, idioms, both suites
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import tracejit as tj
from tests.artifacts.corpus import modules
from tests.benchmarks.ablations.idioms import IDIOMS
from tests.benchmarks.case import Case
from tests.benchmarks.cases import CASES
from tests.conformance import as_jax, npbench_program, pyhpc_program
from tracejit import tree
from tracejit.errors import TracejitError
from tracejit.graph import Instruction, Module
from tracejit.shapes import Shape

PYHPC_ELEMENTS = 65536
# What corpora hold besides benchmarks: no arrays to time them on, and little to compute.
_TIMED_TEXTS = ("hlo/dumps", "autodiff/golden", "passes")
_PASSES = Path(__file__).parents[2] / "passes"


@dataclass(frozen=True)
class Program:
    """A module, and an array for each parameter, if it is to be timed."""

    name: str
    module: Module
    arrays: Sequence[np.ndarray] | None = None


def programs(npbench: Path | None, pyhpc: Path | None, preset: str = "S") -> Iterator[Program]:
    """Every program that can be traced; the same ones in every process."""
    makers: list[Callable[[], Program]] = []
    for name, module in modules():
        if not name.startswith("benchmark "):
            makers.append(partial(_of_module, name, module))
    for path in sorted(_PASSES.glob("*/*.hlo")):
        if not path.name.endswith((".before.hlo", ".after.hlo")):
            name = f"passes {path.parent.name} {path.stem}"
            makers.append(partial(_of_module, name, partial(_parsed, path)))
    for case in CASES:
        if case.tracejit is not None and case.arguments == "native":
            makers.append(partial(_of_case, case))
    makers += [partial(_of_idiom, name) for name in IDIOMS]
    if npbench is not None:
        for file in sorted((npbench / "bench_info").glob("*.json")):
            makers.append(partial(_of_npbench, npbench, file.stem, preset))
    if pyhpc is not None:
        makers += [partial(_of_pyhpc, pyhpc, name) for name in pyhpc_program.PROGRAMS]
    for make in makers:
        try:
            with np.errstate(all="ignore"):
                made = make()
        except TracejitError:
            continue
        yield made


def _of_module(name: str, make: Callable[[], Module]) -> Program:
    module = make()
    if not name.startswith(_TIMED_TEXTS):
        return Program(name, module)
    rng = np.random.default_rng(0)
    parameters = module.entry.parameters
    if not all(isinstance(p.shape, Shape) for p in parameters):
        return Program(name, module)
    return Program(name, module, [_drawn(p, rng) for p in parameters])


def _drawn(parameter: Instruction, rng: np.random.Generator) -> np.ndarray:
    shape = parameter.array_shape
    numbers = rng.standard_normal(shape.dimensions)
    if shape.element_type.is_inexact:
        return numbers.astype(shape.dtype)
    return (np.abs(numbers) * 2).astype(shape.dtype)


def _parsed(path: Path) -> Module:
    return tj.hlo.parse(path.read_text(encoding="utf-8"))


def _of_case(case: Case) -> Program:
    implementation, arguments = case.tracejit, case.make_inputs(tiny=False)
    assert implementation is not None
    traced = tj.jit(lambda *given: implementation(tj, *given))
    return _with_leaves(f"benchmark {case.name}", traced.lower(*arguments).module, arguments)


def _of_idiom(name: str) -> Program:
    function, arguments = IDIOMS[name]
    module = tj.jit(function, autograph=True).lower(*arguments).module
    return _with_leaves(f"idiom {name}", module, arguments)


def _with_leaves(name: str, module: Module, arguments: Sequence[Any]) -> Program:
    """The program with those leaves of its arguments that are no static values."""
    wanted = [p.array_shape for p in module.entry.parameters]
    leaves = [np.asarray(leaf) for leaf in tree.leaves(arguments) if not isinstance(leaf, str)]
    for found in (leaves, [leaf for leaf in leaves if leaf.dtype.kind not in "iub" or leaf.ndim]):
        if [leaf.shape for leaf in found] == [shape.dimensions for shape in wanted]:
            pairs = zip(found, wanted, strict=True)
            return Program(name, module, [leaf.astype(shape.dtype) for leaf, shape in pairs])
    return Program(name, module)


def _of_npbench(path: Path, name: str, preset: str) -> Program:
    program = npbench_program.Program(path, name, preset)
    kernel = program.kernel("numpy")
    assert kernel is not None
    before, mutated = program.arguments(), program.written()
    refusal: TracejitError | None = None
    for options in npbench_program.ATTEMPTS.values():
        call = npbench_program.compiled(kernel, before, mutated, **options)
        try:
            lowered = call.lower(*program.arguments().values())  # type: ignore[attr-defined]
        except TracejitError as error:
            refusal = error
            continue
        return _with_leaves(f"npbench {name}", lowered.module, [*before.values()])
    assert refusal is not None
    raise refusal


def _of_pyhpc(path: Path, name: str) -> Program:
    program = pyhpc_program.Program(path, name, PYHPC_ELEMENTS)
    as_jax.install()
    _, function = pyhpc_program.PROGRAMS[name]
    module = program.module("jax")
    arguments = [*program.arguments().values()]
    lowered = tj.jit(getattr(module, function)).lower(*arguments)
    return _with_leaves(f"pyhpc {name}", lowered.module, arguments)
