"""The notebooks run from top to bottom, each in its own kernel; they are stored without outputs."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import Any

import pytest

from tests.project import checkout

with warnings.catch_warnings():
    # Jupyter's packages deprecate each other's names.
    warnings.simplefilter("ignore")
    import nbformat
    from nbclient import NotebookClient

NOTEBOOKS = sorted((checkout.ROOT / "notebooks").glob("*.ipynb"))


def read(path: Path) -> Any:
    return nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]


def executed(path: Path) -> Any:
    """The notebook with its outputs, without lines about compilations, which depend on how fast the
    machine is. CellExecutionError when a cell raises.
    """
    notebook = read(path)
    client = NotebookClient(
        notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": path.parent}}
    )
    client.execute(env={**os.environ, "TRACEJIT_PROGRESS": "0"})
    return notebook


def outputs(notebook: Any) -> list[Any]:
    return [output for cell in notebook.cells for output in cell.get("outputs", [])]


def test_there_are_notebooks() -> None:
    assert "quickstart.ipynb" in [path.name for path in NOTEBOOKS]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_stored_without_outputs(path: Path) -> None:
    notebook = read(path)
    assert outputs(notebook) == []
    assert {cell.execution_count for cell in notebook.cells if cell.cell_type == "code"} == {None}


def test_quickstart() -> None:
    """Nothing is written to stderr; the graph's text, the refusal and five pictures are shown."""
    shown = outputs(executed(checkout.ROOT / "notebooks" / "quickstart.ipynb"))
    assert [output.text for output in shown if output.get("name") == "stderr"] == []
    printed = "".join(output.text for output in shown if output.get("name") == "stdout")
    assert "HloModule" in printed
    assert "exponential(" in printed
    assert "positive_part" in printed or "x.sum() > 0" in printed
    pictures = [output for output in shown if "image/png" in output.get("data", {})]
    assert len(pictures) == 5
