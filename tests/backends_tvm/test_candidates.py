"""Every way to write a kernel computes what the interpreter does, in no memory but its own."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import pytest

import tracejit as tj
from tests.backends_tvm.kernel_harness import guarded
from tests.samples.base import Sample
from tests.samples.cases import every_sample, joint_module
from tests.samples.values import element_types
from tracejit.api import executable, interpret
from tracejit.backends.explanation import Explanation
from tracejit.backends.tunable import Measured, Taken, Tunable
from tracejit.graph import Module
from tracejit.runtime import importing_tvm
from tracejit.runtime.executable import Executable
from tracejit.runtime.kernel_bench import Workbench, agree
from tracejit.runtime.measuring import captured

with importing_tvm():
    from tracejit.backends.tvm.cpu.objects import build as building
    from tracejit.backends.tvm.cpu.objects.tir_pipeline import compile_kernels
    from tracejit.backends.tvm.tuning_candidates import ProgramCandidates

SAMPLED = 3
"""How many ways to write a kernel are tried, unless all are."""

F16, F32, F64 = np.float16, np.float32, np.float64
RNG = np.random.default_rng(0)


class Program(NamedTuple):
    name: str
    function: Callable[..., Any]
    arguments: tuple[np.ndarray, ...]


def drawn(*dimensions: int, dtype: Any = F32) -> np.ndarray:
    values = RNG.standard_normal(dimensions)
    return (values * 3).astype(dtype) if np.dtype(dtype).kind == "i" else values.astype(dtype)


def product(x: Any, y: Any) -> Any:
    return x @ y


def softmax(x: Any) -> Any:
    powers = np.exp(x - x.max(1, keepdims=True))
    return powers / powers.sum(1, keepdims=True)


def convolution(strides: tuple[int, ...] = (1, 1), groups: int = 1) -> Callable[..., Any]:
    return lambda x, w: tj.lax.conv_general_dilated(
        x, w, strides, "SAME", feature_group_count=groups
    )


def weights_gradient(x: Any, w: Any) -> Any:
    return tj.grad(lambda w: (convolution()(x, w) ** 2).sum())(w)


PROGRAMS = [
    Program("product", product, (drawn(70, 130), drawn(130, 90))),
    Program("epilogue", lambda x, y: np.maximum(x.T @ y + 1, 0), (drawn(65, 64), drawn(65, 90))),
    Program("product f64", product, (drawn(33, 65, dtype=F64), drawn(65, 31, dtype=F64))),
    Program("product f16", product, (drawn(33, 65, dtype=F16), drawn(65, 31, dtype=F16))),
    Program(
        "product bf16",
        product,
        (drawn(33, 65, dtype=ml_dtypes.bfloat16), drawn(65, 31, dtype=ml_dtypes.bfloat16)),
    ),
    Program("product s32", product, (drawn(33, 65, dtype=np.int32), drawn(65, 31, dtype=np.int32))),
    Program("product c64", product, (drawn(33, 20) * 1j, drawn(20, 31) + 1j)),
    Program("matrix and vector", product, (drawn(300, 200), drawn(200))),
    Program("vector and matrix", product, (drawn(300), drawn(300, 200))),
    Program("small products", product, (drawn(64, 8, 8), drawn(64, 8, 8))),
    Program("few products", product, (drawn(3, 50, 60), drawn(3, 60, 40))),
    Program("long sums", product, (drawn(4, 5000), drawn(5000, 5))),
    Program("dot", product, (drawn(50_000), drawn(50_000))),
    Program("convolution", convolution(), (drawn(2, 8, 14, 14), drawn(24, 8, 3, 3))),
    Program("pixels", convolution(), (drawn(2, 32, 7, 7), drawn(16, 32, 1, 1))),
    Program("strides", convolution((2, 2)), (drawn(2, 3, 15, 15), drawn(8, 3, 5, 5))),
    Program("groups", convolution(groups=8), (drawn(2, 8, 14, 14), drawn(8, 1, 3, 3))),
    Program("weights", weights_gradient, (drawn(2, 4, 10, 10), drawn(6, 4, 3, 3))),
    Program("softmax", softmax, (drawn(256, 300),)),
    Program("centred", lambda x: x - x.mean(1, keepdims=True), (drawn(65, 301),)),
    Program("columns", lambda x: x.sum(0), (drawn(512, 512),)),
    Program("few columns", lambda x: x.sum(0), (drawn(50, 37),)),
    Program("rows", lambda x: x.sum(1), (drawn(128, 500),)),
    Program("narrow rows", lambda x: x.sum(1), (drawn(70, 90, dtype=F16),)),
    Program("all", lambda x: x.sum(), (drawn(512, 512),)),
    Program("middle", lambda x: x.sum(1), (drawn(8, 32, 64),)),
    Program("greatest", lambda x: x.max(1), (drawn(33, 70),)),
    Program("place of the greatest", lambda x: x.argmax(1), (drawn(33, 700),)),
    Program("place of the least", lambda x: x.argmin(0), (drawn(300, 40),)),
    Program("any", lambda x: (x > 2.5).any(1), (drawn(70, 90),)),
    Program("sort", lambda x: np.sort(x), (drawn(10_000),)),
    Program("argsort", lambda x: np.argsort(x), (drawn(1000),)),
    Program("rows sorted", lambda x: np.sort(x, 1), (drawn(100, 80),)),
    Program("greatest ones", lambda x: tj.lax.top_k(x, 5), (drawn(20, 1000),)),
    Program("running sums", lambda x: np.cumsum(x, 0), (drawn(1000, 100),)),
    Program("transposed", lambda x: x.T + 1, (drawn(512, 300),)),
    Program("transposed f16", lambda x: x.T, (drawn(51, 300, dtype=F16),)),
    Program("elements", lambda x: np.exp(x) * 2 + x, (drawn(1000, 100),)),
    Program("elements bf16", lambda x: np.tanh(x), (drawn(1001, dtype=ml_dtypes.bfloat16),)),
    Program("elements c64", lambda x: x * x, (drawn(501) + 1j * drawn(501),)),
    Program("elements s8", lambda x: x * 3, (drawn(1001, dtype=np.int8),)),
    Program("compared", lambda x: x > 0, (drawn(1001),)),
    Program("gathered", lambda x, i: x[i], (drawn(1000, 40), np.arange(500) % 37)),
    Program(
        "scattered",
        lambda x, i, v: x.at[i].add(v),
        (drawn(1000, 40), np.arange(500) % 37, drawn(500, 40)),
    ),
]


def traced(program: Program) -> Module:
    return tj.jit(program.function).lower(*program.arguments).module


def ways(program: Program, kernel: Tunable, exhaustive: bool) -> list[Taken]:
    """The cost model's way, every other answer to one question, and a few mixtures."""
    others = [
        {**kernel.taken, question: name}
        for question, names in kernel.questions.items()
        for name in names
        if name != kernel.taken[question]
    ]
    rng = np.random.default_rng(zlib.crc32(program.name.encode()))
    mixtures = [
        {
            question: names[int(rng.integers(len(names)))]
            for question, names in kernel.questions.items()
        }
        for _ in range(3)
    ]
    every = [*others, *mixtures]
    if not exhaustive:
        every = [every[n] for n in rng.permutation(len(every))[:SAMPLED]]
    return [kernel.taken, *every]


