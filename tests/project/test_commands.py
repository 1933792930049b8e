"""README.md's two commands are the ones that CI and the Makefile run."""

from __future__ import annotations

import os

from tests.project import checkout


def lines(name: str) -> list[str]:
    return [
        line.strip() for line in (checkout.ROOT / name).read_text(encoding="utf-8").splitlines()
    ]


def test_ci_runs_the_test_command_last() -> None:
    assert lines(".ci/run")[-1] == checkout.commands()["test"]
    assert "set -euo pipefail" in lines(".ci/run")
    assert os.access(checkout.ROOT / ".ci" / "run", os.X_OK)


def test_make_runs_the_same() -> None:
    assert checkout.commands()["train"] in lines("Makefile")
    assert "bash .ci/run" in lines("Makefile")


def test_the_checks_stand_in_order() -> None:
    """Cheap checks first; each command starts from an empty environment."""
    test = checkout.commands()["test"].split(" && ")
    assert test[0] == checkout.commands()["train"].split(" && ")[0]
    tools = [part.split()[0].rpartition("/")[2] for part in test]
    assert tools == ["python3", "pip", "ruff", "ruff", "mypy", "python", "python", "python"]


def test_the_tests_run_at_several_instruction_sets() -> None:
    """Samples for lesser processors first; pytest's last line is that of the whole run."""
    *samples, whole = checkout.commands()["test"].split(" && ")[-3:]
    assert samples == [f"{whole} --processor {name}" for name in ("x86-64-v2", "x86-64-v3")]
