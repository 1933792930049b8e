"""Modules that are small as text and endless otherwise: run, or refused at once with their place.

Nothing but results and tracejit's own errors comes out of any public function.
"""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

import tracejit as tj
from tests.hlo.test_damage import SMALL
from tracejit.errors import HloParseError, TracejitError, UnsupportedError
from tracejit.hlo import parse
from tracejit.shapes import AnyShape, Shape, TupleShape
from tracejit.traversal import instructions

WAYS: dict[str, Callable[..., Any]] = {
    "interpret": tj.interpret,
    "compile": lambda module, *arrays: tj.compile(module)(*arrays),
    "gradient": lambda module, *arrays: tj.gradient_of(module, cotangents=True),
    "text": lambda module, *arrays: str(module),
}


def functions(first: str, body: str, count: int, shape: str = "f32[4]") -> str:
    """``count`` functions of one argument p, each of which may call the one before, F."""
    texts = [f"f0 {{\n  p = {shape} parameter(0)\n  ROOT r = {shape} {first}\n}}"]
    for number in range(1, count):
        lines = body.replace("F", f"f{number - 1}").replace("S", shape)
        texts.append(f"f{number} {{\n  p = {shape} parameter(0)\n{lines}\n}}")
    entry = f"  p = {shape} parameter(0)\n  ROOT r = {shape} call(p), to_apply=f{count - 1}"
    return "\n".join(["HloModule m", *texts, f"ENTRY e {{\n{entry}\n}}\n"])


TWICE = "  a = S call(p), to_apply=F\n  b = S call(p), to_apply=F\n  ROOT r = S add(a, b)"
IN_TURN = "  a = S call(p), to_apply=F\n  ROOT r = S call(a), to_apply=F"
CHAIN = "  a = S call(p), to_apply=F\n  ROOT r = S negate(a)"
INNER_MAP = "  ROOT r = S map(p), dimensions={}, to_apply=F"
BRANCH = """  z = S constant(0)
  c = pred[] compare(p, z), direction=LT
  ROOT r = S conditional(c, p, p), true_computation=F, false_computation=F"""


def doubled(count: int) -> str:
    lines = ["  v0 = f32[4] parameter(0)"]
    for number in range(1, count + 1):
        shape = f"f32[{4 << number}]"
        before = f"v{number - 1}"
        lines.append(f"  v{number} = {shape} concatenate({before}, {before}), dimensions={{0}}")
    return "\n".join(["HloModule m", "ENTRY e {", *lines, "}\n"])


def broadcast(sizes: str) -> str:
    shape = f"f32[{sizes}]"
    return (
        "HloModule m\nENTRY e {\n  p = f32[] parameter(0)\n"
        f"  ROOT b = {shape} broadcast(p), dimensions={{}}\n}}\n"
    )


REFUSED = {
    "2**40 calls": (functions("sine(p)", IN_TURN, 40), "instructions, more than"),
    "2000 maps": (functions("sine(p)", INNER_MAP, 2000, "f32[]"), "64 deep in each other"),
    "60 times twice the size": (doubled(60), "elements; an array has less than"),
    "2**64": (broadcast(str(2**64)), "expected a size"),
    "2**63": (broadcast(str(2**63)), "elements; an array has less than"),
    "2**62": (broadcast("2147483648,2147483648"), "elements; an array has less than"),
    "none of too many": (broadcast("2147483648,2147483648,0"), "elements; an array has less than"),
}

