"""The cell magic, in a shell of IPython's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from tests.display.test_display import checked
from tracejit.display import Page, magic

pytest.importorskip("IPython")


@pytest.fixture(scope="module")
def shell() -> Iterator[Any]:
    from IPython.core.interactiveshell import InteractiveShell

    made: Any = InteractiveShell.instance()
    made.run_cell("%load_ext tracejit")
    yield made
    InteractiveShell.clear_instance()


CELL = """%%tracejit
y = np.tanh(x @ w)
np.sum(y**2)
"""


def run(shell: Any, cell: str) -> Any:
    return shell.run_cell(cell, store_history=True)


def test_a_cell_shows_lines_graph_derivative_kernels_and_times(shell: Any) -> None:
    shell.user_ns.update(np=np, x=np.ones((8, 4)), w=np.ones((4, 3)))
    page = run(shell, CELL).result
    assert isinstance(page, Page)
    text = checked(page.html).texts
    assert "y = np.tanh(x @ w)" in text
    assert "dot, tanh" in text
    assert any(each.startswith("Cell In[") and each.endswith("line 2") for each in text)
    for part in ("graph", "graph of the derivative", "what each line recorded", "NumPy"):
        assert part in text
    assert any(each.startswith("kernels: ") for each in text)
    assert "times as fast as NumPy" in "".join(text)
    assert "tanh" in repr(page)
    np.testing.assert_allclose(shell.user_ns["y"], np.tanh(np.full((8, 3), 4.0)))


def test_names_are_results_where_there_is_no_expression(shell: Any) -> None:
    shell.user_ns.update(np=np, a=np.arange(3.0), scale=2.0)
    page = run(shell, "%%tracejit\nb = a * scale\nc = b + 1\n").result
    assert "multiply" in page.text
    np.testing.assert_array_equal(shell.user_ns["c"], [1, 3, 5])
    assert "no derivative" in checked(page.html).texts


def test_a_mistake_names_the_line_of_the_cell(shell: Any) -> None:
    shell.user_ns.update(np=np, a=np.arange(3.0))
    error = run(shell, "%%tracejit\nb = a + 1\nnp.dot(b, np.ones(4))\n").error_in_exec
    assert "line 3" in str(error)


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        ("%%tracejit\n1 + 2\n", "reads no arrays or numbers"),
        ("%%tracejit\na + nowhere\n", "reads nowhere, which is not defined"),
        ("%%tracejit\nfor _ in a: pass\n", "neither ends with an expression nor binds a name"),
        ("%%tracejit --fast\na\n", "takes no arguments, and got '--fast'"),
    ],
)
def test_cells_that_cannot_be_traced(shell: Any, cell: str, message: str) -> None:
    shell.user_ns.update(np=np, a=np.arange(3.0))
    shell.user_ns.pop("_", None)
    assert message in str(run(shell, cell).error_in_exec)


def test_without_a_shell() -> None:
    names = {"np": np, "t": np.float64(0.5)}
    page = magic.traced_cell("np.exp(t)", names)
    assert "exponential" in page.text
