"""Libraries that are linked in this process, beside what the system's linker makes of the same."""

from __future__ import annotations

import ctypes
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.runtime.programs import addition, built
from tracejit.runtime import importing_tvm

with importing_tvm():
    import tvm

    from tracejit.backends.tvm.cpu.objects import linker
    from tracejit.backends.tvm.cpu.objects.elf import shared_library
    from tracejit.backends.tvm.cpu.processor import processor_of

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() != "x86_64",
    reason="libraries are linked in this process on Linux, for x86-64",
)

Assemble = Callable[[str], bytes]


@pytest.fixture
def assemble(tmp_path: Path) -> Assemble:
    """From LLVM's text to an object file."""
    load = tvm.get_global_func("ffi.Module.load_from_file.ll")
    target = str(processor_of().tvm_quick).replace('"', "\\22")

    def assembled(text: str) -> bytes:
        source, file = tmp_path / "source.ll", tmp_path / "made.o"
        flags = f'!llvm.module.flags = !{{!0}}\n!0 = !{{i32 2, !"tvm_target", !"{target}"}}\n'
        triple = f'target triple = "{processor_of().triple}"\n'
        source.write_text(triple + text + flags)
        load(str(source), "ll").write_to_file(str(file), "o")
        return file.read_bytes()

    return assembled


def linked(objects: list[bytes], tmp_path: Path, own: bool) -> Any:
    """The library of these objects, loaded: ours, or the system's linker's."""
    library = tmp_path / f"{own}.so"
    if own:
        made = shared_library(objects)
        assert made is not None
        library.write_bytes(made)
    else:
        files = [tmp_path / f"{number}.o" for number in range(len(objects))]
        for file, data in zip(files, objects, strict=True):
            file.write_bytes(data)
        names = [str(file) for file in files]
        subprocess.run(["ld", "-shared", "-Bsymbolic", "-o", str(library), *names], check=True)
    return ctypes.CDLL(str(library))


FIRST = """
@table = global [3 x ptr] [ptr @one, ptr @labs, ptr getelementptr (i8, ptr @numbers, i64 8)]
@numbers = constant [2 x i64] [i64 40, i64 2], align 32
@shared = common global i64 0
@context = weak global ptr null
%constructor = type { i32, ptr, ptr }
@llvm.global_ctors = appending global [1 x %constructor] [
  %constructor { i32 65535, ptr @begin, ptr null }
]
declare i64 @labs(i64)
declare i64 @strlen(ptr)
declare i64 @elsewhere(i64)
@words = private constant [6 x i8] c"words\\00"
define internal void @begin() {
  store i64 1000, ptr @shared
  ret void
}
define i64 @one(i64 %x) {
  %y = add i64 %x, 1
  ret i64 %y
}
define i64 @called(i64 %x) {
  %a = call i64 @labs(i64 %x)
  %b = call i64 @elsewhere(i64 %a)
  %c = call i64 @strlen(ptr @words)
  %d = add i64 %b, %c
  %e = load i64, ptr @shared
  %f = add i64 %d, %e
  ret i64 %f
}
define i64 @through_memory(i64 %x) {
  %f = load volatile ptr, ptr @table
  %a = call i64 %f(i64 %x)
  %at = getelementptr ptr, ptr @table, i64 1
  %g = load volatile ptr, ptr %at
  %b = call i64 %g(i64 %a)
  %next = getelementptr ptr, ptr @table, i64 2
  %p = load volatile ptr, ptr %next
  %c = load i64, ptr %p
  %d = add i64 %b, %c
  ret i64 %d
}
define ptr @where() {
  ret ptr @context
}
"""
SECOND = """
@shared = common global i64 0
@context = weak global ptr null
define i64 @elsewhere(i64 %x) {
  %y = mul i64 %x, 3
  ret i64 %y
}
define ptr @where_too() {
  ret ptr @context
}
define ptr @what_is_missing() {
  ret ptr @environ
}
@environ = external global ptr
"""


@pytest.mark.parametrize("own", [True, False])
def test_objects_become_a_library(own: bool, assemble: Assemble, tmp_path: Path) -> None:
    """Calls within and without, tables of addresses, common and weak symbols, constructors."""
    if not own and not shutil.which("ld"):
        pytest.skip("there is no linker")
    library = linked([assemble(FIRST), assemble(SECOND)], tmp_path, own)
    for name in ("called", "through_memory", "where", "where_too", "what_is_missing"):
        getattr(library, name).restype = ctypes.c_int64
    assert library.called(-7) == 7 * 3 + 5 + 1000
    assert library.through_memory(-50) == 49 + 2
    assert library.where() == library.where_too() != 0
    assert ctypes.c_int64.in_dll(library, "shared").value == 1000
    assert ctypes.c_int64.in_dll(library, "context").value == 0
    process = ctypes.CDLL(None)
    assert library.what_is_missing() == ctypes.addressof(ctypes.c_void_p.in_dll(process, "environ"))


def test_symbols_of_the_process_do_not_hide_our_own(assemble: Assemble, tmp_path: Path) -> None:
    text = """
    define i64 @labs(i64 %x) {
      ret i64 5
    }
    define i64 @asked(i64 %x) {
      %y = call i64 @labs(i64 %x) noinline
      ret i64 %y
    }
    """
    library = linked([assemble(text)], tmp_path, own=True)
    assert library.asked(-3) == 5


def test_parts_of_a_library_are_not_written_and_run_both(
    assemble: Assemble, tmp_path: Path
) -> None:
    library = linked([assemble(FIRST), assemble(SECOND)], tmp_path, own=True)
    name = str(tmp_path / "True.so")
    uses = [
        line.split()[1] for line in Path("/proc/self/maps").read_text().splitlines() if name in line
    ]
    assert library is not None
    assert {use[:3] for use in uses} == {"r--", "r-x", "rw-"}


def test_what_only_a_linker_understands(assemble: Assemble) -> None:
    f = "define void @f() {\n  ret void\n}\n"
    function = assemble(f)
    assert shared_library([function]) is not None
    assert shared_library([function, function]) is None  # defined twice
    assert shared_library([assemble("@x = thread_local global i32 1\n" + f)]) is None
    assert shared_library([assemble("@x = hidden global i32 1\n" + f)]) is None
    assert shared_library([assemble("$f = comdat any\n" + f.replace("()", "() comdat"))]) is None
    assert shared_library([function[:40]]) is None
    assert shared_library([b"no object at all" * 10]) is None
    other = function[:18] + b"\xb7\x00" + function[20:]  # of another machine
    assert shared_library([other]) is None


def test_many_objects_are_left_to_a_linker(assemble: Assemble) -> None:
    function = assemble("define void @f() {\n  ret void\n}\n")
    assert shared_library([function], 100) is None
    assert shared_library([function], len(function)) is not None


def test_programs_are_linked_without_another_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setattr("subprocess.run", None)
    assert built(addition()).startswith(b"\x7fELF")


def test_a_linker_does_what_is_not_understood(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def refuse(objects: list[bytes], most: float) -> None:
        asked.append(objects)

    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setattr(linker, "shared_library", refuse)
    from_linker = built(addition())
    assert asked
    assert from_linker.startswith(b"\x7fELF")
