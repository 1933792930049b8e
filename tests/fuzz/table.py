"""The steps for every op of the op table, and how graphs grow by them.

STEPS["Reduce"]        the functions that apply Reduce to values of a graph
ELSEWHERE              the ops that no step makes, with the tests that judge them
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from types import ModuleType

from tests.fuzz.graph import Graph
from tests.fuzz.steps import (
    comparison,
    constants,
    contraction,
    control,
    dumps,
    dynamic_sizes,
    element_types,
    elementwise,
    elementwise_unary,
    grouped,
    indexing,
    layout,
    linalg,
    normalisation,
    random,
    reduction,
    scanning,
    spectra,
    tokens,
    windows,
)
from tracejit.graph import Instruction

Step = Callable[[Graph], Instruction | None]

# The families, and how often a graph takes a step of each.
WEIGHTS: dict[ModuleType, int] = {
    layout: 24,
    elementwise: 11,
    elementwise_unary: 8,
    reduction: 10,
    windows: 6,
    element_types: 5,
    indexing: 5,
    contraction: 5,
    normalisation: 3,
    comparison: 2,
    constants: 1,
    linalg: 1,
    random: 1,
    scanning: 1,
    spectra: 1,
    tokens: 1,
    dumps: 1,
    grouped: 1,
    dynamic_sizes: 1,
}
NESTED = 2
"""How deep computations that are graphs themselves may lie in each other."""


@dataclass(frozen=True)
class Elsewhere:
    """Why random single ops cannot judge an op, and the test, path::name, that does."""

    reason: str
    test: str


_SAMPLES = "tests/backends_numpy/test_samples_value.py::test_value_of_sample"
_DEVICES = "tests/replicas/test_judged.py::test_"
_PAIRS = "tests/replicas/test_devices.py::test_send_and_recv_by_pairs"
_EXCHANGES = "is an exchange among several devices"
ELSEWHERE: dict[str, Elsewhere] = {
    "Rng": Elsewhere("draws other numbers than XLA", _SAMPLES),
    "RngGetAndUpdateState": Elsewhere("is a counter of the program", _SAMPLES),
    "CustomCall": Elsewhere("calls functions of the user's", _SAMPLES),
    "Infeed": Elsewhere("reads from a queue of the host", _SAMPLES),
    "Outfeed": Elsewhere("writes to a queue of the host", _SAMPLES),
    "Domain": Elsewhere("is lost on the way through StableHLO", _SAMPLES),
    "ReplicaId": Elsewhere(_EXCHANGES, f"{_DEVICES}numbers_of_the_device"),
    "PartitionId": Elsewhere(_EXCHANGES, f"{_DEVICES}numbers_of_the_device"),
    "AllReduce": Elsewhere(_EXCHANGES, f"{_DEVICES}all_reduce"),
    "AllGather": Elsewhere(_EXCHANGES, f"{_DEVICES}all_gather"),
    "ReduceScatter": Elsewhere(_EXCHANGES, f"{_DEVICES}reduce_scatter"),
    "AllToAll": Elsewhere(_EXCHANGES, f"{_DEVICES}all_to_all"),
    "CollectivePermute": Elsewhere(_EXCHANGES, f"{_DEVICES}collective_permute"),
    "CollectiveBroadcast": Elsewhere(_EXCHANGES, _SAMPLES),
    "RaggedAllToAll": Elsewhere(_EXCHANGES, _SAMPLES),
    **{
        f"{name}{half}": Elsewhere(_EXCHANGES, f"{_DEVICES}halves_of_ops")
        for name in ("AllReduce", "AllGather", "CollectivePermute")
        for half in ("Start", "Done")
    },
    **{
        name: Elsewhere("moves data between devices or to the host", _PAIRS)
        for name in ("Send", "SendDone", "Recv", "RecvDone")
    },
}


def grow(graph: Graph, count: int) -> None:
    """Adds what ``count`` steps make; a step that finds no room adds nothing."""
    for _ in range(count):
        if graph.depth < NESTED and graph.choices.chance(20):
            steps = NESTING[graph.choices.pick([*NESTING])]
        else:
            family = graph.choices.pick(_FAMILIES)
            steps = family.STEPS[graph.choices.pick([*family.STEPS])]
        made = graph.choices.pick(steps)(graph)
        if made is not None:
            graph.add(made)


# Steps whose own computations grow by steps again.
NESTING: dict[str, Sequence[Step]] = {
    name: [partial(step, grow=grow) for step in steps] for name, steps in control.STEPS.items()
}
STEPS: dict[str, Sequence[Step]] = {
    name: steps for family in WEIGHTS for name, steps in family.STEPS.items()
} | NESTING

_FAMILIES = [family for family, weight in WEIGHTS.items() for _ in range(weight)]
