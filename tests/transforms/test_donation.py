"""`jit(f, donate_argnums=…)`: results in the memory of arguments, right whatever is still read."""

from __future__ import annotations

import gc
import re
import tracemalloc
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tracejit as tj
from tests.project import checkout
from tracejit.api import executable
from tracejit.errors import ArgumentError, ReadOnlyError

F32 = np.float32
pytestmark = pytest.mark.usefixtures("machine_code")

Arrays = list[np.ndarray]


def numbers(*shape: int, seed: int = 0, dtype: Any = F32) -> np.ndarray:
    rng = np.random.default_rng(seed)
    if np.dtype(dtype).kind == "c":
        return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(dtype)
    return (rng.standard_normal(shape) * 3).astype(dtype)


def check(function: Callable[..., Any], arguments: Arrays, *donated: int) -> list[bool]:
    """Which donated arguments were handed out again; the results must be those without donation."""
    wanted = tj.tree.leaves(tj.jit(function)(*arguments))
    given = [a.copy() if n in donated else a for n, a in enumerate(arguments)]
    kept = [a.copy() for a in given]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        made = tj.tree.leaves(tj.jit(function, donate_argnums=donated)(*given))
    for one, other in zip(made, wanted, strict=True):
        np.testing.assert_array_equal(one, other)
    for number, (array, before) in enumerate(zip(given, kept, strict=True)):
        if number not in donated:
            np.testing.assert_array_equal(array, before)
    return [any(array is given[n] for array in made) for n in donated]


def descend(w: Any, g: Any) -> Any:
    return w - F32(0.1) * g


@pytest.mark.parametrize("size", [1, 7, 10, 31, 33, 100, 1001, 4096, 100_003])
def test_elementwise(size: int) -> None:
    """The last vector of a row must not compute again what it has overwritten."""
    assert check(descend, [numbers(size), numbers(size, seed=1)], 0) == [True]


@pytest.mark.parametrize("dtype", ["f2", "bfloat16", "f8", "i1", "u2", "?", "c8", "c16"])
def test_element_types(dtype: str) -> None:
    x = numbers(37, dtype=np.dtype(dtype)) if dtype != "?" else numbers(37) > 0
    y = x[::-1].copy()
    function = np.logical_xor if dtype == "?" else lambda x, y: x * y + x
    assert check(function, [x, y], 0) == [True]


@pytest.mark.parametrize("shape", [(7, 5, 3), (33, 65, 17), (64, 32, 16), (150, 131, 129)])
@pytest.mark.parametrize("dtype", ["f4", "f8", "c8"])
def test_after_a_product(shape: tuple[int, int, int], dtype: str) -> None:
    m, k, n = shape
    arrays = [numbers(*s, dtype=dtype) for s in ((m, n), (m, k), (k, n))]
    assert check(lambda w, x, y: w - x @ y, arrays, 0) == [True]
    assert check(lambda w, x, y: x @ y + w * w, arrays, 0) == [True]


def test_after_a_convolution() -> None:
    def add(x: Any, image: Any, kernel: Any) -> Any:
        return x + tj.lax.conv_general_dilated(image, kernel, (1, 1), "SAME")

    arrays = [numbers(2, 5, 9, 7), numbers(2, 3, 9, 7), numbers(5, 3, 3, 3)]
    assert check(add, arrays, 0) == [True]


