"""Every sample, batched in each of its operands and in all of them: the same as one by one."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from tests.samples.base import Sample
from tests.samples.cases import every_sample, parameters_of, sample_module, seeded
from tests.samples.values import draw
from tests.tolerances import differences
from tracejit import ops
from tracejit.backends.numpy import evaluate
from tracejit.batching.batch import Batched, batch, batching
from tracejit.graph import OPS, Computation, Module, Op
from tracejit.shapes import ElementType
from tracejit.verifier import verify

SIZE = 3
PREFERRED = (ElementType.F64, ElementType.F32, ElementType.C128, ElementType.S32)


@pytest.mark.parametrize("op", list(OPS.values()), ids=list(OPS))
def test_op_has_a_batching_rule_or_a_reason_why_not(op: Op) -> None:
    assert batching.get(op) or batching.reason(op)


def patterns(count: int) -> Iterator[tuple[int, ...]]:
    """Which operands are batched: each alone, every two, and all."""
    chosen = [*combinations(range(count), 1), *combinations(range(count), 2), tuple(range(count))]
    yield from dict.fromkeys(pattern for pattern in chosen if pattern)


def flat(value: Any) -> list[np.ndarray]:
    if isinstance(value, tuple):
        return [leaf for element in value for leaf in flat(element)]
    return [np.asarray(value)]


@pytest.mark.parametrize(
    "sample",
    every_sample(lambda s: bool(s.operands) and batching.get(OPS[s.op]) is not None),
)
def test_sample_batched(sample: Sample) -> None:
    types = [t for t in PREFERRED if t in sample.element_types] or sorted(
        sample.element_types, key=str
    )
    element_type = types[0]
    generator = seeded(sample)
    draws = [draw(sample, element_type, generator) for _ in range(SIZE)]
    entry = sample_module(sample, element_type).entry
    for pattern in patterns(len(sample.operands)):
        rows = [
            [row[i] if i in pattern else draws[0][i] for i in range(len(sample.operands))]
            for row in draws
        ]
        expected = [
            np.stack(r) for r in zip(*[flat(evaluate(entry, row)) for row in rows], strict=True)
        ]
        arguments = [
            np.stack([row[i] for row in rows]) if i in pattern else draws[0][i]
            for i in range(len(sample.operands))
        ]
        single = parameters_of(sample, element_type)
        given = tuple(
            ops.parameter(i, p.array_shape.with_dimensions((SIZE, *p.array_shape.dimensions)))
            if i in pattern
            else p
            for i, p in enumerate(single)
        )
        known = {
            p: Batched(g, i in pattern) for i, (p, g) in enumerate(zip(single, given, strict=True))
        }
        (made,) = batch([sample.build(*single)], known, SIZE)
        batched = verify(Module("batched", Computation("entry", given, made.stretched(SIZE))))
        actual = flat(evaluate(batched.entry, arguments))
        for position, (ours, theirs) in enumerate(zip(actual, expected, strict=True)):
            found = differences(ours, theirs, None, 1.0)
            assert not found, f"operands {pattern} batched, result {position}: {found}"
