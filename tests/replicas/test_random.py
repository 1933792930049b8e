"""Random programs on several devices: text, interpreter and the real XLA agree.

Hypothesis draws them; XLA, which is slow to start in a process of its own, judges all at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.building import computation
from tests.replicas.judge import Program, judge
from tracejit import ops
from tracejit.errors import AttributeValueError
from tracejit.graph import Computation, Instruction, Module
from tracejit.ops.groups import group_mode, require_groups
from tracejit.shapes import ElementType, Shape
from tracejit.verifier import verify

F32, S32 = ElementType.F32, ElementType.S32
GRIDS = [(2, 1), (4, 1), (8, 1), (2, 2), (4, 2), (1, 4), (3, 1), (2, 3)]
SIZES = (4, 6)


class Drawing:
    """One program as it is drawn: some ops in a row, from f32[4,6] or s32[4,6] to the same."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        self.replicas, self.partitions = draw(st.sampled_from(GRIDS))
        self.element_type = draw(st.sampled_from([F32, S32]))
        self.shape = Shape(self.element_type, SIZES)
        self.channel = 0

    def groups(self, count: int, sizes: Sequence[int] | None = None) -> list[list[int]]:
        """All numbers below ``count`` in any order, in groups of one size."""
        fitting = [s for s in range(1, count + 1) if count % s == 0]
        allowed = [s for s in fitting if sizes is None or s in sizes]
        numbers = self.draw(st.permutations(range(count)))
        size = self.draw(st.sampled_from(allowed))
        return [list(numbers[i : i + size]) for i in range(0, count, size)]

    def next_channel(self) -> int:
        self.channel += 1
        return self.channel

    def mode(self) -> tuple[dict[str, Any], int]:
        """Attributes of a group, and how many devices are in one."""
        replicas, partitions = self.replicas, self.partitions
        kind = self.draw(st.sampled_from(["all", "replicas", "channel", "both", "global"]))
        if kind == "all":
            return {}, replicas
        if kind == "channel":
            return {"channel_id": self.next_channel()}, replicas * partitions
        if kind == "global":
            groups = self.groups(replicas * partitions)
            attributes = {"channel_id": self.next_channel(), "use_global_device_ids": True}
            return {"replica_groups": groups, **attributes}, len(groups[0])
        groups = self.groups(replicas)
        if kind == "replicas":
            return {"replica_groups": groups}, len(groups[0])
        attributes = {"channel_id": self.next_channel()}
        return {"replica_groups": groups, **attributes}, len(groups[0]) * partitions

    def one_sided(self) -> tuple[int, int | None]:
        """How many numbers, replicas' or partitions', and the channel."""
        if self.draw(st.booleans()):
            return self.replicas, None
        return self.partitions, self.next_channel()

    def step(self, x: Instruction) -> Instruction:
        """Some op between devices, on ``x`` of any shape, brought back to the program's shape."""
        kind = self.draw(
            st.sampled_from(["reduce", "gather", "scatter", "to all", "permute", "number"])
        )
        if kind == "reduce":
            name = self.draw(st.sampled_from(["add", "max", "min"]))
            reducer = ops.scalar_computation(name, self.element_type)
            return ops.all_reduce(x, reducer, **self.mode()[0])
        if kind == "gather":
            attributes, size = self.mode()
            along = self.draw(st.integers(0, 1))
            whole = ops.all_gather(x, along, size, **attributes)
            start = self.draw(st.integers(0, SIZES[along] * (size - 1)))
            return ops.slice_in_dim(whole, start, start + SIZES[along], 1, along)
        if kind == "scatter":
            attributes, size = self.mode()
            wide = ops.concatenate([x] * size, 1)
            reducer = ops.scalar_computation("add", self.element_type)
            return ops.reduce_scatter(wide, reducer, 1, size, **attributes)
        if kind == "to all":
            count, channel = self.one_sided()
            groups = self.groups(count)
            size = len(groups[0])
            wide = ops.concatenate([x] * size, 0)
            split, concat = self.draw(st.sampled_from([(0, 0), (0, 1)]))
            made = ops.all_to_all(wide, split, concat, size, groups, channel_id=channel)
            return ops.slice_(made, (0, 0), SIZES)
        if kind == "permute":
            count, channel = self.one_sided()
            targets = self.draw(st.permutations(range(count)))
            kept = self.draw(st.integers(0, count))
            pairs = list(enumerate(targets))[:kept]
            return ops.collective_permute(x, pairs, channel)
        number = self.draw(st.sampled_from([ops.replica_id, ops.partition_id]))()
        scalar = ops.convert_element_type(number, self.element_type)
        return ops.add(x, ops.broadcast(scalar, SIZES))

    def steps(self, x: Instruction, most: int) -> Instruction:
        for _ in range(self.draw(st.integers(1, most))):
            # Halved, so that repeated sums stay small.
            x = ops.div(self.step(x), ops.full_like(x, 4))
        return x

    def body(self, x: Instruction) -> Instruction:
        """The steps plainly, in a call, or in a loop that runs twice."""
        place = self.draw(st.sampled_from(["plain", "plain", "call", "loop"]))
        if place == "plain":
            return self.steps(x, 3)
        if place == "call":
            called = computation("called", lambda y: self.steps(y, 2), self.shape)
            return ops.call(called, [x])
        init = ops.tuple_([ops.constant(0, S32), x])

        def turn(state: Instruction) -> Instruction:
            count, value = ops.elements_of(state)
            return ops.tuple_([ops.add(count, ops.constant(1, S32)), self.steps(value, 2)])

        def condition(state: Instruction) -> Instruction:
            return ops.lt(ops.get_tuple_element(state, 0), ops.constant(2, S32))

        looped = ops.while_(
            computation("condition", condition, init.shape),
            computation("turn", turn, init.shape),
            init,
        )
        return ops.get_tuple_element(looped, 1)


@st.composite
def programs(draw: st.DrawFn) -> Program:
    drawing = Drawing(draw)
    x = ops.parameter(0, drawing.shape)
    entry = Computation("entry", (x,), drawing.body(x))
    module = verify(Module("random", entry, drawing.replicas, drawing.partitions))
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    count = drawing.replicas * drawing.partitions
    array = rng.integers(-50, 50, (count, *SIZES)).astype(drawing.shape.dtype)
    return Program(module, [array])


def drawing(count: int) -> settings:
    """Of a test that judges ``count`` programs: the same ones each time, none made smaller."""
    return settings(
        max_examples=count,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )


def test_random_programs(exhaustive: bool) -> None:
    drawn: list[Program] = []

    @drawing(600 if exhaustive else 60)
    @given(programs())
    def draw(program: Program) -> None:
        drawn.append(program)

    draw()
    judge(drawn)


@given(
    st.lists(st.lists(st.integers(-1, 5), max_size=4), max_size=4),
    st.booleans(),
)
def test_malformed_groups_are_refused(groups: list[list[int]], equal_sizes: bool) -> None:
    """Exactly the groups that share out 0, 1, … are taken."""
    numbers = [number for group in groups for number in group]
    is_right = (
        all(groups)
        and sorted(numbers) == list(range(len(numbers)))
        and (not equal_sizes or len({len(group) for group in groups}) < 2)
    )
    mode = group_mode("op", None)
    given_groups = tuple(map(tuple, groups))
    if is_right:
        require_groups("op", given_groups, mode, equal_sizes)
    else:
        with pytest.raises(AttributeValueError, match=r"op: .*replica_groups"):
            require_groups("op", given_groups, mode, equal_sizes)