STILL_READ: dict[str, Callable[[Any], Any]] = {
    "turned": lambda a: a.T + a,
    "reversed": lambda a: a[::-1] + a,
    "shifted": lambda a: np.roll(a, 1, axis=0),
    "row sums": lambda a: a + a.sum(axis=1, keepdims=True),
    "column sums": lambda a: a + a.sum(axis=0),
    "softmax": lambda a: tj.nn.softmax(a, axis=1),
    "product": lambda a: a @ a,
    "epilogue of its own product": lambda a: a @ a.T - a,
    "sorted": lambda a: np.sort(a, axis=1),
    "cumulative": lambda a: np.cumsum(a, axis=0) - a,
    "first row to all": lambda a: a - a[0],
    "two results": lambda a: (a * 2, a.sum(), a[::-1]),
    "two results in place": lambda a: (a * 2, a * 3, np.exp(a)),
    "read after": lambda a: (a * 2, (a * 2) @ a),
    "written": lambda a: tj.lax.dynamic_update_slice(a, np.zeros((2, 3), F32), (1, 1)),
    "written and read": lambda a: (a + 1, tj.lax.dynamic_update_slice(a, a[:2, :3] * 2, (1, 1))),
    "loop": lambda a: tj.lax.fori_loop(0, 5, lambda i, v: np.sin(v) + v[::-1], a),
    "loop that needs the start": lambda a: tj.lax.fori_loop(0, 5, lambda i, v: np.sin(v) + a, a),
    "branch": lambda a: tj.lax.cond(a[0, 0] > 0, lambda v: v.T * 2, lambda v: v - 1, a),
    "twice": lambda a: (a + 1, a + 1),
    "itself and another": lambda a: (a, a * 2),
    "itself twice": lambda a: (a, a),
    "callback": lambda a: tj.pure_callback(lambda v: v[::-1].copy(), a, a) + a,
}


@pytest.mark.parametrize("name", STILL_READ)
def test_while_it_is_still_read(name: str) -> None:
    assert check(STILL_READ[name], [numbers(24, 24)], 0) == [True]


@pytest.mark.parametrize("shape", [(64, 128), (77, 131), (333, 100), (17, 1023), (1000, 5)])
def test_beside_what_is_read_turned(shape: tuple[int, int]) -> None:
    """Tiles must not overlap, and what they leave over must be made as well."""
    w, g = numbers(*shape), numbers(*shape[::-1], seed=1)
    assert check(lambda w, g: (w * w - g.T, w + g.T * 3), [w, g], 0) == [True]


def test_each_in_the_place_of_another() -> None:
    x, y, z = (numbers(40, seed=n) for n in range(3))
    assert check(lambda x, y: (y, x), [x, y], 0, 1) == [True, True]
    assert check(lambda x, y: (y + 1, x + 1), [x, y], 0, 1) == [True, True]
    assert check(lambda x, y, z: (y - x, z * y, x[::-1]), [x, y, z], 0, 1, 2) == [True] * 3
    assert check(lambda x, y, z: (z, x + y), [x, y, z], 0, 1) == [True, False]


def test_random_programs() -> None:
    """Steps drawn at random over a few arrays, some of them donated."""
    steps: list[Callable[[Any, Any], Any]] = [
        lambda a, b: a + b,
        lambda a, b: a * F32(0.5) - b,
        lambda a, b: np.tanh(a),
        lambda a, b: a.T + b,
        lambda a, b: a @ b * F32(0.1),
        lambda a, b: a - b.mean(axis=1, keepdims=True),
        lambda a, b: a[::-1],
        lambda a, b: np.where(a > b, a, b),
    ]
    rng = np.random.default_rng(5)
    for _ in range(12):
        plan = [(int(rng.integers(8)), *map(int, rng.integers(0, 3, 3))) for _ in range(6)]

        def program(*arrays: Any, plan: Any = plan) -> Any:
            made = list(arrays)
            for step, target, first, second in plan:
                made[target] = steps[step](made[first], made[second])
            return tuple(made)

        assert check(program, [numbers(13, 13, seed=n) for n in range(3)], 0, 1, 2) == [True] * 3


def network(parameters: Any, x: Any, y: Any) -> Any:
    (w1, b1), (w2, b2) = parameters
    hidden = np.tanh(x @ w1 + b1)
    return ((hidden @ w2 + b2 - y) ** 2).mean()


