"""Programs with dynamic dimensions: XLA, the interpreter and compiled code agree."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracejit as tj
from tests.judge import parse_xla, run_xla
from tracejit import hlo
from tracejit.equality import same_graph
from tracejit.errors import ShapeError
from tracejit.graph import Module
from tracejit.verifier import verify

HEADER = """HloModule dynamic

%add (a: f32[], b: f32[]) -> f32[] {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT sum = f32[] add(a, b)
}

%less (a.1: f32[], b.1: f32[]) -> pred[] {
  a.1 = f32[] parameter(0)
  b.1 = f32[] parameter(1)
  ROOT less = pred[] compare(a.1, b.1), direction=LT
}

ENTRY %entry {
  x = f32[5] parameter(0)
  n = s32[] parameter(1)
  d = f32[<=5] set-dimension-size(x, n), dimensions={0}
  zero = f32[] constant(0)
  two = s32[] constant(2)
  xx = f32[2,5] broadcast(x), dimensions={1}
  dd = f32[2,<=5] set-dimension-size(xx, n), dimensions={1}
"""
SIZE = "ROOT size = s32[] get-dimension-size(q), dimensions={0}"
SUM = "ROOT total = f32[] reduce(q, zero), dimensions={0}, to_apply=%add"
WHOLE = """full = s32[] constant(5)
  whole = f32[5] set-dimension-size(q, full), dimensions={0}
  ROOT made = f32[5] negate(whole)"""

# What is made of d, and how it is looked at.
PROGRAMS = {
    "sum": ("q = f32[<=5] add(d, d)", SUM),
    "sum with a static array": ("q = f32[<=5] add(d, x)", SUM),
    "size": ("q = pred[<=5] compare(d, x), direction=LT", SIZE),
    "broadcast": (
        "q = f32[4,<=5] broadcast(d), dimensions={1}",
        "ROOT rows = f32[4] reduce(q, zero), dimensions={1}, to_apply=%add",
    ),
    "columns": ("q = f32[<=5] reduce(dd, zero), dimensions={0}, to_apply=%add", SUM),
    "transposed": (
        "q = f32[<=5,2] transpose(dd), dimensions={1,0}",
        "ROOT rows = f32[2] reduce(q, zero), dimensions={0}, to_apply=%add",
    ),
    "outer product": (
        "q = f32[<=5,<=5] dot(d, d)",
        "ROOT total = f32[] reduce(q, zero), dimensions={0,1}, to_apply=%add",
    ),
    "inner product": (
        "q = f32[] dot(d, x), lhs_contracting_dims={0}, rhs_contracting_dims={0}",
        "ROOT negated = f32[] negate(q)",
    ),
    "joined": ("q = f32[<=10] concatenate(d, x), dimensions={0}", SUM),
    "joined after": ("q = f32[<=10] concatenate(x, d), dimensions={0}", SIZE),
    "front": ("q = f32[<=4] slice(d), slice={[0:4]}", SUM),
    "back": ("q = f32[<=4] slice(d), slice={[1:5]}", SIZE),
    "every second": ("q = f32[<=3] slice(d), slice={[0:5:2]}", SUM),
    "padded": ("q = f32[<=8] pad(d, zero), padding=1_2", SIZE),
    "reversed": ("q = f32[<=5] reverse(d), dimensions={0}", WHOLE),
    "sorted": ("q = f32[<=5] sort(d), dimensions={0}, to_apply=%less", SUM),
    "part of the bound": (
        "q = f32[2] dynamic-slice(d, n), dynamic_slice_sizes={2}",
        "ROOT part = f32[2] negate(q)",
    ),
    "all of it": ("q = f32[<=5] dynamic-slice(d, n), dynamic_slice_sizes={5}", SIZE),
    "updated": (
        "one = f32[1] constant({10})\n  q = f32[<=5] dynamic-update-slice(d, one, two)",
        SUM,
    ),
    "reshaped": ("q = f32[<=10] reshape(dd)", SUM),
    "reshaped to columns": ("q = f32[<=5,1] reshape(d)", SIZE),
    "dynamic reshape": ("q = f32[<=5] dynamic-reshape(d, n)", SIZE),
    "chosen": (
        "here = pred[5] constant({1,0,1,0,1})\n  q = f32[<=5] select(here, d, x)",
        SUM,
    ),
    "through a tuple": (
        "pair = (f32[<=5], s32[]) tuple(d, n)\n  q = f32[<=5] get-tuple-element(pair), index=0",
        SUM,
    ),
    "gathered": (
        "indices = s32[5] convert(x)\n"
        "  some = s32[<=5] set-dimension-size(indices, n), dimensions={0}\n"
        "  q = f32[<=5] gather(x, some), offset_dims={}, collapsed_slice_dims={0}, "
        "start_index_map={0}, index_vector_dim=1, slice_sizes={1}",
        SUM,
    ),
    "windows": ("q = f32[<=4] reduce-window(d, zero), window={size=2}, to_apply=%add", SUM),
    "set back": (
        "full.1 = s32[] constant(5)\n  q = f32[<=5] set-dimension-size(d, full.1), dimensions={0}",
        SUM,
    ),
}
X = np.array([1, -2, 3, 4, 5], np.float32)


def module_of(body: str, root: str) -> Module:
    return verify(hlo.parse(f"{HEADER}  {body}\n  {root}\n}}\n"))


@pytest.mark.parametrize("name", PROGRAMS)
def test_agrees_with_xla(name: str) -> None:
    module = module_of(*PROGRAMS[name])
    assert same_graph(hlo.parse(str(module)), module)
    assert same_graph(hlo.parse(parse_xla(str(module))), module)
    for size in (3, 5):
        expected = run_xla(module, X, np.int32(size))
        actual = tj.interpret(module, X, np.int32(size))
        np.testing.assert_allclose(actual, expected, rtol=1e-6)
        assert actual.dtype == expected.dtype


COMPILED = ("columns", "outer product", "joined", "reversed", "reshaped", "gathered", "sorted")


@pytest.mark.parametrize("name", ["sum with a static array", "size", "transposed", *COMPILED])
def test_compiled_code_agrees(name: str) -> None:
    module = module_of(*PROGRAMS[name])
    program = tj.compile(module)
    for size in (0, 2, 5, 9):
        expected = tj.interpret(module, X, np.int32(size))
        np.testing.assert_allclose(program(X, np.int32(size)), expected, rtol=1e-6)


def ways(module: Module) -> list[Any]:
    return [lambda *a: tj.interpret(module, *a), tj.compile(module)]


def test_arguments_and_results_have_the_sizes_that_they_have() -> None:
    text = """HloModule m
    ENTRY e {
      x = f32[2,<=5] parameter(0)
      y = f32[2,5] parameter(1)
      ROOT sum = f32[2,<=5] add(x, y)
    }"""
    for run in ways(verify(hlo.parse(text))):
        made = run(np.ones((2, 3), np.float32), np.ones((2, 5), np.float32))
        assert made.tolist() == [[2, 2, 2]] * 2
        with pytest.raises(ShapeError, match=r"f32\[2,6\] does not fit f32\[2,<=5\]"):
            run(np.ones((2, 6), np.float32), np.ones((2, 5), np.float32))


def test_loops_carry_dynamic_arrays() -> None:
    text = """HloModule m
    %body (s: (f32[<=8], s32[])) -> (f32[<=8], s32[]) {
      s0 = (f32[<=8], s32[]) parameter(0)
      v = f32[<=8] get-tuple-element(s0), index=0
      n = s32[] get-tuple-element(s0), index=1
      one = s32[] constant(1)
      less = s32[] subtract(n, one)
      doubled = f32[<=8] add(v, v)
      cut = f32[<=8] set-dimension-size(doubled, less), dimensions={0}
      ROOT next = (f32[<=8], s32[]) tuple(cut, less)
    }
    %more (s: (f32[<=8], s32[])) -> pred[] {
      s1 = (f32[<=8], s32[]) parameter(0)
      n1 = s32[] get-tuple-element(s1), index=1
      two = s32[] constant(2)
      ROOT more = pred[] compare(n1, two), direction=GT
    }
    ENTRY e {
      x = f32[8] parameter(0)
      k = s32[] parameter(1)
      d = f32[<=8] set-dimension-size(x, k), dimensions={0}
      start = (f32[<=8], s32[]) tuple(d, k)
      ROOT end = (f32[<=8], s32[]) while(start), condition=%more, body=%body
    }"""
    for run in ways(verify(hlo.parse(text))):
        array, size = run(np.arange(8, dtype=np.float32), np.int32(5))
        assert array.tolist() == [0, 8]
        assert size == 2


def test_sizes_that_do_not_fit_are_refused() -> None:
    body = "four = s32[] constant(4)\n  q = f32[<=5] dynamic-reshape(d, four)"
    module = module_of(body, SIZE)
    for run in ways(module):
        with pytest.raises(ShapeError, match=r"3 elements cannot have the sizes \[4\]"):
            run(X, np.int32(3))


def test_the_page_on_set_dimension_size() -> None:
    values = np.arange(1, 11, dtype=np.float32)
    text = """HloModule m
    %add (a: f32[], b: f32[]) -> f32[] {
      a = f32[] parameter(0)
      b = f32[] parameter(1)
      ROOT sum = f32[] add(a, b)
    }
    %multiply (c: f32[], e: f32[]) -> f32[] {
      c = f32[] parameter(0)
      e = f32[] parameter(1)
      ROOT product = f32[] multiply(c, e)
    }
    ENTRY e {
      v = f32[10] parameter(0)
      five = s32[] constant(5)
      six = s32[] constant(6)
      zero = f32[] constant(0)
      one = f32[] constant(1)
      padded_v_five = f32[<=10] set-dimension-size(v, five), dimensions={0}
      padded_v_six = f32[<=10] set-dimension-size(v, six), dimensions={0}
      sum5 = f32[] reduce(padded_v_five, zero), dimensions={0}, to_apply=%add
      product5 = f32[] reduce(padded_v_five, one), dimensions={0}, to_apply=%multiply
      sum6 = f32[] reduce(padded_v_six, zero), dimensions={0}, to_apply=%add
      ROOT all = (f32[], f32[], f32[]) tuple(sum5, product5, sum6)
    }"""
    for run in ways(verify(hlo.parse(text))):
        assert [float(value) for value in run(values)] == [15, 120, 21]
