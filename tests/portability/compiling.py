"""Compiles samples of every op for another processor, and says which one it is at.

    python -m tests.portability.compiling x86-64-v2 OFFSET STEP

LLVM ends the process where it cannot make code of something, so this is run in a process of its
own, whose last line then names the culprit. Other failures are lines that begin with FAILED, among
them code that names instructions which the processor lacks.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from typing import Any

if __name__ == "__main__":
    os.environ["TRACEJIT_CACHE"] = "0"

import numpy as np

import tracejit as tj
from tests.lowered import lower
from tests.samples.cases import all_samples, joint_module
from tests.samples.values import element_types
from tracejit.backends.target import Target
from tracejit.backends.tvm.buffers.donation import aliases_of
from tracejit.backends.tvm.cpu.objects import tir_pipeline
from tracejit.backends.tvm.cpu.objects.build import build
from tracejit.backends.tvm.cpu.processor import Processor, processor_of
from tracejit.graph import Module

STARTED, FAILED, DONE = "AT", "FAILED", "DONE"

_INTRINSIC = re.compile(r"@llvm\.(x86|aarch64|arm|riscv)\.([a-z0-9]+)")

# What intrinsics of a name need, where the feature is not called the same.
_FEATURES = {
    "avx512": "avx512f",
    "sse41": "sse4.1",
    "sse42": "sse4.2",
    "vcvtph2ps": "f16c",
    "vcvtps2ph": "f16c",
}
_ARCHITECTURES = {"x86": "x86_64", "aarch64": "aarch64", "riscv": "riscv64"}


def foreign_intrinsics(text: str, target: Processor) -> set[str]:
    """The intrinsics of instruction sets in LLVM's text that a processor lacks."""
    return {
        f"llvm.{family}.{name}"
        for family, name in _INTRINSIC.findall(text)
        if _ARCHITECTURES.get(family) != target.architecture
        or (family != "riscv" and _FEATURES.get(name, name) not in target.features)
    }


def texts_of(module: Module, target: Processor) -> Iterator[str]:
    """LLVM's text of everything that is compiled for a module, which is made of it on the way."""
    made: list[str] = []
    build_module, load_text = tir_pipeline._BUILD, tir_pipeline._LOAD_TEXT

    def built(*given: Any) -> Any:
        result = build_module(*given)
        made.append(str(result.inspect_source("ll")))
        return result

    def loaded(file: str, kind: str) -> Any:
        with open(file, encoding="utf-8") as source:
            made.append(source.read())
        return load_text(file, kind)

    tir_pipeline._BUILD, tir_pipeline._LOAD_TEXT = built, loaded
    try:
        build(lower(module.entry, target.machine, aliases_of(module)), target)
    finally:
        tir_pipeline._BUILD, tir_pipeline._LOAD_TEXT = build_module, load_text
    yield from made


def programs() -> list[tuple[str, Callable[[], Module]]]:
    """Every sample with all its element types, and larger programs that kernels are chosen for."""
    found: list[tuple[str, Callable[[], Module]]] = [
        (
            f"{sample.op}-{sample.label}-{number}",
            lambda sample=sample: joint_module(sample, element_types(sample)),  # type: ignore[misc]
        )
        for number, sample in enumerate(all_samples())
    ]
    found += [(name, lambda make=make: make()) for name, make in _large()]  # type: ignore[misc]
    return found


def _large() -> Iterator[tuple[str, Callable[[], Module]]]:
    rng = np.random.default_rng(0)

    def of(function: Callable[..., Any], *shapes: Any) -> Callable[[], Module]:
        arrays = [rng.random(shape[1:]).astype(shape[0]) for shape in shapes]
        return lambda: tj.jit(function).lower(*arrays).module

    for dtype in ("float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8"):
        yield f"sort {dtype}", of(np.sort, (dtype, 5, 3000))
        yield f"argsort {dtype}", of(lambda x: np.argsort(x, stable=True), (dtype, 3000))
        yield f"partition {dtype}", of(lambda x: np.partition(x, 100), (dtype, 3000))
        yield f"top {dtype}", of(lambda x: tj.lax.top_k(x, 5), (dtype, 4, 900))
        yield f"median {dtype}", of(np.median, (dtype, 1001))
        yield f"cumsum {dtype}", of(lambda x: np.cumsum(x, 0), (dtype, 100, 90))
        yield f"max {dtype}", of(lambda x: (np.max(x, 1), np.argmax(x, 1)), (dtype, 60, 90))
        yield f"transpose {dtype}", of(lambda x: x.T + 1, (dtype, 130, 70))
    for dtype in ("float16", "float32", "float64"):
        yield f"product {dtype}", of(np.matmul, (dtype, 130, 70), (dtype, 70, 90))
        yield f"softmax {dtype}", of(tj.nn.softmax, (dtype, 60, 500))
        yield (
            f"functions {dtype}",
            of(
                lambda x: np.tanh(x) + np.exp(x) * np.log(x) + np.sin(x) ** x + np.cbrt(x),
                (dtype, 999),
            ),
        )
    for dtype in ("float32", "float64"):
        for size in (5, 70):
            yield f"linalg {dtype} {size}", of(_linalg, (dtype, size, size))
        yield f"fft {dtype}", of(lambda x: np.fft.ifft(np.fft.rfft(x)), (dtype, 7, 360))
        yield (
            f"convolution {dtype}",
            of(
                lambda x, w: tj.lax.conv_general_dilated(x, w, (1, 1), "SAME"),
                (dtype, 2, 16, 14, 14),
                (dtype, 24, 16, 3, 3),
            ),
        )


def _linalg(x: Any) -> Any:
    made = x @ x.T + np.eye(len(x), dtype=x.dtype)
    return (
        np.linalg.cholesky(made),
        np.linalg.solve(made, x),
        np.linalg.svd(x),
        np.linalg.eigh(made),
        np.linalg.qr(x),
        np.linalg.det(x),
    )


def main(processor: str, offset: int, step: int) -> None:
    """Compiles one program in ``step`` for a processor."""
    target = processor_of(Target(f"cpu:{processor}"))
    tempfile.tempdir = tempfile.mkdtemp(prefix="tracejit-compiling-")
    for name, make in chosen(programs(), offset, step):
        print(STARTED, name, flush=True)
        try:
            found = {
                i for text in texts_of(make(), target) for i in foreign_intrinsics(text, target)
            }
        except Exception as error:
            print(FAILED, name, f"{type(error).__name__}: {error}".replace("\n", " ")[:500])
            continue
        if found:
            print(FAILED, name, f"names {', '.join(sorted(found))}")
    print(DONE, flush=True)


def chosen(
    every: Iterable[tuple[str, Callable[[], Module]]], offset: int, step: int
) -> list[tuple[str, Callable[[], Module]]]:
    """Every program number ``offset``, ``offset + step``, ...: as many whatever the names."""
    return list(every)[offset::step]


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
