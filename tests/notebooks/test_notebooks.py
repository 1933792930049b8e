"""The notebooks: committed with their outputs, and executed again from top to bottom.

Each runs in its own kernel. What the run shows is what the file shows, kind by kind; times and
digits differ. `python -m tests.notebooks.test_notebooks` writes the outputs anew.
"""

from __future__ import annotations

import os
import re
import sys
import textwrap
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

FOLDER = checkout.ROOT / "notebooks"
NAMES = (
    "bayesian_inference",
    "derivatives",
    "from_jax",
    "from_numpy",
    "inverse_design",
    "looking_inside",
    "quickstart",
    "shipping_to_c",
)
MOST_BYTES = 400_000


def read(name: str) -> Any:
    return nbformat.read(FOLDER / f"{name}.ipynb", as_version=4)  # type: ignore[no-untyped-call]


def executed(name: str) -> Any:
    """The notebook with new outputs. CellExecutionError when a cell raises."""
    notebook = read(name)
    client = NotebookClient(
        notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": FOLDER}}
    )
    client.execute(env={**os.environ, "TRACEJIT_PROGRESS": "0"})
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
    notebook.metadata = {
        "kernelspec": notebook.metadata["kernelspec"],
        "language_info": {"name": "python"},
    }
    return notebook


def outputs(notebook: Any) -> list[Any]:
    return [output for cell in notebook.cells for output in cell.get("outputs", [])]


def kinds(notebook: Any) -> list[Any]:
    """For each cell what it shows: names of streams, and kinds of displays."""
    return [
        sorted(
            {
                str(output.get("name") or sorted(output["data"]))
                for output in cell.get("outputs", [])
            }
        )
        for cell in notebook.cells
    ]


def test_all_are_known() -> None:
    assert sorted(path.stem for path in FOLDER.glob("*.ipynb")) == sorted(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_what_is_stored(name: str) -> None:
    """Outputs of every cell, no errors or warnings, nothing of the machine that wrote it."""
    notebook = read(name)
    shown = outputs(notebook)
    assert shown
    assert not [o for o in shown if o.output_type == "error" or o.get("name") == "stderr"]
    counts = [cell.execution_count for cell in notebook.cells if cell.cell_type == "code"]
    assert counts == [*range(1, len(counts) + 1)]
    path = FOLDER / f"{name}.ipynb"
    assert path.stat().st_size < MOST_BYTES
    assert not re.search(r"/(home|root|tmp|work)/", path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", NAMES)
def test_it_runs(name: str) -> None:
    """Every cell shows again what the file shows; nothing is written to stderr."""
    assert kinds(executed(name)) == kinds(read(name))


def test_progress_leaves_nothing_behind() -> None:
    """Lines of compilations and calls are outputs while a cell runs, and empty when it is done."""
    code = """
        import tracejit as tj
        from tracejit.runtime import progress
        progress.DELAY_SECONDS = progress.CALL_SECONDS = progress.INTERVAL_SECONDS = 0.0

        @tj.jit
        def wait_for_it(n):
            return tj.lax.while_loop(lambda i: i < n, lambda i: (i * 5 + 1) // 5 + 1, 0)

        print(wait_for_it(3 * 10**8))
    """
    cell = nbformat.v4.new_code_cell(textwrap.dedent(code))  # type: ignore[no-untyped-call]
    notebook = nbformat.v4.new_notebook(cells=[cell])  # type: ignore[no-untyped-call]
    seen: list[str] = []

    class Client(NotebookClient):
        def process_message(self, message: Any, *arguments: Any) -> Any:
            seen.append(str(message["content"].get("data", {}).get("text/plain")))
            return super().process_message(message, *arguments)

    environment = {k: v for k, v in os.environ.items() if k != "TRACEJIT_PROGRESS"}
    Client(notebook, timeout=300, kernel_name="python3").execute(
        env={**environment, "TRACEJIT_CACHE": "0"}
    )
    for what in ("compiling", "running"):
        assert any(text.startswith(f"{what} wait_for_it: ") for text in seen), seen
    shown = [output for output in notebook.cells[0].outputs if output.get("data") != {}]
    assert [(output.name, output.text) for output in shown] == [("stdout", "300000000\n")]
    nbformat.validate(notebook)


def write(path: Path) -> None:
    nbformat.write(executed(path.stem), path)  # type: ignore[no-untyped-call]


if __name__ == "__main__":
    for each in sys.argv[1:] or NAMES:
        write(FOLDER / f"{each}.ipynb")
