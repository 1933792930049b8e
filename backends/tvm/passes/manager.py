"""The pass manager: runs lists of passes over a graph; prints, verifies, or skips them.

TRACEJIT_DUMP=folder      writes the graph after each pass that changes it, as HLO text
TRACEJIT_VERIFY=1         verifies each of these graphs
TRACEJIT_PASSES=-a,-b     skips the passes a and b
TRACEJIT_PASSES=:12       makes only the first 12 changes, for bisecting
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from tracejit.backends.tvm.ir.graph import Graph
from tracejit.backends.tvm.ir.limits import Limits
from tracejit.errors import ArgumentError, VerificationError
from tracejit.graph import Instruction, Module
from tracejit.hlo import to_text
from tracejit.verifier import verify


@dataclass(frozen=True)
class Pass:
    """One step of the pipeline: ``run(graph, context)`` returns an equal graph.

    ``why`` explains its position. ``requires`` names passes that must have run before. It is
    skipped if ``when`` is false; a pass that is not ``optional`` always runs, because later passes
    do not support the ops that it removes.
    """

    name: str
    run: Callable[[Graph, Context], Graph]
    why: str
    requires: tuple[str, ...] = ()
    when: Callable[[Graph, Context], bool] = lambda graph, context: True
    optional: bool = True


Roots = Sequence[Instruction]


def on_roots(rewrite: Callable[[Roots], Roots]) -> Callable[[Graph, Context], Graph]:
    """A pass's ``run`` from a function of roots."""

    @functools.wraps(rewrite)
    def run(graph: Graph, context: Context) -> Graph:
        return graph.with_roots(rewrite(graph.roots))

    return run


def on_limits(rewrite: Callable[[Roots, Limits], Roots]) -> Callable[[Graph, Context], Graph]:
    """A pass's ``run`` from a function of roots and the limits."""

    @functools.wraps(rewrite)
    def run(graph: Graph, context: Context) -> Graph:
        return graph.with_roots(rewrite(graph.roots, context.limits))

    return run


@dataclass(frozen=True)
class Options:
    """The options of the pass manager."""

    dump: Path | None = None
    verify: bool = False
    left_out: frozenset[str] = frozenset()
    most_changes: int | None = None

    @staticmethod
    def of_environment(environment: Mapping[str, str] | None = None) -> Options:
        """The options in the environment. Raises `ArgumentError` for invalid ones."""
        given = os.environ if environment is None else environment
        left_out: set[str] = set()
        most = None
        for entry in filter(None, given.get("TRACEJIT_PASSES", "").split(",")):
            if entry.startswith("-"):
                left_out.add(entry[1:])
            elif entry.startswith(":") and entry[1:].isdigit():
                most = int(entry[1:])
            else:
                raise ArgumentError(
                    f"TRACEJIT_PASSES: an entry is -NAME, a pass to leave out, or :N, the number "
                    f"of changes to make; not {entry!r}"
                )
        folder = given.get("TRACEJIT_DUMP")
        return Options(
            Path(folder) if folder else None,
            given.get("TRACEJIT_VERIFY", "0") not in ("", "0"),
            frozenset(left_out),
            most,
        )

    def check(self, lists: Mapping[str, Sequence[Pass]]) -> None:
        """Raises `ArgumentError` for a name among those left out that is no optional pass's."""
        names = {each.name for passes in lists.values() for each in passes if each.optional}
        unknown = sorted(self.left_out - names)
        if unknown:
            raise ArgumentError(
                f"TRACEJIT_PASSES: there is no pass {unknown[0]!r} to leave out, only "
                f"{', '.join(sorted(names))}"
            )


@dataclass
class Session:
    """One compilation: its options, and the changes that passes have made so far."""

    options: Options = field(default_factory=Options.of_environment)
    changes: list[tuple[str, str]] = field(default_factory=list)
    """The pass and the graph's name, for each change."""
    _written: int = 0

    def changed(self, name: str, graph_name: str, before: Graph, after: Graph) -> None:
        """Called for each change that a pass makes; subclasses may override it."""

    def dump(self, graph: Graph, name: str, after: str) -> None:
        """Write the graph to the dump folder, if there is one."""
        if self.options.dump is None:
            return
        self.options.dump.mkdir(parents=True, exist_ok=True)
        text = to_text(Module(name, graph.computation(name)))
        path = self.options.dump / f"{self._written:04}-{name}-{after}.hlo"
        path.write_text(text, encoding="utf-8")
        self._written += 1


@dataclass(frozen=True)
class Context:
    """The context of a pass: the limits of the target, and where the graph is in the program.

    ``is_nested``: the graph is a loop's body or condition, or a branch. ``lists`` are the lists of
    passes by name, for passes that run others on subgraphs.
    """

    limits: Limits
    name: str = "main"
    is_nested: bool = False
    lists: Mapping[str, Sequence[Pass]] = field(default_factory=dict)
    session: Session = field(default_factory=Session)

    def inside(self, name: str) -> Context:
        """The context of a loop's body or condition, or of a branch."""
        return replace(self, name=f"{self.name}.{name}", is_nested=True)

    def run(self, name: str, graph: Graph) -> Graph:
        """The graph after the passes of the list of that name."""
        return run_passes(self.lists[name], graph, self)

    def run_one(self, name: str, each: str, graph: Graph) -> Graph:
        """The graph after one pass of the list of that name."""
        (found,) = [p for p in self.lists[name] if p.name == each]
        return _run(found, graph, self)

    def allows(self, name: str) -> bool:
        """Whether a pass is not skipped."""
        return name not in self.session.options.left_out


def run_passes(passes: Sequence[Pass], graph: Graph, context: Context) -> Graph:
    """The graph after all passes, in order."""
    for each in passes:
        graph = _run(each, graph, context)
    return graph


def _run(each: Pass, graph: Graph, context: Context) -> Graph:
    session = context.session
    if each.optional and not context.allows(each.name):
        return graph
    if not each.when(graph, context):
        return graph
    made = each.run(graph, context)
    before, after = graph.roots, made.roots
    if len(before) == len(after) and all(a is b for a, b in zip(before, after, strict=True)):
        return made
    made = made.with_ordered_effects()
    most = session.options.most_changes
    if each.optional and most is not None and len(session.changes) >= most:
        return graph
    if each.optional:
        session.changes.append((each.name, context.name))
    session.changed(each.name, context.name, graph, made)
    session.dump(made, context.name, each.name)
    if session.options.verify:
        _verify(made, context.name, each.name)
    return made


def _verify(graph: Graph, name: str, after: str) -> None:
    try:
        verify(Module(name, graph.computation(name)))
    except VerificationError as error:
        raise VerificationError(f"after the pass {after} over {name}: {error.message}") from error