def adam(state: Any, x: Any, y: Any) -> Any:
    parameters, moments, squares = state
    loss, gradients = tj.value_and_grad(network)(parameters, x, y)
    moments = tj.tree.map(lambda m, g: F32(0.9) * m + F32(0.1) * g, moments, gradients)
    squares = tj.tree.map(lambda s, g: F32(0.99) * s + F32(0.01) * g * g, squares, gradients)
    step = tj.tree.map(lambda m, s: F32(0.01) * m / (np.sqrt(s) + F32(1e-6)), moments, squares)
    return (tj.tree.map(lambda p, d: p - d, parameters, step), moments, squares), loss


def fresh_state() -> Any:
    sizes = ((64, 96), (96, 8))
    parameters = [(numbers(*s) / 10, np.zeros(s[1], F32)) for s in sizes]
    moments, squares = (tj.tree.map(np.zeros_like, parameters) for _ in range(2))
    return parameters, moments, squares


def test_training_loop_takes_no_memory() -> None:
    x, y = numbers(32, 64), numbers(32, 8, seed=1)
    plain, donating = tj.jit(adam), tj.jit(adam, donate_argnames="state")
    expected, state = fresh_state(), fresh_state()
    first = tj.tree.leaves(state)
    for _ in range(3):
        expected, wanted = plain(expected, x, y)
        state, loss = donating(state, x, y)
        np.testing.assert_array_equal(loss, wanted)
    for one, other in zip(tj.tree.leaves(state), tj.tree.leaves(expected), strict=True):
        np.testing.assert_array_equal(one, other)
    assert all(a is b for a, b in zip(tj.tree.leaves(state), first, strict=True))

    def most(step: Callable[..., Any], state: Any) -> int:
        gc.collect()
        tracemalloc.start()
        try:
            for _ in range(5):
                state, _ = step(state, x, y)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    assert most(donating, state) < 10_000 < sum(leaf.nbytes for leaf in first) < most(plain, state)


def test_every_kernel_of_the_step_is_counted_with_its_aliases() -> None:
    x, y = numbers(32, 64), numbers(32, 8, seed=1)
    made = tj.jit(adam, donate_argnums=0).lower(fresh_state(), x, y)
    assert made.as_text().count("may-alias") == 12
    state = fresh_state()
    kept = [leaf.copy() for leaf in tj.tree.leaves(state)]
    report = made.compile().explain(state, x, y, measure=True)
    assert report.seconds is not None
    for leaf, before in zip(tj.tree.leaves(state), kept, strict=True):
        np.testing.assert_array_equal(leaf, before)


def test_views_of_one_array_that_do_not_overlap() -> None:
    whole = numbers(20)
    x, y = whole[:10], whole[10:]
    made = tj.jit(descend, donate_argnums=0)(x, y)
    assert made is x
    np.testing.assert_array_equal(whole[:10], made)


def test_shared_memory_is_refused() -> None:
    step = tj.jit(descend, donate_argnums=0)
    x = numbers(30)
    step(x, numbers(30, seed=1))
    for first, second in ((x, x), (x[:20], x[10:]), (x[10:], x[:20]), (x, x[:])):
        before = x.copy()
        with pytest.raises(ArgumentError, match=r"argument w of descend is donated.*argument g"):
            step(first, second)
        np.testing.assert_array_equal(x, before)
    with pytest.raises(ArgumentError, match="shares memory"):
        tj.jit(lambda a, b: (a + 1, b + 1), donate_argnums=(0, 1))(x, x)


def test_read_only_arrays_are_refused() -> None:
    x = numbers(30)
    x.flags.writeable = False
    with pytest.raises(ReadOnlyError, match="argument w of descend is donated"):
        tj.jit(descend, donate_argnums=0)(x, numbers(30))


def test_what_has_to_be_copied_is_not_written_over() -> None:
    step = tj.jit(descend, donate_argnums=0)
    g = numbers(4, 5, seed=1)
    turned = numbers(5, 4).T
    swapped = numbers(4, 5).astype(">f4")
    for given in (turned, swapped):
        before = given.copy()
        np.testing.assert_allclose(step(given, g), before - F32(0.1) * g, rtol=1e-6)
        np.testing.assert_array_equal(given, before)


