"""`export`: shared libraries that C and a bare Python call, and that agree with compiled code."""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tracejit as tj
from tests.project import checkout
from tracejit.commandline import main
from tracejit.errors import (
    ArgumentError,
    CompilationError,
    DerivativeError,
    UnsupportedError,
)

F32 = np.float32
COMPILER = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)
needs_c = pytest.mark.skipif(COMPILER is None, reason="needs a C compiler")
pytestmark = pytest.mark.usefixtures("machine_code")


def numbers(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(F32)


def library(path: Path) -> ctypes.CDLL:
    return ctypes.CDLL(str(path))


def pointer(array: np.ndarray) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


def exported(folder: Path, function: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """A call of the exported function, and the compiled function."""
    compiled = tj.jit(function).lower(*args).compile()
    path = folder / f"lib{function.__name__}{len(list(folder.iterdir()))}.so"
    compiled.export(path, name="model", **options)
    loaded = library(path)
    wanted = [np.asarray(leaf) for leaf in tj.tree.leaves(compiled(*args))]

    def call(*leaves: np.ndarray) -> list[np.ndarray]:
        results = [np.empty(w.shape, w.dtype) for w in wanted]
        assert loaded.model(*map(pointer, leaves), *map(pointer, results)) == 0
        return results

    return call, wanted


def agree(folder: Path, function: Callable[..., Any], *args: Any, within: float = 0) -> None:
    """``within`` is how far results may be from those of `jit`, beside the largest of an array.

    LLVM's slowest passes, which only exported code goes through, join other products and sums.
    """
    call, wanted = exported(folder, function, *args)
    leaves = [np.ascontiguousarray(leaf) for leaf in tj.tree.leaves(args)]
    for _ in range(2):  # the second call has the first one's memory
        for made, expected in zip(call(*leaves), wanted, strict=True):
            if within == 0:
                np.testing.assert_array_equal(made, expected)
            else:
                largest = float(np.abs(expected).max(initial=0))
                np.testing.assert_allclose(made, expected, atol=within * largest)


def deep(parameters: Any, x: Any) -> Any:
    for weights, bias in parameters:
        x = np.tanh(x @ weights + bias)
    return {"last": x, "mean": x.mean(axis=0)}


def looping(x: Any, n: Any) -> Any:
    made = tj.lax.while_loop(
        lambda c: c[0] < n, lambda c: (c[0] + 1, np.sin(c[1]) + c[1].T), (0, x)
    )
    return made[1], tj.lax.cond(n > 3, lambda v: v * 2, lambda v: v - 1, x)


def sorting(x: Any) -> Any:
    return np.sort(x, axis=1), np.argsort(x, axis=1)


def with_constants(x: Any) -> Any:
    return x * np.arange(7.0).astype(F32) + np.linspace(0, 1, 7, dtype=F32)[::-1], np.eye(3)


@needs_c
def test_agrees_with_compiled_code(tmp_path: Path) -> None:
    layers = [(numbers(64, 96), numbers(96)), (numbers(96, 33), numbers(33))]
    agree(tmp_path, deep, layers, numbers(50, 64))
    agree(tmp_path, looping, numbers(40, 40), np.int32(5))
    agree(tmp_path, looping, numbers(40, 40), np.int32(3))
    agree(tmp_path, sorting, numbers(8, 3000))
    agree(tmp_path, with_constants, numbers(4, 7))


def linear_algebra(a: Any, b: Any) -> Any:
    symmetric = a.T @ a
    return (
        np.linalg.det(symmetric),
        np.linalg.slogdet(symmetric),
        np.linalg.pinv(a),
        np.linalg.lstsq(a, b, rcond=None),
        np.linalg.eigh(symmetric),
        np.linalg.svd(a, full_matrices=False),
        np.fft.fft(b, axis=0),
    )


_LEAST_SQUARES = """
#include <stdio.h>

#include "fit.h"

int main(void) {
  const double a[4][2] = {{1, 0}, {1, 1}, {1, 2}, {1, 3}}, b[4] = {-1, 0.2, 0.9, 2.1};
  double x[2], residual[1], values[2];
  int rank;
  int status = fit(&a[0][0], b, x, residual, &rank, values);
  if (status) return status;
  printf("%.9f %.9f %.9f %d %.9f", x[0], x[1], residual[0], rank, values[0]);
  return 0;
}
"""


@needs_c
def test_linear_algebra_needs_no_python(tmp_path: Path) -> None:
    agree(tmp_path, linear_algebra, numbers(7, 4), numbers(7, seed=1), within=1e-5)
    a = np.array([[1.0, 0], [1, 1], [1, 2], [1, 3]])
    b = np.array([-1, 0.2, 0.9, 2.1])
    compiled = tj.jit(lambda a, b: np.linalg.lstsq(a, b, rcond=None)).lower(a, b).compile()
    compiled.export(tmp_path / "fit.so", header=tmp_path / "fit.h")
    (tmp_path / "main.c").write_text(_LEAST_SQUARES)
    assert COMPILER is not None
    command = [COMPILER, "-Wall", "-Werror", "-std=c99", "main.c", "fit.so", "-Wl,-rpath,."]
    subprocess.run([*command, "-o", "main"], cwd=tmp_path, check=True)
    printed = subprocess.run(["./main"], cwd=tmp_path, capture_output=True, text=True, check=True)
    x, residual, rank, values = np.linalg.lstsq(a, b, rcond=None)
    found = list(map(float, printed.stdout.split()))
    np.testing.assert_allclose(found, [*x, *residual, rank, values[0]], atol=1e-9)


@needs_c
def test_element_types(tmp_path: Path) -> None:
    def narrow(c: Any, h: Any, b: Any, p: Any, i: Any) -> Any:
        return c * c, h + h, b * b, ~p, i * 3

    x = numbers(5, 6)
    half, brain = x.astype(np.float16), x.astype("bfloat16")
    complex_ = (x + 1j * x).astype(np.complex64)
    agree(tmp_path, narrow, complex_, half, brain, x > 0, np.arange(9, dtype=np.int8))


@needs_c
def test_calls_at_once(tmp_path: Path) -> None:
    layers = [(numbers(256, 256) / 16, numbers(256))] * 3
    call, _ = exported(tmp_path, deep, layers, numbers(64, 256))
    leaves = tj.tree.leaves(layers)
    inputs = [numbers(64, 256, seed=n) for n in range(4)]
    wanted = [call(*leaves, x)[0] for x in inputs]
    failures: list[int] = []

    def work(number: int) -> None:
        for _ in range(30):
            if not np.array_equal(call(*leaves, inputs[number])[0], wanted[number]):
                failures.append(number)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


@needs_c
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_threads_fork_and_unloading(tmp_path: Path) -> None:
    """In a process of its own, whose threads are the library's alone."""
    compiled = tj.jit(lambda x: np.exp(x)).lower(numbers(1 << 18)).compile()
    compiled.export(tmp_path / "wide.so", threads=3)
    program = f"""
import _ctypes, ctypes, os, threading
import numpy as np
library = ctypes.CDLL({str(tmp_path / "wide.so")!r})
x = np.linspace(0, 1, 1 << 18).astype(np.float32)
y = np.empty_like(x)
def run():
    y[:] = 0
    assert library.wide(ctypes.c_void_p(x.ctypes.data), ctypes.c_void_p(y.ctypes.data)) == 0
    assert np.allclose(y, np.exp(x))
def threads():
    return len(os.listdir("/proc/self/task")) if os.path.exists("/proc/self/task") else None
before = threads()
library.wide_set_threads(1)
run()
assert threads() == before
library.wide_set_threads(3)
for _ in range(20):
    run()
assert before is None or threads() == before + 2
child = os.fork()
if child == 0:
    for _ in range(3):
        run()
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
run()
handle = library._handle
del library
_ctypes.dlclose(handle)
assert before is None or threads() == before
print("done")
"""
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program],
        capture_output=True,
        text=True,
        timeout=120,
        env=environment,
    )
    assert done.stdout == "done\n", done.stderr


