"""`shard_map`: a function of parts becomes one of whole arrays, run by every device of a mesh.

@shard_map(mesh=mesh, in_specs=(P(), P("batch")), out_specs=P())
def loss(weights, x):
    return lax.pmean(((x @ weights) ** 2).mean(), "batch")
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np
import optree

from tracejit import tree
from tracejit.errors import ArgumentError
from tracejit.graph import Instruction
from tracejit.sharding.arrays import ShardedArray, spread
from tracejit.sharding.boundary import gathering, taking
from tracejit.sharding.mesh import Mesh, NamedSharding, PartitionSpec
from tracejit.sharding.varying import require_same
from tracejit.trace.context import current_trace
from tracejit.trace.convert import as_instruction
from tracejit.trace.tracer import Tracer, lift
from tracejit.tracebacks import api_boundary
from tracejit.transforms.jit.jit import jit
from tracejit.tree_keys import NAMESPACE

Function = Callable[..., Any]
Specs = Any
_NUMBERS = (bool, int, float, complex)


def shard_map(
    f: Function | None = None,
    /,
    *,
    mesh: Mesh,
    in_specs: Specs,
    out_specs: Specs,
    check_vma: bool = True,
) -> Function:
    """``f`` on every device of ``mesh``, each on its part of the arguments.

    ``in_specs`` has a `PartitionSpec` for each argument, or a tree of them that the argument's tree
    begins with; ``out_specs`` for the result. Inside, `lax.psum` and the like exchange along the
    mesh's axes. Called outside of traces, every device runs the compiled function on its part
    alone; results are NumPy arrays, or under MPI `ShardedArray` where other ranks have parts.
    Inside of `jit` all devices run the whole program, and hold whole arrays outside of ``f``.

    ``check_vma`` raises `ArgumentError` where a result may differ along an axis that ``out_specs``
    does not mention. Derivatives are those of JAX with ``check_vma=False``: the transpose of
    `lax.psum` is `lax.psum`.

    Raises `ShapeError` for a dimension that the devices do not divide, and `ArgumentError` for
    specs that do not fit the trees.

    >>> tj.shard_map(
    ...     lambda x: tj.lax.psum(x, "i"),
    ...     mesh=tj.make_mesh((2,), ("i",), devices=tj.devices("cpu", 2)),
    ...     in_specs=tj.P("i"),
    ...     out_specs=tj.P(),
    ... )(np.array([1.0, 2.0]))
    array([3.])
    """
    if f is None:
        return functools.partial(
            shard_map, mesh=mesh, in_specs=in_specs, out_specs=out_specs, check_vma=check_vma
        )
    title = getattr(f, "__name__", "function")
    mapped = _Mapped(f, title, mesh, in_specs, out_specs, check_vma)

    @api_boundary
    @functools.wraps(f)
    def call(*args: Any) -> Any:
        return mapped.run(args) if current_trace() is None else mapped.record(args)

    return call


class _Mapped:
    def __init__(
        self,
        function: Function,
        title: str,
        mesh: Mesh,
        in_specs: Specs,
        out_specs: Specs,
        check_vma: bool,
    ) -> None:
        self._function = function
        self._title = title
        self._mesh = mesh
        self._in_specs = in_specs
        self._out_specs = out_specs
        self._check = check_vma
        self._programs: dict[Hashable, tuple[Any, list[NamedSharding]]] = {}

    def _shardings(self, specs: Specs, structure: tree.Structure, what: str) -> list[NamedSharding]:
        """One for each leaf of a tree that ``specs`` begins with."""
        full = tree.unflatten(structure, range(structure.num_leaves))
        try:
            entries: list[Any] = optree.broadcast_prefix(
                specs,
                full,
                is_leaf=lambda value: isinstance(value, PartitionSpec) or value is None,
                none_is_leaf=True,
                namespace=NAMESPACE,
            )
        except ValueError as error:
            raise ArgumentError(
                f"shard_map: {what} of {self._title} does not fit: {specs!r} for {structure}"
            ) from error
        made = []
        for entry in entries:
            if not isinstance(entry, PartitionSpec | None):
                raise ArgumentError(f"shard_map: {what} must hold PartitionSpecs, not {entry!r}")
            made.append(NamedSharding(self._mesh, PartitionSpec() if entry is None else entry))
        return made

    def _inputs(self, args: tuple[Any, ...]) -> tuple[list[Any], Any, list[NamedSharding]]:
        specs = self._in_specs
        if isinstance(specs, list | tuple) and not isinstance(specs, PartitionSpec):
            if len(specs) != len(args):
                raise ArgumentError(
                    f"shard_map: in_specs of {self._title} has {len(specs)} entries for "
                    f"{len(args)} arguments"
                )
            specs = tuple(specs)
        leaves, structure = tree.flatten(args)
        return leaves, structure, self._shardings(specs, structure, "in_specs")

    def record(self, args: tuple[Any, ...]) -> Any:
        """Inside of a program that all devices run."""
        leaves, structure, shardings = self._inputs(args)
        parts = [
            leaf if isinstance(leaf, _NUMBERS) else taking(sharding)(_traced(leaf))
            for leaf, sharding in zip(leaves, shardings, strict=True)
        ]
        with self._mesh.axes.bound():
            result = self._function(*tree.unflatten(structure, parts))
        made, result_structure = tree.flatten(result)
        wanted = self._shardings(self._out_specs, result_structure, "out_specs")
        values = [_traced(leaf) for leaf in made]
        if self._check:
            known = [
                (part.instruction, sharding)
                for part, sharding in zip(parts, shardings, strict=True)
                if isinstance(part, Tracer)
            ]
            require_same(self._title, known, [v.instruction for v in values], wanted)
        results = [gathering(s)(value) for value, s in zip(values, wanted, strict=True)]
        return tree.unflatten(result_structure, results)

    def run(self, args: tuple[Any, ...]) -> Any:
        """On all devices of this process, each with its part."""
        leaves, structure, shardings = self._inputs(args)
        arrays = [
            leaf if isinstance(leaf, _NUMBERS) else self._spread(leaf, sharding)
            for leaf, sharding in zip(leaves, shardings, strict=True)
        ]
        numbers = [device.id for device in self._mesh.local_devices()]
        calls = [
            tree.unflatten(
                structure, [a.part(n) if isinstance(a, ShardedArray) else a for a in arrays]
            )
            for n in numbers
        ]
        key = (structure, tuple(_kind(leaf) for leaf in tree.leaves(calls[0])))
        if key not in self._programs:
            self._programs[key] = self._compiled(calls[0], shardings)
        program, wanted = self._programs[key]
        results = [tree.flatten(result) for result in program.on_devices(calls)]
        columns = zip(*(leaves for leaves, _ in results), strict=True)
        made = [
            _assembled(dict(zip(numbers, column, strict=True)), sharding)
            for column, sharding in zip(columns, wanted, strict=True)
        ]
        return tree.unflatten(results[0][1], made)

    def _compiled(
        self, args: tuple[Any, ...], shardings: Sequence[NamedSharding]
    ) -> tuple[Any, list[NamedSharding]]:
        wanted: list[NamedSharding] = []

        @functools.wraps(self._function)
        def local(*args: Any) -> Any:
            with self._mesh.axes.bound():
                result = self._function(*args)
            leaves, structure = tree.flatten(result)
            wanted[:] = self._shardings(self._out_specs, structure, "out_specs")
            if self._check:
                pairs = zip(tree.leaves(args), shardings, strict=True)
                known = [(t.instruction, s) for t, s in pairs if isinstance(t, Tracer)]
                made = [as_instruction(leaf) for leaf in leaves]
                require_same(self._title, known, made, wanted)
            return result

        return jit(local).lower(*args).compile(), wanted

    def _spread(self, leaf: Any, sharding: NamedSharding) -> ShardedArray:
        if isinstance(leaf, ShardedArray):
            if leaf.sharding == sharding:
                return leaf
            leaf = leaf.gather()
        return spread(np.asarray(leaf), sharding, f"shard_map: an argument of {self._title}")


def _traced(leaf: Any) -> Any:
    if isinstance(leaf, Tracer):
        return leaf
    made: Instruction = as_instruction(np.asarray(leaf))
    return lift(made, False)


def _kind(leaf: Any) -> Any:
    if isinstance(leaf, _NUMBERS):
        return type(leaf)
    return leaf.shape, leaf.dtype


def _assembled(parts: dict[int, Any], sharding: NamedSharding) -> Any:
    """The result of all devices' parts; a whole one as the first device has it."""
    first = next(iter(parts.values()))
    if all(count == 1 for count in sharding.counts(np.ndim(first))):
        return first
    arrays = {number: np.asarray(part) for number, part in parts.items()}
    made = ShardedArray(sharding.global_shape(np.shape(first)), sharding, arrays)
    return np.asarray(made) if made.is_fully_addressable else made
