"""Functions that move elements, against NumPy: shapes, joining, padding, selecting, sorting."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracejit as tj
from tests.numpy_api.arrays import COUNT, CUBE, F32, F64, ROW, S64, SPECIAL, WHOLE
from tests.numpy_api.compare import Function, check
from tracejit.errors import AttributeValueError

RESHAPING: dict[str, Function] = {
    "reshape": lambda np, x: np.reshape(x, (4, 6)),
    "reshape F": lambda np, x: np.reshape(x, (4, -1), order="F"),
    "ravel": lambda np, x: np.ravel(x),
    "ravel F": lambda np, x: np.ravel(x, order="F"),
    "T": lambda np, x: x.T,
    "transpose": lambda np, x: np.transpose(x, [2, 0, 1]),
    "matrix_transpose": lambda np, x: np.matrix_transpose(x),
    "moveaxis": lambda np, x: np.moveaxis(x, [0, 1], [-1, 0]),
    "swapaxes": lambda np, x: np.swapaxes(x, 0, 2),
    "rollaxis": lambda np, x: (np.rollaxis(x, 2), np.rollaxis(x, 0, 3), np.rollaxis(x, 1, 1)),
    "squeeze": lambda np, x: (np.squeeze(x[:1]), np.squeeze(x[:1], axis=0)),
    "expand_dims": lambda np, x: np.expand_dims(x, (0, 2)),
    "broadcast_to": lambda np, x: np.broadcast_to(x, (2, 2, 3, 4)),
    "broadcast_arrays": lambda np, x: np.broadcast_arrays(x, x[0, 0]),
    "atleast": lambda np, x: (np.atleast_1d(x), np.atleast_2d(x[0, 0]), np.atleast_3d(x[0])),
    "flip": lambda np, x: (np.flip(x), np.flip(x, (0, 2)), np.fliplr(x), np.flipud(x)),
    "rot90": lambda np, x: (np.rot90(x), np.rot90(x, 2), np.rot90(x, 3, (1, 2)), np.rot90(x, 4)),
    "roll": lambda np, x: (np.roll(x, 2), np.roll(x, 2, 1), np.roll(x, (1, -2), (0, 2))),
    "tile": lambda np, x: (np.tile(x, 2), np.tile(x, (2, 1, 1, 3))),
    "repeat": lambda np, x: (np.repeat(x, 3), np.repeat(x, [1, 0, 2], axis=1)),
    "delete": lambda np, x: (np.delete(x, [1], axis=1), np.delete(x, slice(0, 2), axis=2)),
    "insert": lambda np, x: (np.insert(x, 1, 9, axis=1), np.insert(x, [1, 3], 9)),
    "resize": lambda np, x: np.resize(x, (5, 7)),
    "append": lambda np, x: (np.append(x, [1, 2]), np.append(x, x, axis=0)),
    "concatenate": lambda np, x: (np.concatenate([x, x * 2.5], 1), np.concatenate([x, x], None)),
    "stack": lambda np, x: (np.stack([x, x], 1), np.stack([x, x * 0.5], -1)),
    "vstack": lambda np, x: (np.vstack([x[0], x[1]]), np.vstack([x[0, 0], x[0, 1]])),
    "hstack": lambda np, x: (np.hstack([x[0], x[1]]), np.hstack([x[0, 0], x[0, 1]])),
    "dstack": lambda np, x: (np.dstack([x[0], x[1]]), np.dstack([x[0, 0], x[0, 1]])),
    "column_stack": lambda np, x: (np.column_stack([x[0], x[1]]), np.column_stack([x[0, 0]] * 2)),
    "block": lambda np, x: np.block([[x[0], x[1]], [x[1], x[0]]]),
    "split": lambda np, x: (np.split(x, 3, axis=1), np.array_split(x, 3, axis=2)),
    "splits": lambda np, x: (np.hsplit(x, 3), np.vsplit(x, 2), np.dsplit(x, 2)),
    "unstack": lambda np, x: np.unstack(x, axis=1),
    "tril": lambda np, x: (np.tril(x), np.tril(x[0, 0], -1), np.triu(x, 1)),
    "diag": lambda np, x: (np.diag(x[0]), np.diag(x[0], -1), np.diag(x[0, 0], 1)),
    "diagonal": lambda np, x: (np.diagonal(x, 1, 0, 2), np.trace(x), np.trace(x, 1, 1, 2)),
    "diagflat": lambda np, x: np.diagflat(x[0]),
}


@pytest.mark.parametrize("name", RESHAPING)
def test_reshaping(name: str) -> None:
    check(RESHAPING[name], WHOLE)
    check(RESHAPING[name], CUBE.astype(np.float32))


PAD_MODES = """
    constant edge reflect symmetric wrap maximum minimum mean median linear_ramp