def bench_for(program: Program, made: Executable, kernel: Tunable) -> Workbench:
    """The kernel's memory as a call of the program fills it."""
    told = Explanation.from_json(made.artifact.explanation)
    (number,) = (n for n, facts in enumerate(told.kernels) if facts.name == kernel.name)
    contents = captured(made, told, program.arguments, number, kernel.sizes)
    assert contents is not None
    return Workbench(kernel, contents, guarded_bytes)


def guarded_bytes(nbytes: int, alignment: int) -> np.ndarray:
    """Memory that ends before a page which no access survives."""
    return guarded(np.zeros(nbytes, np.uint8), at_end=True, align=alignment)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_every_candidate_computes_what_the_kernel_does(
    program: Program, exhaustive: bool, tmp_path: Path
) -> None:
    module = traced(program)
    made = executable(module)
    wanted = interpret(module, *program.arguments)
    results = wanted if isinstance(wanted, tuple) else (wanted,)
    for right, result in zip(results, made(program.arguments), strict=True):
        assert agree(np.asarray(right), result, 64)
    candidates = ProgramCandidates(module)
    assert candidates.kernels
    for kernel in candidates.kernels:
        library = candidates.library(kernel.name, ways(program, kernel, exhaustive), tmp_path)
        runs = bench_for(program, made, kernel).load(library)
        assert runs[0].variant.taken == kernel.taken
        assert [run.variant.taken for run in runs] == [v.taken for v in library.variants]


