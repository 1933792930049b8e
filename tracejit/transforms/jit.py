"""`jit`: runs a function once on abstract arrays, compiles the graph, and calls that from then on.

@jit
def step(parameters, x): ...

@jit(static_argnames="depth")
def power(x, depth): ...
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Hashable, Sequence
from types import MethodType
from typing import Any, Generic, NamedTuple, ParamSpec, TypeVar, overload

import numpy as np

from tracejit import tree
from tracejit.errors import ArgumentError, ValueRangeError
from tracejit.shapes import Shape
from tracejit.trace.context import current_trace
from tracejit.trace.convert import as_instruction
from tracejit.trace.public import Traced
from tracejit.trace.recording import recording
from tracejit.trace.tracer import Tracer, lift
from tracejit.transforms.arguments import abstract_of, key_of, normalised, static_key
from tracejit.transforms.compiler import Executable, compile_module
from tracejit.transforms.lowered import Lowered, finish
from tracejit.transforms.signature import Names, Numbers, Parameters, title_of
from tracejit.transforms.staging import Staged, stage
from tracejit.tree import Structure

P = ParamSpec("P")
R = TypeVar("R")
Run = Callable[[Sequence[Any]], Any]

CACHE_SIZE = 1024
"""How many compiled versions one function keeps; the oldest goes first."""

_ndarray = np.ndarray


class Call(NamedTuple):
    """One call's arguments, taken apart."""

    leaves: list[Any]
    structure: Structure
    positions: tuple[int, ...]
    static_args: dict[int, Any]
    static_kwargs: dict[str, Any]

    def assemble(self, leaves: Sequence[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Positional and keyword arguments with other leaves."""
        dynamic, kwargs = tree.unflatten(self.structure, leaves)
        args = {**dict(zip(self.positions, dynamic, strict=True)), **self.static_args}
        return tuple(args[p] for p in sorted(args)), {**kwargs, **self.static_kwargs}


class JitFunction(Generic[P, R]):
    """A function that is compiled for each kind of arguments it is called with."""

    def __init__(
        self,
        function: Callable[P, R],
        static_argnums: Numbers,
        static_argnames: Names,
        donate_argnums: Numbers,
        target: str,
        check: bool,
        record_numpy: bool,
    ) -> None:
        functools.update_wrapper(self, function)
        self._function = function
        self._title = title_of(function)
        self._parameters = Parameters(function, self._title)
        self._static = self._parameters.static("static", static_argnums, static_argnames)
        donated, _ = self._parameters.static("donate", donate_argnums, None)
        if donated & self._static[0]:
            raise ArgumentError(f"donate_argnums: a static argument of {self._title} has no buffer")
        self._target = target
        self._check = check
        self._record_numpy = record_numpy
        self._lock = threading.RLock()
        self._versions: dict[Hashable, Run] = {}
        # Calls whose arguments are plain arrays by position: their shapes and dtypes, alternating.
        self._plain: dict[tuple[Any, ...], Run] = {}

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        if not kwargs:
            key: list[Any] = []
            for argument in args:
                if type(argument) is not _ndarray:
                    break
                key.append(argument.shape)
                key.append(argument.dtype)
            else:
                run = self._plain.get(tuple(key))
                if run is not None:
                    return run(args)  # type: ignore[no-any-return]
        return self._call(args, kwargs)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        """As a method: the instance is the first argument."""
        return self if instance is None else MethodType(self, instance)

    def __repr__(self) -> str:
        return f"<jit of {self._title}>"

    def lower(self, *args: P.args, **kwargs: P.kwargs) -> Lowered:
        """The traced function for arguments like these, which may be `Shape` objects too."""
        call = self._take_apart(args, kwargs)
        leaves = [
            leaf if isinstance(leaf, Shape) else normalised(leaf, self._describe(call, number))
            for number, leaf in enumerate(call.leaves)
        ]
        staged = self._stage(call, leaves)
        wanted = [abstract_of(leaf) for leaf in leaves]

        def flatten(*args: Any, **kwargs: Any) -> list[np.ndarray]:
            given = self._take_apart(args, kwargs)
            if given.structure != call.structure:
                raise ArgumentError(
                    f"{self._title}: lowered for arguments {call.structure}, not {given.structure}"
                )
            arrays = []
            for number, (leaf, abstract) in enumerate(zip(given.leaves, wanted, strict=True)):
                describe = self._describe(given, number)
                leaf = normalised(leaf, describe)
                if abstract_of(leaf).shape != abstract.shape:
                    raise ArgumentError(
                        f"{describe()}: lowered for {abstract.shape}, not {abstract_of(leaf).shape}"
                    )
                arrays.append(np.asarray(leaf, abstract.shape.dtype))
            return arrays

        return Lowered(staged, self._target, self._check, flatten)

    def _call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> R:
        call = self._take_apart(args, kwargs)
        leaves = call.leaves
        keys = []
        for number, leaf in enumerate(leaves):
            key = key_of(leaf)
            if key is None:
                if isinstance(leaf, Traced):
                    return self._inline(call)
                leaves[number] = leaf = normalised(leaf, self._describe(call, number))
                key = key_of(leaf)
            keys.append(key)
        static = tuple(
            (name, static_key(value, f"argument {name} of {self._title}"))
            for name, value in (*call.static_args.items(), *call.static_kwargs.items())
        )
        full_key = (call.structure, tuple(keys), static)
        run = self._versions.get(full_key)
        if run is None:
            if current_trace() is not None:
                # What the function closes over may belong to the running trace.
                return self._inline(call)
            with self._lock:
                run = self._versions.get(full_key)
                if run is None:
                    run = self._compile(call)
                    self._remember(full_key, args, call, run)
        return run(leaves)  # type: ignore[no-any-return]

    def _remember(self, key: Hashable, args: tuple[Any, ...], call: Call, run: Run) -> None:
        while len(self._versions) >= CACHE_SIZE:
            del self._versions[next(iter(self._versions))]
            self._plain.clear()
        self._versions[key] = run
        plain = len(call.leaves) == len(args) and not call.static_args and not call.static_kwargs
        if plain and all(type(a) is _ndarray and a.dtype.isnative for a in args):
            self._plain[tuple(part for a in args for part in (a.shape, a.dtype))] = run

    def _take_apart(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
        numbers, names = self._static
        if not numbers and not names:
            leaves, structure = tree.flatten((args, kwargs))
            return Call(leaves, structure, tuple(range(len(args))), {}, {})
        positions = tuple(p for p in range(len(args)) if p not in numbers)
        dynamic = tuple(args[p] for p in positions)
        leaves, structure = tree.flatten(
            (dynamic, {k: v for k, v in kwargs.items() if k not in names})
        )
        static_args = {p: args[p] for p in sorted(numbers) if p < len(args)}
        static_kwargs = {k: kwargs[k] for k in sorted(kwargs) if k in names}
        return Call(leaves, structure, positions, static_args, static_kwargs)

    def _describe(self, call: Call, number: int) -> Callable[[], str]:
        return lambda: self._parameters.describe(call.structure, number, call.positions)

    def _traceable(self) -> Callable[..., Any]:
        return recording(self._function) if self._record_numpy else self._function

    def _stage(self, call: Call, leaves: Sequence[Any]) -> Staged:
        return stage(
            self._traceable(),
            self._title,
            [abstract_of(leaf) for leaf in leaves],
            call.assemble,
            lambda number: self._describe(call, number)(),
        )

    def _compile(self, call: Call) -> Run:
        staged = self._stage(call, call.leaves)
        executable = compile_module(staged.module, self._target, self._check)
        return _runner(staged, executable, [type(leaf) is _ndarray for leaf in call.leaves])

    def _inline(self, call: Call) -> R:
        """Records the function into the running trace; its arguments are not written to."""

        def copied(leaf: Any) -> Any:
            if isinstance(leaf, Tracer):
                made = lift(leaf.instruction, leaf.is_scalar)
                made.is_weak = leaf.is_weak
                return made
            return lift(as_instruction(leaf), False) if isinstance(leaf, _ndarray) else leaf

        args, kwargs = call.assemble([copied(leaf) for leaf in call.leaves])
        return self._traceable()(*args, **kwargs)  # type: ignore[no-any-return]


def _runner(staged: Staged, executable: Executable, is_array: list[bool]) -> Run:
    """From leaves to the function's result, with as little as possible in between."""
    dtypes = [p.array_shape.dtype for p in staged.module.entry.parameters]

    def arrays(leaves: Sequence[Any]) -> Sequence[np.ndarray]:
        try:
            return [
                leaf if ready else np.asarray(leaf, dtype)
                for leaf, ready, dtype in zip(leaves, is_array, dtypes, strict=True)
            ]
        except OverflowError as error:
            raise ValueRangeError(
                f"{staged.module.name}: an integer does not fit: {error}"
            ) from error

    ready = all(is_array)
    only = staged.outputs[0] if len(staged.outputs) == 1 else None
    if ready and only is not None and staged.structure.is_leaf() and not only.is_scalar:
        return lambda leaves: executable(leaves)[0]
    if ready:
        return lambda leaves: finish(staged, executable(leaves))
    return lambda leaves: finish(staged, executable(arrays(leaves)))


@overload
def jit(
    function: Callable[P, R],
    *,
    static_argnums: Numbers = None,
    static_argnames: Names = None,
    donate_argnums: Numbers = None,
    target: str = "cpu",
    check: bool = False,
    record_numpy: bool = True,
) -> JitFunction[P, R]: ...


@overload
def jit(
    *,
    static_argnums: Numbers = None,
    static_argnames: Names = None,
    donate_argnums: Numbers = None,
    target: str = "cpu",
    check: bool = False,
    record_numpy: bool = True,
) -> Callable[[Callable[P, R]], JitFunction[P, R]]: ...


def jit(
    function: Callable[P, R] | None = None,
    *,
    static_argnums: Numbers = None,
    static_argnames: Names = None,
    donate_argnums: Numbers = None,
    target: str = "cpu",
    check: bool = False,
    record_numpy: bool = True,
) -> Any:
    """``function``, compiled for each combination of shapes and dtypes it is called with.

    Arguments and results are trees of arrays and numbers. Static arguments, by position or by
    name, may be any hashable objects; each value is compiled for. Donated arguments are ones the
    caller will not use again. ``check`` makes the compiled function raise at the first NaN or
    infinity that an operation makes. ``record_numpy=False`` leaves ``np.zeros`` and its like,
    called on no traced value, to NumPy. Also a decorator, with and without arguments.

    Raises `ArgumentError`, naming the argument, for what is no array of numbers.
    """

    def decorate(function: Callable[P, R]) -> JitFunction[P, R]:
        return JitFunction(
            function,
            static_argnums,
            static_argnames,
            donate_argnums,
            target,
            check,
            record_numpy,
        )

    return decorate if function is None else decorate(function)
