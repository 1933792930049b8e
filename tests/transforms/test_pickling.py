"""Jitted, lowered and compiled functions as `pickle` and `copy` see them."""

from __future__ import annotations

import copy
import pickle
from typing import Any, NamedTuple

import numpy as np
import pytest

import tracejit as tj
from tests.runtime.processes import python
from tracejit.errors import ArgumentError, UnsupportedError, ValueRangeError

X = np.arange(6.0).reshape(2, 3)


class Pair(NamedTuple):
    total: Any
    rest: Any


def step(p: Any, x: Any, n: Any = 2, *, scale: int = 1) -> Any:
    return {"pair": Pair((p["w"] * x).sum(), x[0] * scale), "n": n + 1, "list": [x.sum(1)]}


P = {"w": X + 1}


def equal(given: Any, wanted: Any) -> None:
    assert tj.tree.structure(given) == tj.tree.structure(wanted)
    for one, other in zip(tj.tree.leaves(given), tj.tree.leaves(wanted), strict=True):
        assert type(one) is type(other)
        np.testing.assert_array_equal(one, other)


def test_lowered_and_compiled() -> None:
    function = tj.jit(step, static_argnames="scale")
    lowered = function.lower(P, X, 2, scale=3)
    compiled = lowered.compile()
    wanted = function(P, X, 2, scale=3)
    for made in (compiled, pickle.loads(pickle.dumps(compiled))):
        equal(made(P, X, 2, scale=3), wanted)
        equal(made(P, X, 2), wanted)
        with pytest.raises(ArgumentError, match=r"argument x of step: lowered for f64\[2,3\]"):
            made(P, X.T, 2)
        with pytest.raises(ArgumentError, match="argument scale of step: lowered for 3, not 4"):
            made(P, X, 2, scale=4)
    again = pickle.loads(pickle.dumps(lowered))
    assert again.as_text() == lowered.as_text()
    equal(again.compile()(P, X, 2), wanted)


def test_checked_and_donating() -> None:
    checked = tj.jit(lambda x: 1 / x, check=True).lower(X).compile()
    with pytest.raises(FloatingPointError, match=r"divide|infinit"):
        pickle.loads(pickle.dumps(checked))(np.zeros((2, 3)))
    donating = tj.jit(lambda x: x + 1, donate_argnums=0).lower(X).compile()
    made = pickle.loads(pickle.dumps(donating))
    assert made.module.input_output_alias == donating.module.input_output_alias
    np.testing.assert_array_equal(made(X.copy()), X + 1)


def test_bounds_of_integers_stay() -> None:
    compiled = tj.jit(lambda x, n: x + n).lower(np.zeros(2, np.int8), 1).compile()
    with pytest.raises(ValueRangeError, match="300 does not fit"):
        pickle.loads(pickle.dumps(compiled))(np.zeros(2, np.int8), 300)


def test_copies_are_the_same() -> None:
    lowered = tj.jit(step).lower(P, X)
    compiled = lowered.compile()
    for one in (lowered, compiled):
        assert copy.copy(one) is one
        assert copy.deepcopy([one])[0] is one


OTHER = """
import pickle, sys
import numpy as np
compiled = pickle.loads(bytes.fromhex(sys.argv[1]))
print(compiled(np.arange(3.0)).tolist())
assert "tvm" not in sys.modules
"""


def test_in_another_process_it_comes_from_the_disk_cache(tmp_path: Any) -> None:
    """Nobody there knows the function, which no name leads to."""
    made = """
import pickle
import numpy as np
import tracejit as tj
print(pickle.dumps(tj.jit(lambda x: np.tanh(x) * 0 + x).lower(np.arange(3.0)).compile()).hex())
"""
    text = python(made, TRACEJIT_CACHE_DIR=str(tmp_path))
    assert python(OTHER, text, TRACEJIT_CACHE_DIR=str(tmp_path)) == "[0.0, 1.0, 2.0]"


def test_modules_that_were_compiled() -> None:
    """Random numbers go on where they were."""

    def noise(x: Any) -> Any:
        return x + 1

    compiled = tj.compile(tj.jit(noise).lower(X).module, seed=3)
    again = pickle.loads(pickle.dumps(compiled))
    np.testing.assert_array_equal(again(X), X + 1)
    compiled._stream.take(5)
    assert pickle.loads(pickle.dumps(compiled))._stream.take(1) == compiled._stream.take(1)
    np.testing.assert_array_equal(copy.deepcopy(compiled)(X), X + 1)


def calling_back(x: Any) -> Any:
    return tj.pure_callback(np.sin, x, x)


@pytest.mark.parametrize("make", [lambda f: f, lambda f: f.compile()])
def test_what_calls_back_into_this_process(make: Any) -> None:
    lowered = tj.jit(calling_back).lower(X)
    with pytest.raises(TypeError, match=r"calls functions of this process .* cannot be pickled"):
        pickle.dumps(make(lowered))
    with pytest.raises(TypeError, match=r"calls functions of this process .* cannot be pickled"):
        pickle.dumps(tj.compile(lowered.module))


@tj.custom_vjp
def thrice(x: Any) -> Any:
    return x**2


thrice.defvjp(lambda x: (x**2, x), lambda x, g: (3 * g * x,))


def test_derivatives_of_the_users_own_are_not_exchanged_for_others(tmp_path: Any) -> None:
    lowered = tj.jit(lambda x: thrice(x).sum()).lower(X)
    for made in (lowered.compile(), tj.compile(lowered.module)):
        again = pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(made))))
        np.testing.assert_array_equal(again(X), (X**2).sum())
        with pytest.raises(UnsupportedError, match="the function was pickled, which leaves out"):
            again.export(tmp_path / "m.so", gradients=True)


def mutating(x: Any, by: Any) -> None:
    if by.sum() > 0:
        x += by


by_name = tj.jit(np.add.reduce)


def test_functions_that_mutate() -> None:
    jitted: Any = tj.jit(mutating, mutates="x", autograph=True)
    for made in (pickle.loads(pickle.dumps(jitted)), copy.deepcopy(jitted)):
        x = X.copy()
        made(x, X)
        np.testing.assert_array_equal(x, 2 * X)
        assert made.__wrapped__ is mutating


def test_options_of_copies() -> None:
    function = tj.jit(step, static_argnames="scale", check=True)
    made = copy.deepcopy(function)
    assert made is not function
    equal(made(P, X, scale=2), function(P, X, scale=2))
    assert made.is_checked
    assert copy.deepcopy(by_name) is not None
