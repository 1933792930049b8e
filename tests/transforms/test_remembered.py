"""Gradients of functions that are not jitted, called again and again: what is remembered."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracejit as tj
from tracejit.graph import Computation
from tracejit.ops.constants import parameter
from tracejit.ops.elementwise_unary import sin
from tracejit.shapes import ElementType, Shape
from tracejit.trace.hash_consing import memory_of
from tracejit.transforms import derived_cache

CALLS = 4


@pytest.fixture(params=["interpreted", "compiled"])
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Whether what is asked again is interpreted for ever, or compiled from the third call on."""
    calls = {"interpreted": float("inf"), "compiled": 2}[request.param]
    monkeypatch.setattr(derived_cache, "calls_before_compiling", lambda entry: calls)
    made: str = request.param
    return made


def numerical(f: Callable[..., Any], x: np.ndarray) -> np.ndarray:
    steps = 1e-6 * np.eye(x.size).reshape(-1, *x.shape)
    slopes = [(f(x + step) - f(x - step)) / 2e-6 for step in steps]
    return np.array(slopes).reshape(x.shape)


def answers_of(f: Callable[..., Any]) -> int:
    memory = memory_of(f)
    assert memory is not None
    return len(memory.answers)


def test_one_graph_has_one_answer(engine: str) -> None:
    rng = np.random.default_rng(0)
    data, labels = rng.normal(size=(9, 4)), rng.integers(0, 2, 9)

    def loss(w: Any) -> Any:
        p = 1 / (1 + np.exp(-np.dot(data, w)))
        return -np.sum(np.log(p * labels + (1 - p) * (1 - labels)))

    for _ in range(CALLS):
        w = rng.normal(size=4)
        np.testing.assert_allclose(tj.grad(loss)(w), numerical(loss, w), rtol=1e-6, atol=1e-8)
    assert answers_of(loss) == 1


def test_arrays_and_numbers_of_the_closure_may_change(engine: str) -> None:
    data, labels, rate = np.arange(1.0, 4.0), np.arange(40) % 3, 2.0
    gradient = tj.grad(lambda w: np.sum(np.take(w, labels) * rate) + np.sum(w * w * data))
    w = np.ones(3)
    for step in range(CALLS):
        data[:] = step
        labels[step] = 2
        rate = step + 0.5
        expected = rate * np.bincount(labels, minlength=3) + 2 * data
        np.testing.assert_allclose(gradient(w), expected)


def test_an_array_that_is_written_to_after_its_use(engine: str) -> None:
    def loss(w: Any) -> Any:
        total = np.sum(w * data)
        data[:] += 10
        return total + np.sum(w * data)

    gradient = tj.grad(loss)
    for _ in range(CALLS):
        data = np.array([1.0, 2.0])
        np.testing.assert_array_equal(gradient(np.ones(2)), [12, 14])
        np.testing.assert_array_equal(data, [11, 12])


def test_batches_of_indices_may_change(engine: str) -> None:
    rng = np.random.default_rng(0)
    batch = np.arange(40)

    def loss(w: Any) -> Any:
        return np.sum(w[batch] ** 2)

    w = rng.normal(size=50)
    for _ in range(CALLS):
        batch = rng.integers(-50, 50, 40)
        expected = 2 * w * np.bincount(batch % 50, minlength=50)
        np.testing.assert_allclose(tj.grad(loss)(w), expected, rtol=1e-14)
    assert answers_of(loss) == 1
    batch = np.full(40, 50)
    with pytest.raises(tj.errors.StaticIndexError, match="index 50 is out of bounds"):
        tj.grad(loss)(w)


def test_python_may_ask_for_values(engine: str) -> None:
    def loss(x: Any) -> Any:
        total, term, n = x, x, 1
        while np.abs(term) > 1e-8:
            term = -term * x * x / ((2 * n + 1) * 2 * n)
            total, n = total + term, n + 1
        if total < 0:
            total = 3 * total
        return total

    for x in (0.3, 1.0, 4.0, 1.0, 0.3, 4.0, 1.0, 0.3, -0.3, 4.0):
        factor = 3 if np.sin(x) < 0 else 1
        assert tj.grad(loss)(x) == pytest.approx(factor * np.cos(x), abs=1e-7)


