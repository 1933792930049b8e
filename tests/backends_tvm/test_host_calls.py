"""Ops that compiled code leaves to the interpreter: their places in a program, and errors."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.backends_tvm.compiled import check, compiled, computation
from tests.building import computation as nested
from tests.runtime.processes import python
from tracejit import ops
from tracejit.graph import Computation, Instruction, Module
from tracejit.runtime import DiskCache, importing_tvm
from tracejit.shapes import ElementType, Shape, TupleShape

with importing_tvm():
    from tracejit.backends.tvm.compile import compile_for
    from tracejit.backends.tvm.cpu.roots.linalg import LARGEST_COMPLEX_FACTOR

# The factors of large complex matrices are LAPACK's.
SIZE = LARGEST_COMPLEX_FACTOR + 1
MATRIX = Shape(ElementType.C64, (SIZE, SIZE))
COUNT = Shape(ElementType.S32)
A = (np.diag(np.arange(SIZE) + SIZE) + 1).astype(np.complex64)


def factor(a: Instruction) -> Instruction:
    return ops.cholesky(a, True)


def test_between_other_kernels() -> None:
    entry = computation(lambda a: ops.exp(factor(ops.add(a, ops.transpose(a, (1, 0))))), MATRIX)
    check(entry, [A])


def test_operands_of_all_kinds() -> None:
    """A parameter, a constant, a view, the same operand twice, a part of a tuple."""
    stacked = Shape(ElementType.C64, (2, SIZE, SIZE))

    def build(a: Instruction, both: Instruction) -> Instruction:
        fixed = ops.constant(np.eye(SIZE, dtype=np.complex64) * 2)
        first = ops.reshape(ops.slice_in_dim(both, 1, 2, 1, 0), (SIZE, SIZE))
        solved = ops.triangular_solve(a, a)
        return ops.tuple_(
            [factor(a), factor(fixed), solved, ops.triangular_solve(fixed, first), factor(first)]
        )

    check(computation(build, MATRIX, stacked), [A, np.stack([A, A + 2])])


def test_results_of_nothing() -> None:
    entry = computation(
        lambda a, b: ops.tuple_([factor(a), ops.triangular_solve(a, b)]),
        Shape(ElementType.F64, (2, 0, 0)),
        Shape(ElementType.F64, (2, 0, 3)),
    )
    check(entry, [np.zeros((2, 0, 0)), np.zeros((2, 0, 3))])


def looping() -> Computation:
    """``a`` replaced by its factor plus itself, as often as the second parameter says."""
    state = TupleShape((COUNT, MATRIX))

    def condition(s: Instruction) -> Instruction:
        return ops.gt(ops.get_tuple_element(s, 0), ops.constant(np.int32(0)))

    def body(s: Instruction) -> Instruction:
        count, a = ops.elements_of(s)
        return ops.tuple_([ops.sub(count, ops.constant(np.int32(1))), ops.add(factor(a), a)])

    def build(a: Instruction, count: Instruction) -> Instruction:
        loop = ops.while_(
            nested("condition", condition, state),
            nested("body", body, state),
            ops.tuple_([count, a]),
        )
        return ops.get_tuple_element(loop, 1)

    return computation(build, MATRIX, COUNT)


@pytest.mark.parametrize("count", [0, 1, 5])
def test_inside_a_loop(count: int) -> None:
    check(looping(), [A, np.array(count, np.int32)])


def test_inside_a_branch() -> None:
    def build(pred: Instruction, a: Instruction) -> Instruction:
        taken = nested("taken", factor, MATRIX)
        other = nested("other", lambda a: ops.triangular_solve(a, a), MATRIX)
        return ops.conditional(pred, ops.add(a, a), taken, a, other)

    entry = computation(build, Shape(ElementType.PRED), MATRIX)
    for pred in (True, False):
        check(entry, [np.array(pred), A])


class Refused(Exception):
    """What no library raises."""


def test_exceptions_come_out_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise Refused(7)

    run = compiled(looping())
    arguments = [A, np.array(2, np.int32)]
    expected = run(arguments)[0]
    with monkeypatch.context() as patch:
        patch.setattr(np.linalg, "cholesky", refuse)
        with pytest.raises(Refused, match="7"):
            run(arguments)
    np.testing.assert_array_equal(run(arguments)[0], expected)


FROM_CACHE = """
import sys
from pathlib import Path
import numpy as np
from tracejit.runtime import DiskCache

executable = DiskCache(Path(sys.argv[1])).find("program")
a = np.load(sys.argv[2])
assert "tvm" not in sys.modules
print(executable([a])[0].tolist())
"""


def test_from_the_disk_cache_in_a_new_process(tmp_path: Path) -> None:
    built = compile_for(Module("test", computation(factor, MATRIX)))
    expected = DiskCache(tmp_path).add("program", built)([A])[0]
    np.save(tmp_path / "a.npy", A)
    assert python(FROM_CACHE, str(tmp_path), str(tmp_path / "a.npy")) == str(expected.tolist())
