"""Modules share a fingerprint only if they share their text."""

from __future__ import annotations

import itertools

import ml_dtypes
import numpy as np
import pytest

from tests.samples.base import Sample
from tests.samples.cases import all_samples, joint_module
from tests.samples.values import element_types
from tracejit import ops
from tracejit.graph import Computation, Module
from tracejit.hlo import parse, to_text
from tracejit.hlo.fingerprint import fingerprint
from tracejit.shapes import ElementType, Layout, Shape

LONG = np.arange(1000.0)
LAST_BIT = LONG.copy()
LAST_BIT.view(np.uint64)[-1] ^= 1
NAN = np.array([0x7FC00000, 0xFFC00000, 0x7FC00001, 0x7F800001], np.uint32).view(np.float32)


def module_of(array: np.ndarray) -> Module:
    return Module("module", Computation("main", (), ops.constant(array)))


CONSTANTS = [
    *(np.array(v, t) for v in (0, 1, 2) for t in (np.int32, np.float32, np.float64, np.int64)),
    *(np.array(v) for v in (-0.0, True, False, 1j, 1 + 0j, 1e-300, 5e-324)),
    *(np.array(v, t) for v in (1, 1.5) for t in (ml_dtypes.bfloat16, np.float16)),
    *(np.array(v, ml_dtypes.int4) for v in (1, -1)),
    *NAN,
    *(LONG, LAST_BIT, LONG.reshape(10, 100), LONG.reshape(100, 10), LONG.astype(np.float32)),
    *(np.zeros(n) for n in (0, 1, 8, 9, 32)),
    *(np.zeros(n, ml_dtypes.bfloat16) for n in (8, 100)),
    *(np.zeros((0, 3)), np.zeros((3, 0))),
]


def test_constants() -> None:
    modules = [module_of(np.asarray(array)) for array in CONSTANTS]
    for a, b in itertools.combinations(modules, 2):
        assert (fingerprint(a) == fingerprint(b)) == (to_text(a) == to_text(b)), (str(a), str(b))


def test_constants_of_any_strides() -> None:
    square = np.arange(1024.0).reshape(32, 32)
    assert fingerprint(module_of(square.T)) == fingerprint(module_of(square.T.copy()))
    assert fingerprint(module_of(square.T)) != fingerprint(module_of(square))


def test_layouts_of_equal_shapes() -> None:
    row, column = (Shape(ElementType.F32, (2, 3), Layout(order)) for order in ((1, 0), (0, 1)))
    assert row == column
    made = []
    for shape in (row, column, row, column):
        parameter = ops.parameter(0, shape)
        made.append(fingerprint(Module("m", Computation("main", (parameter,), parameter))))
    assert made[0] == made[2] != made[1] == made[3]


@pytest.mark.parametrize("sample", all_samples()[::3], ids=lambda s: f"{s.op} {s.label}")
def test_what_was_read_again_has_the_same(sample: Sample) -> None:
    module = joint_module(sample, element_types(sample)[:2])
    assert fingerprint(parse(to_text(module))) == fingerprint(module)


def test_samples_differ_as_their_texts_do() -> None:
    modules = [joint_module(s, element_types(s)[:1]) for s in all_samples()]
    texts = {to_text(m): fingerprint(m) for m in modules}
    assert len(set(texts.values())) == len(texts)
