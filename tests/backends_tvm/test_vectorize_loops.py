"""Vectorised loops: which loops are, which must not be, and that the numbers stay NumPy's."""

from __future__ import annotations

import linecache
import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import tracejit as tj
from tracejit.backends.tvm.ir.limits import Limits
from tracejit.backends.tvm.pipeline import applied
from tracejit.errors import TracejitError
from tracejit.graph import Computation, Instruction, Module
from tracejit.ops.constants import elements_of, tuple_
from tracejit.ops.contraction import DOT_GENERAL
from tracejit.ops.control import CONDITIONAL, WHILE
from tracejit.transforms.autograph import capture_policy, counted_loops, loop_capture
from tracejit.traversal import in_order

SIZE = 6
_count = 0


@pytest.fixture(autouse=True, scope="module")
def soon() -> Iterator[None]:
    """Short loops are worth it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loop_capture, "LEAST_STEPS", 3)
        patch.setattr(capture_policy, "LEAST_OF_NESTS", 3)
        patch.setattr(Limits, "batches", lambda self, count, size=1: count > 1)
        yield


def function_of(lines: list[str]) -> Callable[..., Any]:
    """A function of x, y, z and A with these statements, whose source can be read."""
    global _count
    _count += 1
    name = f"<vectors {_count}>"
    first = "    s, k, t = 0.25, 0, 0.75"
    text = "\n".join(["def program(x, y, z, A):", first, *(f"    {line}" for line in lines)])
    text += "\n    return s, k, t\n"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    namespace: dict[str, Any] = {"np": np}
    exec(compile(text, name, "exec"), namespace)
    made: Callable[..., Any] = namespace["program"]
    return made


def arrays(seed: int = 3) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    x, y, A = (rng.uniform(0.5, 1.5, s) for s in (SIZE, SIZE, (SIZE, SIZE)))
    return [x, y, rng.integers(0, 9, SIZE), A]


def recorded(lines: list[str], given: list[np.ndarray]) -> Module:
    """The graph with its loops, which returns the results and the arrays."""
    with counted_loops():
        program = tj.autograph(function_of(lines))
        return tj.jit(lambda *args: (program(*args), args)).lower(*given).module


def vectorised(module: Module) -> Module:
    entry = module.entry
    roots = applied("vectorize-loops", elements_of(entry.root))
    return Module("vectors", Computation("vectors", entry.parameters, tuple_(roots)))


def depth(root: Instruction) -> int:
    """How deep loops are in loops."""
    inner = (
        (i.op is WHILE) + max(depth(c.root) for c in i.computations)
        for i in in_order([root])
        if i.computations
    )
    return max(inner, default=0)


def check(lines: list[str], given: list[np.ndarray]) -> tuple[int, int]:
    """The interpreter gives the same with vectors as with loops; how deep these were and are."""
    before = recorded(lines, given)
    after = vectorised(before)
    with np.errstate(all="ignore"):
        expected, found = (tj.interpret(module, *given) for module in (before, after))
    for right, ours in zip(np.asarray(expected, object), np.asarray(found, object), strict=True):
        assert np.asarray(right).dtype == np.asarray(ours).dtype
        np.testing.assert_allclose(ours, right, 1e-12, 1e-13, err_msg="\n".join(lines))
    return depth(before.entry.root), depth(after.entry.root)


INNER = "for i in range(6):"
INDEPENDENT = {
    "rows of a product": [
        INNER, "    for j in range(6):", "        A[i, j] += A[i + 1:, i] @ A[i + 1:, j]",
    ],
    "its own element": ["for j in range(6):", "    x[j] = x[j] * y[j]", "    x[j] += 1"],
    "backwards": ["for j in range(5, -1, -1):", "    x[j] = y[j] / 2"],
    "mirrored": ["for j in range(6):", "    x[j] = y[5 - j]", "    A[5 - j, 2] = x[j] + j"],
    "places around it": [
        INNER, "    for j in range(i, 6):", "        A[j - i, i] = x[j] * y[j - i]",
    ],
    "what later steps write": ["for j in range(5):", "    x[j] = x[j + 1] * 0.5"],
    "what later steps write, backwards": [
        "for j in range(5, 0, -1):", "    x[j] = x[j - 1] + y[j]",
    ],
    "a part that no step writes": [
        "for i in range(1, 6):", "    for j in range(i, 6):",
        "        A[i, j] -= A[i, :i] @ A[:i, j]",
    ],
    "a sum": ["for j in range(6):", "    s += x[j] * y[j]", "    k += 1"],
    "a difference and extremes": [
        "for j in range(6):", "    s -= x[j]", "    t = max(t, y[j])", "    k = min(k, z[j] - 4)",
    ],
    "one element for all": ["for j in range(6):", "    x[3] += y[j] * A[j, 2]"],
    "one element, and others beside it": [
        "for j in range(3):", "    x[3] = max(x[3], x[j] + y[j])",
    ],
    "an element and what lies beside it": [
        "for i in range(1, 6):", "    for j in range(i):", "        A[i, i] += A[j, i] * y[j]",
    ],
    "the last one": ["for j in range(6):", "    t = x[j]", "    y[j] = t * t"],
    "as many as there are": [
        INNER, "    for j in range(i, -1, -1):", "        s += A[i, j] * 0.5",
        "        A[i, j] = x[j] / y[i]", "    y[i + 1:] += s",
    ],
    "branches": ["for j in range(6):", "    x[j] = y[j] if z[j] > 3 else -x[j]"],
    "integers": ["for j in range(6):", "    z[j] = z[j] // 2 + j % 4"],
    "slices": [
        INNER, "    for j in range(i + 1, 6):", "        A[:, j] -= A[:, i] * (A[:, i] @ A[:, j])",
    ],
    "windows": ["for j in range(1, 5):", "    y[j] = x[j - 1:j + 2].sum()"],
}  # fmt: skip


@pytest.mark.parametrize("name", INDEPENDENT)
def test_independent_steps_are_vectors(name: str) -> None:
    before, after = check(INDEPENDENT[name], arrays())
    assert after == before - 1


WHOLE_NESTS = {
    "an element of each": [
        INNER, "    for j in range(6):", "        for n in range(6):",
        "            A[i, j] -= x[n] * y[n]",
    ],
    "a row for all": [INNER, "    for j in range(6):", "        A[i] += x[j] * y"],
}  # fmt: skip


@pytest.mark.parametrize("name", WHOLE_NESTS)
def test_nests_that_add_to_one_place_are_vectors(name: str) -> None:
    assert check(WHOLE_NESTS[name], arrays())[1] == 0


def test_no_step_writes_nothing() -> None:
    def program(x: Any, n: Any) -> Any:
        def step(k: Any, x: Any) -> Any:
            return x.at[2].set(np.maximum(x[2], 7.0) + k)

        return tj.lax.fori_loop(0, n, step, x)

    x = np.arange(4.0)
    module = tj.jit(program).lower(x, np.int64(0)).module
    for steps, last in ((0, 2.0), (1, 7.0), (3, 10.0)):
        for ours in (tj.jit(program), lambda *a: tj.interpret(vectorised(module), *a)[0]):
            np.testing.assert_array_equal(ours(x, np.int64(steps)), [0, 1, last, 3])


DEPENDENT = {
    "the one before": ["for j in range(1, 6):", "    x[j] = x[j - 1] * 0.5"],
    "the one behind, backwards": ["for j in range(4, -1, -1):", "    x[j] = x[j + 1] + y[j]"],
    "its own element, one further": [
        "for j in range(5):", "    x[j + 1] += y[j]", "    y[j] = x[j]",
    ],
    "overlapping windows": ["for j in range(5):", "    x[j:j + 2] += 0.5 * y[j]"],
    "one place": ["for j in range(6):", "    x[0] = x[0] * 0.5 + y[j]"],
    "two places": ["for j in range(5):", "    x[j] = 1", "    x[j + 1] = y[j]"],
    "the sum so far": ["for j in range(6):", "    s += x[j]", "    y[j] = s"],
    "the one before, in a variable": ["for j in range(6):", "    y[j] = t", "    t = x[j]"],
    "a triangle": [
        "for i in range(1, 6):", "    for j in range(i):",
        "        A[i, j] -= A[i, :j] @ A[:j, j]",
    ],
    "a part that one before has written": [
        INNER, "    for j in range(i, 6):", "        A[i, j] -= A[i, :i + 1] @ A[:i + 1, j]",
    ],
    "the whole": ["for j in range(6):", "    x[j] = x.sum()"],
    "places that meet": ["for j in range(6):", "    A[j, 5 - j] = 1", "    s += A[5 - j, j]"],
    "two mirrored": ["for j in range(6):", "    x[j] = x[5 - j]"],
    "one element that others may be": ["for j in range(6):", "    x[3] += x[j] * y[j]"],
    "one element and its row": ["for j in range(6):", "    A[2, 3] += A[2] @ y * x[j]"],
}  # fmt: skip


@pytest.mark.parametrize("name", DEPENDENT)
def test_dependent_steps_stay_a_loop(name: str) -> None:
    before, after = check(DEPENDENT[name], arrays())
    assert after == before


HIDDEN = {
    "in a masked part": INDEPENDENT["a part that no step writes"],
    "in steps that are none": INDEPENDENT["as many as there are"],
}


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("name", HIDDEN)
def test_what_does_not_count_may_be_anything(name: str, value: float) -> None:
    for place in np.ndindex(SIZE, SIZE):
        given = arrays()
        given[-1][place] = value
        check(HIDDEN[name], given)


def test_empty_ranges_leave_everything() -> None:
    given = arrays()
    check(["for i in range(3):", "    for j in range(i + 3, 4):", "        x[j] = t = y[i]"], given)


def test_negative_zeros_stay() -> None:
    given = arrays()
    given[0][:] = -0.0
    module = recorded(["s = -x[0] * 0 - 0.0", "for j in range(6):", "    s += x[j]"], given)
    results = [np.signbit(tj.interpret(m, *given)[0]) for m in (module, vectorised(module))]
    assert results[0] == results[1]


@pytest.mark.parametrize("name", ["rows of a product", "a part that no step writes", "slices"])
def test_compiled(name: str) -> None:
    given, expected = arrays(), arrays()
    function_of(INDEPENDENT[name])(*expected)
    found = tj.compile(recorded(INDEPENDENT[name], given))(*given)
    for right, ours in zip(expected, found[3:], strict=True):
        np.testing.assert_allclose(ours, right, 1e-12, 1e-13)


def test_products_that_no_step_has_a_part_in_come_before_the_loop() -> None:
    lines = [
        "for i in range(5, -1, -1):",
        "    A[i:, i] = A[i, i:] = (y[i] * B[:, i]) @ B[:, i:] / (1 + abs(s))",
        "    s = s + A[i, i]",
    ]
    given, expected = arrays(), arrays()
    function_of(["B = A + 1", *lines])(*expected)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Limits, "hoists", lambda self, count, nbytes=0: count > 1)
        module = vectorised(recorded(["B = A + 1", *lines], given))
    assert sum(i.op is DOT_GENERAL for i in in_order([module.entry.root])) == 1
    assert depth(module.entry.root) == 1
    found = tj.interpret(module, *given)
    for right, ours in zip(expected, found[3:], strict=True):
        np.testing.assert_allclose(ours, right, 1e-12, 1e-13)


BRANCHES = {
    "s = s * 2 if x[0] > 1 else s - k": 0,
    "k = (k ^ 3 if k & 1 else k >> 1) if s > 0 else 7": 0,
    "s = np.sin(s) if x[0] > 1 else s": 1,
    "s = s / k if x[0] > 1 else s": 1,
    "x = x + 1 if x[0] > 1 else x": 1,
}
BRANCHES_THAT_WRITE = {
    ("x[2] = s", "x[2] += y[3]"): 0,
    ("x[2] = s", "pass"): 0,
    ("pass", "x[2] = max(x[3], y[2])"): 0,
    ("x[2] = s", "x[3] = s"): 1,
    ("x[2:4] = s", "x[2:4] = y[:2]"): 1,
    ("x[2] = np.sin(s)", "x[2] = s / k"): 1,
}


@pytest.mark.parametrize("line", BRANCHES)
def test_branches_that_do_little_are_choices(line: str) -> None:
    for seed in range(4):
        given = arrays(seed)
        lines = ["s = s + y[0]", "k = z[0]", line, "t = x.sum()"]
        before = recorded(lines, given)
        after = vectorised(before)
        expected, found = (tj.interpret(module, *given) for module in (before, after))
        for right, ours in zip(expected, found, strict=True):
            np.testing.assert_array_equal(ours, right)
        branches = [i for i in in_order([after.entry.root]) if i.op is CONDITIONAL]
        assert len(branches) == BRANCHES[line]


@pytest.mark.parametrize("sides", BRANCHES_THAT_WRITE)
def test_branches_that_write_one_element_are_choices(sides: tuple[str, str]) -> None:
    for seed in range(4):
        given = arrays(seed)
        lines = ["s = s + y[0]", "k = z[0]", "if x[0] > y[0]:", f"    {sides[0]}", "else:"]
        before = recorded([*lines, f"    {sides[1]}"], given)
        after = vectorised(before)
        expected, found = (tj.interpret(module, *given) for module in (before, after))
        for right, ours in zip(expected, found, strict=True):
            np.testing.assert_array_equal(ours, right)
        branches = [i for i in in_order([after.entry.root]) if i.op is CONDITIONAL]
        assert len(branches) == BRANCHES_THAT_WRITE[sides]


def test_loops_of_users() -> None:
    def program(x: Any, y: Any) -> Any:
        def step(i: Any, state: Any) -> Any:
            total, most = state
            return total + x[i] * y[i], np.maximum(most, x[i])

        return tj.lax.fori_loop(0, 6, step, (0.0, x[0]))

    given = arrays()[:2]
    module = tj.jit(program).lower(*given).module
    assert depth(module.entry.root) == 1
    assert depth(vectorised(module).entry.root) == 0
    total, most = tj.jit(program)(*given)
    np.testing.assert_allclose([total, most], [given[0] @ given[1], given[0].max()])


# Programs that are made up

OWN = ["j", "j", "j", "5 - j"]
OTHERS = ["j - 1", "j + 1", "0", "5", "i", "5 - i", "i - 1", "i + j", "j - i"]
PARTS = ["[:j]", "[j:]", "[1:-1]", "[:]", "[j:j + 2]", "[:i]", "[i:]", "[i + 1:]", "[:i + 1]"]
OUTER = ["6", "1, 6", "5, -1, -1", "4"]
RANGES = ["6", "1, 6", "5", "5, -1, -1", "i", "i, 6", "i + 1, 6", "i, -1, -1", "5, i, -1", "6 - i"]


def made_up(draw: random.Random) -> list[str]:
    """A loop of a loop, of which a step mostly keeps to itself."""

    def place(own: float) -> str:
        return draw.choice(OWN if draw.random() < own else OTHERS)

    def number() -> str:
        part = draw.choice(PARTS)
        return draw.choice(
            [
                f"A[{place(0.5)}, {place(0.5)}]",
                f"{draw.choice('xyz')}[{place(0.7)}]",
                f"A[{part[1:-1]}, {place(0.3)}] @ y{part}",
                f"x{part}.{draw.choice(['sum', 'max'])}()",
                "0.1 * j",
                draw.choice("st"),
            ]
        )

    def value() -> str:
        form = draw.choice(["np.tanh({}) + 0.5 * np.tanh({})", "{} / (1 + abs({}))"])
        return form.format(number(), number())

    def statement() -> str:
        other = draw.choice(["i", "0", "5 - i"]) if draw.random() < 0.8 else place(0.5)
        places = [place(0.9), other]
        draw.shuffle(places)
        return draw.choice(
            [
                f"A[{', '.join(places)}] {draw.choice(['=', '+='])} {value()}",
                f"{draw.choice('xy')}[{place(0.9)}] = {value()}",
                f"z[{place(0.9)}] = j // 2 + z[{place(0.8)}] * 3",
                draw.choice([f"s += {value()}", f"t = max(t, {value()})", "k += 1"]),
                f"t = {value()}",
                f"x[j] = y[j] if {draw.choice(['j % 2 == 0', 'x[j] > 1'])} else {value()}",
            ]
        )

    body = [f"        {statement()}" for _ in range(draw.randint(1, 3))]
    ranges = draw.choice(OUTER), draw.choice(RANGES)
    return [f"for i in range({ranges[0]}):", f"    for j in range({ranges[1]}):", *body]


@pytest.mark.parametrize("seed", range(40))
def test_any_program(seed: int) -> None:
    draw = random.Random(seed)
    for _ in range(4):
        lines, given = made_up(draw), arrays(draw.randrange(99))
        if draw.random() < 0.3:
            draw.choice([given[0], given[1]])[draw.randrange(SIZE)] = draw.choice([np.nan, np.inf])
        try:
            function_of(lines)(*arrays())
        except (IndexError, ValueError):
            continue
        try:
            check(lines, given)
        except TracejitError:
            # Slices of unknown size that do not fit are refused, where loops are recorded once.
            continue
