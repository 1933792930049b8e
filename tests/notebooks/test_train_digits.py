"""The training script reaches its accuracy through compiled code, and leaves what it promises."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

import numpy as np
import pytest

import tracejit as tj
from tests.judge import parse_xla
from tests.notebooks import scripts
from tracejit.backends.numpy.interpreter import interpret
from tracejit.backends.target import Target
from tracejit.graph import OPS, Module
from tracejit.runtime import Executable
from tracejit.transforms.jit import hooks

# What the training step cannot do without. Shapes and indices known while tracing may be worked
# out by the interpreter: it is these that must not be.
COMPUTING = (
    "BatchNormGrad",
    "BatchNormInference",
    "BatchNormTraining",
    "ConvGeneralDilated",
    "DotGeneral",
    "Exp",
    "Log",
    "Reduce",
    "ReduceWindow",
    "SelectAndScatter",
)


class InterpretedError(Exception):
    """The interpreter was asked to compute."""


def refuse(*arguments: Any, **attributes: Any) -> NoReturn:
    raise InterpretedError


@pytest.fixture(scope="module")
def poisoned() -> Iterator[None]:
    """The interpreter raises for every op that computes."""
    with pytest.MonkeyPatch.context() as patch:
        for name in COMPUTING:
            assert interpret.get(OPS[name]), "rules are loaded with the first one of a family"
        for name in COMPUTING:
            patch.setitem(interpret._rules, OPS[name], refuse)
        yield


@dataclass(frozen=True)
class Run:
    script: ModuleType
    executables: list[hooks.Executable]
    accuracy: float
    output: Path
    printed: str


@pytest.fixture(scope="module")
def run(poisoned: None, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """The script as the command line runs it; the interpreter is poisoned, the compiler watched."""
    output = tmp_path_factory.mktemp("digits")
    script = scripts.load("train_digits")
    executables: list[hooks.Executable] = []

    def watched(module: Module, target: Target, check: bool) -> hooks.Executable:
        assert installed is not None
        executable = installed(module, target, check)
        executables.append(executable)
        return executable

    installed = hooks.use_compiler(watched)
    with pytest.MonkeyPatch.context() as patch:
        lines: list[str] = []
        patch.setattr(script, "print", lines.append, raising=False)
        try:
            accuracy = script.main(output=output)
        finally:
            assert installed is not None
            hooks.use_compiler(installed)
    return Run(script, executables, accuracy, output, "\n".join(lines))


def test_the_poison_bites(poisoned: None) -> None:
    """Outside `jit` it is the interpreter that computes."""
    with pytest.raises(InterpretedError):
        tj.numpy.exp(np.ones(3))


def test_accuracy_through_compiled_code(run: Run) -> None:
    assert run.accuracy >= 0.98
    assert f"{run.accuracy:.2%}" in run.printed


def test_what_was_called_is_machine_code(run: Run) -> None:
    """Two functions were compiled: the training step, and the prediction on the test images."""
    assert [type(executable) for executable in run.executables] == [Executable, Executable]


def test_the_gradient_graph(run: Run) -> None:
    """HLO text that XLA itself accepts, with one gradient op for each block's two layers."""
    text = (run.output / "gradient.hlo").read_text(encoding="utf-8")
    assert len(re.findall(r"= \(.*\) batch-norm-grad\(", text)) == 2
    assert len(re.findall(r" select-and-scatter\(", text)) == 2
    assert "batch-norm-grad" in parse_xla(text)


def test_the_picture(run: Run) -> None:
    assert (run.output / "learning.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("what", ["tracing", "compiling", "a step of 32 images"])
def test_times_are_printed(run: Run, what: str) -> None:
    assert re.search(rf"^{what}.* \d+\.\d{{3}} m?s$", run.printed, re.MULTILINE)


def test_the_split_keeps_test_images_away_from_training(run: Run) -> None:
    digits = run.script.load(0)
    assert len(digits.images) + len(digits.test_images) == 1797
    trained = {image.tobytes() for image in digits.images}
    assert not any(image.tobytes() in trained for image in digits.test_images)


def test_the_same_seed_trains_the_same(run: Run, tmp_path: Path) -> None:
    first, second = (run.script.main(epochs=1, seed=3, output=tmp_path) for _ in range(2))
    assert first == second
