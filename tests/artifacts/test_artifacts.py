"""The hashes see what a kernel computes and when it runs, and not what it is called."""

from __future__ import annotations

from dataclasses import replace

from tests.artifacts.__main__ import differences, text_of
from tests.artifacts.corpus import modules
from tests.lowered import lower
from tracejit.backends.tvm.cpu.machine import Machine
from tracejit.backends.tvm.program.program import Call
from tracejit.hlo import parse

TEXT = """HloModule two

ENTRY main {
  x = f32[8,8] parameter(0)
  y = f32[8,8] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT z = f32[8,8] dot(y, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
"""


def test_names_of_kernels_do_not_count() -> None:
    program = lower(parse(TEXT).entry, Machine())
    called = {kernel.name: f"other_{kernel.name}" for kernel in program.kernels}
    kernels = [replace(kernel, name=called[kernel.name]) for kernel in program.kernels]
    calls = [
        Call(called[node.kernel], node.arguments)
        for node in program.calls
        if isinstance(node, Call)
    ]
    assert text_of(replace(program, kernels=kernels, calls=calls)) == text_of(program)
    assert text_of(replace(program, calls=calls[:0])) != text_of(program)
    other = lower(parse(TEXT.replace("[8,8]", "[9,9]")).entry, Machine())
    assert text_of(other) != text_of(program)


def test_differences() -> None:
    before = {"a": {"program 64": "1"}, "b": {"program 64": "1"}, "c": {"program 64": "1"}}
    now = {"a": {"program 64": "2"}, "b": {"program 64": "1"}, "d": {"program 64": "1"}}
    assert differences(before, now) == [
        "a: program 64: 1 became 2",
        "c: is gone",
        "d: is new",
    ]


def test_the_corpus_has_a_name_for_each_module() -> None:
    names = [name for name, _ in modules(whole=True)]
    assert len(names) == len(set(names)) > 1500
