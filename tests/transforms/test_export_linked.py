"""Exported libraries that link handlers, that are static, and that C++ calls with spans."""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tracejit as tj
from tests.ffi.test_handlers import SOURCE
from tests.project import checkout
from tracejit.errors import ArgumentError, UnsupportedError

pytestmark = [
    pytest.mark.usefixtures("machine_code", "own_targets"),
    pytest.mark.skipif(
        None in map(shutil.which, ("cc", "g++")), reason="needs compilers of C and C++"
    ),
]
X = np.arange(1, 9, dtype=np.float32).reshape(2, 4)


def built(*command: str) -> None:
    subprocess.run(command, check=True)


def output(program: Path) -> str:
    return subprocess.run([str(program)], capture_output=True, text=True, check=True).stdout


@pytest.fixture(scope="module")
def handlers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("handlers")
    flags = [*tj.ffi.cflags(), "-O0", "-w"]
    built("g++", *flags, str(SOURCE), "-o", str(folder / "libhandlers.so"))
    built("g++", *flags, "-c", str(SOURCE), "-o", str(folder / "handlers.o"))
    return folder


@pytest.fixture
def loaded(handlers: Path) -> ctypes.CDLL:
    library = ctypes.CDLL(str(handlers / "libhandlers.so"))
    for name in ("RmsNorm", "Weighted", "Increment", "SumInThreads"):
        tj.ffi.register_ffi_target(f"linked.{name}", getattr(library, name))
    return library


def norm(x: Any) -> Any:
    call = tj.ffi.ffi_call("linked.RmsNorm", tj.ShapeDtypeStruct(x.shape, x.dtype))
    return call(2 * x, eps=np.float32(1e-5)) + 1


def weighted(a: Any, b: Any) -> Any:
    shapes = tj.ShapeDtypeStruct(a.shape, a.dtype), tj.ShapeDtypeStruct((), np.int32)
    total, count = tj.ffi.ffi_call("linked.Weighted", shapes)(
        a, b, mode="sum", negate=True, weights=[2, -1], options={"shift": 0.5}
    )
    call = tj.ffi.ffi_call("linked.Increment", shapes[0], input_output_aliases={0: 0})
    return call(total * 2), count


def total(x: Any) -> Any:
    shape = tj.ShapeDtypeStruct((), np.float64)
    return tj.ffi.ffi_call("linked.SumInThreads", shape)(x) + 1


@pytest.mark.parametrize("how", ["objects", "libraries"])
def test_handlers_are_linked(handlers: Path, loaded: ctypes.CDLL, tmp_path: Path, how: str) -> None:
    files = {"objects": ["handlers.o"], "libraries": ["libhandlers.so"]}[how]
    options: dict[str, Any] = {how: [handlers / name for name in files]}
    ones = np.arange(3.0), np.ones(3)
    for function, given in ((norm, (X,)), (weighted, ones), (total, (np.ones(5),))):
        compiled = tj.jit(function).lower(*given).compile()
        path = tmp_path / f"{function.__name__}.so"
        compiled.export(path, name="model", **options)
        library = ctypes.CDLL(str(path))
        wanted = [np.asarray(leaf) for leaf in tj.tree.leaves(compiled(*given))]
        made = [np.empty_like(leaf) for leaf in wanted]
        for _ in range(2):
            pointers = [ctypes.c_void_p(array.ctypes.data) for array in (*given, *made)]
            assert library.model(*pointers) == 0
            for found, expected in zip(made, wanted, strict=True):
                np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_errors_of_linked_handlers(handlers: Path, loaded: ctypes.CDLL, tmp_path: Path) -> None:
    compiled = tj.jit(total).lower(np.ones(3)).compile()
    with pytest.raises(UnsupportedError, match=r"calls linked.SumInThreads of a compiled library"):
        compiled.export(tmp_path / "model.so")
    compiled.export(tmp_path / "model.so", libraries=[handlers / "libhandlers.so"])
    library = ctypes.CDLL(str(tmp_path / "model.so"))
    library.model_message.restype = ctypes.c_char_p
    x, y = -np.ones(3), np.empty(())
    status = library.model(*(ctypes.c_void_p(array.ctypes.data) for array in (x, y)))
    assert library.model_message(status) == b"a negative sum"
    with pytest.raises(FileNotFoundError):
        compiled.export(tmp_path / "model.so", libraries=[tmp_path / "missing.so"])


def register_counters(library: ctypes.CDLL) -> None:
    library.counter_id.restype = library.counter_info.restype = ctypes.c_void_p
    types = {"type_id": library.counter_id(), "type_info": library.counter_info()}
    tj.ffi.register_ffi_type("counter", types)
    stages = {"instantiate": library.MakeCounter, "execute": library.Count}
    tj.ffi.register_ffi_target("linked.Count", stages)
    prepared = {"prepare": library.PrepareCounter, "execute": library.CountPrepared}
    tj.ffi.register_ffi_target("linked.CountPrepared", prepared)


