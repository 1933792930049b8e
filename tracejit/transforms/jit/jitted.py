"""What `jit` returns: a function with a program for each kind of arguments."""

from __future__ import annotations

import functools
import math
import sys
import time
from collections.abc import Callable, Collection, Hashable, Sequence
from dataclasses import replace
from functools import partial
from threading import get_ident
from types import MethodType
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar

import numpy as np

from tracejit.backends.target import Target
from tracejit.errors import ArgumentError
from tracejit.graph import mark
from tracejit.loading import load, supplied
from tracejit.passes.input_layouts import Order, in_memory_order
from tracejit.runtime.locks import ProcessLock
from tracejit.runtime.progress import reported
from tracejit.shapes import Shape
from tracejit.sources import warn
from tracejit.trace.context import Limit, current_trace
from tracejit.trace.object_state import frozen_values
from tracejit.trace.outside_world import FrozenValueWarning
from tracejit.trace.public import adopted
from tracejit.trace.recording import recording
from tracejit.trace.table import Traced, find_traced
from tracejit.trace.tracer import Tracer, lift
from tracejit.tracebacks import api_boundary, hide_internal_frames
from tracejit.transforms.disabling import PLAIN_THREADS
from tracejit.transforms.jit import trace_limit
from tracejit.transforms.jit.aliasing import (
    Twins,
    frozen_arrays,
    orders_in_memory,
    require_apart,
    twins,
)
from tracejit.transforms.jit.arguments import (
    abstract_of,
    as_shape,
    is_device_array,
    key_of,
    normalised,
    order_of_argument,
    static_key,
)
from tracejit.transforms.jit.cache_report import (
    REMEMBERED,
    CacheReport,
    Compilation,
    Tier,
    compilation,
    frozen_in_words,
)
from tracejit.transforms.jit.fast_path import Shortcut
from tracejit.transforms.jit.hooks import (
    Executable,
    begin_compiling,
    compile_module,
    planned_bytes,
)
from tracejit.transforms.jit.signature import (
    Names,
    Numbers,
    Parameters,
    shown_signature,
    title_of,
)
from tracejit.transforms.jit.specialization import Call, Specialization, taken_apart
from tracejit.transforms.jit.staging import Staged, stage

if TYPE_CHECKING:
    from tracejit.transforms.jit.lowered import Lowered
    from tracejit.transforms.jit.tuned import Tune

P = ParamSpec("P")
R = TypeVar("R")

CACHE_SIZE = 1024
"""How many compiled versions one function keeps; the oldest goes first."""
_PAUSE_SECONDS = 0.005


