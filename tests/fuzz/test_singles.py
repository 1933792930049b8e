"""Single ops of every kind, on any values: XLA, the interpreter and compiled code agree."""

from __future__ import annotations

import ast
import random

import numpy as np
import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

from tests.fuzz import refused
from tests.fuzz.choices import Choices
from tests.fuzz.comparing import leaves
from tests.fuzz.judging import drawn_singles, judge_singles
from tests.fuzz.known import KNOWN
from tests.fuzz.single import single
from tests.fuzz.table import ELSEWHERE, STEPS
from tests.fuzz.test_compiled import SLOW
from tests.fuzz.verdict import verdict
from tests.project import checkout
from tests.samples.admitted import admitted
from tracejit import ops
from tracejit.backends.numpy import evaluate
from tracejit.graph import OPS, Computation
from tracejit.shapes import ElementType, Shape


@settings(suppress_health_check=SLOW, max_examples=12)
@given(data=st.data(), seed=st.integers(0, 1000))
def test_single_ops(data: st.DataObject, seed: int) -> None:
    choices = Choices(lambda low, high: data.draw(st.integers(low, high)))
    _judge(choices, 4, seed)


@pytest.mark.parametrize("start", range(4))
def test_a_sample_of_all_ops(start: int) -> None:
    """Each op once, and as many element types as there are in turn."""
    names = [*STEPS][start::4]
    choices = Choices(random.Random(start).randint)
    cases = [case for name in names for case in drawn_singles(choices, 1, [name])]
    for outcome in judge_singles(cases, start):
        assert not outcome.failed, f"{outcome.name}: {outcome.text}\n{outcome.module}"


def _judge(choices: Choices, count: int, seed: int) -> None:
    for outcome in judge_singles(drawn_singles(choices, count), seed):
        note(f"{outcome.name} {outcome.element_type}: {outcome.kind}")
        assert not outcome.failed, f"{outcome.name}: {outcome.text}\n{outcome.module}"


@pytest.mark.parametrize("name", OPS)
def test_every_op_is_drawn_or_judged_elsewhere(name: str) -> None:
    assert (name in STEPS) != (name in ELSEWHERE)
    if name in ELSEWHERE:
        path, _, test = ELSEWHERE[name].test.partition("::")
        tree = ast.parse((checkout.ROOT / path).read_text())
        assert test in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("name", STEPS)
def test_every_element_type_is_drawn(name: str) -> None:
    missing = []
    for element_type in admitted(name):
        choices = Choices(random.Random(str(element_type)).randint)
        if not any(single(choices, name, element_type) for _ in range(6)):
            missing.append(str(element_type))
    assert not missing


def test_tables_name_ops_of_the_table() -> None:
    assert {*STEPS, *ELSEWHERE} <= set(OPS)
    assert {name for difference in KNOWN for name in difference.ops} <= set(OPS)
    assert all(refused.KNOWN.values())


@pytest.mark.parametrize("name", ["Pad", "Sin", "Reduce", "Sort", "Add", "DotGeneral"])
def test_a_wrong_element_is_noticed(name: str) -> None:
    """One element of a result is set to another value."""
    noticed = 0
    for seed in range(8):
        choices = Choices(random.Random(seed).randint)
        (case,) = drawn_singles(choices, 1, [name])
        shapes = [p.array_shape for p in case.entry.parameters]
        rng = np.random.default_rng(seed)
        arrays = [rng.integers(1, 3, s.dimensions).astype(s.dtype) for s in shapes]
        expected = _results(case.entry, arrays)
        if not expected[0].size:
            noticed += 1
            continue
        wrong = [array.copy() for array in expected]
        flat = wrong[0].reshape(-1)
        flat[0] = not flat[0] if flat.dtype == bool else np.array(flat[0] == 0).astype(flat.dtype)
        noticed += bool(verdict(case.entry, name, arrays, wrong, expected, True))
    assert noticed >= 5


def _results(entry: Computation, arrays: list[np.ndarray]) -> list[np.ndarray]:
    return leaves(evaluate(entry, arrays))


def test_moves_keep_every_bit_of_a_nan() -> None:
    """What moves elements is not compared as numbers."""
    x = ops.parameter(0, Shape(ElementType.F32, (2,)))
    entry = Computation("rev", (x,), ops.rev(x, [0]))
    bits = np.array([0x7FC00001, 0xFFC12345], np.uint32)
    given, other = bits.view(np.float32), (bits ^ 1).view(np.float32)
    assert not verdict(entry, "Rev", [given], [given[::-1]], [given[::-1]], True)
    assert verdict(entry, "Rev", [given], [other[::-1]], [given[::-1]], True)