def test_large_arrays_in_column_order() -> None:
    x, g = np.asfortranarray(numbers(200, 200)), numbers(200, 200, seed=1)
    wanted = descend(x, g)
    np.testing.assert_allclose(tj.jit(descend, donate_argnums=0)(x, g), wanted, atol=1e-6)
    wide = np.asfortranarray(numbers(100, 300))
    wanted = wide * 2
    np.testing.assert_array_equal(tj.jit(lambda x: x * 2, donate_argnums=0)(wide), wanted)


def test_unusable_donations_are_named() -> None:
    def loss(x: Any, y: Any) -> Any:
        return x + y.sum()

    with pytest.warns(UserWarning, match=r"loss: .*argument y of loss \(f32\[3\]\)"):
        tj.jit(loss, donate_argnums=(0, 1))(numbers(4), numbers(3))


def test_numbers_have_no_memory_to_give() -> None:
    assert tj.jit(lambda x, n: x * n, donate_argnums=1)(numbers(3), 2).shape == (3,)


def test_by_name_and_by_keyword() -> None:
    def step(w: Any, *, g: Any) -> Any:
        return w - g, g * 2

    w, g = numbers(9), numbers(9, seed=1)
    made = tj.jit(step, donate_argnames=("w", "g"))(w, g=g)
    assert made[0] is w
    assert made[1] is g
    with pytest.raises(ArgumentError, match="static"):
        tj.jit(step, donate_argnames="g", static_argnames="g")


def test_checked_functions_write_over_nothing() -> None:
    x, g = numbers(5), numbers(5, seed=1)
    made = tj.jit(descend, donate_argnums=0, check=True)(x, g)
    assert made is not x


def test_jit_inside_jit_writes_over_nothing() -> None:
    step = tj.jit(descend, donate_argnums=0)
    x, g = numbers(5), numbers(5, seed=1)
    before = x.copy()
    np.testing.assert_allclose(
        tj.jit(lambda x, g: step(x, g) + x)(x, g), before * 2 - F32(0.1) * g, rtol=1e-6
    )
    np.testing.assert_array_equal(x, before)


def test_module_with_aliases() -> None:
    module = tj.jit(descend, donate_argnums=0).lower(numbers(6), numbers(6)).module
    x, g = numbers(6), numbers(6, seed=1)
    before = x.copy()
    assert tj.compile(module)(x, g) is not x
    np.testing.assert_array_equal(x, before)
    assert tj.compile(module, donate=True)(x, g) is x
    np.testing.assert_allclose(x, descend(before, g), rtol=1e-6)
    with pytest.raises(ArgumentError, match="argument 0 is donated"):
        tj.compile(module, donate=True)(x, x)


def test_the_page_s_examples(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """In files, as users have them: loops are recorded once by their source."""
    page = (checkout.ROOT / "docs" / "speed_and_memory.md").read_text(encoding="utf-8")
    names: dict[str, Any] = {}
    blocks = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    for number, block in enumerate(blocks):
        file = tmp_path / f"block_{number}.py"
        file.write_text(block, encoding="utf-8")
        exec(compile(block, str(file), "exec"), names)
    printed = capsys.readouterr().out
    assert "48.0 M" in printed
    assert "row by row, bound by" in printed


def test_an_executable_copies_what_it_must_not_write_over() -> None:
    module = tj.jit(descend, donate_argnums=0).lower(numbers(6), numbers(6)).module
    program = executable(module)
    x, g = numbers(6), numbers(6, seed=1)
    read_only = x.copy()
    read_only.flags.writeable = False
    for first, second in ((read_only, g), (x, x)):
        before = first.copy()
        assert program.run([first, second]) is None
        (made,) = program([first, second])
        np.testing.assert_allclose(made, descend(before, second), rtol=1e-6)
        np.testing.assert_array_equal(first, before)
