"""The timeline of devices: blocking ops, ops that overlap, and how they are drawn."""

from __future__ import annotations

from typing import Any

import numpy as np

import tracejit as tj
from tracejit import P, lax
from tracejit.runtime.devices.timeline import Event, Timeline, from_array, to_array


def test_ops_of_every_device_are_there() -> None:
    mesh = tj.make_mesh((2,), ("i",), devices=tj.devices("cpu", 2))

    @tj.shard_map(mesh=mesh, in_specs=(P("i"), P()), out_specs=(P(), P("i")))
    def step(x: np.ndarray, w: np.ndarray) -> Any:
        total = lax.psum(x, "i")
        return total, x @ w @ w

    x, w = np.ones((4, 64), np.float32), np.ones((64, 64), np.float32)
    step(x, w)
    with tj.distributed.timeline() as drawn:
        step(x, w)
    assert sorted(event.device for event in drawn.events) == [0, 1]
    for event in drawn.events:
        assert event.function == "all_reduce"
        assert event.nbytes == 2 * 64 * 4
        assert 0 <= event.begin <= event.wait <= event.end <= drawn.seconds
        assert "test_timeline.py" in event.line
    # The products stand between the op and its use.
    assert any(event.begin < event.wait for event in drawn.events)


def test_how_it_is_drawn() -> None:
    events = [
        Event(0, "all_reduce", " (a.py:1)", 8, 0.25, 0.5, 0.75),
        Event(1, "all_reduce", " (a.py:1)", 8, 0.5, 0.5, 0.75),
    ]
    assert from_array(to_array(events)) == events
    drawn = Timeline(events, 1.0)
    first, one, two, *_ = str(drawn).splitlines()
    assert first == "1000.00 ms; 33% of collectives overlapped"
    assert (one.count("~"), one.count("#")) == (18, 19)
    assert "~" not in two
    assert "all_reduce of 8 bytes (a.py:1)" in str(drawn)
