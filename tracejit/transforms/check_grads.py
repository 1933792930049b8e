"""`check_grads`: derivatives against finite differences, for users' own functions and rules.

tj.check_grads(f, (x, y))                              forward and reverse mode, order 2
tj.check_grads(f, (x,), order=1, modes=("rev",))
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tracejit import tree
from tracejit.errors import ArgumentError, AttributeValueError, GradientMismatchError
from tracejit.transforms.forward import jvp
from tracejit.transforms.gradient import vjp
from tracejit.transforms.jit.signature import title_of

Function = Callable[..., Any]

MODES = ("fwd", "rev")


def check_grads(
    function: Function,
    args: Sequence[Any],
    order: int = 2,
    modes: Sequence[str] = MODES,
    rtol: float = 1e-5,
    atol: float = 1e-7,
    eps: float = 1e-4,
    seed: int = 0,
) -> None:
    """Compares the derivatives of ``function`` at ``args`` with finite differences.

    Real and complex arrays among ``args`` are taken in double precision, others stay. Directions
    are drawn with ``seed``; differences are central, of the fourth order, with step ``eps``. Of
    complex numbers the change of the real part of the result along a direction is compared, as
    for `jvp` and `vjp`. Raises `GradientMismatchError`, an AssertionError, naming mode and order.

    >>> tj.check_grads(np.sin, (0.5,))
    """
    for mode in modes:
        if mode not in MODES:
            raise AttributeValueError(f"check_grads: a mode must be 'fwd' or 'rev', not {mode!r}")
    if not isinstance(args, tuple | list):
        raise ArgumentError(f"check_grads: args must be a tuple, not {type(args).__name__}")
    checker = _Checker(title_of(function), modes, rtol, atol, eps, np.random.default_rng(seed))
    leaves, structure = tree.flatten(tuple(args))
    exact = [_double(leaf) for leaf in leaves]
    moving = [n for n, leaf in enumerate(exact) if np.asarray(leaf).dtype.kind in "fc"]

    def of_moving(*values: Any) -> list[Any]:
        filled = list(exact)
        for place, value in zip(moving, values, strict=True):
            filled[place] = value
        made = tree.leaves(function(*tree.unflatten(structure, filled)))
        # Integers have no derivative.
        return [one for one in made if np.dtype(one.dtype).kind in "fc"]

    checker.check(of_moving, [exact[n] for n in moving], order, ())


def _double(leaf: Any) -> Any:
    array = np.asarray(leaf)
    if array.dtype.kind == "c":
        return array.astype(np.complex128)
    is_real = array.dtype.kind == "f" or (array.dtype.kind == "V" and array.dtype.fields is None)
    return array.astype(np.float64) if is_real else leaf


class _Checker:
    def __init__(
        self,
        title: str,
        modes: Sequence[str],
        rtol: float,
        atol: float,
        eps: float,
        rng: np.random.Generator,
    ) -> None:
        self._title = title
        self._modes = modes
        self._rtol = rtol
        self._atol = atol
        self._eps = eps
        self._rng = rng

    def check(self, function: Function, point: list[Any], order: int, path: Sequence[str]) -> None:
        """Both derivatives here, and then theirs, ``order`` times."""
        if not order or not point:
            return
        value, pull = vjp(function, *point)
        along = [self._drawn(x) for x in point]
        weights = [self._drawn(y) for y in value]
        numeric = self._differences(function, point, along)
        if "fwd" in self._modes:
            _, pushed = jvp(function, tuple(point), tuple(along))
            for found, wanted in zip(pushed, numeric, strict=True):
                self._compare(found, wanted, (*path, "fwd"))

            def forward(*values: Any) -> Any:
                return jvp(function, values, tuple(along))[1]

            self.check(forward, point, order - 1, (*path, "fwd"))
        if "rev" in self._modes:
            found = _pairing(pull(weights), along)
            self._compare(found, _pairing(weights, numeric), (*path, "rev"))

            def backward(*values: Any) -> Any:
                return list(vjp(function, *values)[1](weights))

            self.check(backward, point, order - 1, (*path, "rev"))

    def _drawn(self, like: Any) -> Any:
        array = np.asarray(like)
        drawn = self._rng.normal(size=array.shape)
        if array.dtype.kind == "c":
            drawn = drawn + 1j * self._rng.normal(size=array.shape)
        return np.asarray(drawn, array.dtype)

    def _differences(self, function: Function, point: list[Any], along: list[Any]) -> list[Any]:
        def at(distance: float) -> list[Any]:
            moved = (x + distance * t for x, t in zip(point, along, strict=True))
            return [np.asarray(y) for y in function(*moved)]

        step = self._eps
        near, far = (at(step), at(-step)), (at(2 * step), at(-2 * step))
        pairs = zip(*near, *far, strict=True)
        return [(8 * (a - b) - (c - d)) / (12 * step) for a, b, c, d in pairs]

    def _compare(self, found: Any, wanted: Any, path: Sequence[str]) -> None:
        # Noise of the differences grows with the largest element.
        scale = np.max(np.abs(wanted), initial=0.0)
        if not np.all(np.abs(found - wanted) <= self._atol + self._rtol * scale):
            raise GradientMismatchError(
                f"check_grads: the derivative of {self._title} of order {len(path)} "
                f"({' of '.join(reversed(path))}) is {found}, finite differences give {wanted}"
            )


def _pairing(left: Sequence[Any], right: Sequence[Any]) -> Any:
    return sum(np.sum(np.real(a * b)) for a, b in zip(left, right, strict=True))