class JitFunction(Generic[P, R]):
    """A function that is compiled for each kind of arguments it is called with."""

    __name__: str
    __qualname__: str
    __wrapped__: Callable[P, R]

    def __init__(
        self,
        function: Callable[P, R],
        static_argnums: Numbers,
        static_argnames: Names,
        donate_argnums: Numbers,
        donate_argnames: Names,
        target: str,
        check: bool,
        fast_math: bool,
        record_numpy: bool,
        memory_budget: int | None,
        autograph: bool,
        tiered: bool,
        tune: float | None,
        rewritten: Callable[[], Callable[P, R] | None] | None = None,
        mutated: tuple[Collection[int], Collection[str]] = ((), ()),
    ) -> None:
        if not callable(function):
            raise ArgumentError(f"jit: a function is needed, not {type(function).__name__}")
        functools.update_wrapper(self, function)
        self._function = (
            load("tracejit.transforms.autograph").autograph(function) if autograph else function
        )
        # The last results are the new values of these arguments, which are written over.
        self._mutated = ((), ()) if check or tiered or tune is not None else mutated
        self._rewritten = rewritten or partial(trace_limit.with_loops, self._function)
        self._title = title_of(function)
        self._parameters = Parameters(function, self._title)
        self._static = self._parameters.static("static", static_argnums, static_argnames)
        self._donated = self._parameters.static("donate", donate_argnums, donate_argnames)
        if any(given & fixed for given, fixed in zip(self._donated, self._static, strict=True)):
            raise ArgumentError(f"donate_argnums: a static argument of {self._title} has no buffer")
        if tiered and memory_budget is not None:
            raise ArgumentError(
                f"jit of {self._title}: tiered=True does not go with memory_budget=, to which the "
                "interpreter does not keep"
            )
        if tune is not None and (tiered or check):
            other = "check=True, which interprets" if check else "tiered=True, which does not wait"
            raise ArgumentError(f"jit of {self._title}: tune= does not go with {other}")
        self._tune: Tune | None = None
        if tune is not None:
            self._tune = load("tracejit.transforms.jit.tuned").Tune(tune, self._title)
        self._target = Target(target, fast_math)
        self._check = check
        self._record_numpy = record_numpy
        self._memory_budget = memory_budget
        # Checked functions are interpreted for good.
        self._tiered = tiered and not check
        self._lock = ProcessLock()
        self._versions: dict[Hashable, Specialization] = {}
        self.derived: dict[Hashable, Any] = {}
        """What `of_jitted` keeps of transformations of the function."""
        self._latest: Shortcut | None = None
        self._compilations: tuple[tuple[Compilation, Tier], ...] = ()
        self._count = 0
        self._changed: tuple[str, ...] = ()
        self.options = {
            "static_argnums": static_argnums,
            "static_argnames": static_argnames,
            "donate_argnums": donate_argnums,
            "donate_argnames": donate_argnames,
            "target": target,
            "check": check,
            "fast_math": fast_math,
            "record_numpy": record_numpy,
            "memory_budget": memory_budget,
            "autograph": autograph,
            "tiered": tiered,
            "tune": tune,
        }

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        if PLAIN_THREADS and get_ident() in PLAIN_THREADS:
            return self._function(*args, **kwargs)
        shortcut = self._latest
        if shortcut is not None:
            result = shortcut(args, kwargs)
            if result is not None:
                return result  # type: ignore[no-any-return]
        try:
            return self._call(args, kwargs)
        except Exception as error:
            hide_internal_frames(error)
            raise

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        """As a method: the instance is the first argument."""
        return self if instance is None else MethodType(self, instance)

    def __repr__(self) -> str:
        signature = shown_signature(self._function)
        return f"<jit of {self._title}{signature}: {self.cache_report().brief}>"

    def _repr_html_(self) -> str:
        """The compilations as a table, for notebooks."""
        html: str = supplied("display").html_of(self)
        return html

    def __reduce__(self) -> Any:
        """Pickled by name, where the name leads to it, as functions are; else by what it wraps."""
        return load("tracejit.transforms.jit.pickling").reduced(
            self, sys._getframe(1), self.options
        )

    @property
    def is_checked(self) -> bool:
        """Whether every call is interpreted, and looked at."""
        return self._check

    def like_it(self, function: Callable[..., Any]) -> JitFunction[..., Any]:
        """Another function of the same arguments, jitted in the same way; none is given away."""
        own: dict[str, Any] = {"donate_argnums": None, "donate_argnames": None}
        own |= {"autograph": False, "tune": None}
        return JitFunction(function, **(self.options | own))

    def cache_report(self) -> CacheReport:
        """How often the function was compiled, and what was new each time; print it."""
        records = tuple(
            replace(record, answered_by=tier.answered_by) for record, tier in self._compilations
        )
        seen = frozen_values(self._function) if self._count else {}
        frozen = tuple(frozen_in_words(name, value) for name, value in seen.items())
        return CacheReport(self._title, self._count, records, len(self._versions), frozen)

    def wait_until_compiled(self, timeout: float | None = None) -> None:
        """Returns when machine code answers every kind of call made so far (``tiered=True``).

        Raises `CompilationError` if there will be none, and `TimeoutError` if it takes longer than
        ``timeout`` seconds.
        """
        end = math.inf if timeout is None else time.monotonic() + timeout
        with self._lock:
            versions = tuple(self._versions.values())
        for version in versions:
            while not version.settle():
                if time.monotonic() > end:
                    raise TimeoutError(f"{self._title} is not compiled after {timeout} seconds")
                time.sleep(_PAUSE_SECONDS)

    def clear_cache(self) -> None:
        """Forgets every compiled version. What is on disk stays."""
        with self._lock:
            self._versions.clear()
            self.derived.clear()
            self._latest = None

    @api_boundary
    def lower(self, *args: P.args, **kwargs: P.kwargs) -> Lowered:
        """The traced function for arguments like these; `ShapeDtypeStruct` and `Shape` are, too."""
        call = self._take_apart(args, kwargs)
        leaves = [
            leaf if isinstance(leaf, Shape) else normalised(leaf, self._describe(call, number))
            for number, leaf in enumerate(map(as_shape, call.leaves))
        ]
        staged = self._stage(call, leaves)
        wanted = [abstract_of(leaf) for leaf in leaves]
        flatten = load("tracejit.transforms.jit.argument_adapter").Conforming(
            self._parameters, self._static, call, wanted, staged.bounds
        )
        arguments: Sequence[np.ndarray] = ()
        if self._tune is not None:
            arguments = load("tracejit.transforms.jit.tuned").stand_ins(staged.module, leaves)
        check = self._check and self._tune is None
        made: Lowered = load("tracejit.transforms.jit.lowered").Lowered(
            staged, self._target, check, flatten, self._paths(call), self._tune, arguments
        )
        return made

    def forget(self) -> None:
        """Drops all programs: the next call traces anew, as after an edit of a helper."""
        with self._lock:
            self._latest = None
            self._versions.clear()
            self.derived.clear()

    def warn_of(self, changed: Sequence[str]) -> None:
        """Warns at the next call of globals with other values than while tracing."""
        self._latest = None
        self._changed = tuple(changed)

    def _call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> R:
        if self._changed:
            names, self._changed = ", ".join(self._changed), ()
            warn(
                f"{self._title}: {names} changed since the function was traced, and its programs "
                "do not see that; pass what changes as an argument",
                FrozenValueWarning,
            )
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
        static = (
            *((p, static_key(v, self._static_name(p))) for p, v in call.static_args.items()),
            *((k, static_key(v, self._static_name(k))) for k, v in call.static_kwargs.items()),
        )
        full_key: tuple[Hashable, ...] = (call.structure, tuple(keys), static)
        version = self._versions.get(full_key)
        if version is None:
            if current_trace() is not None:
                # What the function closes over may belong to the running trace.
                return self._inline(call)
            version = self._made_version(full_key, call)
        orders: tuple[Order, ...] = ()
        if version.asks_order:
            orders = orders_in_memory(leaves, lambda n: self._describe(call, n)())
            if orders:
                full_key = (*full_key, orders)
                version = self._made_version(full_key, call, orders=orders)
        if version.written:
            same = twins(leaves, version.written)
            require_apart(
                leaves,
                version.written,
                lambda n: self._describe(call, n)(),
                same,
                version.frozen,
            )
            if same:
                version = self._made_version((*full_key, tuple(same.items())), call, same, orders)
        version.settle()
        self._latest = version.shortcut
        return version(leaves)  # type: ignore[no-any-return]

    def _made_version(
        self, key: Hashable, call: Call, same: Twins | None = None, orders: Sequence[Order] = ()
    ) -> Specialization:
        """The version with this key, compiled if it is not there; ``same`` are one array.

        The leaves lie in memory in these ``orders``, if there are any.
        """
        with self._lock:
            version = self._versions.get(key)
            if version is None:
                start = time.perf_counter()
                version = self._compile(call, same, orders)
                self._remember(key, version)
                seconds = time.perf_counter() - start
                earlier = tuple(record for record, _ in self._compilations)
                record = compilation(self._described(call, same), earlier, seconds)
                self._compilations = (*self._compilations, (record, version.tier))[-REMEMBERED:]
                self._count += 1
                if "IPython" in sys.modules:
                    load("tracejit.transforms.jit.edited").watch(self)
                # Interrupted, it is answered from now on by what is compiled already.
                version.improve(call.leaves)
        return version

    def _remember(self, key: Hashable, version: Specialization) -> None:
        while len(self._versions) >= CACHE_SIZE:
            del self._versions[next(iter(self._versions))]
        self._versions[key] = version

    def _take_apart(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
        return taken_apart(args, kwargs, self._static)

    def _describe(self, call: Call, number: int) -> Callable[[], str]:
        return lambda: self._parameters.describe(call.structure, number, call.positions)

    def _described(self, call: Call, same: Twins | None = None) -> dict[str, str]:
        """Each argument in words, by its name: f64[3], float, or the value of a static one."""
        described = {}
        names = self._paths(call)
        for number, (name, leaf) in enumerate(zip(names, call.leaves, strict=True)):
            if same is not None and number in same:
                described[name] = f"the same array as {names[same[number]]}"
                continue
            kind = abstract_of(leaf)
            python = type(leaf).__name__ if kind.is_weak else str(kind.shape)
            order = order_of_argument(leaf)
            described[name] = f"{python} in order {order}" if order else python
        for place, value in call.static_args.items():
            described[self._parameters.name_of(place)] = f"= {value!r}"
        described.update({name: f"= {value!r}" for name, value in call.static_kwargs.items()})
        return described

    def _paths(self, call: Call) -> list[str]:
        return self._parameters.paths(call.structure, call.positions)

    def _static_name(self, which: int | str) -> str:
        name = self._parameters.name_of(which) if isinstance(which, int) else which
        return f"argument {name} of {self._title}"

    def _stage(
        self,
        call: Call,
        leaves: Sequence[Any],
        same: Twins | None = None,
        memory: Sequence[Order] = (),
    ) -> Staged:
        def assemble(values: Sequence[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
            if same is None:
                return call.assemble(values)
            return call.assemble([values[same.get(n, n)] for n in range(len(values))])

        def record(function: Callable[P, R], limit: Limit | None) -> Staged:
            return stage(
                function,
                self._title,
                [abstract_of(leaf) for leaf in leaves],
                assemble,
                lambda number: self._describe(call, number)(),
                self._record_numpy,
                limit,
                memory,
            )

        start = mark()
        with reported(self._title, tracing=lambda: mark() - start):
            staged = trace_limit.staged(self._function, self._rewritten, record)
        module = staged.module
        if self._memory_budget is not None:
            within_budget = load("tracejit.passes.rematerialize").within_budget
            planned = partial(planned_bytes, target=self._target)
            module = within_budget(module, self._memory_budget, planned)
        donated = self._leaves_of(self._donated, call, leaves)
        if donated:
            describe = partial(self._parameters.describe, call.structure, positions=call.positions)
            module = load("tracejit.passes.donation").donating(module, donated, describe)
        return replace(staged, module=module)

    def _leaves_of(
        self,
        arguments: tuple[Collection[int], Collection[str]],
        call: Call,
        leaves: Sequence[Any],
    ) -> list[int]:
        """The numbers of the arrays among the leaves that are in these arguments."""
        numbers, names = arguments
        if not numbers and not names:
            return []
        positional, keywords = call.structure.children()
        given = [position in numbers for position in call.positions]
        given += [name in names for name in keywords.entries()]
        children = [*positional.children(), *keywords.children()]
        flags = [flag for flag, c in zip(given, children, strict=True) for _ in range(c.num_leaves)]
        kinds = (np.ndarray, Shape)
        is_array = [isinstance(leaf, kinds) or is_device_array(leaf) for leaf in leaves]
        return [n for n, flag in enumerate(flags) if flag and is_array[n]]

    def _compile(
        self, call: Call, same: Twins | None = None, memory: Sequence[Order] = ()
    ) -> Specialization:
        leaves = [normalised(leaf, self._describe(call, n)) for n, leaf in enumerate(call.leaves)]
        staged = self._stage(call, leaves, same, memory)
        orders = [order_of_argument(leaf) for leaf in leaves]
        module = staged.module
        mutated = self._leaves_of(self._mutated, call, leaves)
        if mutated:
            module = load("tracejit.passes.donation").written_over(module, mutated)
        module = in_memory_order(module, orders)
        if module.input_output_alias and any(orders):
            module = load("tracejit.passes.donation").kept_aliases(module)
        describe = partial(self._parameters.describe, call.structure, positions=call.positions)

        def answered_by(executable: Executable, **options: Any) -> Specialization:
            return Specialization(
                staged,
                executable,
                call,
                leaves,
                orders,
                describe,
                is_special=bool(same or memory),
                frozen=frozen_arrays(self._function) if staged.written else (),
                **options,
            )

        if self._tune is not None:
            improve = partial(self._tune.improved, module=module, target=self._target)
            return answered_by(self._tune.compiled(module, self._target), improvement=improve)
        if not self._tiered:
            executable = compile_module(module, self._target, self._check)
            return answered_by(executable, mutated=mutated)
        pending = begin_compiling(module, self._target)
        found = pending.poll()
        if found is not None:
            return answered_by(found)
        interim: Executable = load("tracejit.transforms.jit.tiered").Interim(module, pending)
        return answered_by(interim, pending=pending)

    def _inline(self, call: Call) -> R:
        """Records the function into the running trace; its arguments are not written to."""
        copies: dict[int, Any] = {}

        def copied(leaf: Any) -> Any:
            if isinstance(leaf, Tracer):
                # One array under two names stays one.
                made = copies.get(id(leaf))
                if made is None:
                    made = copies[id(leaf)] = lift(leaf.instruction, leaf.is_scalar)
                    made.is_weak = leaf.is_weak
                    made.lay_like(leaf)
                return made
            return adopted(leaf)

        trace = current_trace()
        if trace is None:
            # In a thread of its own: the values know their trace, or that it has ended.
            traced = find_traced(call.leaves)
            assert traced is not None, "nothing is being traced"
            with traced.owner.resumed():
                return self._inline(call)
        records = self._record_numpy and trace.record_numpy
        function = trace_limit.as_recorded(self._function)
        function = recording(function) if records else function
        given = [copied(leaf) for leaf in call.leaves]
        args, kwargs = call.assemble(given)
        result = function(*args, **kwargs)
        written = [n for n, leaf in enumerate(given) if isinstance(leaf, Tracer) and leaf.version]
        if written:
            ids = [id(leaf) for leaf in given]
            same = {n: ids.index(each) for n, each in enumerate(ids)}
            require_apart(call.leaves, written, lambda n: self._describe(call, n)(), same)
        return result  # type: ignore[no-any-return]
