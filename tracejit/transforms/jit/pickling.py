"""Jitted functions as `pickle` and `copy` see them: names, or what they wrap."""

from __future__ import annotations

import functools
import sys
from types import FrameType
from typing import Any

from tracejit.loading import load


def reduced(jitted: Any, by: FrameType, options: dict[str, Any]) -> Any:
    """What ``__reduce__`` of a function jitted with ``options`` answers to the frame that asks.

    Its name, where the name leads to it, as functions are pickled; else how to jit what it wraps.
    So is a script's or a notebook's for joblib, Dask and others that pickle by cloudpickle: their
    processes do not have the script.
    """
    found: Any = sys.modules.get(jitted.__module__)
    for name in jitted.__qualname__.split("."):
        found = getattr(found, name, None)
    is_cloudpickle = str(by.f_globals.get("__name__")).endswith("cloudpickle")
    if found is jitted and not (is_cloudpickle and jitted.__module__ == "__main__"):
        return jitted.__qualname__
    make = functools.partial(load("tracejit.transforms.jit.jit").jit, **options)
    return make, (jitted.__wrapped__,)
