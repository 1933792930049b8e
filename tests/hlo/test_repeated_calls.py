"""Programs whose computations call each other many times: compiled in size linear in the text."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

import tracejit as tj
from tests.hlo.test_hostile import IN_TURN, functions
from tracejit.graph import Module
from tracejit.ops.inlining import inlined
from tracejit.ops.program_size import extents
from tracejit.traversal import called_computations, instructions

TWO_STEPS = """
fewer_{n} {{
  s = (s32[], {shape}) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  t = s32[] constant(2)
  ROOT r = pred[] compare(i, t), direction=LT
}}
step_{n} {{
  s = (s32[], {shape}) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  one = s32[] constant(1)
  j = s32[] add(i, one)
  x = {shape} get-tuple-element(s), index=1
  y = {shape} call(x), to_apply=f{before}
  ROOT r = (s32[], {shape}) tuple(j, y)
}}
"""

BODIES: Mapping[str, str] = {
    "calls in turn": IN_TURN,
    "calls side by side": """
  h = S add(p, p)
  a = S call(p), to_apply=F
  b = S call(h), to_apply=F
  d = S subtract(a, b)
  ROOT r = S add(d, h)""",
    "three calls": """
  a = S call(p), to_apply=F
  k = S subtract(p, a)
  b = S call(a), to_apply=F
  c = S call(k), to_apply=F
  m = S multiply(b, k)
  ROOT r = S add(m, c)""",
    "maps": """
  a = S map(p), dimensions={}, to_apply=F
  ROOT r = S map(a), dimensions={}, to_apply=F""",
    "branches": """
  z = S constant(0)
  c = pred[] compare(p, z), direction=LT
  n = S negate(p)
  ROOT r = S conditional(c, p, n), true_computation=F, false_computation=F""",
    "a call and a branch": """
  z = S constant(0)
  c = pred[] compare(p, z), direction=LT
  n = S cosine(p)
  a = S conditional(c, p, n), true_computation=F, false_computation=F
  ROOT r = S call(a), to_apply=F""",
}

PAIRS = """
f{n} {{
  p = f32[3] parameter(0)
  q = (f32[3], f32[3]) call(p), to_apply=g{before}
  a = f32[3] get-tuple-element(q), index=0
  b = f32[3] get-tuple-element(q), index=1
  c = f32[3] call(a), to_apply=f{before}
  d = (f32[3], f32[3]) call(c), to_apply=g{before}
  e = f32[3] get-tuple-element(d), index=1
  k = f32[3] call(b), to_apply=f{before}
  l = f32[3] subtract(e, k)
  ROOT r = f32[3] multiply(l, b)
}}
g{n} {{
  p = f32[3] parameter(0)
  a = f32[3] call(p), to_apply=f{before}
  h = f32[3] sine(a)
  b = f32[3] call(h), to_apply=f{before}
  ROOT r = (f32[3], f32[3]) tuple(b, a)
}}
"""


def pairs(count: int) -> str:
    """Two families of computations that call both of the families twice."""
    first = "f0 {\n  p = f32[3] parameter(0)\n  ROOT r = f32[3] cosine(p)\n}\n"
    first += "g0 {\n  p = f32[3] parameter(0)\n  s = f32[3] sine(p)\n"
    first += "  ROOT r = (f32[3], f32[3]) tuple(s, p)\n}\n"
    texts = [PAIRS.format(n=n, before=n - 1) for n in range(1, count)]
    entry = f"  p = f32[3] parameter(0)\n  ROOT r = f32[3] call(p), to_apply=f{count - 1}"
    return "\n".join(["HloModule m", first, *texts, f"ENTRY e {{\n{entry}\n}}\n"])


def loops(count: int) -> str:
    """Each computation runs two loops, of two steps each, of the one before."""
    texts = ["f0 {\n  p = f32[3] parameter(0)\n  ROOT r = f32[3] sine(p)\n}\n"]
    for n in range(1, count):
        texts.append(TWO_STEPS.format(n=n, before=n - 1, shape="f32[3]"))
        loop = f"condition=fewer_{n}, body=step_{n}"
        texts.append(
            f"f{n} {{\n  p = f32[3] parameter(0)\n  z = s32[] constant(0)\n"
            f"  i = (s32[], f32[3]) tuple(z, p)\n  w = (s32[], f32[3]) while(i), {loop}\n"
            f"  x = f32[3] get-tuple-element(w), index=1\n  c = f32[3] cosine(x)\n"
            f"  k = (s32[], f32[3]) tuple(z, c)\n  v = (s32[], f32[3]) while(k), {loop}\n"
            f"  ROOT r = f32[3] get-tuple-element(v), index=1\n}}\n"
        )
    entry = f"  p = f32[3] parameter(0)\n  ROOT r = f32[3] call(p), to_apply=f{count - 1}"
    return "\n".join(["HloModule m", *texts, f"ENTRY e {{\n{entry}\n}}\n"])


_COUNTS = {"three calls": 9, "a call and a branch": 10}
TEXTS = {
    name: functions("cosine(p)", body, _COUNTS.get(name, 14), "f32[]")
    for name, body in BODIES.items()
}
TEXTS["pairs"] = pairs(8)


def written_out(module: Module) -> int:
    """The instructions that are compiled."""
    made = inlined(module.entry, rerolls=True)
    return extents(made).size[made]


@pytest.mark.parametrize("name", TEXTS)
def test_compiled_as_interpreted(name: str) -> None:
    module = tj.hlo.parse(TEXTS[name])
    text = sum(len(instructions(each)) for each in called_computations(module))
    assert extents(module.entry).size[module.entry] > 20_000
    assert written_out(module) < 12 * text + 1_000
    shape = module.entry.parameters[0].array_shape
    x = np.full(shape.dimensions, 0.25, np.float32)
    np.testing.assert_allclose(tj.compile(module)(x), tj.interpret(module, x), rtol=1e-5)


def test_loops_of_loops() -> None:
    module = tj.hlo.parse(loops(14))
    assert written_out(module) < 2_000
    x = np.full(3, 0.25, np.float32)
    small = tj.hlo.parse(loops(5))
    np.testing.assert_allclose(tj.compile(small)(x), tj.interpret(small, x), rtol=1e-5)
    assert np.isfinite(tj.compile(tj.hlo.parse(loops(7)))(x)).all()


@pytest.mark.parametrize("count", [40, 200])
def test_what_never_ends_is_refused(count: int) -> None:
    with pytest.raises(tj.errors.HloParseError, match="instructions, more than 1048576"):
        tj.hlo.parse(functions("cosine(p)", IN_TURN, count))