@needs_c
def test_null_pointers_and_messages(tmp_path: Path) -> None:
    compiled = tj.jit(lambda x: x + 1).lower(numbers(3)).compile()
    compiled.export(tmp_path / "one.so")
    loaded = library(tmp_path / "one.so")
    loaded.one_message.restype = ctypes.c_char_p
    x = numbers(3)
    assert loaded.one(pointer(x), None) == 1
    assert b"null pointer" in loaded.one_message(1)
    assert loaded.one_message(0) == b"success"
    assert loaded.one_message(99) == b"unknown status"


@needs_c
def test_nothing_but_the_functions_is_visible(tmp_path: Path) -> None:
    compiled = tj.jit(deep).lower([(numbers(8, 8), numbers(8))], numbers(4, 8)).compile()
    compiled.export(tmp_path / "model.so")
    nm = shutil.which("nm")
    if nm is None or sys.platform == "darwin":
        loaded = library(tmp_path / "model.so")
        assert not hasattr(loaded, "model_k0_dot_general")
        return
    listed = subprocess.run(
        [nm, "-D", str(tmp_path / "model.so")], capture_output=True, text=True, check=True
    ).stdout
    defined = re.findall(r" [A-TV-Z] (\w+)$", listed, re.MULTILINE)
    own = ("abi", "message", "set_allocator", "set_threads")
    assert sorted(defined) == ["model", *(f"model_{name}" for name in own)]
    assert "TVM" not in listed