def test_shapes_may_depend_on_values(engine: str) -> None:
    def loss(x: Any) -> Any:
        chosen = x[x > 0]
        return np.sum(chosen**2) + 5 * len(np.nonzero(x)[0]) * x[0]

    gradient = tj.grad(loss)
    for x in ([1.0, -2, 3], [0.0, 2, 3], [-1.0, -2, 0], [1.0, -2, 3], [4.0, 5, 6], [1.0, -2, 3]):
        array = np.array(x)
        expected = 2 * np.maximum(array, 0)
        expected[0] += 5 * np.count_nonzero(array)
        np.testing.assert_array_equal(gradient(array), expected)


@pytest.mark.parametrize("values", [(0.0, -0.0), (1, 1.0), (True, 1), (np.float32(2), 2.0)])
def test_numbers_that_are_equal_are_not_the_same(engine: str, values: tuple[Any, Any]) -> None:
    number: Any = None

    def loss(x: Any) -> Any:
        return np.sum(np.copysign(x, number) + x * number)

    x = np.ones(2, np.float32)
    for number in values * CALLS:
        value, slope = tj.value_and_grad(loss)(x)
        expected = loss(x)
        assert value == expected
        assert value.dtype == expected.dtype
        np.testing.assert_array_equal(slope, np.copysign(1, number) + np.float32(number))


def test_writes_and_views(engine: str) -> None:
    def loss(x: Any) -> Any:
        y = np.zeros(4)
        y[1:] = x
        row = y[2:]
        row *= x[0]
        y[0] = y[3] * 2
        pair = y.reshape(2, 2)
        pair[1, 0] += 1
        return np.sum(y * y)

    def plain(x: np.ndarray) -> Any:
        y = np.array([2 * x[2] * x[0], x[0], x[1] * x[0] + 1, x[2] * x[0]])
        return np.sum(y * y)

    for seed in range(CALLS):
        x = np.random.default_rng(seed).normal(size=3)
        np.testing.assert_allclose(tj.grad(loss)(x), numerical(plain, x), rtol=1e-6, atol=1e-8)


def test_arguments_of_other_kinds(engine: str) -> None:
    def loss(x: Any, scale: Any = 1.0) -> Any:
        return np.sum(x * x) * scale

    for _ in range(CALLS):
        assert tj.grad(loss)(3.0) == 6
        assert type(tj.grad(loss)(3.0)) is float
        assert tj.grad(loss)(np.float32(3)).dtype == np.float32
        assert tj.grad(loss)(np.ones(2, np.float32)).dtype == np.float32
        np.testing.assert_array_equal(tj.grad(loss)(np.ones((2, 3)), scale=np.array(2.0)), 4)
        first, second = tj.grad(loss, (0, 1))(np.full(2, 3.0), 2.0)
        np.testing.assert_array_equal(first, 12)
        assert second == 18


def test_aux_and_options(engine: str) -> None:
    def loss(p: Any) -> Any:
        return np.where(p["x"] > 0, np.sqrt(p["x"]), 0).sum(), {"twice": 2 * p["x"], "name": "a"}

    for _ in range(CALLS):
        x = np.array([0.0, 4.0])
        (value, aux), slope = tj.value_and_grad(loss, has_aux=True)({"x": x})
        assert value == 2
        np.testing.assert_array_equal(aux["twice"], 2 * x)
        assert aux["name"] == "a"
        np.testing.assert_array_equal(slope["x"], [0, 0.25])
        unsafe = tj.grad(loss, has_aux=True, nan_safe=False)({"x": x})[0]
        assert np.isnan(unsafe["x"][0])


