"""The corpus: every module that the repository can make without much ado, by name.

modules(whole=False)        pairs of a name and a function that makes the module
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import tracejit as tj
from tests.benchmarks.case import Case
from tests.benchmarks.cases import CASES
from tests.fuzz.choices import Choices
from tests.fuzz.graphs import drawn
from tests.fuzz.repeats import repeated
from tests.notebooks import scripts
from tests.samples.base import Sample
from tests.samples.cases import all_samples, joint_module, sample_module
from tests.samples.values import element_types
from tracejit.backends.target import Target
from tracejit.graph import Module
from tracejit.transforms.jit import hooks

Maker = Callable[[], Module]

_TESTS = Path(__file__).parent.parent
# Seeds of the fuzzers' graphs, and of their loops and long chains of steps.
_GRAPHS, _REPEATS = 150, 60
_STEPS = 50
# The scripts beside the notebooks that compile something, and what keeps them short.
_SCRIPTS: dict[str, dict[str, Any]] = {
    "fit_oscillator": {},
    "gaussian_process": {},
    "logistic_newton": {},
    "train_digits": {},
    "train_gru": {"steps": 1},
    "train_transformer": {"steps": 1},
}


def modules(whole: bool = False) -> Iterator[tuple[str, Maker]]:
    """A name and what makes the module of that name, for each; the same ones in every process.

    ``whole`` takes every sample with all element types together as well, the benchmarks in their
    full sizes, and more of the fuzzers' graphs.
    """
    for number, sample in enumerate(all_samples()):
        name = f"sample {number} {sample.op} {sample.label}".strip()
        types = element_types(sample)
        yield name, partial(sample_module, sample, types[number % len(types)])
        if whole:
            yield f"{name}, all types", partial(_joint, sample)
    for folder in ("hlo/dumps", "autodiff/golden"):
        for path in sorted((_TESTS / folder).glob("*.hlo")):
            yield f"{folder}/{path.name}", partial(_parsed, path)
    for case in CASES:
        if case.tracejit is not None:
            yield f"benchmark {case.name}, tiny", partial(_benchmark, case, tiny=True)
            if whole:
                yield f"benchmark {case.name}", partial(_benchmark, case, tiny=False)
    for name, options in _SCRIPTS.items():
        yield f"notebooks/{name}", partial(_script, name, options)
    for seed in range(_GRAPHS if whole else _GRAPHS // 5):
        yield f"graph {seed}", partial(_drawn, seed)
    for seed in range(_REPEATS if whole else _REPEATS // 5):
        yield f"repeats {seed}", partial(_repeated, seed)


def _joint(sample: Sample) -> Module:
    return joint_module(sample, element_types(sample))


def _parsed(path: Path) -> Module:
    return tj.hlo.parse(path.read_text(encoding="utf-8"))


def _benchmark(case: Case, tiny: bool) -> Module:
    implementation = case.tracejit
    assert implementation is not None
    traced = tj.jit(lambda *arguments: implementation(tj, *arguments))
    return traced.lower(*case.make_inputs(tiny)).module


class _CompiledError(Exception):
    """Ends a script as soon as it compiles something."""

    def __init__(self, module: Module) -> None:
        self.module = module


def _script(name: str, options: dict[str, Any]) -> Module:
    """The first module that a script compiles."""

    def compiled(module: Module, _target: Target, _check: bool) -> NoReturn:
        raise _CompiledError(module)

    before = hooks.use_compiler(compiled)
    try:
        scripts.load(name).main(**options)
    except _CompiledError as error:
        return error.module
    finally:
        assert before is not None
        hooks.use_compiler(before)
    raise AssertionError(f"{name} compiles nothing")


def _drawn(seed: int) -> Module:
    return drawn(Choices(random.Random(seed).randint), 1, _STEPS, least=5)


def _repeated(seed: int) -> Module:
    return repeated(Choices(random.Random(seed).randint))
