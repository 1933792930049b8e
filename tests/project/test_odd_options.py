"""Options of the wrong kind: an error of tracejit's that says what is wanted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracejit as tj
from tracejit.errors import TracejitError
from tracejit.shapes import ElementType, Shape


def _itself(x: Any) -> Any:
    return x


X = np.ones((3, 4))
ODD: tuple[Any, ...] = (object(), 1.5, 1j, slice(1), ..., len, np.float32)
CALLS: dict[str, Callable[[Any], Any]] = {
    "shape: sizes are integers": lambda odd: Shape(ElementType.F32, odd),
    "sizes are integers": lambda odd: tj.ShapeDtypeStruct(odd, np.float32),
    "target must be 'cpu'": lambda odd: tj.jit(_itself, target=odd)(X),
    "argnames: names of arguments": lambda odd: tj.jit(np.sin, static_argnames=odd),
    "mutates: positions and names": lambda odd: tj.jit(np.sin, mutates=odd),
    "jvp: the tangents must be": lambda odd: tj.jvp(np.sin, (X,), odd),
    "debug.print: begins with the text": lambda odd: tj.debug.print(odd),
    "as_text: the dialect must be": lambda odd: tj.jit(_itself).lower(X).as_text(odd),
}


@pytest.mark.parametrize("message", CALLS)
@pytest.mark.parametrize("odd", ODD, ids=lambda odd: type(odd).__name__)
def test_says_what_is_wanted(message: str, odd: Any) -> None:
    with pytest.raises(TracejitError, match=message):
        CALLS[message](odd)


@pytest.mark.parametrize("odd", [None, 3, "f", [], np.ones(2)])
def test_a_callback_that_is_no_function(odd: Any) -> None:
    with pytest.raises(TracejitError, match="pure_callback: calls a function"):
        tj.pure_callback(odd, X, X)


@pytest.mark.parametrize("sizes", [(-1,), (2, -3), (-2, -3), (0, -1)])
def test_negative_sizes(sizes: tuple[int, ...]) -> None:
    with pytest.raises(TracejitError, match=r"size -\d of dimension \d is negative"):
        Shape(ElementType.F32, sizes)
    with pytest.raises(TracejitError, match=r"is negative"):
        tj.ShapeDtypeStruct(sizes, np.float32)


@pytest.mark.parametrize("sizes", [(1 << 64,), (1 << 32, 1 << 32)])
def test_sizes_beyond_memory(sizes: tuple[int, ...]) -> None:
    with pytest.raises(TracejitError, match="elements; an array has less than"):
        Shape(ElementType.F32, sizes)
