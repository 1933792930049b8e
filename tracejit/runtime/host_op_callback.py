"""Ops that compiled code leaves to the interpreter.

A kernel passes the op as the HLO text of a computation, then the addresses of the computation's
parameters and of the arrays that its root consists of, as `backends.tvm.library` writes it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tracejit.backends.abi import EVALUATE
from tracejit.backends.numpy import evaluate
from tracejit.graph import Computation, Instruction
from tracejit.hlo import parse
from tracejit.ops.constants import CONSTANT, PARAMETER
from tracejit.ops.custom import CUSTOM_CALL, LINEAR_ALGEBRA
from tracejit.runtime.callbacks import callback, fresh_viewer, viewer
from tracejit.shapes import TOKEN, AnyShape, Shape, TupleShape
from tracejit.targets import DeviceFunction, HostCall, device_function_for, find_target, op_of


class HostComputation:
    """A computation of arrays that the interpreter evaluates.

    ``given`` and ``made`` are the shapes of its parameters, and of the arrays of its root.
    """

    def __init__(self, text: str) -> None:
        entry = parse(text).entry
        self._root, self._parameters = entry.root, entry.parameters
        self.given = [p.array_shape for p in entry.parameters]
        self.made = _leaf_shapes(entry.root.shape)
        self._function = _function(entry)

    @functools.cached_property
    def device_function(self) -> DeviceFunction | None:
        """A function of the user's that takes the parameters where they lie, if it is all."""
        root = self._root
        given = [p for p in root.operands if p.op is PARAMETER]
        return device_function_for(root) if len(given) == len(root.operands) else None

    @property
    def users_op(self) -> Instruction | None:
        """The call of an op of the user's, if it is all."""
        root = self._root
        is_all = root.operands == self._parameters and root.op is CUSTOM_CALL
        is_all = is_all and TOKEN not in root.element_shapes
        return root if is_all and op_of(root) is not None else None

    def __call__(self, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        """The arrays of the root."""
        return _leaves(self._function(*arrays))


@functools.lru_cache(maxsize=4096)
def host_computation(text: str) -> HostComputation:
    """The computation of a module's text."""
    return HostComputation(text)


@functools.lru_cache(maxsize=4096)
def _computation(text: str) -> Callable[[tuple[int, ...]], None]:
    """What evaluates a computation, from the addresses of its parameters and results."""
    computation = host_computation(text)
    count = len(computation.given)
    if (users := computation.users_op) is not None:
        return _UsersCall(users, computation.given, computation.made)
    views = [viewer(s.dimensions, s.dtype, writeable=False) for s in computation.given]
    views += [viewer(s.dimensions, s.dtype) for s in computation.made]

    def computed(addresses: tuple[int, ...]) -> None:
        arrays = [view(address) for view, address in zip(views, addresses, strict=True)]
        results = computation(arrays[:count])
        for target, result in zip(arrays[count:], results, strict=True):
            target[...] = result

    return computed


class _UsersCall:
    """A call of a user's op, which is looked up again where the op or its kernels are replaced."""

    def __init__(self, root: Instruction, given: Sequence[Shape], made: Sequence[Shape]) -> None:
        self._root = root
        self._given = [viewer(s.dimensions, s.dtype, writeable=False) for s in given]
        self._lent = [fresh_viewer(s.dimensions, s.dtype, writeable=False) for s in given]
        self._made = [viewer(s.dimensions, s.dtype) for s in made]
        self._kept: tuple[Any, HostCall] | None = None

    def __call__(self, addresses: tuple[int, ...]) -> None:
        count = len(self._given)
        targets = [view(at) for view, at in zip(self._made, addresses[count:], strict=True)]
        call = self._call()
        if call is None:
            arrays = [view(at) for view, at in zip(self._given, addresses, strict=False)]
            made = evaluate(Computation("call", self._root.operands, self._root), arrays)
            for target, result in zip(targets, _leaves(made), strict=True):
                target[...] = result
            return
        if call.borrows:  # arrays of their own, so that it is seen which are kept
            given = [view(at) for view, at in zip(self._lent, addresses, strict=False)]
        else:
            given = [view(at).copy() for view, at in zip(self._given, addresses, strict=False)]
        call.into(given, targets, self._root.source)

    def _call(self) -> HostCall | None:
        op, kept = op_of(self._root), self._kept
        if kept is not None and kept[0] is op and kept[1].is_current:
            return kept[1]
        call = None if op is None else op.host_call_of(self._root)
        self._kept = None if call is None else (op, call)
        return call


def _function(entry: Computation) -> Callable[..., Any]:
    """What evaluates the computation.

    The library's own linear algebra is called at once: of a small matrix the interpreter's checks
    would take longer.
    """
    root, given = entry.root, entry.parameters
    fixed = tuple(o.attributes["literal"] for o in root.operands[len(given) :] if o.op is CONSTANT)
    # What has no memory of its own, such as a share of the greatest singular value, comes last.
    is_plain = root.operands[: len(given)] == given and len(given + fixed) == len(root.operands)
    if root.op is CUSTOM_CALL and is_plain:
        target: str = root.attributes["custom_call_target"]
        if target.startswith(LINEAR_ALGEBRA):
            function = find_target(target).function
            return functools.partial(_with_fixed, function, fixed) if fixed else function
    return lambda *operands: evaluate(entry, operands)


def _with_fixed(function: Callable[..., Any], fixed: tuple[Any, ...], *operands: Any) -> Any:
    return function(*operands, *fixed)


def _leaf_shapes(shape: AnyShape) -> list[Shape]:
    if isinstance(shape, TupleShape):
        return [leaf for element in shape.elements for leaf in _leaf_shapes(element)]
    return [shape] if isinstance(shape, Shape) else []


def _leaves(value: Any) -> list[np.ndarray]:
    if not isinstance(value, tuple):
        return [value]
    if not any(isinstance(each, tuple) for each in value):
        return list(value)
    return [leaf for each in value for leaf in _leaves(each)]


@callback(EVALUATE)
def evaluate_at(text: str, *addresses: int) -> None:
    """Evaluates a computation, from the addresses of its parameters and of its results."""
    _computation(text)(addresses)
