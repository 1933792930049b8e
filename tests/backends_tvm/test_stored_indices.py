"""Indices that a kernel stores and reads back: LLVM 22 takes two of them for one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import tracejit as tj
from tracejit.backends.artifact import InProcess
from tracejit.errors import CompilationError
from tracejit.graph import Module
from tracejit.runtime import importing_tvm

with importing_tvm():
    from tests.fuzz.guarded_programs import twice
    from tests.lowered import lower
    from tracejit.backends.target import Target
    from tracejit.backends.tvm.compile import compile_for
    from tracejit.backends.tvm.cpu.machine import Machine
    from tracejit.backends.tvm.cpu.objects import tir_pipeline
    from tracejit.backends.tvm.cpu.objects.stored_indices import indexes_by_stored
    from tracejit.backends.tvm.cpu.processor import processor_of
    from tracejit.backends.tvm.ir.tir import Buffer, Stmt, buffer, i32, loop, seq, store
    from tracejit.backends.tvm.verification.optimised_code import refuse_forwarded_indices

PROCESSORS = ["x86-64-v2", "x86-64-v3", "x86-64-v4"]


def padded(b: np.ndarray) -> np.ndarray:
    """Of the first element: zeros around it, twice, one after the other, in order."""
    pair = np.pad(np.concatenate([b[:1], b[:1] * 0.5]), 2)
    return np.sort(np.concatenate([pair, pair]))


def halved(b: np.ndarray) -> np.ndarray:
    v = np.pad(b[:2], 2)
    v[4:] -= 1
    return np.sort(np.concatenate([v, v * 0.5]))


def argsorted(b: np.ndarray) -> np.ndarray:
    return b[np.argsort(np.concatenate([b, b * 0.5, b]), kind="stable") % 4]


def compiled(module: Module, processor: str) -> bytes | InProcess:
    return compile_for(module, Target(f"cpu:{processor}"))


@pytest.mark.parametrize("kind", ["float32", "float64", "int32", "int64"])
@pytest.mark.parametrize("processor", PROCESSORS)
@pytest.mark.parametrize("program", [padded, halved, argsorted])
def test_sorts_of_few_elements_between_forbidden_pages(
    program: Callable[[np.ndarray], np.ndarray], processor: str, kind: str
) -> None:
    if processor_of(Target(f"cpu:{processor}")).lacking:
        pytest.skip(f"this machine is no {processor}")
    b = (np.random.default_rng(0).normal(size=4) * 10).astype(kind)
    expected = program(b.copy())
    (found,), wrong = twice(compiled(tj.jit(program).lower(b).module, processor), [b])
    np.testing.assert_array_equal(found, expected)
    assert not wrong


def test_the_verifier_finds_indices_that_llvm_stores_in_pairs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tir_pipeline, "indexes_by_stored", lambda body: False)
    module = tj.jit(padded).lower(np.zeros(4)).module
    with pytest.raises(CompilationError, match=r"_sort loads an index that LLVM stored"):
        compiled(module, "x86-64-v3")


TEXT = """
define double @f(<2 x i32> %pair, ptr %x, ptr %order) {{
  %first = getelementptr inbounds nuw i8, ptr %order, i64 {offset}
  store <2 x i32> %pair, ptr %first, align 4
  %again = getelementptr i8, ptr %order, i64 8
  %index = load i32, ptr %again, align 4
  %wide = zext nneg i32 %index to i64
  %address = getelementptr inbounds {kind}, ptr %x, i64 %wide
  %value = load double, ptr %address
  ret double %value
}}
"""


def test_the_verifier_reads_texts() -> None:
    with pytest.raises(CompilationError, match="f loads an index"):
        refuse_forwarded_indices(TEXT.format(offset=8, kind="double"))
    refuse_forwarded_indices(TEXT.format(offset=16, kind="double"))
    refuse_forwarded_indices(TEXT.format(offset=8, kind="i8"))  # nothing is scaled
    for first in ("  %again =", "  %wide =", "  %address ="):
        branches = f"  br i1 %c, label %then, label %then\nthen:\n{first}"
        apart = TEXT.format(offset=8, kind="double").replace(first, branches)
        refuse_forwarded_indices(apart)  # instructions are selected in one block at a time


def test_texts_are_verified(tmp_path: Path) -> None:
    with pytest.raises(CompilationError, match="f loads an index"):
        tir_pipeline.compile_text(TEXT.format(offset=8, kind="double"), tmp_path / "f.ll")


def _memories() -> tuple[Buffer, Buffer, Buffer, Buffer]:
    return (
        buffer("x", (4,), "float64"),
        buffer("order", (4,), "int32"),
        buffer("number", (1,), "int32"),
        buffer("out", (4,), "float64"),
    )


def _written(order: Buffer) -> Stmt:
    return loop(4, lambda i: store(order, i, i32(3)))


def test_indices_are_followed_through_registers() -> None:
    x, order, number, out = _memories()

    def step(i: object) -> Stmt:
        return seq(store(number, 0, order[i]), store(out, i, x[number[0]]))

    assert indexes_by_stored(seq(_written(order), loop(4, step)))
    # Nobody writes them, nothing is read there, and one number is a register.
    assert not indexes_by_stored(loop(4, step))
    assert not indexes_by_stored(_written(order))
    assert not indexes_by_stored(loop(4, lambda i: store(out, i, x[number[0]])))


def test_sorts_by_position_are_found_and_arithmetic_is_not() -> None:
    def found(function: Callable[[np.ndarray], np.ndarray]) -> bool:
        graph = tj.jit(function).lower(np.zeros(12)).module.entry
        kernels = lower(graph, Machine(32, 1)).kernels
        return any(indexes_by_stored(kernel.body) for kernel in kernels)

    assert found(np.sort)
    assert not found(lambda x: np.cumsum(np.exp(x)) + x.sum())
