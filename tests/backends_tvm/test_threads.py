"""Threads: results do not depend on how many there are, and calls may overlap."""

from __future__ import annotations

import hashlib
import threading

import numpy as np
import pytest

from tests.backends_tvm.compiled import compiled, computation
from tests.runtime.processes import python
from tracejit import ops
from tracejit.graph import Computation, Instruction
from tracejit.runtime.explaining import explain
from tracejit.shapes import ElementType, Shape

F32 = ElementType.F32


def large() -> Computation:
    """Reductions of every kind, products, windows and rows, large enough to be shared."""

    def build(x: Instruction, y: Instruction) -> Instruction:
        sums = [ops.reduce_sum(x, over) for over in ((0,), (1,), (0, 1))]
        powers = ops.exp(
            ops.sub(x, ops.broadcast_in_dim(ops.reduce_max(x, (1,)), (300, 500), (0,)))
        )
        image = ops.reshape(x, (10, 30, 50, 10))
        windows = ops.reduce_window_by("add", image, (1, 3, 3, 1), (1, 2, 2, 1), "SAME")
        long = ops.reshape(x, (150_000,))
        others = [ops.reduce_sum(powers, (1,)), ops.reduce_sum(long), ops.cumulative("add", x, 0)]
        return ops.tuple_([*sums, *others, ops.dot(x, y), windows, ops.sort(x)])

    return computation(build, Shape(F32, (300, 500)), Shape(F32, (500, 70)))


def inputs() -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [rng.normal(size=size).astype(np.float32) for size in ((300, 500), (500, 70))]


def fingerprint() -> str:
    """What the results are, to the bit."""
    results = compiled(large())(inputs())
    return hashlib.sha256(b"".join(result.tobytes() for result in results)).hexdigest()


def test_the_number_of_threads_does_not_show() -> None:
    code = "from tests.backends_tvm.test_threads import fingerprint; print(fingerprint())"
    found = {python(code, TVM_NUM_THREADS=str(threads)) for threads in (1, 2, 3)}
    assert len(found) == 1


def test_repeated_calls_agree() -> None:
    run = compiled(large())
    first = run(inputs())
    for _ in range(5):
        for left, right in zip(first, run(inputs()), strict=True):
            assert left.tobytes() == right.tobytes()


@pytest.mark.parametrize("callers", [2, 4])
def test_callers_at_once(callers: int) -> None:
    """Each with its own arguments; the workspace of one call is not that of another."""
    run = compiled(large())
    given = [[x + n for x in inputs()] for n in range(callers)]
    expected = [[r.tobytes() for r in run(arrays)] for arrays in given]
    wrong: list[int] = []

    def call(number: int) -> None:
        for _ in range(10):
            if [r.tobytes() for r in run(given[number])] != expected[number]:
                wrong.append(number)

    started = [threading.Thread(target=call, args=(n,)) for n in range(callers)]
    for thread in started:
        thread.start()
    for thread in started:
        thread.join()
    assert not wrong


def test_parts_of_a_concatenate_share_one_parallel_loop() -> None:
    """Where they have as many rows; the others have loops of their own."""

    def build(x: Instruction, y: Instruction, z: Instruction) -> Instruction:
        rows = ops.concatenate([x, y, x], 1)
        return ops.tuple_([rows, ops.concatenate([x, z], 0)])

    shapes = [Shape(F32, (1000, 200)), Shape(F32, (1000, 150)), Shape(F32, (3, 200))]
    run = compiled(computation(build, *shapes))
    report = explain(run)
    loops = [
        sum(nest.kind == "parallel" for nest in kernel.loops)
        for kernel in report.kernels
        if "concatenate" in kernel.name
    ]
    assert loops[0] == 1
    rng = np.random.default_rng(0)
    x, y, z = (rng.normal(size=s.dimensions).astype(np.float32) for s in shapes)
    one, other = run([x, y, z])
    np.testing.assert_array_equal(one, np.concatenate([x, y, x], 1))
    np.testing.assert_array_equal(other, np.concatenate([x, z], 0))