""".split()


@pytest.mark.parametrize("mode", PAD_MODES)
def test_pad(mode: str) -> None:
    check(lambda np, x: np.pad(x, ((1, 2), (3, 4)), mode=mode), F64)
    check(lambda np, x: np.pad(x, 2, mode=mode), CUBE)
    check(lambda np, x: np.pad(x, (2, 7), mode=mode), np.arange(4) * 3)


def test_pad_arguments() -> None:
    check(lambda np, x: np.pad(x, 1, constant_values=7), F64)
    check(lambda np, x: np.pad(x, ((1, 1), (2, 2)), constant_values=((1, 2), (3, 4))), F64)
    check(lambda np, x: np.pad(x, 2, mode="mean", stat_length=2), F64)
    check(lambda np, x: np.pad(x, 2, mode="linear_ramp", end_values=5), F64)


SELECTING: dict[str, Function] = {
    "where": lambda np, x: np.where(x > 0, x, 0),
    "where of two types": lambda np, x: np.where(x > 0, x, np.float32(1)),
    "clip": lambda np, x: (np.clip(x, -0.5, 0.5), np.clip(x, 0, None), np.clip(x, max=1)),
    "select": lambda np, x: np.select([x > 1, x < 0], [x, -x], 5.0),
    "take": lambda np, x: (np.take(x, [0, 2]), np.take(x, [[0, 2], [1, 1]], axis=1)),
    "take modes": lambda np, x: (
        np.take(x, [-1, 9], axis=1, mode="wrap"),
        np.take(x, [-1, 9], axis=1, mode="clip"),
    ),
    "take_along_axis": lambda np, x: np.take_along_axis(x, np.argsort(x, axis=1), 1),
    "compress": lambda np, x: np.compress([True, False, True], x, axis=0),
    "sort": lambda np, x: (np.sort(x), np.sort(x, axis=0), np.sort(x, axis=None)),
    "argsort": lambda np, x: (np.argsort(x, axis=0, kind="stable"), np.argsort(x)),
    "lexsort": lambda np, x: np.lexsort((x[0], x[1])),
    "searchsorted": lambda np, x: (
        np.searchsorted(np.sort(x[0]), x),
        np.searchsorted(np.sort(x[0]), x[0], side="right"),
    ),
    "digitize": lambda np, x: (
        np.digitize(x, [0.0, 1, 2]),
        np.digitize(x, [2.0, 1, 0]),
        np.digitize(x, [2.0, 1, 0], right=True),
    ),
}


@pytest.mark.parametrize("name", SELECTING)
def test_selecting(name: str) -> None:
    for x in (F64, F32, S64.astype(np.float64)):
        check(SELECTING[name], x)


def test_selecting_with_integers_and_nan() -> None:
    check(lambda np, x: np.choose(x % 3, [x, x * 2, x * 3]), S64)
    check(lambda np, x: np.sort(x, axis=0), SPECIAL)
    check(lambda np, x: np.argsort(x, axis=1), SPECIAL)
    check(lambda np, x, i: np.take(x, i, axis=1), F64, np.array([2, 0, -1]))
    check(lambda np, x: np.digitize(x, [0.0, 1, 2]), COUNT)


def test_partitions_at_several_places() -> None:
    check(lambda np, x: np.partition(x, [0, -1], 0)[[0, -1]], F64)


def test_partitions_at_places_that_are_not_there() -> None:
    for function in (np.partition, np.argpartition):
        for place, axis in ((4, 1), ([0, -5], -1), (12, None)):
            partition = tj.jit(lambda x, f=function, k=place, a=axis: f(x, k, a))
            with pytest.raises(AttributeValueError, match=r"partition: kth .* must be places of"):
                partition(F64)


PRODUCTS: dict[str, tuple[Function, tuple[Any, ...]]] = {
    "matrix vector": (lambda np, x, y: x @ y, (F64, ROW)),
    "vector matrix": (lambda np, x, y: y @ x.T, (F64, ROW)),
    "matrix matrix": (lambda np, x: x @ x.T, (F64,)),
    "batch matrix": (lambda np, x, y: np.matmul(x, y), (CUBE, F64.T)),
    "matrix batch": (lambda np, x, y: np.matmul(x, y), (F64, CUBE.swapaxes(1, 2))),
    "two batches": (lambda np, x: np.matmul(x[:, None], x.swapaxes(1, 2)[None]), (CUBE,)),
    "batch vector": (lambda np, x, y: np.matmul(x, y), (CUBE, ROW)),
    "vector batch": (lambda np, x, y: np.matmul(y, x), (CUBE, F64[:, 0])),
    "integers": (lambda np, x: np.matmul(x, x.T), (S64,)),
    "truth values": (lambda np, x: np.matmul(x > 0, x.T > 0), (S64,)),
    "dot": (lambda np, x, y: (np.dot(x, y), np.dot(x, 2)), (F64, ROW)),
    "dot of cubes": (lambda np, x: np.dot(x, x.swapaxes(1, 2)), (CUBE,)),
    "vdot": (lambda np, x: np.vdot(x + 1j, x * 1j), (F64,)),
    "inner": (lambda np, x, y: np.inner(x, y), (CUBE, F64)),
    "outer": (lambda np, x: np.outer(x, x), (F64,)),
    "tensordot": (lambda np, x, y: np.tensordot(x, y, 1), (CUBE, F64.T)),
    "tensordot of lists": (lambda np, x, y: np.tensordot(x, y, ([1, 2], [0, 1])), (CUBE, F64)),
    "kron": (lambda np, x, y: np.kron(x, y), (F64, COUNT)),
    "cross": (lambda np, x: np.cross(x.T, x.T[::-1]), (F64,)),
    "vecdot": (lambda np, x: np.vecdot(x + 1j, x), (F64,)),
    "matvec": (lambda np, x, y: np.matvec(x, y), (CUBE, ROW)),
    "vecmat": (lambda np, x, y: np.vecmat(y, x), (CUBE, F64[:, 0])),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_products(name: str) -> None:
    function, args = PRODUCTS[name]
    check(function, *args)


EINSUMS: dict[str, tuple[Any, ...]] = {
    "ij,kj->ik": (F64, F64),
    "ij->ji": (F64,),
    "ii->i": (F64[:, :3],),
    "ii": (F64[:, :3],),
    "ij,jk,kl": (F64, F64.T, F64),
    "...ij,...j->...i": (CUBE, ROW),
    "bij,bkj->bik": (CUBE, CUBE),
    "i,j->ij": (COUNT, COUNT),
    "ij->": (F64,),
    "abc,cd,ae->bde": (CUBE, F64.T, np.ones((2, 5))),
    "i,i,i->i": (COUNT, COUNT, COUNT),
    "ij,ij->j": (F64, F64),
    "ijj->i": (CUBE[:, :, :3],),
    "...->...": (F64,),
    "i...->...": (F64,),
}


@pytest.mark.parametrize("subscripts", EINSUMS)
def test_einsum(subscripts: str) -> None:
    check(lambda np, *args: np.einsum(subscripts, *args), *EINSUMS[subscripts])


def test_einsum_with_numbers() -> None:
    check(lambda np, x: np.einsum(x, [0, 1], x, [2, 1], [0, 2]), F64)


def test_resizing_to_negative_sizes_is_refused() -> None:
    for sizes in (-1, (-2, -3)):
        with pytest.raises(AttributeValueError, match=r"resize: sizes of \(-.* not be negative"):
            tj.jit(lambda x, s=sizes: np.resize(x, s))(ROW)
