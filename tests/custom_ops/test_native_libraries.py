"""Libraries of ops in C, which `load_op_library` registers."""

from __future__ import annotations

import shutil
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tracejit as tj
from tracejit import targets
from tracejit.custom_ops import gradient, load_op_library
from tracejit.errors import (
    ArgumentError,
    ElementTypeError,
    InvalidArgumentError,
    UnsupportedError,
)

SOURCE = Path(__file__).with_name("scaling.c")
COMPILERS = [shutil.which("cc"), shutil.which("c++")]
X = np.array([1, 2, 3], np.float32)

pytestmark = [
    pytest.mark.usefixtures("own_targets"),
    pytest.mark.skipif(None in COMPILERS, reason="needs compilers of C and C++"),
]

Build = Callable[..., Path]


@pytest.fixture
def build(tmp_path: Path) -> Build:
    def built(*options: str, compiler: str = "cc") -> Path:
        path = tmp_path / f"libscaling{len(list(tmp_path.iterdir()))}.so"
        language = ["-x", "c++"] if compiler == "c++" else []
        flags = [
            *tj.ffi.cflags(),
            "-Wall",
            "-Wextra",
            "-Wno-missing-field-initializers",
            "-Wno-unused",
            "-Werror",
        ]
        command = [compiler, *flags, *options, *language, str(SOURCE), "-o", str(path)]
        subprocess.run(command, check=True)
        return path

    return built


@pytest.mark.parametrize("compiler", ["cc", "c++"])
def test_ops_of_a_library(build: Build, compiler: str) -> None:
    library = load_op_library(build(compiler=compiler))
    scale = library.scale
    for function in (scale, tj.jit(scale), lambda x: tj.vmap(scale)(x[None])[0]):
        for x in (X, X.astype(np.float64)):
            made = function(x)
            assert made.dtype == x.dtype
            np.testing.assert_array_equal(made, 2 * x)
    np.testing.assert_array_equal(tj.jit(lambda x: scale(x + 1, 3.0) - 1)(X), 3 * (X + 1) - 1)
    assert "by: An optional `float`. Defaults to `2.0`. The factor." in scale.__doc__
    text = tj.jit(scale).lower(X).as_text("hlo")
    np.testing.assert_array_equal(tj.compile(tj.hlo.parse(text))(X), 2 * X)


def test_attributes_and_shapes_in_c(build: Build) -> None:
    repeat = load_op_library(build()).repeat
    x = np.array([1, 2, 3], np.int32)
    for function in (repeat, tj.jit(repeat, static_argnums=1)):
        y, count = function(x, 2)
        np.testing.assert_array_equal(y, [[2, 3, 4]] * 2)
        assert count == 6
    y, _ = tj.jit(lambda x: repeat(x, 1, negate=True, weights=[1.0, 5.0]))(x)
    np.testing.assert_array_equal(y, [[-6, -7, -8]])
    with pytest.raises(InvalidArgumentError, match="Repeat: x must be a vector"):
        repeat(x[None], 2)
    with pytest.raises(UnsupportedError, match=r"'Repeat.0': mode \(UNIMPLEMENTED\)"):
        repeat(x, 2, mode="multiply")


def test_errors_and_gradients(build: Build) -> None:
    scale = load_op_library(build()).scale
    for function in (scale, tj.jit(scale, static_argnums=1)):
        with pytest.raises(InvalidArgumentError, match="by must not be zero"):
            function(X, 0.0)
        with pytest.raises(ElementTypeError, match="one of float32, float64"):
            function(X.astype(np.float16), 2.0)

    @gradient("Scale")
    def scale_gradient(op: Any, grad: Any) -> list[Any]:
        return [scale(grad, op.get_attr("by"))]

    made = tj.jit(tj.grad(lambda x: scale(x, 3.0).sum()))(X)
    np.testing.assert_array_equal(made, np.full(3, 3, np.float32))


def test_loading_twice_and_replacing(build: Build) -> None:
    path = build()
    first = load_op_library(path)
    assert load_op_library(str(path)) is first
    other = build()
    with pytest.raises(ArgumentError, match="'Scale' is registered already; replace=True"):
        load_op_library(other)
    second = load_op_library(other, replace=True)
    assert second.scale is not first.scale
    np.testing.assert_array_equal(second.scale(X), 2 * X)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["-DNO_TABLE"], "has no function tracejit_op_library"),
        (["-DNEWER"], "was compiled for version 1.0 of the interface"),
        (['-DDEFINITION="input x: T"'], "'T'"),
        (['-DDEFINITION="inputs x: float"'], "a line of a definition begins with attr"),
    ],
)
def test_a_failed_load_registers_nothing(build: Build, options: list[str], message: str) -> None:
    before = dict(targets._targets)
    with pytest.raises(tj.errors.TracejitError, match=message):
        load_op_library(build(*options))
    assert targets._targets == before


def test_files_that_are_no_libraries(tmp_path: Path, build: Build) -> None:
    broken = tmp_path / "broken.so"
    broken.write_bytes(build().read_bytes()[:1000])
    for path in (broken, tmp_path / "missing.so"):
        with pytest.raises(ArgumentError, match="cannot be loaded"):
            load_op_library(path)
    lacking = tmp_path / "lacking.c"
    lacking.write_text("extern int nowhere(void); int somewhere(void) { return nowhere(); }")
    library = tmp_path / "liblacking.so"
    options = ["-shared", "-fPIC", "-Wl,-z,now", str(lacking), "-o", str(library)]
    subprocess.run(["cc", *options], check=True)
    with pytest.raises(ArgumentError, match="undefined symbol: nowhere"):
        load_op_library(library)


def test_threads_share_an_op(build: Build) -> None:
    function = tj.jit(load_op_library(build()).scale)
    wanted = function(X)
    wrong: list[Any] = []

    def call() -> None:
        for _ in range(200):
            made = function(X)
            if not np.array_equal(made, wanted):
                wrong.append(made)

    threads = [threading.Thread(target=call) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