def counts(x: Any) -> Any:
    def count(name: str, *shape: int) -> Any:
        result = tj.ShapeDtypeStruct(shape, np.int64)
        return tj.ffi.ffi_call(f"linked.{name}", result, has_side_effect=True)()

    return x + count("Count"), count("Count"), count("CountPrepared", 2)


STATES = """
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
int main(int count, char **paths) {
  (void)count;
  int (*living)(void) = 0;
  for (int round = 0; round < 2; round++) {
    void *library = dlopen(paths[1], RTLD_NOW | RTLD_GLOBAL);
    if (!library) return puts(dlerror()), 1;
    int (*model)(int64_t *, int64_t *, int64_t *, int64_t *);
    *(void **)&model = dlsym(library, "model");
    int64_t x = 10, first, second, prepared[2];
    for (int i = 0; i < 3; i++)
      if (model(&x, &first, &second, prepared)) return puts("failed"), 2;
    printf("%d %d %d %d;", (int)first, (int)second, (int)prepared[0], (int)prepared[1]);
    dlclose(library);
  }
  void *handlers = dlopen(paths[2], RTLD_NOW);
  *(void **)&living = dlsym(handlers, "living_counters");
  printf("%d", living());
  return 0;
}
"""


@pytest.mark.parametrize("how", ["objects", "libraries"])
def test_states_of_linked_handlers(
    handlers: Path, loaded: ctypes.CDLL, tmp_path: Path, how: str
) -> None:
    register_counters(loaded)
    compiled = tj.jit(counts).lower(np.int64(0)).compile()
    files = {"objects": ["handlers.o"], "libraries": ["libhandlers.so"]}[how]
    options: dict[str, Any] = {how: [handlers / name for name in files]}
    compiled.export(tmp_path / "model.so", **options)
    (tmp_path / "main.c").write_text(STATES)
    main = tmp_path / "main"
    built("cc", "-Wall", str(tmp_path / "main.c"), "-ldl", "-o", str(main))
    shared = str(handlers / "libhandlers.so")
    done = subprocess.run(
        [str(main), str(tmp_path / "model.so"), shared], capture_output=True, text=True, check=True
    )
    *rounds, living = done.stdout.split(";")
    assert rounds == ["13 3 1 3", "13 3 1 3"]  # the states ended with the library
    assert living == "0"
    # In a process that registered the type as well, with its own numbers.
    library = ctypes.CDLL(str(tmp_path / "model.so"))
    assert [int(each) for each in compiled(np.int64(0))[:2]] == [1, 1]
    x, first, second, both = (np.zeros(size, np.int64) for size in ((), (), (), 2))
    for number in (1, 2):
        pointers = [ctypes.c_void_p(array.ctypes.data) for array in (x, first, second, both)]
        assert library.model(*pointers) == 0
        assert [int(first), int(second), *both.tolist()] == [number, number, 1, number]
    assert [int(each) for each in compiled(np.int64(0))[:2]] == [2, 2]


def test_a_handler_that_fails_to_instantiate_is_asked_again(
    handlers: Path, loaded: ctypes.CDLL, tmp_path: Path
) -> None:
    stages = {"instantiate": loaded.Moody, "execute": loaded.Shapeless}
    tj.ffi.register_ffi_target("linked.Moody", stages)
    shape = tj.ShapeDtypeStruct((), np.int64)

    def function(x: Any) -> Any:
        return tj.ffi.ffi_call("linked.Moody", shape, has_side_effect=True)() + x

    loaded.set_mood(0)
    compiled = tj.jit(function).lower(np.int64(0)).compile()
    compiled.export(tmp_path / "model.so", libraries=[handlers / "libhandlers.so"])
    library = ctypes.CDLL(str(tmp_path / "model.so"))
    library.model_message.restype = ctypes.c_char_p
    x, y = np.array(1), np.array(0)
    pointers = [ctypes.c_void_p(array.ctypes.data) for array in (x, y)]
    loaded.set_mood(1)
    status = library.model(*pointers)
    assert library.model_message(status) == b"in a bad mood"
    loaded.set_mood(0)
    assert library.model(*pointers) == 0
    assert y == 8


def test_handlers_that_cannot_be_linked(loaded: ctypes.CDLL, tmp_path: Path) -> None:
    call = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)
    address = ctypes.cast(loaded.RmsNorm, ctypes.c_void_p).value or 0
    nameless = call(lambda frame: call(address)(frame))
    tj.ffi.register_ffi_target("linked.Nameless", nameless)

    def function(x: Any) -> Any:
        shape = tj.ShapeDtypeStruct(x.shape, x.dtype)
        return tj.ffi.ffi_call("linked.Nameless", shape)(x, eps=np.float32(0))

    compiled = tj.jit(function).lower(X).compile()
    with pytest.raises(UnsupportedError, match=r"the handler of 'linked\.Nameless' has no name"):
        compiled.export(tmp_path / "model.so")


