"""HLO texts whose Map, Reduce, … call computations with control flow, tables, calls of their own.

text("map", "pick")     a module that applies the computation `pick` by a Map
"""

from __future__ import annotations

import re

import numpy as np

COMPUTATIONS = """
half {
  p = f64[] parameter(0)
  h = f64[] constant(0.5)
  ROOT r = f64[] multiply(p, h)
}
minus {
  p = f64[] parameter(0)
  ROOT r = f64[] negate(p)
}
same {
  ROOT p = f64[] parameter(0)
}
difference {
  a = f64[] parameter(0)
  b = f64[] parameter(1)
  ROOT r = f64[] subtract(a, b)
}
sum {
  a = f64[] parameter(0)
  b = f64[] parameter(1)
  ROOT r = f64[] add(a, b)
}
pick {
  a = f64[] parameter(0)
  b = f64[] parameter(1)
  c = pred[] compare(a, b), direction=GT
  k = f64[] conditional(c, a, b), true_computation=half, false_computation=minus
  ROOT r = f64[] add(k, b)
}
pick_of_three {
  a = f64[] parameter(0)
  b = f64[] parameter(1)
  i = s32[] convert(a)
  k = f64[] conditional(i, a, b, b), branch_computations={half, minus, same}
  ROOT r = f64[] add(k, b)
}
nested_map {
  a = f64[] parameter(0)
  b = f64[] parameter(1)
  ROOT r = f64[] map(a, b), dimensions={}, to_apply=pick
}
nested_reduce {
  a = f64[] parameter(0)
  b = f64[] parameter(1)
  t = f64[4] constant({0.5, 1.5, -0.25, 0.125})
  w = f64[4] broadcast(b), dimensions={}
  m = f64[4] multiply(t, w)
  ROOT r = f64[] reduce(m, a), dimensions={0}, to_apply=pick
}
table {
  a = f64[] parameter(0)
  b = f64[] parameter(1)
  t = f64[8] constant({3, 1, 4, 1, 5, 9, 2, 6})
  h = f64[] constant(0.5)
  i = s32[] convert(b)
  v = f64[1] dynamic-slice(t, i), dynamic_slice_sizes={1}
  s = f64[] reshape(v)
  w = f64[] multiply(a, h)
  x = f64[] multiply(s, b)
  ROOT r = f64[] add(w, x)
}
three_times {
  s = (s32[], f64[]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(3)
  ROOT r = pred[] compare(i, n), direction=LT
}
shrinking {
  s = (s32[], f64[]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f64[] get-tuple-element(s), index=1
  one = s32[] constant(1)
  h = f64[] constant(0.75)
  j = s32[] add(i, one)
  y = f64[] multiply(x, h)
  ROOT r = (s32[], f64[]) tuple(j, y)
}
counted {
  a = f64[] parameter(0)
  b = f64[] parameter(1)
  z = s32[] constant(0)
  st = (s32[], f64[]) tuple(z, a)
  w = (s32[], f64[]) while(st), condition=three_times, body=shrinking
  g = f64[] get-tuple-element(w), index=1
  ROOT r = f64[] add(g, b)
}
not_yet {
  s = (f64[], f64[]) parameter(0)
  x = f64[] get-tuple-element(s), index=0
  z = f64[] constant(0)
  ROOT r = pred[] compare(x, z), direction=NE
}
down {
  s = (f64[], f64[]) parameter(0)
  x = f64[] get-tuple-element(s), index=0
  y = f64[] get-tuple-element(s), index=1
  one = f64[] constant(1)
  h = f64[] constant(0.5)
  i = f64[] subtract(x, one)
  g = f64[] multiply(y, h)
  ROOT r = (f64[], f64[]) tuple(i, g)
}
to_zero {
  b = f64[] parameter(0)
  n = f64[] floor(b)
  st = (f64[], f64[]) tuple(n, b)
  w = (f64[], f64[]) while(st), condition=not_yet, body=down
  ROOT r = f64[] get-tuple-element(w), index=1
}
ends_for_positive {
  a = f64[] parameter(0)
  b = f64[] parameter(1)
  z = f64[] constant(0)
  c = pred[] compare(b, z), direction=GE
  k = f64[] conditional(c, b, b), true_computation=to_zero, false_computation=minus
  ROOT r = f64[] subtract(k, a)
}
earlier_in_table {
  a = f64[] parameter(0)
  b = f64[] parameter(1)
  t = f64[8] constant({3, 1, 4, 1, 5, 9, 2, 6})
  i = s32[] convert(a)
  j = s32[] convert(b)
  u = f64[1] dynamic-slice(t, i), dynamic_slice_sizes={1}
  v = f64[1] dynamic-slice(t, j), dynamic_slice_sizes={1}
  x = f64[] reshape(u)
  y = f64[] reshape(v)
  ROOT r = pred[] compare(x, y), direction=LT
}
nearer_to_zero {
  a = f64[] parameter(0)
  b = f64[] parameter(1)
  z = f64[] constant(0)
  c = pred[] compare(a, z), direction=LT
  x = f64[] conditional(c, a, a), true_computation=minus, false_computation=same
  d = pred[] compare(b, z), direction=LT
  y = f64[] conditional(d, b, b), true_computation=minus, false_computation=same
  ROOT r = pred[] compare(x, y), direction=LT
}
at_least {
  a = f64[] parameter(0)
  b = f64[] parameter(1)
  ROOT r = pred[] compare(a, b), direction=GE
}
"""

