"""The plain target computes what the interpreter computes: each record of each op."""

from __future__ import annotations

from dataclasses import replace
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
    from tracejit.backends.tvm import plain
    from tracejit.backends.tvm.compile import compile_on
    from tracejit.backends.tvm.target.libraries import NoLibraries

pytestmark = pytest.mark.skipif(not which("cc"), reason="there is no C compiler")


@pytest.mark.parametrize("sample", every_sample())
def test_sample(sample: Sample) -> None:
    types = element_types(sample)
    module = joint_module(sample, types)
    arrays = draw_joint(sample, types, False, OPS[sample.op].family in SINGLE)
    actual = loaded(compile_on(module, PLAIN))(arrays)
    expected = flat(evaluate(module.entry, arrays))
    for ours, theirs in zip(actual, expected, strict=True):
        assert not compare(sample, ours, theirs)


def test_an_op_without_loops_is_refused() -> None:
    sample = next(p.values[0] for p in every_sample(lambda s: s.op == "CustomCall"))
    module = joint_module(sample, element_types(sample))
    target = replace(PLAIN, libraries=NoLibraries())
    with pytest.raises(CompilationError, match="cannot be compiled for the plain"):
        compile_on(module, target)


def test_every_function_of_numbers_is_there() -> None:
    assert PLAIN.mathematics.missing == []


def test_a_target_is_little_code() -> None:
    folders = [Path(__file__).parent / "plain", Path(plain.__file__).parent]
    files = [path for folder in folders for path in folder.glob("*.py")]
    assert sum(len(path.read_text().splitlines()) for path in files) < 500
