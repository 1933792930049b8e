"""A function as it was compiled for one kind of arguments, and how a call gets through it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple

import numpy as np

from tracejit import tree
from tracejit.errors import ValueRangeError
from tracejit.passes.input_layouts import Order
from tracejit.runtime.donation import require_donatable
from tracejit.transforms.jit.aliasing import Frozen, are_guarded, is_row_major
from tracejit.transforms.jit.arguments import is_device_array
from tracejit.transforms.jit.cache_report import Tier
from tracejit.transforms.jit.fast_path import Run, Shortcut, shortcut_for
from tracejit.transforms.jit.hooks import Executable, Pending
from tracejit.transforms.jit.staging import Staged
from tracejit.tree import Structure


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


Static = tuple[Collection[int], Collection[str]]
"""The positions and the names of static arguments."""


def taken_apart(args: tuple[Any, ...], kwargs: dict[str, Any], static: Static) -> Call:
    """A call with these arguments."""
    numbers, names = static
    if not numbers and not names:
        leaves, structure = tree.flatten((args, kwargs))
        return Call(leaves, structure, tuple(range(len(args))), {}, {})
    positions = tuple(p for p in range(len(args)) if p not in numbers)
    dynamic = tuple(args[p] for p in positions)
    leaves, structure = tree.flatten((dynamic, {k: v for k, v in kwargs.items() if k not in names}))
    static_args = {p: args[p] for p in sorted(numbers) if p < len(args)}
    static_kwargs = {k: kwargs[k] for k in sorted(kwargs) if k in names}
    return Call(leaves, structure, positions, static_args, static_kwargs)


class Specialization:
    """A function compiled for one kind of arguments.

    Where the program is ``pending``, ``executable`` answers until it is there. ``improvement``
    makes a better one of it, given arrays to measure both on. The leaves ``mutated`` are written
    over where that can be; copies of them, which are among the results, where not.
    ``is_special``: it is for some leaves of its key alone, which are the same array or lie in
    another order in memory. The leaves ``written`` must share no memory with others, nor with
    ``frozen`` arrays.
    """

    def __init__(
        self,
        staged: Staged,
        executable: Executable,
        call: Call,
        leaves: Sequence[Any],
        orders: Sequence[Order],
        describe: Callable[[int], str],
        pending: Pending | None = None,
        improvement: Callable[..., Executable] | None = None,
        mutated: Collection[int] = (),
        is_special: bool = False,
        frozen: Frozen = (),
    ) -> None:
        self._staged = staged
        self._describe = describe
        self._pending = pending
        self._improvement = improvement
        self._mutated = frozenset(mutated)
        self.tier = Tier("machine code" if pending is None else "interpreter")
        dtypes = [p.array_shape.dtype for p in staged.module.entry.parameters]
        self._numbers = [
            (place, type(leaf), dtype)
            for place, (leaf, dtype) in enumerate(zip(leaves, dtypes, strict=True))
            if not (isinstance(leaf, np.ndarray) or is_device_array(leaf))
        ]
        self._orders = [(place, order) for place, order in enumerate(orders) if order]
        self._finish = staged.finisher()
        self._structure = call.structure
        self._static_args = call.static_args
        # A shortcut answers None for arguments of another kind, so a result must not be None.
        may_be_none = getattr(staged.structure.type, "may_be_none", not staged.structure.num_leaves)
        self._has_shortcut = not (call.static_kwargs or may_be_none or is_special)
        self.written = staged.written
        self.frozen = frozen if self.written else ()
        self.asks_order = staged.asks_order
        self.shortcut: Shortcut | None = None
        self._executable = executable
        if pending is None:
            self._use(executable)

    def _use(self, executable: Executable) -> None:
        """From now on this one answers; other threads may be calling."""
        self._executable = executable
        if self._has_shortcut:
            self.shortcut = shortcut_for(
                self._guarded(executable.run),
                self._structure,
                self._static_args,
                self._numbers,
                self._orders,
                self._staged.bounds,
                self._finish,
            )
        self.tier.answered_by = "machine code"
        self._pending = None

    def _guarded(self, run: Run) -> Run:
        """``run`` where no written argument shares memory, with None for an answer elsewhere."""
        written, asks_order, frozen = self.written, self.asks_order, self.frozen
        if not written and not asks_order:
            return run

        def guarded(arguments: Sequence[object]) -> list[np.ndarray] | None:
            if asks_order and not all(map(is_row_major, arguments)):
                return None
            return (
                run(arguments) if not written or are_guarded(arguments, written, frozen) else None
            )

        return guarded

    def settle(self) -> bool:
        """Has machine code answer from now on, if it is there, and says whether it does.

        Raises what compiling raises.
        """
        pending = self._pending
        if pending is None:
            return True
        executable = pending.poll()
        if executable is None:
            return False
        self._use(executable)
        return True

    def improve(self, leaves: Sequence[Any]) -> None:
        """Has a better program answer from now on, where one is to be looked for."""
        improvement, self._improvement = self._improvement, None
        if improvement is not None:
            arguments = self._arrays(list(leaves))
            self._use(improvement(self._executable, arguments=arguments))

    def __call__(self, leaves: list[Any]) -> Any:
        """The function's result for leaves of the kind it is compiled for."""
        leaves = self._arrays(leaves)
        executable = self._executable
        donated = [number for number in executable.donated if number not in self._mutated]
        if donated:
            require_donatable(leaves, donated, self._describe)
        return self._finish(executable(leaves))

    def _arrays(self, leaves: list[Any]) -> list[Any]:
        """The leaves converted to the program's arguments."""
        for place, bounds in self._staged.bounds.items():
            bounds.require(leaves[place], self._describe(place))
        for place, _, dtype in self._numbers:
            try:
                leaves[place] = np.asarray(leaves[place], dtype)
            except OverflowError as error:
                raise ValueRangeError(
                    f"{self._staged.module.name}: {leaves[place]} does not fit into {dtype}"
                ) from error
        for place, order in self._orders:
            leaves[place] = leaves[place].transpose(order)
        return leaves