def blocks(language: str) -> list[str]:
    page = (checkout.ROOT / "docs" / "ahead_of_time.md").read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```", page, re.MULTILINE | re.DOTALL)


@needs_c
def test_the_page_s_examples(tmp_path: Path) -> None:
    """The library is written here; C, and a Python that cannot import tracejit, run elsewhere."""
    write, read = blocks("python")
    (tmp_path / "write.py").write_text(write)
    environment = {**os.environ, "PYTHONPATH": str(checkout.ROOT)}
    subprocess.run(
        [sys.executable, "write.py"], cwd=tmp_path, env=environment, check=True, timeout=120
    )
    (program,) = blocks("c")
    (tmp_path / "train.c").write_text(program)
    assert COMPILER is not None
    command = [COMPILER, "-Wall", "-Wextra", "-Werror", "-std=c99", "train.c", "model.so"]
    subprocess.run([*command, "-Wl,-rpath,.", "-o", "train"], cwd=tmp_path, check=True)
    printed = subprocess.run(
        ["./train"], cwd=tmp_path, capture_output=True, text=True, check=True
    ).stdout

    def loss(weights: Any, x: Any, y: Any) -> Any:
        return ((np.tanh(x @ weights) - y) ** 2).mean()

    weights = np.full((4, 2), 0.1, F32)
    x = (np.arange(32) % 5 - 2).astype(F32).reshape(8, 4)
    y = np.where(np.arange(16) % 2, 0.5, -0.5).astype(F32).reshape(8, 2)
    step = tj.jit(tj.value_and_grad(loss))
    for _ in range(100):
        last, gradient = step(weights, x, y)
        weights = weights - F32(0.5) * gradient
    assert float(printed) == pytest.approx(float(last), abs=1e-5)

    alone = "import sys\nsys.modules['tracejit'] = sys.modules['tvm'] = None\n" + read
    (tmp_path / "read.py").write_text(alone + "print(loss, by_weights.shape, by_x.shape)\n")
    done = subprocess.run(
        [sys.executable, "read.py"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout.split(" ", 1)[1] == "(4, 2) (8, 4)\n"


@needs_c
def test_header_is_c_and_says_the_shapes(tmp_path: Path) -> None:
    def f(parameters: Any, double: Any, API: Any) -> Any:
        return parameters["w"][0] @ double, API * 1j

    args = {"w": [numbers(3, 4)]}, numbers(4, 5), numbers(2)
    header = tmp_path / "model.h"
    tj.jit(f).lower(*args).compile().export(tmp_path / "model.so", header=header)
    text = header.read_text()
    assert "takes float parameters_w_0[3][4] (parameters['w'][0])" in text
    assert "returns float result_0[3][5]" in text
    assert "result_1[2][2] (result[1]; real and imaginary parts in turn)" in text
    assert COMPILER is not None
    subprocess.run([COMPILER, "-fsyntax-only", "-Wall", "-x", "c", str(header)], check=True)


@needs_c
def test_gradients_need_one_real_number(tmp_path: Path) -> None:
    compiled = tj.jit(lambda x: x * 2).lower(numbers(3)).compile()
    with pytest.raises(DerivativeError, match="one real number"):
        compiled.export(tmp_path / "model.so", gradients=True)


@needs_c
def test_donated_arguments_are_not_written(tmp_path: Path) -> None:
    x = numbers(50)
    compiled = tj.jit(lambda x: x * 2, donate_argnums=0).lower(x).compile()
    compiled.export(tmp_path / "model.so")
    made, before = np.empty_like(x), x.copy()
    assert library(tmp_path / "model.so").model(pointer(x), pointer(made)) == 0
    np.testing.assert_array_equal(x, before)
    np.testing.assert_array_equal(made, before * 2)


@needs_c
def test_modules_and_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = tj.jit(lambda x, y: (x * y).sum()).lower(numbers(6), numbers(6)).as_text()
    file = tmp_path / "sum.hlo"
    file.write_text(text)
    made, header = str(tmp_path / "product.so"), str(tmp_path / "product.h")
    assert main(["export", str(file), "-o", made, "--header", header, "--gradients"]) == 0
    assert "int product_value_and_grad(const float *argument0" in Path(header).read_text()
    x, y, by_x, by_y = numbers(6), numbers(6, seed=1), np.empty(6, F32), np.empty(6, F32)
    total = np.empty((), F32)
    arrays = map(pointer, (x, y, total, by_x, by_y))
    assert library(tmp_path / "product.so").product_value_and_grad(*arrays) == 0
    np.testing.assert_allclose(total, x @ y, rtol=1e-5)
    np.testing.assert_array_equal(by_x, y)

    assert main(["export", str(file), "-o", str(tmp_path / "no" / "where.so")]) == 1
    assert "where.so: No such file" in capsys.readouterr().err
    assert main(["export", str(file), "-o", str(tmp_path / "copy.txt")]) == 1
    assert "--to" in capsys.readouterr().err
    assert main(["export", str(file), "--to", "hlo", "-o", made, "--header", header]) == 1
    assert "only --output" in capsys.readouterr().err


@needs_c
def test_fast_mathematics_is_exported(tmp_path: Path) -> None:
    x = np.abs(numbers(1000)).astype(np.float64) + 1
    compiled = tj.jit(lambda x: x**0.3, fast_math=True).lower(x).compile()
    compiled.export(tmp_path / "power.so")
    made = np.empty_like(x)
    assert library(tmp_path / "power.so").power(pointer(x), pointer(made)) == 0
    np.testing.assert_array_equal(made, compiled(x))


def refused(function: Callable[..., Any], *args: Any) -> None:
    tj.jit(function).lower(*args).compile().export("never.so")


@needs_c
def test_what_only_python_can_compute_is_named(tmp_path: Path) -> None:
    def halves(x: Any) -> Any:
        return tj.pure_callback(lambda v: v / 2, x, x)

    with pytest.raises(UnsupportedError, match="custom-call needs Python"):
        refused(halves, numbers(4))
    with pytest.raises(UnsupportedError, match=r"linalg\.eigvals needs Python"):
        refused(np.linalg.eigvals, numbers(4, 4))
    dynamic = tj.hlo.parse(
        "HloModule m\n\nENTRY e {\n  x = f32[<=5] parameter(0)\n  ROOT y = f32[<=5] negate(x)\n}\n"
    )
    with pytest.raises(UnsupportedError, match="no array of C"):
        tj.compile(dynamic).export(tmp_path / "model.so")


@needs_c
def test_misuse(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = tj.jit(lambda x: x + 1).lower(numbers(3)).compile()
    with pytest.raises(FileNotFoundError, match="model"):
        compiled.export(tmp_path / "missing" / "model.so")
    with pytest.raises(IsADirectoryError):
        compiled.export(tmp_path)
    with pytest.raises(TypeError, match="NoneType"):
        compiled.export(None)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="cannot be the name"):
        compiled.export(tmp_path / "int.so")
    with pytest.raises(ArgumentError, match="cannot be the name"):
        compiled.export(tmp_path / "model.so", name="my model")
    with pytest.raises(
        ArgumentError, match=r"Python would import model\.so in place of model\.py; give one"
    ):
        compiled.export(tmp_path / "model.so", python=tmp_path / "model.py")
    for count in (0, "2"):
        with pytest.raises(ArgumentError, match="threads"):
            compiled.export(tmp_path / "model.so", threads=count)  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setenv("CC", "no-such-compiler")
    with pytest.raises(CompilationError, match="CC is 'no-such-compiler'"):
        compiled.export(tmp_path / "model.so")
    monkeypatch.delenv("CC")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CompilationError, match="a C compiler is needed"):
        compiled.export(tmp_path / "model.so")


@needs_c
def test_names_that_mean_something_elsewhere(tmp_path: Path) -> None:
    """Macros, types, ends of comments and of strings; the header is strict C and C++."""

    def f(NULL: Any, I: Any, uint8_t: Any, status: Any, np: Any, d: Any) -> Any:  # noqa: E741
        return {'"""': NULL + I, "*/": uint8_t + status, "/*": np * 2, "a\\": d['"'], "é": d["\n"]}

    x = numbers(3)
    given = (x, x + 1, x + 2, x + 3, x + 4, {'"': x + 5, "\n": x + 6})
    compiled = tj.jit(f).lower(*given).compile()
    header = tmp_path / "m.h"
    compiled.export(tmp_path / "m.so", header=header, python=tmp_path / "m_in_numpy.py")
    assert COMPILER is not None
    for options in (["-x", "c", "-std=c99"], ["-x", "c", "-include", "complex.h"], ["-x", "c++"]):
        command = [COMPILER, *options, "-pedantic", "-Wall", "-Wextra", "-Werror"]
        subprocess.run([*command, "-fsyntax-only", str(header)], check=True)
    space: dict[str, Any] = {"__file__": str(tmp_path / "m_in_numpy.py")}
    exec((tmp_path / "m_in_numpy.py").read_text(), space)
    found = space["m"](*tj.tree.leaves(given))
    for a, b in zip(found, tj.tree.leaves(compiled(*given)), strict=True):
        np.testing.assert_array_equal(a, b)


@needs_c
@pytest.mark.parametrize("name", ["random", "malloc", "main", "NULL", "lambda"])
def test_names_that_are_taken(tmp_path: Path, name: str) -> None:
    compiled = tj.jit(lambda x: x + 1).lower(numbers(3)).compile()
    with pytest.raises(ArgumentError, match=name):
        compiled.export(tmp_path / f"{name}.so")


@needs_c
@pytest.mark.parametrize(
    "name", ["work", "pool", "launch", "status", "np", "ctypes", "set_threads"]
)
def test_names_that_the_library_uses_itself(tmp_path: Path, name: str) -> None:
    x = numbers(4000, 40)
    compiled = tj.jit(lambda x: tj.nn.softmax(x @ x.T[:, :9])).lower(x).compile()
    compiled.export(tmp_path / f"{name}.so", python=tmp_path / "module.py")
    space: dict[str, Any] = {"__file__": str(tmp_path / "module.py")}
    exec((tmp_path / "module.py").read_text(), space)
    np.testing.assert_allclose(space[name](x), compiled(x), rtol=1e-5)


@needs_c
def test_four_bits_take_a_byte(tmp_path: Path) -> None:
    x = np.arange(-8, 8).astype("int4")
    compiled = tj.jit(lambda x: -(x // 2)).lower(x).compile()
    compiled.export(tmp_path / "m.so", python=tmp_path / "m_in_numpy.py")
    space: dict[str, Any] = {"__file__": str(tmp_path / "m_in_numpy.py")}
    exec((tmp_path / "m_in_numpy.py").read_text(), space)
    found = space["m"](x.view(np.uint8))
    np.testing.assert_array_equal(found, compiled(x).view(np.uint8))


@needs_c
def test_a_loaded_library_outlives_its_file(tmp_path: Path) -> None:
    """What has it loaded keeps the old code when another is written in its place."""
    x, path = numbers(5), tmp_path / "model.so"
    result = np.empty_like(x)
    loaded = []
    for factor in (2, 3):
        tj.jit(lambda x, factor=factor: x * factor).lower(x).compile().export(path)
        # By a name of its own: the system takes a name that it knows for the file that it knows.
        link = tmp_path / f"model{factor}.so"
        os.link(path, link)
        loaded.append(library(link))
        link.unlink()
    for factor, each in zip((2, 3), loaded, strict=True):
        assert each.model(pointer(x), pointer(result)) == 0
        np.testing.assert_array_equal(result, x * factor)
    assert [each.name for each in tmp_path.iterdir()] == ["model.so"]
    assert path.stat().st_mode & 0o777 == 0o666 & ~umask()


def umask() -> int:
    found = os.umask(0)
    os.umask(found)
    return found


@needs_c
def test_folders_of_any_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / 'a, "b" c'
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr("tempfile.tempdir", None)
    compiled = tj.jit(lambda x: x + np.arange(3)).lower(numbers(3)).compile()
    compiled.export(folder / "my model.so", header=folder / "my model.h")
    assert "int my_model(" in (folder / "my model.h").read_text()
    assert library(folder / "my model.so").my_model(None, None) == 1
    with pytest.raises(ArgumentError, match="Python module must be different files"):
        compiled.export(folder / "m.so", header=folder / "m.so")
