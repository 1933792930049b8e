"""What a jitted function says of its compilations, and what it is when copied or pickled."""

from __future__ import annotations

import copy
import pickle
import sys
from typing import Any

import numpy as np
import pytest

import tracejit as tj


@tj.jit(static_argnames="n")
def scaled(x: Any, y: Any = None, n: int = 1) -> Any:
    return {"a": x["p"] * n, "b": 0 if y is None else y}


def test_report_names_what_changed() -> None:
    scaled.clear_cache()
    f = tj.jit(scaled.__wrapped__, static_argnames="n")
    f({"p": np.ones(3)})
    f({"p": np.ones(3)})
    f({"p": np.ones(4)})
    f({"p": np.ones(4)}, n=2)
    f({"p": np.ones(4, np.float32)}, 2.0, n=2)
    report = f.cache_report()
    assert (report.count, report.kept) == (4, 4)
    assert [c.changes for c in report.compilations] == [
        (),
        ("x['p'] was f64[3], is f64[4]",),
        ("n = 2 is new",),
        ("x['p'] was f64[4], is f32[4]", "y float is new"),
    ]
    text = str(report)
    assert text.startswith("scaled: compiled 4 times, 4 versions kept\n1. ")
    assert text.splitlines()[1].endswith(" s: x['p'] f64[3]")
    assert all(c.seconds > 0 for c in report.compilations)
    f.clear_cache()
    assert f.cache_report().kept == 0
    np.testing.assert_array_equal(f({"p": np.ones(3)})["a"], np.ones(3))


def test_pickled_and_copied_by_name() -> None:
    assert pickle.loads(pickle.dumps(scaled)) is scaled
    assert copy.deepcopy(scaled) is scaled
    assert copy.copy(scaled) is scaled


def test_pickled_for_processes_without_the_script(monkeypatch: pytest.MonkeyPatch) -> None:
    """As joblib does: the frame that pickles is one of cloudpickle's."""
    made = tj.jit(np.linalg.norm)
    made.__module__, made.__qualname__ = "__main__", "norm_of_a_script"
    monkeypatch.setattr(sys.modules["__main__"], "norm_of_a_script", made, raising=False)
    assert made.__reduce__() == "norm_of_a_script"
    other: dict[str, Any] = {"__name__": "joblib.externals.cloudpickle.cloudpickle"}
    exec("def reduced(value): return value.__reduce__()", other)
    make, given = other["reduced"](made)
    assert make(*given)(np.array([3.0, 4.0])) == 5


def test_pickled_by_what_it_wraps() -> None:
    f = tj.jit(np.linalg.norm, check=True)
    g = pickle.loads(pickle.dumps(f))
    assert g is not f
    assert g.__wrapped__ is np.linalg.norm
    assert repr(g).startswith("<jit of norm(x")


TABLE = np.arange(3.0)


def test_report_names_what_is_frozen() -> None:
    options, scale = {"power": 2}, 2.0

    def helper(x: Any) -> Any:
        return x * TABLE

    def function(x: Any) -> Any:
        return helper(x) ** options["power"] * scale

    f = tj.jit(function)
    assert f.cache_report().frozen == ()
    f(np.ones(3))
    assert set(f.cache_report().frozen) == {"options a dict", "TABLE f64[3]"}
    assert "later changes are not seen: " in str(f.cache_report())