def test_derivatives_of_derivatives(engine: str) -> None:
    def cube(x: Any) -> Any:
        return x**3 if x > 0 else x

    def outer(x: Any) -> Any:
        return tj.grad(cube)(x) * x

    for x in (2.0, 3.0, -1.0, 2.0, 3.0, 2.0):
        assert tj.grad(tj.grad(cube))(x) == (6 * x if x > 0 else 0)
        assert tj.grad(outer)(x) == pytest.approx(9 * x * x if x > 0 else 1)


def test_loops_and_branches_of_lax(engine: str) -> None:
    def loss(x: Any) -> Any:
        made = tj.lax.fori_loop(0, 5, lambda i, y: y * x, x)
        return tj.lax.cond(made > 1, lambda y: 2 * y, lambda y: y, made)

    for x in (2.0, 0.5, 2.0, 2.0):
        assert tj.grad(loss)(x) == pytest.approx((12 if x > 1 else 6) * x**5)


def test_side_effects_happen_at_every_call(engine: str) -> None:
    seen: list[object] = []

    def loss(x: Any) -> Any:
        seen.append("python")
        tj.debug.callback(lambda v: seen.append(float(v)), x)
        return x * x

    for _ in range(CALLS):
        assert tj.grad(loss)(3.0) == 6
    assert seen == ["python", 3.0] * CALLS


def test_threads_share_what_is_remembered(engine: str) -> None:
    def loss(x: Any) -> Any:
        total = x
        for _ in range(20):
            total = np.sin(total) * x if total > 0 else total + 1
        return total

    points = np.linspace(0.1, 2, 8)
    expected = [tj.grad(loss)(x) for x in points]
    found: dict[int, list[float]] = {}

    def work(number: int) -> None:
        found[number] = [tj.grad(loss)(x) for x in points for _ in range(3)][::3]

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number in range(4):
        np.testing.assert_allclose(found[number], expected, rtol=1e-12)


def test_little_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tracejit.trace.hash_consing.MOST", 50)

    def loss(x: Any, count: int) -> Any:
        for number in range(count):
            x = x * (number + 2)
        return x

    for count in range(1, 40):
        expected = np.prod(np.arange(2.0, count + 2))
        assert tj.grad(lambda x, n=count: loss(x, n))(1.0) == pytest.approx(expected)
    for count in range(1, 100):
        expected = np.prod(np.arange(2.0, count % 7 + 2))
        assert tj.grad(loss)(1.0, count % 7) == pytest.approx(expected)
    memory = memory_of(loss)
    assert memory is not None
    assert len(memory.made) <= 100
    assert len(memory.answers) <= 64


def test_values_do_not_leave_their_trace(engine: str) -> None:
    kept: list[Any] = []

    def loss(x: Any) -> Any:
        if kept:
            return x * kept[0]
        kept.append(x * x)
        return x * kept[0]

    assert tj.grad(loss)(2.0) == 12
    with pytest.raises(tj.errors.TracerLeakError):
        tj.grad(loss)(2.0)


def test_errors_name_the_line(engine: str) -> None:
    def loss(x: Any) -> Any:
        y = np.sin(x)
        return np.sum(y + np.ones(wrong))

    for _ in range(CALLS):
        wrong = 3
        np.testing.assert_allclose(tj.grad(loss)(np.ones(3)), np.cos(np.ones(3)))
        wrong = 2
        with pytest.raises(tj.errors.ShapeError, match=r"test_remembered\.py:\d+"):
            tj.grad(loss)(np.ones(3))


@pytest.mark.parametrize(
    ("count", "low", "high"), [(1, 100, 110), (400, 130, 160), (4500, np.inf, np.inf)]
)
def test_when_a_graph_is_compiled(count: int, low: float, high: float) -> None:
    x = parameter(0, Shape(ElementType.F64))
    root = x
    for _ in range(count):
        root = sin(root)
    calls = derived_cache.calls_before_compiling(Computation("chain", (x,), root))
    assert low <= calls <= high


def test_large_work_is_compiled_soon() -> None:
    entry = tj.jit(lambda x: (x @ x).sum()).lower(np.zeros((800, 800))).module.entry
    assert derived_cache.calls_before_compiling(entry) <= 5
