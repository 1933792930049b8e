"""Keys: where they come from, what they refuse, and how they go through transformations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracejit as tj
from tracejit import random
from tracejit.errors import ArgumentError, ElementTypeError, ShapeError


def data(key: Any) -> list[Any]:
    made: list[Any] = np.asarray(random.key_data(key)).tolist()
    return made


@pytest.mark.parametrize(
    ("seed", "words"),
    [
        (0, [0, 0]),
        (42, [0, 42]),
        (2**31 + 5, [0, 2**31 + 5]),
        (-1, [2**32 - 1, 2**32 - 1]),
        (2**40 + 3, [256, 3]),
        (np.int32(-1), [0, 2**32 - 1]),
        (np.uint8(7), [0, 7]),
    ],
)
def test_seeds(seed: Any, words: list[int]) -> None:
    assert data(random.key(seed)) == words
    assert random.PRNGKey(seed).tolist() == words


@pytest.mark.parametrize("seed", [1.5, "a", None, True])
def test_seeds_are_integers(seed: Any) -> None:
    with pytest.raises(ArgumentError, match="seed must be an integer"):
        random.key(seed)
    with pytest.raises(ShapeError, match="seed must be a scalar"):
        random.key(np.arange(3))


def test_words_there_and_back() -> None:
    key = random.key(5)
    assert data(random.wrap_key_data(random.key_data(key))) == [0, 5]
    assert data(random.wrap_key_data([1, 2])) == [1, 2]
    assert random.key_impl(key) == "threefry2x32"
    assert data(random.clone(key)) == [0, 5]
    assert isinstance(random.split(key)[0], random.Key)
    assert isinstance(random.split(random.PRNGKey(5))[0], np.ndarray)


def test_arrays_of_keys() -> None:
    keys = random.split(random.key(0), (3, 2))
    assert keys.shape == (3, 2)
    assert (keys.ndim, keys.size, len(keys)) == (2, 6, 3)
    assert keys[1].shape == (2,)
    assert keys[..., 0].shape == (3,)
    assert keys[1:, 0].shape == (2,)
    assert keys.ravel().shape == (6,)
    assert keys.reshape(2, 3).shape == (2, 3)
    assert [data(k) for k in keys[0]] == data(keys)[0]
    assert (keys == keys).all()
    assert (keys != keys[::-1]).any()
    assert repr(random.key(0)).startswith("Key(key<threefry2x32>[]")


def test_a_key_is_no_number() -> None:
    key: Any = random.key(0)
    for wrong in (
        lambda: key + 1,
        lambda: np.ones(2) + key,
        lambda: key < key,
        lambda: float(key),
        lambda: {key},
        lambda: np.asarray(key),
        lambda: tj.jit(lambda k: k * 2)(key),
    ):
        with pytest.raises((TypeError, ArgumentError)):
            wrong()


def test_errors_name_the_function() -> None:
    with pytest.raises(
        ShapeError, match=r"normal: key must be one key, not an array of shape \(2,"
    ):
        random.normal(random.split(random.key(0)))
    with pytest.raises(ArgumentError, match="uniform: key must come from"):
        random.uniform(np.zeros(2))
    with pytest.raises(ArgumentError, match="split: key must come from"):
        random.split(3.0)
    with pytest.raises(ElementTypeError, match="bits: dtype must be an unsigned"):
        random.bits(random.key(0), (), np.int32)
    with pytest.raises(ElementTypeError, match="normal: dtype must be a floating"):
        random.normal(random.key(0), (), np.int32)


def test_keys_through_jit() -> None:
    key = random.key(1)
    keys = tj.jit(lambda k: random.split(k, 3))(key)
    assert isinstance(keys, random.Key)
    assert data(keys) == data(random.split(key, 3))
    assert data(tj.jit(lambda k, i: random.fold_in(k, i))(key, 5)) == data(random.fold_in(key, 5))
    assert data(tj.jit(random.key)(5)) == [0, 5]


def test_keys_in_loops() -> None:
    key = random.key(1)

    def step(carry: Any, _: Any) -> Any:
        carry, subkey = random.split(carry)
        return carry, random.normal(subkey)

    last, numbers = tj.jit(lambda k: tj.lax.scan(step, k, None, length=3))(key)
    expected = []
    for _ in range(3):
        key, subkey = random.split(key)
        expected.append(random.normal(subkey))
    assert data(last) == data(key)
    np.testing.assert_allclose(numbers, expected, rtol=1e-14)
    folded = tj.lax.fori_loop(0, 2, lambda i, k: random.fold_in(k, i), key)
    assert data(folded) == data(random.fold_in(random.fold_in(key, 0), 1))
    rows = tj.lax.scan(lambda c, k: (c, random.uniform(k)), 0.0, random.split(key, 3))[1]
    assert rows.tolist() == [random.uniform(k) for k in random.split(key, 3)]


def test_keys_through_vmap() -> None:
    keys = random.split(random.key(2), 3)
    made = tj.vmap(lambda k: random.normal(k, (2,)))(keys)
    np.testing.assert_array_equal(made, [random.normal(k, (2,)) for k in keys])
    assert tj.vmap(random.split)(keys).shape == (3, 2)