RUN = {
    "2**40 equal calls": functions("sine(p)", TWICE, 40),
    "2**12 calls": functions("cosine(p)", IN_TURN, 12),
    "3000 calls in each other": functions("sine(p)", CHAIN, 3000),
    "60 maps in each other": functions("sine(p)", INNER_MAP, 60, "f32[]"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_with_the_place(name: str) -> None:
    text, message = REFUSED[name]
    start = time.process_time()
    with pytest.raises(HloParseError, match=message) as caught:
        tj.hlo.parse(text)
    assert time.process_time() - start < 1
    assert caught.value.line > 2
    assert caught.value.column > 1


@pytest.mark.parametrize("name", RUN)
def test_run_all_ways(name: str) -> None:
    module = tj.hlo.parse(RUN[name])
    shape = module.entry.parameters[0].array_shape
    x = np.full(shape.dimensions, 0.25, np.float32)
    expected = tj.interpret(module, x)
    np.testing.assert_allclose(tj.compile(module)(x), expected, rtol=1e-6)
    assert tj.gradient_of(module, cotangents=True).entry.root.shape == shape


def entry(*lines: str) -> str:
    return "HloModule m\nENTRY e {\n" + "\n".join(lines) + "\n}"


BROKEN = {
    "a NUL byte": "HloModule m\0",
    "a NUL byte in a shape": entry("ROOT x = f32[\0] parameter(0)"),
    "a lone surrogate": entry("ROOT x\ud800 = f32[] parameter(0)"),
    "text that writes from right to left": entry("ROOT x\u202e = f32[] parameter(0)"),
    "the end in operands": "HloModule m\nENTRY e { x = f32[] parameter(0)\n ROOT y = f32[] add(x,",
    "the end in the header": "HloModule m, entry_computation_layout={(",
    "the end in a comment": "HloModule m /* ",
    "the end in a string": entry('ROOT x = f32[] parameter(0), metadata={op_name="abc }'),
    "no instruction": entry(),
    "deep shapes": entry("ROOT x = " + "(" * 5000 + "f32[]" + ")" * 5000 + " parameter(0)"),
    "deep constants": entry("ROOT x = s32[2] constant(" + "{" * 9999 + "1" + "}" * 9999 + ")"),
    "deep attributes": entry("ROOT x = f32[] parameter(0), sharding=" + "{" * 9999),
    "a size of many digits": entry("ROOT x = f32[" + "9" * 99_999 + "] parameter(0)"),
    "a constant of many digits": entry("ROOT x = s32[] constant(" + "1" * 99_999 + ")"),
    "a constant out of range": entry("ROOT x = s8[] constant(300)"),
    "a negative unsigned constant": entry("ROOT x = u32[] constant(-1)"),
    "a fraction for an integer": entry("ROOT x = s32[] constant(1.5)"),
    "too few elements": entry("ROOT x = s32[3] constant({1, 2})"),
    "an operand that is itself": entry("ROOT x = f32[] negate(x)"),
    "parameters with a gap": entry("ROOT x = f32[] parameter(7)"),
    "a parameter's number of 20 digits": entry("ROOT x = f32[] parameter(99999999999999999999)"),
    "a layout of equal dimensions": entry("ROOT x = f32[4,4]{5,5} parameter(0)"),
    "a permutation out of range": entry(
        "x = f32[2,3] parameter(0)", "ROOT y = f32[3,2] transpose(x), dimensions={5,-1}"
    ),
    "an attribute of another kind": entry(
        "x = f32[2,3] parameter(0)", "ROOT y = f32[3,2] transpose(x), dimensions=foo"
    ),
    "a window of size 0": entry(
        "x = f32[4] parameter(0)", "ROOT y = f32[4] convolution(x, x), window={size=0 stride=0}"
    ),
    "labels that are none": entry(
        "x = f32[4] parameter(0)", "ROOT y = f32[4] convolution(x, x), dim_labels=zz_??->q"
    ),
    "padding of 20 digits": entry(
        "x = f32[4] parameter(0)",
        "z = f32[] constant(0)",
        "ROOT y = f32[4] pad(x, z), padding=99999999999999999999_0",
    ),
    "an element of a tuple that it lacks": entry(
        "x = (f32[], f32[]) parameter(0)", "ROOT y = f32[] get-tuple-element(x), index=-1"
    ),
    "an FFT of negative length": entry(
        "x = c64[4] parameter(0)", "ROOT y = c64[4] fft(x), fft_type=FFT, fft_length={-4}"
    ),
    "no branches": entry(
        "x = s32[] parameter(0)", "ROOT y = s32[] conditional(x, x), branch_computations={}"
    ),
    "random bits without a state": entry(
        "ROOT y = (u64[2], u32[9]) rng-bit-generator(), algorithm=rng_three_fry"
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_text_is_refused_with_its_place(name: str) -> None:
    start = time.process_time()
    with pytest.raises(HloParseError, match=r"^HLO text, line \d+, column \d+: "):
        tj.hlo.parse(BROKEN[name])
    assert time.process_time() - start < 1


@pytest.mark.parametrize(
    ("way", "told"),
    [("interpret", "interpret: Unable to allocate"), ("compile", "compile: .* GiB of workspace")],
)
def test_memory_that_an_op_works_in_is_refused(way: str, told: str) -> None:
    text = """HloModule m

sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}

ENTRY e {
  x = f32[4] parameter(0)
  z = f32[] constant(0)
  ROOT y = f32[4] reduce-window(x, z), window={size=9999999999999 pad=9999999999998_0}, to_apply=sum
}
"""
    with pytest.raises(tj.errors.MemoryLimitError, match=told):
        WAYS[way](tj.hlo.parse(text), np.ones(4, np.float32))


def test_arrays_beyond_the_memory_are_refused_before_they_are_made() -> None:
    module = tj.hlo.parse(doubled(40))
    x = np.ones(4, np.float32)
    for way in ("interpret", "compile"):
        start = time.process_time()
        with pytest.raises(tj.errors.MemoryLimitError, match="concatenate makes"):
            WAYS[way](module, x)
        assert time.process_time() - start < 1


def size_of(shape: AnyShape) -> int:
    if isinstance(shape, TupleShape):
        return sum(map(size_of, shape.elements))
    return shape.size if isinstance(shape, Shape) else 0


def zeros(shape: AnyShape) -> Any:
    if isinstance(shape, TupleShape):
        return tuple(map(zeros, shape.elements))
    return np.zeros(shape.dimensions, shape.dtype) if isinstance(shape, Shape) else None


_NUMBER = re.compile(r"(?<![\w.%-])\d+(?![\w.])")
_TYPE = re.compile(r"\b(?:pred|[su](?:4|8|16|32|64)|f(?:16|32|64)|bf16|c64)(?=\[)")
_NAME = re.compile(r"%[\w.]+(?=[,)])")


@st.composite
def altered(draw: st.DrawFn) -> str:
    """A text with a number, an element type or an operand exchanged, everywhere or once."""
    text = draw(st.sampled_from(SMALL))
    pattern = draw(st.sampled_from([_NUMBER, _NUMBER, _TYPE, _NAME]))
    found = sorted({match[0] for match in pattern.finditer(text)})
    if not found:
        return text
    old = draw(st.sampled_from(found))
    others = ["0", "1", "2", "3", "9"] if pattern is _NUMBER else found
    new = draw(st.sampled_from(others))
    count = draw(st.sampled_from([0, 1, 2]))
    return re.sub(rf"(?<![\w.%-]){re.escape(old)}(?![\w.])", new, text, count=count)


@pytest.mark.parametrize("way", WAYS)
@given(altered())
@settings(deadline=None)
def test_what_is_read_is_run_or_refused(way: str, text: str) -> None:
    """Altered text that is still a module: no AssertionError, KeyError or TypeError comes out."""
    note(text)
    try:
        module = tj.hlo.parse(text)
    except HloParseError:
        return
    if max(size_of(i.shape) for i in instructions(module.entry)) > 100_000:
        return
    with contextlib.suppress(TracejitError):
        WAYS[way](module, *(zeros(p.shape) for p in module.entry.parameters))


def test_branches_of_branches_are_interpreted_and_not_compiled() -> None:
    """The interpreter runs one branch of each; compiled code would hold all of 2**40."""
    module = parse(functions("sine(p)", BRANCH, 40, "f32[]"))
    tj.interpret(module, np.float32(0.5))
    with pytest.raises(UnsupportedError, match="instructions, more than"):
        tj.compile(module)
