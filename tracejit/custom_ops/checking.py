"""Tests an op as a whole: what may be wrong with its kernels, shapes, derivative and batches.

opcheck(zero_out, np.array([1, 2, 3], np.int32), preserve_index=1)
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tracejit import tree
from tracejit.custom_ops.calling import bind
from tracejit.custom_ops.kernels import FORMS
from tracejit.custom_ops.op import Op
from tracejit.errors import DerivativeError, OpCheckError
from tracejit.transforms.gradient import grad
from tracejit.transforms.jit.jit import jit
from tracejit.transforms.vmap import vmap

_THREADS, _CALLS = 4, 5


def opcheck(op: Op, *args: Any, **attrs: Any) -> dict[str, str]:
    """Calls ``op(*args, **attrs)`` in every way there is, and compares; arrays come first.

    Each test's name with "passed", or why it does not apply:

    - ``shapes``: the shape function says what the kernels make.
    - ``repeated``: the same call has the same results, and its arguments are not written to.
    - ``aliasing``: outputs have memory of their own, compiled code finds its arrays as they were
      after the call, and arrays in any order in memory are taken.
    - ``kernels``: kernels of all forms agree.
    - ``jit``: compiled code agrees.
    - ``gradient``: the derivative agrees with differences, along a random direction.
    - ``vmap``: a batch is what its elements are.
    - ``threads``: calls at once do not disturb each other.

    Raises `OpCheckError` with all tests that fail.
    """
    check = _Check(op, args, attrs)
    tests = (
        check.shapes, check.repeated, check.aliasing, check.kernels, check.jit, check.gradient,
        check.vmap, check.threads,
    )  # fmt: skip
    found, failed = {}, []
    for test in tests:
        try:
            found[test.__name__] = test() or "passed"
        except Exception as error:  # whatever kernels and rules raise
            failed.append(f"{test.__name__}: {error}")
    if failed:
        raise OpCheckError(f"opcheck: {op.name} fails " + "; ".join(failed))
    return found


class _Check:
    def __init__(self, op: Op, args: Sequence[Any], attrs: dict[str, Any]) -> None:
        self._op, self._attrs = op, attrs
        self._bound = bind(op.definition, op.signature, args, attrs)
        self._arrays = [np.asarray(value) for value in self._bound.values]
        count = len(op.definition.inputs)
        self._args, self._more = list(args[:count]), args[count:]
        self._wanted = self._call(*self._args)

    def _call(self, *args: Any) -> Any:
        return self._op(*args, *self._more, **self._attrs)

    def shapes(self) -> str | None:
        if self._op.definition.shape_function is None:
            return "the op has no shape function"
        sizes = self._op.implementations.infer(self._bound.attrs, [x.shape for x in self._arrays])
        for number, (said, made) in enumerate(zip(sizes, _leaves(self._wanted), strict=True)):
            known = said is not None and None not in said
            if known and tuple(said or ()) != made.shape:
                raise _Different(f"output {number} has shape {made.shape}, not {said}")
        return None

    def repeated(self) -> str | None:
        if self._op.definition.stateful:
            return "the op is stateful"
        before = [np.array(leaf) for leaf in tree.leaves(self._args)]
        _compare(self._call(*self._args), self._wanted, exact=True)
        _compare(tree.leaves(self._args), before, exact=True)
        return None

    def aliasing(self) -> str | None:
        if self._op.definition.stateful:
            return "the op is stateful"
        first, second = _leaves(self._call(*self._args)), _leaves(self._call(*self._args))
        for number, made in enumerate(first):
            others = {
                **{f"input {n}": np.asarray(x) for n, x in enumerate(tree.leaves(self._args))},
                **{f"output {n}": y for n, y in enumerate(first[:number])},
                **{f"output {n} of another call": y for n, y in enumerate(second)},
            }
            for name, other in others.items():
                if np.shares_memory(made, other):
                    raise _Different(f"output {number} lies in the memory of {name}")
        in_columns = tree.map(lambda x: np.asfortranarray(np.asarray(x)), self._args)
        with_gaps = tree.map(_with_gaps, self._args)
        for args in (in_columns, with_gaps):
            _compare(self._call(*args), self._wanted)
            _compare(jit(self._call)(*args), self._wanted)
        leaves, structure = tree.flatten(self._args)

        def twice(order: Any, *leaves: Any) -> Any:
            """The call between two uses of arrays that the program has made."""
            made = [np.take(x, order, axis=0) if np.ndim(x) else x for x in leaves]
            before = [x[::-1] if np.ndim(x) else x for x in made]
            return before, self._call(*tree.unflatten(structure, made)), made

        sizes = {np.shape(x)[0] for x in leaves if np.ndim(x)}
        if len(sizes) != 1:
            return None
        before, found, after = jit(twice)(np.arange(*sizes), *leaves)
        _compare(found, self._wanted)
        _compare(after, leaves, exact=True)
        _compare([x[::-1] if x.ndim else x for x in _leaves(before)], leaves, exact=True)
        return None

    def kernels(self) -> str | None:
        implementations = self._op.implementations
        forms = {k.form for k in implementations.kernels if k.fits(self._bound.attrs)}
        if len(forms) < 2:
            return "there is one kernel"
        kept = implementations.kernels
        for form in sorted(forms, key=FORMS.index):
            with implementations.only(form):
                _compare(self._call(*self._args), self._wanted)
        assert implementations.kernels is kept
        return None

    def jit(self) -> str | None:
        _compare(jit(self._call)(*self._args), self._wanted)
        return None

    def gradient(self) -> str | None:
        leaves, structure = tree.flatten(self._args)
        inputs = [np.asarray(leaf) for leaf in leaves]
        places = [n for n, x in enumerate(inputs) if x.dtype.kind == "f"]
        if not places:
            return "no input is a real floating number"
        rng = np.random.default_rng(0)
        directions = {n: rng.standard_normal(inputs[n].shape) for n in places}
        weights = [
            rng.standard_normal(y.shape) if y.dtype.kind == "f" else None
            for y in _leaves(self._wanted)
        ]

        def along(step: Any, *leaves: Any) -> Any:
            moved = [
                (x + (step * directions[n]).astype(x.dtype)) if n in directions else x
                for n, x in enumerate(leaves)
            ]
            made = tree.leaves(self._call(*tree.unflatten(structure, moved)))
            pairs = zip(made, weights, strict=True)
            return sum((y * w).astype(np.float64).sum() for y, w in pairs if w is not None)

        try:
            slope = grad(along)(np.float64(0), *inputs)
        except DerivativeError:
            return "the op has no gradient"
        narrow = min(np.finfo(inputs[n].dtype).eps for n in places)
        step = float(narrow) ** (1 / 3)
        difference = (along(step, *inputs) - along(-step, *inputs)) / (2 * step)
        allowed = 50 * step**2 * (1 + abs(float(difference)))
        if not abs(float(slope) - float(difference)) <= allowed:
            raise _Different(f"the derivative is {slope:.6g}, differences give {difference:.6g}")
        return None

    def vmap(self) -> str | None:
        if self._op.definition.stateful:
            return "the op is stateful"
        batch = tree.map(lambda x: np.stack([np.asarray(x)] * 2), self._args)
        made = vmap(self._call)(*batch)
        for number in range(2):
            _compare(tree.map(lambda y, n=number: y[n], made), self._wanted)
        return None

    def threads(self) -> str | None:
        if self._op.definition.stateful:
            return "the op is stateful"
        errors: list[BaseException] = []

        def run(function: Callable[..., Any]) -> None:
            try:
                for _ in range(_CALLS):
                    _compare(function(*self._args), self._wanted)
            except BaseException as error:
                errors.append(error)

        ways = (self._call, jit(self._call))
        threads = [threading.Thread(target=run, args=(ways[n % 2],)) for n in range(_THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if errors:
            raise errors[0]
        return None


class _Different(Exception):
    """Two ways to call an op disagree."""


def _with_gaps(value: Any) -> np.ndarray:
    """The same array, with other numbers between its elements in memory."""
    array = np.asarray(value)
    return np.repeat(array[..., None], 2, axis=-1)[..., 0]


def _leaves(value: Any) -> list[np.ndarray]:
    return [np.asarray(leaf) for leaf in tree.leaves(value)]


def _compare(found: Any, wanted: Any, exact: bool = False) -> None:
    """Raises `_Different` unless both have the same arrays, up to rounding."""
    pairs = zip(_leaves(found), _leaves(wanted), strict=True)
    for number, (one, other) in enumerate(pairs):
        if one.shape != other.shape or one.dtype != other.dtype:
            raise _Different(
                f"array {number} is {one.dtype}{list(one.shape)}, not "
                f"{other.dtype}{list(other.shape)}"
            )
        near = 0.0 if exact or one.dtype.kind not in "fc" else 64 * float(np.finfo(one.dtype).eps)
        is_float = one.dtype.kind in "fc"
        if not np.allclose(one, other, rtol=near, atol=near, equal_nan=is_float):
            raise _Different(f"array {number} is {one.tolist()!r:.60}, not {other.tolist()!r:.60}")
