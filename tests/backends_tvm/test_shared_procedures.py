"""Procedures that all programs of a machine share: each compiled once, whoever calls it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.backends_tvm.compiled import computation
from tests.backends_tvm.test_sorting import compiled_for
from tests.lowered import lower
from tests.runtime.programs import loaded
from tracejit import ops
from tracejit.backends.tvm.compile import compile_for
from tracejit.backends.tvm.cpu.llvm import shared_procedures
from tracejit.backends.tvm.cpu.llvm.procedures import (
    Procedure,
    declaration,
    group_of,
    procedures_of,
)
from tracejit.backends.tvm.cpu.llvm.shared_procedures import (
    LlvmUnit,
    shared_units,
    without_shared,
)
from tracejit.backends.tvm.cpu.machine import Machine
from tracejit.backends.tvm.cpu.processor import processor_of
from tracejit.graph import Computation, Instruction, Module
from tracejit.shapes import ElementType, Shape

S32 = ElementType.S32

compresses = pytest.mark.skipif(
    processor_of().vector_bytes != 64, reason="this processor compresses no vectors"
)


def sort(length: int, with_positions: bool) -> Computation:
    """A sort up, or the positions of a sort: one kernel is glue, the other is TVM's to compile."""

    def build(x: Instruction) -> Instruction:
        if not with_positions:
            return ops.sort(x, ops.sort_order(S32), 0, True)
        pair = [x, ops.iota(Shape(S32, (length,)), 0)]
        made = ops.sort(pair, ops.sort_order(S32, S32), 0, True)
        return ops.get_tuple_element(made, 1)

    return computation(build, Shape(S32, (length,)))


@compresses
@pytest.mark.parametrize("with_positions", [False, True])
def test_only_the_first_program_compiles_them(
    with_positions: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled_for(sort(1000, with_positions), 1)

    def refuse(self: LlvmUnit, folder: Path) -> bytes:
        raise AssertionError(self.text)

    monkeypatch.setattr(LlvmUnit, "compile", refuse)
    array = np.random.default_rng(0).integers(0, 99, 2000).astype(np.int32)
    (made,) = compiled_for(sort(2000, with_positions), 1)([array])
    order = np.argsort(array, kind="stable")
    assert (made == (order if with_positions else array[order])).all()


@compresses
def test_groups_are_modules_of_their_own() -> None:
    lowered = lower(sort(1000, False), Machine(64, 1)).kernels
    kernels, shared = without_shared(lowered)
    groups = {group_of(text) for text in shared.values()}
    assert len(groups) == 2
    assert None not in groups
    assert without_shared(kernels) == (kernels, {})
    units = shared_units(shared, processor_of())
    assert len(units) == 2
    alone = {n: text for n, text in shared.items() if group_of(text) == min(map(str, groups))}
    assert len(shared_units(alone, processor_of())) == 1


def test_texts_of_procedures() -> None:
    shared = Procedure("shared", ["x"], ["n"], 1, group="some group")
    own = Procedure("own", ["x"], ["n"], 1)
    own.invoke(shared, ["%x", "%n"])
    text = "\n".join(["@table = internal constant i64 7", *own.texts().values(), "!0 = !{}"])
    found = procedures_of(text)
    assert [*found] == ["shared", "own"]
    assert found["shared"].startswith("@table")
    assert group_of(found["shared"]) == "some group"
    assert group_of(found["own"]) is None
    assert declaration(found["own"]) == "declare i32 @own(ptr %x, i64 %n)"
    assert without_shared([]) == ([], {})


class Store:
    """Object files in memory, by their sources."""

    def __init__(self) -> None:
        self.kept: dict[str, bytes] = {}

    def find_object(self, source: str) -> bytes | None:
        return self.kept.get(source)

    def keep_object(self, source: str, data: bytes) -> bool:
        self.kept[source] = data
        return True


def fft(length: int) -> Module:
    shape = Shape(ElementType.C64, (3, length))
    return Module("test", computation(lambda x: ops.fft(x, "FFT", (length,)), shape))


def test_another_process_compiles_them_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """Transforms of other lengths, in a process that knows the store alone."""
    known: dict[LlvmUnit, bytes] = {}
    monkeypatch.setattr(shared_procedures, "_cache", known)
    store = Store()
    compile_for(fft(60_000), store=store)
    assert len(store.kept) >= 4
    known.clear()

    def refuse(self: LlvmUnit, folder: Path) -> bytes:
        raise AssertionError(self.text)

    monkeypatch.setattr(LlvmUnit, "compile", refuse)
    x = np.random.default_rng(0).standard_normal((3, 60_000)).astype(np.complex64)
    (made,) = loaded(compile_for(fft(60_000), store=store))([x])
    np.testing.assert_allclose(made, np.fft.fft(x), rtol=0, atol=2e-3)
    assert known
    with pytest.raises(AssertionError, match="define"):
        compile_for(fft(49), store=store)
