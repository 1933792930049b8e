"""Every method of arrays that is a function of NumPy's as well, called as a method."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.numpy_api.arrays import C64, F64, S64
from tests.numpy_api.compare import check
from tracejit.trace.methods import Methods
from tracejit.trace.tracer import Tracer

ALONG: dict[str, Any] = {"axis": 1}
CALLS: dict[str, tuple[tuple[Any, ...], dict[str, Any]]] = {
    "all": ((), ALONG),
    "any": ((), ALONG),
    "argmax": ((1,), {"keepdims": True}),
    "argmin": ((), ALONG),
    "argpartition": ((0,), {"axis": None}),
    "argsort": ((), ALONG),
    "choose": (([10.0, 20.0],), {"mode": "clip"}),
    "clip": ((-1,), {"max": 2}),
    "compress": (([True, False, True],), {"axis": 0}),
    "conj": ((), {}),
    "conjugate": ((), {}),
    "cumprod": ((), ALONG),
    "cumsum": ((1,), {"dtype": np.float32}),
    "diagonal": ((1,), {}),
    "dot": ((np.arange(4.0),), {}),
    "max": ((), {"axis": 1, "keepdims": True}),
    "mean": ((), ALONG),
    "min": ((1,), {"initial": 0}),
    "prod": ((), ALONG),
    "ravel": (("F",), {}),
    "repeat": ((2,), ALONG),
    "reshape": ((4, 3), {"order": "F"}),
    "round": ((), {"decimals": 1}),
    "searchsorted": ((0.5,), {"side": "right"}),
    "squeeze": ((), {}),
    "std": ((), {"axis": 1, "ddof": 1}),
    "sum": ((1,), {"keepdims": True}),
    "swapaxes": ((0, 1), {}),
    "take": (([3, 5],), {"axis": 1, "mode": "wrap"}),
    "trace": ((1,), {}),
    "transpose": ((1, 0), {}),
    "var": ((), {"axis": 1, "ddof": 1}),
}


# Places whose number is unknown only index, and `at` is not NumPy's.
OTHERS = {"nonzero", "at"}


def test_every_method_is_called() -> None:
    names = {name for name in vars(Methods) if not name.startswith("_")}
    assert names == CALLS.keys() | OTHERS
    check(lambda np, x: x[x.nonzero()].sum(), F64)


@pytest.mark.parametrize("name", CALLS)
def test_methods(name: str) -> None:
    given, named = CALLS[name]
    assert getattr(Tracer, name) is vars(Methods)[name]
    x = {"choose": S64, "conj": C64, "conjugate": C64, "searchsorted": np.arange(4.0)}.get(
        name, F64
    )
    check(lambda np, x: getattr(x, name)(*given, **named), x)
