"""A function's definition is found by its lines alone, wherever they stand."""

from __future__ import annotations

import ast
import functools
import inspect
import linecache
from collections.abc import Callable
from types import FunctionType
from typing import Any

import numpy as np
import pytest

from tracejit.transforms.autograph import definitions


def plain(x: Any) -> Any:
    return x + 1


def with_dead_code(x: Any) -> Any:
    return x
    y = x  # makes y a variable of the function's  # type: ignore[unreachable]
    return y


def a_generator(x: Any) -> Any:
    return x
    yield x


def decorated(by: int) -> Callable[[Any], Any]:
    return lambda f: f


# fmt: off
@decorated(
    2
)
@functools.cache
def several_lines(
    x: Any,
    *,
    y: Any = 1,
) -> Any:
    """A text.

not indented
    """
    made = [
        x,
  y,
    ]
# A comment that stands farther out.

    def inside(z: Any) -> Any:
        return z * 2

    if x:
        made.append(inside(x))
        # The end.
    return """
of a text""", made


class Model:
    def method(self, x: Any) -> Any:
        if x is None:
            return 0

        class Inner:
            def method(self, x: Any) -> Any:
                return x
        return Inner().method(x)

    twice = staticmethod(lambda x: 2 * x)


def one_line(x: Any) -> Any: return x
# fmt: on


FUNCTIONS = [
    plain,
    with_dead_code,
    a_generator,
    inspect.unwrap(several_lines),
    Model.method,
    one_line,
    np.kron.__wrapped__,  # type: ignore[attr-defined]
    inspect.getsource,
]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_the_lines_give_what_the_file_gives(function: FunctionType) -> None:
    code = function.__code__
    lines = linecache.getlines(code.co_filename)
    (whole,) = (
        node
        for node in definitions._definitions("".join(lines), 1)
        if definitions._may_be(node, code)
    )
    block = definitions._block(code, lines)
    assert len(block) < len("".join(lines)) / 2
    (found,) = (
        node
        for node in definitions._definitions(block, code.co_firstlineno)
        if definitions._may_be(node, code)
    )
    assert ast.dump(found, include_attributes=True) == ast.dump(whole, include_attributes=True)
    assert definitions.kept_definition(code) is found


def test_lambdas_are_looked_for_in_the_file() -> None:
    code = Model.twice.__code__
    found = definitions.definition(code)
    assert isinstance(found, ast.Lambda)
    assert ast.unparse(found) == "lambda x: 2 * x"


def test_what_is_not_there() -> None:
    namespace: dict[str, Any] = {}
    exec(compile("def f(x):\n    return x\n", "nowhere.py", "exec"), namespace)
    assert definitions.definition(namespace["f"].__code__) is None
    # The file says something else by now.
    exec(compile("\n\n\ndef plain(x, y):\n    return x\n", __file__, "exec"), namespace)
    assert definitions.definition(namespace["plain"].__code__) is None
