"""The methods of np.ndarray on a traced array: each one is the NumPy function of its name."""

from __future__ import annotations

from typing import Any

import numpy as np

from tracejit.trace.table import Traced, call
from tracejit.trace.updates import At


class Methods(Traced):
    """Mixin: the methods that NumPy has as functions too, with the functions' signatures."""

    __slots__ = ()

    def all(self, *args: Any, **kwargs: Any) -> Any:
        return call(np.all, self, *args, **kwargs)

    def any(self, *args: Any, **kwargs: Any) -> Any:
        return call(np.any, self, *args, **kwargs)

    def argmax(self, *args: Any, **kwargs: Any) -> Any:
        return call(np.argmax, self, *args, **kwargs)

    def argmin(self, *args: Any, **kwargs: Any) -> Any:
        return call(np.argmin, self, *args, **kwargs)

    def argpartition(self, *args: Any, **kwargs: Any) -> Any:
        return call(np.argpartition, self, *args, **kwargs)

    def argsort(self, *args: Any, **kwargs: Any) -> Any:
        return call(np.argsort, self, *args, **kwargs)

    @property
    def at(self) -> At:
        """``x.at[index].set(value)``: JAX's updates, which give a new array."""
        return At(self)

    def choose(self, *args: Any, **kwargs: Any) -> Any:
        return call(np.choose, self, *args, **kwargs)

    def clip(self, *args: Any, **kwargs: Any) -> Any:
        return call(np.clip, self, *args, **kwargs)

    def compress(self, condition: Any, *args: Any, **kwargs: Any) -> Any:
        return call(np.compress, condition, self, *args, **kwargs)

    def conj(self) -> Any:
        return call(np.conjugate, self)

    def conjugate(self) -> Any:
        return call(np.conjugate, self)

    def cumprod(self, *args: Any, **kwargs: Any) -> Any:
        return call(np.cumprod, self, *args, **kwargs)

    def cumsum(self, *args: Any, **kwargs: Any) -> Any:
        return call(np.cumsum, self, *args, **kwargs)

    def diagonal(self, *args: Any, **kwargs: Any) -> Any:
        return call(np.diagonal, self, *args, **kwargs)

    def dot(self, *args: Any, **kwargs: Any) -> Any:
        return call(np.dot, self, *args, **kwargs)

    def max(self, *args: Any, **kwargs: Any) -> Any:
        return call(np.max, self, *args, **kwargs)

    def mean(self, *args: Any, **kwargs: Any) -> Any:
        return call(np.mean, self, *args, **kwargs)

    def min(self, *args: Any, **kwargs: Any) -> Any:
        return call(np.min, self, *args, **kwargs)

    def nonzero(self) -> Any:
        return call(np.nonzero, self)

    def prod(self, *args: Any, **kwargs: Any) -> Any:
        return call(np.prod, self, *args, **kwargs)

    def ravel(self, *args: Any, **kwargs: Any) -> Any:
        return call(np.ravel, self, *args, **kwargs)

    def repeat(self, *args: Any, **kwargs: Any) -> Any:
        return call(np.repeat, self, *args, **kwargs)

    def reshape(self, *shape: Any, **kwargs: Any) -> Any:
        """``x.reshape(2, 3)`` or ``x.reshape((2, 3))``."""
        return call(np.reshape, self, shape[0] if len(shape) == 1 else shape, **kwargs)

    def round(self, *args: Any, **kwargs: Any) -> Any:
        return call(np.round, self, *args, **kwargs)

    def searchsorted(self, *args: Any, **kwargs: Any) -> Any:
        return call(np.searchsorted, self, *args, **kwargs)

    def squeeze(self, *args: Any, **kwargs: Any) -> Any:
        return call(np.squeeze, self, *args, **kwargs)

    def std(self, *args: Any, **kwargs: Any) -> Any:
        return call(np.std, self, *args, **kwargs)

    def sum(self, *args: Any, **kwargs: Any) -> Any:
        return call(np.sum, self, *args, **kwargs)

    def swapaxes(self, axis1: int, axis2: int) -> Any:
        return call(np.swapaxes, self, axis1, axis2)

    def take(self, *args: Any, **kwargs: Any) -> Any:
        return call(np.take, self, *args, **kwargs)

    def trace(self, *args: Any, **kwargs: Any) -> Any:
        return call(np.trace, self, *args, **kwargs)

    def transpose(self, *axes: Any) -> Any:
        """``x.transpose(1, 0)``, ``x.transpose((1, 0))`` or ``x.transpose()``."""
        one = len(axes) == 1 and not isinstance(axes[0], int)
        return call(np.transpose, self, axes[0] if one else axes or None)

    def var(self, *args: Any, **kwargs: Any) -> Any:
        return call(np.var, self, *args, **kwargs)
