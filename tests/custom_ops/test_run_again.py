"""A notebook's cell that registers ops, kernels and gradients is edited and run again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

import tracejit as tj
from tracejit.custom_ops import get_op, register_op
from tracejit.errors import ArgumentError
from tracejit.sources import Source, is_entered_again

pytestmark = pytest.mark.usefixtures("own_targets")

DEFINITION = """
import numpy as np
import tracejit as tj
from tracejit.custom_ops import batching, gradient, kernel, register_op

op = register_op("Again").input("x: double").output("y: double").set_shape_fn(
    lambda c: c.set_output(0, c.input(0)))
"""
KERNEL = """
@kernel("Again")
def again(x):
    return {factor} * x

@gradient("Again")
def again_gradient(op, grad):
    return {factor} * grad

@batching("Again")
def again_batched(op, size):
    return again(op.inputs[0])

@tj.register_custom_call("again_call")
def again_call(x):
    return {factor} * x
"""
X = np.array([1.0, 2.0])


@pytest.fixture(scope="module")
def shell() -> Iterator[InteractiveShell]:
    made: InteractiveShell = InteractiveShell.instance()
    yield made
    InteractiveShell.clear_instance()


def run_cell(shell: InteractiveShell, text: str) -> None:
    with capture_output() as captured:
        result: Any = shell.run_cell(text, store_history=True)  # type: ignore[no-untyped-call]
    assert result.success, captured.stdout + captured.stderr


def test_an_edited_cell_replaces_what_it_registered(shell: InteractiveShell) -> None:
    run_cell(shell, DEFINITION + KERNEL.format(factor=2.0))
    run_cell(shell, KERNEL.format(factor=3.0))
    op: Any = get_op("Again")
    np.testing.assert_array_equal(op(X), 3 * X)
    assert len(op.kernels) == 1
    assert tj.grad(lambda x: op(x).sum())(X).tolist() == [3.0, 3.0]
    run_cell(shell, DEFINITION + KERNEL.format(factor=4.0))
    assert get_op("Again") is not op
    np.testing.assert_array_equal(get_op("Again")(X), 4 * X)


def test_another_line_of_a_file_is_refused() -> None:
    for _ in range(2):
        op = register_op("Line").input("x: double").output("y: double")
    assert get_op("Line") is op
    with pytest.raises(ArgumentError, match="'Line' is registered already"):
        register_op("Line")


def test_places() -> None:
    line, other = Source("a.py", 3), Source("a.py", 4)
    assert is_entered_again(line, Source("a.py", 3))
    assert not is_entered_again(line, other)
    assert not is_entered_again(None, None)
    assert is_entered_again(Source("<stdin>", 1), Source("<python-input-4>", 2))
    assert not is_entered_again(line, Source("<stdin>", 3))
