"""The numbers are jax.random's: the expected ones here were printed by JAX 0.10.2 for key(42).

Those of float64 and of integers came with 64-bit types enabled. Bits, uniform and picked numbers
are equal; where logarithms and the like follow, to a few units in the last place.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracejit as tj
from tracejit import random
from tracejit.shapes import element_type_of

KEY = random.key(42)
P = np.array([0.1, 0.2, 0.3, 0.4])


def words(keys: Any) -> Any:
    return np.asarray(random.key_data(keys)).tolist()


def test_keys() -> None:
    assert words(random.split(KEY)) == [[1832780943, 270669613], [64467757, 2916123636]]
    assert words(random.split(KEY, (2, 2)))[1] == [[2465931498, 255383827], [3134548294, 894150801]]
    assert words(random.fold_in(KEY, 7)) == [2547012911, 1371500959]


BITS = {
    np.uint8: [162, 217, 249, 215, 21],
    np.uint16: [5026, 12505, 63993, 49623, 29461],
    np.uint32: [2098992034, 2919706841, 2646866425, 2409546199, 1935504149],
    np.uint64: [
        7871734211187709741,
        276886910877598708,
        10591095138341673235,
        13462782411356743825,
        12687676868490354166,
    ],
}


@pytest.mark.parametrize("dtype", BITS)
def test_bits(dtype: Any) -> None:
    assert random.bits(KEY, (5,), dtype).tolist() == BITS[dtype]


UNIFORM = {
    "float64": ["0x1.b4f8123c40884p-2", "0x1.ebd996d6e8400p-7", "0x1.25f641d41e71ap-1"],
    "float32": ["0x1.f470480000000p-2", "0x1.5c0e600000000p-1", "0x1.3b87f00000000p-1"],
    "float16": ["0x1.3800000000000p-4", "0x1.8600000000000p-3", "0x1.f380000000000p-1"],
    "bfloat16": ["0x1.4400000000000p-1", "0x1.b000000000000p-1", "0x1.f000000000000p-1"],
}
NORMAL = {
    "float64": ["-0x1.7a4a26c962159p-3", "-0x1.15bccfaa7ba3ap+1", "0x1.7ed8110b50460p-3"],
    "float32": ["-0x1.cfbe2a0000000p-6", "0x1.de57d00000000p-2", "0x1.2eccc20000000p-2"],
    "float16": ["-0x1.6e00000000000p+0", "-0x1.c040000000000p-1", "0x1.f980000000000p+0"],
    "bfloat16": ["0x1.6000000000000p-2", "0x1.0400000000000p+0", "0x1.e400000000000p+0"],
}


def floats(texts: list[str]) -> np.ndarray:
    return np.array([float.fromhex(text) for text in texts])


@pytest.mark.parametrize("dtype", UNIFORM)
def test_uniform(dtype: str) -> None:
    made = random.uniform(KEY, (3,), dtype)
    assert str(made.dtype) == dtype
    np.testing.assert_array_equal(made.astype(np.float64), floats(UNIFORM[dtype]))


@pytest.mark.parametrize("dtype", NORMAL)
def test_normal(dtype: str) -> None:
    made = random.normal(KEY, (3,), dtype)
    step = (
        2.0
        ** -{64: 52, 32: 23, 16: 10 if dtype == "float16" else 7}[element_type_of(made.dtype).bits]
    )
    np.testing.assert_allclose(made.astype(np.float64), floats(NORMAL[dtype]), rtol=4 * step)


def test_normal_of_complex_numbers() -> None:
    expected = [0.05368746072053909 + 0.4283398389816284j, -0.34389618039131165 + 0.5650094747543j]
    np.testing.assert_allclose(random.normal(KEY, (2,), np.complex64), expected, rtol=1e-6)


PICKED: dict[str, tuple[Callable[[], Any], list[Any]]] = {
    "randint": (lambda: random.randint(KEY, (6,), -5, 100, np.int32), [94, 49, 76, -1, 84, 19]),
    "randint int8": (lambda: random.randint(KEY, (6,), -5, 100, np.int8), [94, 49, 76, -1, 84, 19]),
    "permutation": (lambda: random.permutation(KEY, 8), [7, 4, 2, 5, 3, 6, 0, 1]),
    "choice": (lambda: random.choice(KEY, 10, (4,)), [5, 8, 3, 1]),
    "choice once": (lambda: random.choice(KEY, 10, (4,), replace=False), [7, 4, 2, 5]),
    "choice p": (lambda: random.choice(KEY, 4, (5,), p=P), [2, 3, 2, 1, 2]),
    "choice once p": (lambda: random.choice(KEY, 4, (3,), False, P), [3, 2, 0]),
    "bernoulli": (lambda: random.bernoulli(KEY, 0.3, (8,)), [0, 1, 0, 0, 0, 0, 0, 0]),
    "categorical": (lambda: random.categorical(KEY, np.log(P), shape=(6,)), [3, 3, 2, 1, 3, 3]),
    "rademacher": (lambda: random.rademacher(KEY, (5,)), [1, 1, -1, -1, -1]),
    "geometric": (lambda: random.geometric(KEY, 0.2, (4,)), [4, 19, 3, 2]),
}


@pytest.mark.parametrize("name", PICKED)
def test_picked(name: str) -> None:
    draw, expected = PICKED[name]
    assert draw().tolist() == expected


COMPUTED: dict[str, tuple[Callable[[], Any], list[float]]] = {
    "exponential": (
        lambda: random.exponential(KEY, (3,)),
        [0.5563942243855916, 0.015123860720489336, 0.8536549993431988],
    ),
    "laplace": (
        lambda: random.laplace(KEY, (3,)),
        [0.15846230602649014, 3.5058868215207473, -0.16050781878325354],
    ),
    "logistic": (
        lambda: random.logistic(KEY, (3,)),
        [-0.29521526220084394, -4.183910141360207, 0.29878068416298553],
    ),
    "gumbel": (
        lambda: random.gumbel(KEY, (3,)),
        [0.16062720630382138, -1.4348544993307841, 0.5890136500161952],
    ),
    "cauchy": (
        lambda: random.cauchy(KEY, (3,)),
        [-0.23434604341667786, -21.19070234669309, 0.23723777098183235],
    ),
    "truncated_normal": (
        lambda: random.truncated_normal(KEY, -1.0, 2.0, (3,)),
        [0.01998452592513169, -0.9504476695340623, 0.32827144083703297],
    ),
    "rayleigh": (
        lambda: random.rayleigh(KEY, 2.0, (3,)),
        [2.6101486342144358, 5.795884058247333, 2.1068921475580344],
    ),
    "weibull_min": (
        lambda: random.weibull_min(KEY, 2.0, 3.0, (3,)),
        [1.644968300998198, 0.49459632533297715, 1.8972480932167475],
    ),
    "pareto": (
        lambda: random.pareto(KEY, 3.0, (3,)),
        [1.203777755582976, 1.0050540155743009, 1.3291659848108275],
    ),
    "lognormal": (
        lambda: random.lognormal(KEY, 0.5, (3,)),
        [0.9117806140267735, 0.33793142787224595, 1.0979752215045038],
    ),
    "maxwell": (
        lambda: random.maxwell(KEY, (3,)),
        [2.1856811186160847, 0.866467331447922, 0.8407561365101462],
    ),
    "triangular": (
        lambda: random.triangular(KEY, 0.0, 0.3, 1.0, (3,)),
        [0.36652489919092823, 0.06710455166823168, 0.4540156527240682],
    ),
    "wald": (
        lambda: random.wald(KEY, 1.5, (3,)),
        [3.529976562489182, 1.0915612562479036, 0.24683423568313878],
    ),
    "multivariate_normal": (
        lambda: random.multivariate_normal(KEY, np.zeros(2), np.eye(2), (2,)).ravel(),
        [-0.18471174528191162, -2.169824560397754, 0.18693555179382582, 0.6122653570510959],
    ),
}


@pytest.mark.parametrize("name", COMPUTED)
def test_computed(name: str) -> None:
    draw, expected = COMPUTED[name]
    np.testing.assert_allclose(draw(), expected, rtol=1e-12)


@pytest.mark.usefixtures("machine_code")
def test_compiled_numbers_are_the_same() -> None:
    def draw(key: Any) -> Any:
        return (
            random.bits(key, (5,), np.uint32),
            random.uniform(key, (3,)),
            random.normal(key, (3,)),
            random.normal(key, (3,), np.float32),
            random.permutation(key, 8),
            random.split(key, 3),
            random.gamma(key, 0.7, (3,)),
            random.poisson(key, 4.0, (3,)),
        )

    for key in (KEY, random.key(2**31), random.key(-1)):
        made, expected = tj.tree.leaves(tj.jit(draw)(key)), tj.tree.leaves(draw(key))
        for ours, theirs in zip(made, expected, strict=True):
            np.testing.assert_allclose(
                ours, theirs, rtol=1e-6 if ours.dtype == np.float32 else 1e-13
            )
        # A key that is known while compiling is folded into the code.
        folded = tj.tree.leaves(tj.jit(lambda key=key: draw(key))())
        for ours, theirs in zip(folded, made, strict=True):
            np.testing.assert_allclose(
                ours, theirs, rtol=1e-6 if ours.dtype == np.float32 else 1e-13
            )