STATIC = """
#include <stdio.h>
#include <stdlib.h>
#include "first.h"
#include "second.h"
static int allocated, released;
static void *allocate(size_t alignment, size_t size) {
  allocated++;
  return aligned_alloc(alignment, (size + 63) / 64 * 64);
}
static void release(void *memory) {
  released++;
  free(memory);
}
static void *refuse(size_t alignment, size_t size) {
  (void)alignment, (void)size;
  return NULL;
}
int main(void) {
  static float x[3000], y[3000], z[3000];
  for (int i = 0; i < 3000; i++) x[i] = (float)((i * 37) % 101);
  if (first_abi() != FIRST_ABI || second_abi() != SECOND_ABI || FIRST_ABI == SECOND_ABI) return 1;
  first_set_allocator(allocate, release);
  if (first(x, y) || second(x, z)) return 2;
  first_set_allocator(refuse, release);
  if (first(x, y)) return 3; /* the memory that is kept */
  printf("%g %g %d %d", y[0], z[7], allocated, released);
  return 0;
}
"""


def test_static_libraries_go_together(tmp_path: Path) -> None:
    x = np.array([(i * 37) % 101 for i in range(3000)], np.float32)

    def first(x: Any) -> Any:
        half = np.cos(x).reshape(50, 60)
        return np.sort((half @ half.T @ half).reshape(-1))[::-1]

    def second(x: Any) -> Any:
        return np.cumsum(x) * np.arange(3000, dtype=np.float32)

    for function in (first, second):
        name = function.__name__
        compiled = tj.jit(function).lower(x).compile()
        report = compiled.export(tmp_path / f"lib{name}.a", header=tmp_path / f"{name}.h")
        assert report.file_bytes == (tmp_path / f"lib{name}.a").stat().st_size
        assert [each.name for each in report.functions] == [name]
        assert "bytes of constants" in str(report)
        assert report.functions[0].workspace_bytes or function is second
    source, program = tmp_path / "main.c", tmp_path / "main"
    source.write_text(STATIC)
    archives = [str(tmp_path / f"lib{name}.a") for name in ("first", "second")]
    built("cc", "-Wall", "-Werror", str(source), *archives, "-lm", "-lpthread", "-o", str(program))
    y, z, *counts = output(program).split()
    np.testing.assert_allclose(float(y), first(x)[0], rtol=1e-4)
    np.testing.assert_allclose(float(z), second(x)[7], rtol=1e-5)
    assert counts == ["1", "0"]
    source.write_text(STATIC.replace("(allocate, release)", "(refuse, release)", 1))
    built("cc", "-w", str(source), *archives, "-lm", "-lpthread", "-o", str(program))
    assert subprocess.run([str(program)], check=False).returncode == 2
    with pytest.raises(ArgumentError, match=r"leave out libraries= and python="):
        compiled.export(tmp_path / "libmodel.a", python=tmp_path / "model.py")


SPANS = """
#include <array>
#include <complex>
#include <cstdio>
#include "model.h"
int main() {
  std::array<float, 6> x{1, 2, 3, 4, 5, 6}, y{};
  std::array<double, 4> spectrum{};
  if (int status = model(x, y, spectrum)) { std::puts(model_message(status)); return status; }
  std::printf("%g %g", y[5], spectrum[0]);
}
"""


def test_spans_in_cpp(tmp_path: Path) -> None:
    def model(x: Any) -> Any:
        return 2 * x, x.sum(0).astype(complex)[:2]

    x = np.arange(1, 7, dtype=np.float32).reshape(2, 3)
    compiled = tj.jit(model).lower(x).compile()
    library = tmp_path / "model.so"
    compiled.export(library, header=tmp_path / "model.h")
    (tmp_path / "main.cc").write_text(SPANS)
    flags = ["-std=c++20", "-Wall", "-Wextra", "-Werror", f"-Wl,-rpath,{tmp_path}"]
    built("g++", *flags, str(tmp_path / "main.cc"), str(library), "-o", str(tmp_path / "main"))
    assert output(tmp_path / "main") == "12 5"


def test_the_page_of_the_classifier(tmp_path: Path) -> None:
    pytest.importorskip("sklearn")
    page = (checkout.ROOT / "docs" / "classifier_in_c.md").read_text(encoding="utf-8")
    blocks = {
        language: re.findall(rf"^```{language}\n(.*?)^```", page, re.M | re.S)
        for language in ("python", "c", "bash")
    }
    (tmp_path / "train.py").write_text(blocks["python"][0])
    (tmp_path / "digits.c").write_text(blocks["c"][0])
    main = blocks["c"][0].partition("int main")[2]
    assert len(main.splitlines()) <= 30
    folder = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": folder, "PYTHONPATH": str(checkout.ROOT)}
    done = subprocess.run(
        ["bash", "-ec", blocks["bash"][0]],
        cwd=tmp_path, env=environment, capture_output=True, text=True, check=True,
    )  # fmt: skip
    *_, of_python, of_c = done.stdout.splitlines()
    assert of_python == of_c
    assert float(of_c.split()[0]) > 0.95
    sizes = re.compile(r"[\d,]+ bytes, [\d,]+ of code")
    assert sizes.search(page)
    assert sizes.search(done.stdout)
