"""Every error message of the front end is expected by a test; here those that no other test has."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tracejit as tj
from tests.trace.messages import is_tested, messages
from tracejit import lax
from tracejit.ops.elementwise import ADD
from tracejit.sources import Source
from tracejit.trace.public import enter
from tracejit.trace.table import implementation
from tracejit.transforms.interpreted import Interpreted
from tracejit.traversal import instructions

X = np.arange(4.0)
I = np.array([0, 1])  # noqa: E741


def test_every_message_is_expected_by_a_test() -> None:
    found = list(messages())
    assert len(found) > 100
    assert [str(message) for message in found if not is_tested(message)] == []


def stored(x: Any, index: Any, value: Any) -> Any:
    y = np.array(x)
    y[index] = value
    return y


def diagonal_stored(x: Any) -> Any:
    y = np.array(x)
    y.diagonal()[0] = 3
    return y


def with_derivative(backward: Callable[..., Any]) -> Any:
    function = tj.custom_vjp(lambda x: x)
    function.defvjp(lambda x: (x, None), backward)
    return function


def printing(a: Any, b: Any) -> Any:
    tj.debug.print("x")
    return a + b


def zero_step(n: int) -> int:
    for _ in range(0, n, 0):
        n += 1
    return n


def unbound(x: float) -> float:
    y: float
    while x > 0:
        x = x - y  # noqa: F821
        y = x * 1
    return x


def shortened(tree: dict[str, Any]) -> None:
    tree["a"] = tree["a"][1:]


RECORDS: list[tuple[str, Callable[[], Any]]] = [
    (
        "assignment: could not broadcast input array from shape (3,) into shape (2,)",
        lambda: tj.jit(lambda x: stored(x, slice(0, 2), x[:3]))(X),
    ),
    (
        "a diagonal is read-only; write to x[range, range], or copy it first",
        lambda: tj.jit(diagonal_stored)(np.eye(3)),
    ),
    (
        "index: a dimension of size 0 has no elements to index; array f64[0]",
        lambda: tj.jit(lambda x, i: x[:0][i])(X, I),
    ),
    (
        "an index can only have a single ellipsis ('...')",
        lambda: tj.jit(lambda x: x[..., ...])(X),
    ),
    (
        "too many indices for array: array is 1-dimensional, but 2 were indexed",
        lambda: tj.jit(lambda x: x[0, 0])(X),
    ),
    (
        "index: an unknown mask beside other arrays is not supported; write np.where",
        lambda: tj.jit(lambda x, i: x[x[:, 0] > 0, i])(np.eye(2), I),
    ),
    (
        "boolean index did not match indexed array along axis 0; size of axis is 4 but size of "
        "corresponding boolean axis is 2",
        lambda: tj.jit(lambda x: x[np.array([True, False])])(X),
    ),
    (
        "a number does not support item assignment: it is not an array",
        lambda: tj.jit(lambda x: x[0].fill(1))(X),
    ),
    (
        "assignment: elements that another mask selects; how many there are is unknown, so only "
        "those under the same mask can be assigned",
        lambda: tj.jit(lambda x: stored(x, x > 1, x[x > 2]))(X),
    ),
    (
        "elements that different masks select cannot be combined: how many there are is unknown; "
        "combine the arrays first, and select then",
        lambda: tj.jit(lambda x: (x[x > 1] + x[x > 2]).sum())(X),
    ),
    ("np.sin is implemented twice", lambda: enter(np.sin, implementation(np.sin))),
    (
        "a number cannot be written to: it is not an array",
        lambda: tj.jit(lambda x: x[0].write(x[1].instruction))(X),
    ),
    (
        "astype: cannot cast float64 to int64 by the rule 'safe'",
        lambda: tj.jit(lambda x: x.astype(int, casting="safe"))(X),
    ),
    (
        "<lambda>: a cotangent from defvjp's backward is a tree PyTreeSpec((*, *)), its argument "
        "PyTreeSpec(*)",
        lambda: tj.grad(with_derivative(lambda rest, g: ((g, g),)))(1.0),
    ),
    (
        "compiled for 1 arguments, not 0",
        lambda: Interpreted(tj.jit(lambda x: x).lower(X).module)([]),
    ),
    (
        "jacobian: argument x of <lambda> is c128[4]; pass holomorphic=True for a holomorphic "
        "function, or give real and imaginary parts as arguments of their own",
        lambda: tj.jacrev(lambda x: x)(X + 1j),
    ),
    (
        "jacobian: <lambda> must return real numbers, not c128[4]; pass holomorphic=True for a "
        "holomorphic function",
        lambda: tj.jacrev(lambda x: x * 1j)(X),
    ),
    (
        "jacobian: <lambda> must return real numbers, not s64[4]",
        lambda: tj.jacfwd(lambda x: x.astype(int))(X),
    ),
    (
        "<lambda>: mutates=['x'], but a value in them is no NumPy array (float)",
        lambda: tj.jit(lambda x: x.fill(0), mutates="x")([1.0]),
    ),
    (
        "grad: module <lambda> has no floating or complex parameter",
        lambda: tj.gradient_of(tj.jit(lambda n: n.sum()).lower(I).module),
    ),
    (
        "grad: parameter 0 of module <lambda> is s64[2], which has no gradient",
        lambda: tj.gradient_of(tj.jit(lambda n, x: (n * x).sum()).lower(I, X[:2]).module, [0]),
    ),
    (
        "jacobian: sparse=True makes SciPy arrays, outside jit only",
        lambda: tj.jit(tj.jacrev(lambda x: x, sparse=True))(X),
    ),
    (
        "<lambda>: writes to argument x of <lambda> and returns nothing; the caller's array is "
        "never written to, so return the new value, or write jit(f, mutates=...)",
        lambda: tj.jit(lambda x: x.fill(0))(X),
    ),
    (
        "vmap: in_axes for argument x of <lambda> does not fit: {'a': 0} for PyTreeSpec({'b': *})",
        lambda: tj.vmap(lambda x: x, in_axes=({"a": 0},))({"b": X}),
    ),
    (
        "printing: a function of numbers must not have side effects",
        lambda: lax.reduce(X, 0.0, printing, (0,)),
    ),
    (
        "lambda: must return numbers, not f64[4]",
        lambda: lax.reduce(X, 0.0, lambda a, b: X, (0,)),
    ),
    (
        "conv: labels ('NCH', 'OIHW', 'NCHW') must each name 4 dimensions",
        lambda: lax.conv_dimension_numbers((1,) * 4, (1,) * 4, ("NCH", "OIHW", "NCHW")),
    ),
    (
        "cond_fun: must return one truth value",
        lambda: lax.while_loop(lambda x: x > 0, lambda x: x, X),
    ),
    (
        "true_fun and false_fun must return equal shapes; result is f64[4] and f64[3]",
        lambda: lax.cond(True, lambda x: x, lambda x: x[1:], X),
    ),
    (
        "body_fun: carried value[1] enters as f32[] and leaves as f64[]; convert one of them",
        lambda: lax.fori_loop(0, 3, lambda i, s: s + np.float64(1), np.float32(0)),
    ),
    (
        "ragged_dot_general: group_offset is not supported",
        lambda: lax.ragged_dot_general(
            np.ones((2, 2)), np.ones((1, 2, 2)), np.array([2]), None, group_offset=np.array([0])
        ),
    ),
    ("range: its step must not be zero", lambda: tj.jit(zero_step, autograph=True)(3)),
    ("the variable y has no value yet", lambda: tj.jit(unbound, autograph=True)(3.0)),
    (
        "<lambda>: arguments of a function with a custom derivative are given by position, not as "
        "y",
        lambda: with_derivative(lambda rest, g: (g,))(y=1.0),
    ),
    (
        "shortened: a mutated argument changed its shape",
        lambda: tj.jit(shortened, mutates="tree")({"a": X.copy()}),
    ),
]


@pytest.mark.parametrize(("message", "call"), RECORDS, ids=[r[0][:40] for r in RECORDS])
def test_message(message: str, call: Callable[[], Any]) -> None:
    with pytest.raises(Exception) as caught:  # noqa: PT011
        call()
    text = str(caught.value)
    located = text.removesuffix(")").rpartition(" (test_messages.py:")[0]
    assert message == (located or text)


def test_lines_of_long_functions() -> None:
    """Python reads a long function's table of lines from its beginning each time."""
    steps = [f"    x = x + {n}.5" for n in range(2000)]
    names: dict[str, Any] = {}
    exec(compile("\n".join(["def long(x):", *steps, "    return x"]), "long.py", "exec"), names)
    assert len(names["long"].__code__.co_linetable) > 4096
    module = tj.jit(names["long"]).lower(1.0).module
    sources = [i.source for i in instructions(module.entry) if i.op is ADD]
    assert sources == [Source("long.py", n + 2) for n in range(2000)]


def test_lines_where_the_current_folder_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    tmp_path.rmdir()
    code = compile("def f(x):\n    return x + 1 + x[7]", "relative.py", "exec")
    names: dict[str, Any] = {}
    exec(code, names)
    with pytest.raises(IndexError, match=r"relative\.py:2"):
        tj.jit(names["f"])(np.ones(3))
