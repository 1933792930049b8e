"""The plain target computes what the interpreter computes, for each op that it does not lack."""

from __future__ import annotations

from pathlib import Path
from shutil import which

import pytest

from tests.backends_tvm.test_samples_compiled import flat
from tests.runtime.programs import loaded
from tests.samples.base import Sample
from tests.samples.cases import draw_joint, every_sample, joint_module
from tests.samples.comparing import SINGLE, compare
from tests.samples.values import element_types
from tracejit.backends.numpy import evaluate
from tracejit.errors import CompilationError
from tracejit.graph import OPS
from tracejit.runtime import importing_tvm

with importing_tvm():
    from tests.targets.plain.target import PLAIN
    from tracejit.backends.tvm.compile import compile_on

pytestmark = pytest.mark.skipif(not which("cc"), reason="there is no C compiler")

# Ops that have no plain loops in `codegen.scalar` yet, or are calls of Python.
MISSING = {
    "Cholesky",
    "ConvGeneralDilated",
    "CustomCall",
    "DynamicReshape",
    "Infeed",
    "Outfeed",
    "RaggedAllToAll",
    "RaggedDot",
    "ReduceWindow",
    "Rng",
    "RngBitGenerator",
    "RngGetAndUpdateState",
    "Scatter",
    "SelectAndScatter",
    "Sort",
    "TopK",
    "TriangularSolve",
}


def firsts() -> list[object]:
    """A sample for each op that is not missing."""
    found = {p.values[0].op: p for p in every_sample(lambda s: s.op not in MISSING)[::-1]}
    return [*found.values()]


@pytest.mark.parametrize("sample", firsts())
def test_sample(sample: Sample) -> None:
    types = element_types(sample)
    module = joint_module(sample, types)
    arrays = draw_joint(sample, types, False, OPS[sample.op].family in SINGLE)
    actual = loaded(compile_on(module, PLAIN))(arrays)
    expected = flat(evaluate(module.entry, arrays))
    for ours, theirs in zip(actual, expected, strict=True):
        assert not compare(sample, ours, theirs)


@pytest.mark.parametrize("name", sorted(MISSING - {"Infeed"}))
def test_missing_ops_are_refused(name: str) -> None:
    """Take an op from `MISSING` when it has loops."""
    sample = next(p.values[0] for p in every_sample(lambda s: s.op == name))
    with pytest.raises(CompilationError, match="cannot be compiled for the plain target"):
        compile_on(joint_module(sample, element_types(sample)), PLAIN)


def test_every_function_of_numbers_is_there() -> None:
    assert PLAIN.mathematics.missing == []


def test_a_target_is_little_code() -> None:
    folder = Path(__file__).parent / "plain"
    assert sum(len(p.read_text().splitlines()) for p in folder.glob("*.py")) < 500
