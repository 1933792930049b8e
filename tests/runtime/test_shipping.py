"""Graphs as bytes: what arrives is what was sent."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import tracejit as tj
from tests.samples.cases import all_samples, joint_module
from tests.samples.values import element_types
from tracejit.hlo.fingerprint import fingerprint
from tracejit.runtime.shipping import packed, unpacked


def test_graphs_of_any_depth() -> None:
    def steps(x: Any) -> Any:
        for _ in range(3000):
            x = x * 1.5 + 1
        return tj.lax.fori_loop(0, 3, lambda i, c: c + np.sort(x)[i], 0.0)

    module = tj.jit(steps).lower(np.ones(4)).module
    made = unpacked(packed((module, {"a": 1})))
    assert made[1] == {"a": 1}
    assert str(made[0]) == str(module)
    assert made[0].entry.root.source == module.entry.root.source


def test_graphs_of_every_op() -> None:
    for sample in all_samples():
        module = joint_module(sample, element_types(sample))
        made = unpacked(packed(module))
        assert fingerprint(made) == fingerprint(module), sample.op


def test_constants_are_bits() -> None:
    constant = np.array([np.nan, -0.0, 5e-324])
    module = tj.jit(lambda x: x + constant).lower(np.ones(3)).module
    assert fingerprint(unpacked(packed(module))) == fingerprint(module)


def test_what_means_something_here_alone() -> None:
    with pytest.raises(TypeError):
        packed(threading.Lock())