BINARY = (
    "difference",
    "pick",
    "pick_of_three",
    "nested_map",
    "nested_reduce",
    "table",
    "counted",
    "ends_for_positive",
)
XLA_ABORTS = ("counted", "ends_for_positive", "pick_of_three")
"""XLA's CPU client ends the process at a While or an N-way Conditional in a Map or a Reduce."""

COMPARISONS = ("earlier_in_table", "nearer_to_zero")

_BLOCKS = dict(re.findall(r"^(\w+) (\{\n.*?^\})$", COMPUTATIONS, re.DOTALL | re.MULTILINE))

_X, _Y = "x = f64[6,5] parameter(0)", "y = f64[6,5] parameter(1)"
_START = "z = f64[] parameter(1)"
_WINDOW = "window={size=3x2 stride=2x1 pad=1_0x0_1}"
_SCATTER = (
    "update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, "
    "index_vector_dim=1"
)
_SELECT = ["s = f64[3,5] parameter(1)", "z = f64[] parameter(2)"]

PROGRAMS: dict[str, list[str]] = {
    "map": [_X, _Y, "f64[6,5] map(x, y), dimensions={0,1}, to_apply=F"],
    "reduce rows": [_X, _START, "f64[6] reduce(x, z), dimensions={1}, to_apply=F"],
    "reduce columns": [_X, _START, "f64[5] reduce(x, z), dimensions={0}, to_apply=F"],
    "reduce all": [_X, _START, "f64[] reduce(x, z), dimensions={1,0}, to_apply=F"],
    "window": [
        _X,
        _START,
        "f64[2,4] reduce-window(x, z), window={size=3x2 stride=2x1}, to_apply=F",
    ],
    "padded window": [_X, _START, f"f64[3,5] reduce-window(x, z), {_WINDOW}, to_apply=F"],
    "running": [
        _X,
        _START,
        "f64[6,5] reduce-window(x, z), window={size=1x5 pad=0_0x4_0}, to_apply=F",
    ],
    "running back": [
        _X,
        _START,
        "f64[6,5] reduce-window(x, z), window={size=1x5 pad=0_0x0_4}, to_apply=F",
    ],
    "scatter": [
        _X,
        _Y,
        "i = s32[6,1] parameter(2)",
        f"f64[6,5] scatter(x, i, y), {_SCATTER}, to_apply=F",
    ],
    "select and scatter": [
        _X,
        *_SELECT,
        f"f64[6,5] select-and-scatter(x, s, z), {_WINDOW}, select=at_least, scatter=F",
    ],
}
ORDERED: dict[str, list[str]] = {
    "sort": [_X, "f64[6,5] sort(x), dimensions={0}, is_stable=true, to_apply=F"],
    "select": [
        _X,
        *_SELECT,
        f"f64[6,5] select-and-scatter(x, s, z), {_WINDOW}, select=F, scatter=sum",
    ],
}


def text(program: str, computation: str) -> str:
    """The module that applies ``computation`` as ``program`` does."""
    lines = [*PROGRAMS.get(program, ORDERED.get(program, ()))]
    lines = [line.replace("=F", f"={computation}") for line in lines]
    lines[-1] = f"ROOT r = {lines[-1]}"
    entry = "\n".join(f"  {line}" for line in lines)
    return f"HloModule m\n{_reached(entry)}\nENTRY e {{\n{entry}\n}}\n"


def _reached(text: str) -> str:
    """The computations that a text calls, callees first."""
    found: list[str] = []
    todo = _called(text)
    while todo:
        name = todo.pop(0)
        if name in found:
            found.remove(name)
        found.append(name)
        todo += _called(_BLOCKS[name])
    return "\n".join(f"{name} {_BLOCKS[name]}" for name in reversed(found))


def _called(text: str) -> list[str]:
    named = re.findall(r"(?:computation|condition|body|to_apply|select|scatter)=(\w+)", text)
    listed = re.findall(r"branch_computations=\{([^}]*)\}", text)
    return [*named, *(name for part in listed for name in part.split(", "))]


def arguments(program: str) -> list[np.ndarray]:
    """Arrays for a program: quarters of whole numbers, so that sums are exact."""
    rng = np.random.default_rng(0)
    x = rng.integers(-12, 30, (6, 5)) / 4 + 0.125
    given: list[np.ndarray] = [x]
    if "parameter(1)" in str(PROGRAMS.get(program, ORDERED.get(program))):
        if program in ("map", "scatter"):
            given.append(rng.integers(-8, 24, (6, 5)) / 4 + 0.125)
        elif "select" in program:
            given += [np.arange(15.0).reshape(3, 5) % 7, np.array(1.5)]
        else:
            given.append(np.array(1.5))
    if program == "scatter":
        given.append(np.array([[1], [4], [1], [9], [0], [1]], np.int32))
    return given
