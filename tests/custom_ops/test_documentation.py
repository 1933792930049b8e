"""docs/custom_operations.md does what it says; pages that are made from definitions."""

from __future__ import annotations

import doctest
import importlib.util
import inspect
import re
import textwrap
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

import tracejit as tj
from tests.project import checkout
from tracejit.custom_ops import Op, define_op, kernel, register_op, unchanged_shape
from tracejit.custom_ops.documentation import docstring, markdown

pytestmark = pytest.mark.usefixtures("own_targets")


def test_the_page_runs() -> None:
    text = (checkout.ROOT / "docs" / "custom_operations.md").read_text(encoding="utf-8")
    code = "\n".join(re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE))
    example = doctest.DocTestParser().get_doctest(code, {}, "custom_operations", None, 0)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    failures: list[str] = []
    result = runner.run(example, out=failures.append)
    assert result.attempted > 20
    assert result.failed == 0, "".join(failures)


def of_page(begin: str) -> str:
    """The indented example of the page that begins with a line, as a module."""
    text = (checkout.ROOT / "docs" / "custom_operations.md").read_text(encoding="utf-8")
    found = re.search(rf"^    {re.escape(begin)}\n(    .*\n|\n)*", text, re.MULTILINE)
    assert found is not None
    return "from tracejit.custom_ops import kernel\n" + textwrap.dedent(found[0])


def imported(folder: Path, name: str, code: str) -> None:
    """Imports code from a file, where TVM's script finds its text."""
    path = folder / f"{name}.py"
    path.write_text(code)
    specification = importlib.util.spec_from_file_location(name, path)
    assert specification is not None
    assert specification.loader is not None
    specification.loader.exec_module(importlib.util.module_from_spec(specification))


@pytest.mark.parametrize(
    ("begin", "name", "wanted"),
    [
        ("from tvm.script import tirx as T", "Cubed", [0, 1, 8, 27]),
        ("from numba import carray, cfunc, types", "Swapped", [2, 3, 0, 1]),
    ],
)
def test_examples_of_other_compilers(
    tmp_path: Path, begin: str, name: str, wanted: Sequence[float]
) -> None:
    op = register_op(name).input("x: double").output("y: double").set_shape_fn(unchanged_shape)
    imported(tmp_path, f"example_{name}", of_page(begin))
    x = np.arange(4.0)
    np.testing.assert_array_equal(tj.jit(lambda x: op(x) + 0)(x), wanted)
    np.testing.assert_array_equal(op(x), wanted)


def test_page_of_an_op() -> None:
    op = (
        register_op("Mix")
        .attr("T: {float, double}")
        .attr("N: int >= 2")
        .attr("mode: {'mean', 'max'} = 'mean'")
        .attr("weights: list(float) = []")
        .input("parts: N * T")
        .input("lambda: float")
        .output("mixed: T")
        .output("count: int32")
        .doc(
            """
            Mixes arrays.

            parts: What is mixed,
              two or more.
            mode: How it is done.
            count: The number of parts.
            """
        )
    )
    kernel(op, T="float")(lambda parts, factor: None)
    assert op.to_markdown() == (
        "# Mix\n\n"
        "```python\nmix(parts, lambda_, mode='mean', weights=[], name=None)\n```\n\n"
        "Mixes arrays.\n\n"
        "## Inputs\n\n"
        "| Name | Meaning |\n| --- | --- |\n"
        "| `parts` | A list of at least 2 arrays. Must be one of the following types: `float32`, "
        "`float64`. What is mixed, two or more. |\n"
        "| `lambda` | An array of type `float32`. |\n\n"
        "## Outputs\n\n"
        "| Name | Meaning |\n| --- | --- |\n"
        "| `mixed` | An array. Has the same type as `parts`. |\n"
        "| `count` | An array of type `int32`. The number of parts. |\n\n"
        "## Attributes\n\n"
        "| Name | Type | Default | Meaning |\n| --- | --- | --- | --- |\n"
        "| `T` | `{float32, float64}` |  | told by the inputs |\n"
        "| `N` | `int >= 2` |  | told by the inputs |\n"
        "| `mode` | `{'mean', 'max'}` | `'mean'` | How it is done. |\n"
        "| `weights` | `list(float)` | `[]` |  |\n\n"
        "## Kernels\n\n"
        "- CPU for T in {float32}\n"
    )


def test_function_of_an_op() -> None:
    op = register_op("MyProject>BatchNorm2D").input("in: float").attr("eps: float = 1e-5")
    assert op.__name__ == "my_project_batch_norm2d"
    assert register_op("L2LossV2").__name__ == "l2_loss_v2"
    assert str(inspect.signature(op)) == "(in_, eps=1e-05, name=None)"
    assert "in_: An array of type `float32`." in (inspect.getdoc(op) or "")
    assert "A registered op" in (Op.__doc__ or "")


def test_results_of_all_kinds() -> None:
    nothing = define_op("Nothing").definition
    assert docstring(nothing).endswith("Returns:\n    None.\n")
    lists = define_op("Lists").attr("T: list({float, int32}) >= 0").input("x: T").output("y: T")
    text = docstring(lists.definition)
    assert "x: A list of arrays. Each of the types: `float32`, `int32`." in text
    assert "Have the same types as `x`." in text
    several = define_op("Several").attr("n: int").attr("t: type").output("a: n * t").output("b: t")
    assert "A tuple of arrays (a, b)." in docstring(several.definition)
    assert "A list of `n` arrays of type `t`." in docstring(several.definition)
    assert "# Several" in markdown(several.definition)