@pytest.mark.parametrize(
    ("name", "is_text"),
    [("elements", True), ("product", True), ("columns", True), ("softmax", False), ("sort", False)],
)
def test_what_is_measured_is_the_code_that_is_built(
    name: str, is_text: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a program's kernels are text, or calls of routines, so are they on their own."""
    compiled: list[str] = []

    def noted(functions: Any, *arguments: Any) -> Any:
        compiled.extend(str(function.attrs["global_symbol"]) for function in functions)
        return compile_kernels(functions, *arguments)

    monkeypatch.setattr(building, "compile_kernels", noted)
    (program,) = (each for each in PROGRAMS if each.name == name)
    candidates = ProgramCandidates(traced(program))
    candidates.build(lambda text: None)
    built = [*compiled]
    compiled.clear()
    (kernel,) = candidates.kernels
    library = candidates.library(kernel.name, [kernel.taken], tmp_path)
    assert compiled == [f"{each}_0" for each in built]
    assert (not compiled) == is_text
    assert len(library.variants) == 1


@pytest.mark.exhaustive
@pytest.mark.parametrize("sample", every_sample())
def test_every_kernel_says_what_it_computes(sample: Sample) -> None:
    candidates = ProgramCandidates(joint_module(sample, element_types(sample)))
    assert all(kernel.text.startswith("HloModule kernel") for kernel in candidates.kernels)


def first_others(candidates: ProgramCandidates) -> dict[str, Measured]:
    """By the text of each kernel, another answer to its first question."""
    found = {}
    for kernel in candidates.kernels:
        question, names = next(iter(kernel.questions.items()))
        found[kernel.text] = Measured({**kernel.taken, question: names[-1]}, 2.0, 1.0)
    return found


def test_a_program_is_built_as_was_found_best() -> None:
    program = PROGRAMS[0]
    candidates = ProgramCandidates(traced(program))
    (kernel,) = candidates.kernels
    measured = first_others(candidates)
    built = candidates.build(measured.get)
    assert isinstance(built, bytes)
    made = tj.runtime.DiskCache(None).add("", built)
    (told,) = Explanation.from_json(made.artifact.explanation).kernels
    question, names = next(iter(kernel.questions.items()))
    assert (question, names[0], names[-1]) in told.changes
    assert told.gain == (2.0, 1.0)
    x, y = program.arguments
    np.testing.assert_allclose(made([x, y])[0], x @ y, rtol=1e-4, atol=1e-4)


def texts(function: Callable[..., Any], *arguments: np.ndarray) -> Sequence[str]:
    module = tj.jit(function).lower(*arguments).module
    return [kernel.text for kernel in ProgramCandidates(module).kernels]


def test_the_text_of_a_kernel_is_that_of_what_it_computes() -> None:
    x, y = drawn(40, 40), drawn(40, 40)
    (alone,) = texts(product, x, y)
    both = texts(lambda x, y: np.sort(x @ y, 1), x, y)
    assert alone in both
    assert texts(lambda b, a: np.matmul(b, a), x, y) == [alone]
    assert texts(lambda x, y: x @ y + 1, x, y) != [alone]
    assert texts(product, x.astype(F64), y.astype(F64)) != [alone]


def test_what_cannot_be_written_is_left_out(tmp_path: Path) -> None:
    """Unknown answers are the cost model's, and one way is compiled once."""
    candidates = ProgramCandidates(traced(PROGRAMS[0]))
    (kernel,) = candidates.kernels
    same = [kernel.taken, {}, {"tile": "no such tile"}]
    library = candidates.library(kernel.name, same, tmp_path)
    assert [variant.taken for variant in library.variants] == [kernel.taken]
