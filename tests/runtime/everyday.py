"""Programs that hold functions of the user's, compiled as in a user's process: by another one."""

from __future__ import annotations

import doctest
import re
from typing import Any

import numpy as np
import scipy.special

import tracejit as tj
from tests.project import checkout
from tracejit.runtime import compile_server

x = np.array([3.0, 1.0, 2.0])
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def close(got: Any, wanted: Any) -> None:
    np.testing.assert_allclose(np.asarray(got), wanted, rtol=1e-12)


def derivatives_of_ones_own() -> None:
    @tj.custom_vjp
    def f(x: Any) -> Any:
        return np.sin(x)

    f.defvjp(lambda x: (f(x), x), lambda x, g: (2 * g * np.cos(x),))
    close(tj.jit(f)(x), np.sin(x))
    close(tj.jit(tj.grad(lambda x: np.sum(f(x))))(x), 2 * np.cos(x))
    close(tj.jit(tj.vmap(f))(x), np.sin(x))


def special_functions() -> None:
    for function in (scipy.special.gammaln, scipy.special.ndtr, scipy.special.erfinv):
        close(tj.jit(function)(x / 4), function(x / 4))


def callbacks() -> None:
    seen: list[Any] = []

    def f(x: Any) -> Any:
        tj.debug.callback(seen.append, x)
        return tj.pure_callback(lambda x: np.asarray(x) + 1, x, x)

    close(tj.jit(f)(x), x + 1)
    close(seen[0], x)


def custom_calls() -> None:
    tj.register_custom_call("twice", lambda x: np.asarray(x) * 2)
    module = tj.hlo.parse(
        """
        HloModule twice
        ENTRY %main (x: f64[3]) -> f64[3] {
          %x = f64[3] parameter(0)
          ROOT %y = f64[3] custom-call(%x), custom_call_target="twice"
        }
        """
    )
    close(tj.compile(module)(x), 2 * x)


def loops_and_branches() -> None:
    def f(x: Any) -> Any:
        total = 0.0
        for value in x:
            if value > 1.5:
                total += value
        return total

    close(tj.jit(f, autograph=True)(x), 5.0)


def options() -> None:
    close(tj.jit(lambda x: np.sort(x), tiered=True)(x), np.sort(x))
    close(tj.jit(lambda x: np.sort(x), check=True)(x), np.sort(x))
    close(tj.jit(tj.checkpoint(lambda x: np.sin(x)))(x), np.sin(x))


def pages() -> None:
    """The examples of the documentation."""
    count = 0
    for path in [*sorted((checkout.ROOT / "docs").rglob("*.md")), checkout.ROOT / "README.md"]:
        text = path.read_text(encoding="utf-8")
        code = "\n".join(re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE))
        example = doctest.DocTestParser().get_doctest(code, {}, path.name, str(path), 0)
        result = doctest.DocTestRunner(optionflags=OPTIONS).run(example)
        assert result.failed == 0, path
        count += result.attempted
    assert count > 70


def main() -> None:
    assert compile_server.is_wanted()
    derivatives_of_ones_own()
    special_functions()
    callbacks()
    loops_and_branches()
    options()
    custom_calls()
    pages()
    assert compile_server._idle, "nothing was compiled by another process"
