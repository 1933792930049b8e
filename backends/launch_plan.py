"""What a program does on a device, as data: launches, calls of libraries and of the host, loops.

    plan = LaunchPlan.from_json(text)
    plan.nodes[0].function, plan.nodes[0].arguments

Needs neither TVM nor a device, so that a program from the disk cache runs without its compiler.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

INPUT, OUTPUT, CONSTANT, WORKSPACE = "input", "output", "constant", "workspace"


@dataclass(frozen=True)
class DeviceAddress:
    """``offset`` bytes into an input, an output or a constant, by its number, or the workspace."""

    memory: str
    index: int = 0
    offset: int = 0


@dataclass(frozen=True)
class Launch:
    """A kernel on ``blocks`` times ``threads`` threads, its arguments the addresses of places.

    ``source`` is the user's line, where it is known; ``kernel`` the program's kernel that it is
    a part of.
    """

    function: str
    arguments: Sequence[DeviceAddress]
    blocks: int
    threads: int
    shared_bytes: int
    source: str = ""
    kernel: str = ""


@dataclass(frozen=True)
class HostCall:
    """The HLO ``text`` of a computation, which the host evaluates when all before has run.

    ``arguments`` are where its parameters lie, then where its results go; ``source`` is the user's
    line, where it is known.
    """

    text: str
    arguments: Sequence[DeviceAddress]
    source: str = ""
    kernel: str = ""


@dataclass(frozen=True)
class LibraryCall:
    """A call of a library, and the launches ``after`` it; ``otherwise`` are those without one.

    ``text`` describes it, see `tracejit.cuda.cublas.Product`; ``arguments`` are where its operands
    lie, then its result.
    """

    text: str
    arguments: Sequence[DeviceAddress]
    after: Sequence[Launch]
    otherwise: Sequence[Launch]
    source: str = ""
    kernel: str = ""


@dataclass(frozen=True)
class Repeat:
    """``condition``, then ``body`` while the byte at ``predicate`` is not 0, and again."""

    condition: Sequence[Node]
    predicate: DeviceAddress
    body: Sequence[Node]


@dataclass(frozen=True)
class Choose:
    """The branch that the s32 at ``selector`` numbers; the last one if it numbers none."""

    selector: DeviceAddress
    branches: Sequence[Sequence[Node]]


Node = Launch | HostCall | LibraryCall | Repeat | Choose


@dataclass(frozen=True)
class LaunchPlan:
    """A program's nodes in order; the machine code is the first ``image_bytes`` of its file.

    ``kernels`` has registers, shared and spilled bytes by the names of the functions; ``launched``
    the functions that each of the program's kernels launches, with blocks, threads and dynamic
    shared bytes.
    """

    nodes: Sequence[Node]
    image_bytes: int
    kernels: Mapping[str, tuple[int, int, int]]
    launched: Mapping[str, Sequence[tuple[str, int, int, int]]] = field(default_factory=dict)

    @property
    def has_control(self) -> bool:
        """Whether the host decides what runs, or is called."""
        return any(not isinstance(node, Launch | LibraryCall) for node in self.nodes)

    @property
    def calls_libraries(self) -> bool:
        """Whether a library may do some of the work."""
        return any(isinstance(node, LibraryCall) for node in every_node(self.nodes))

    @property
    def is_static(self) -> bool:
        """Whether the same launches run whenever it is called, and there are several."""
        return len(self.nodes) > 1 and not self.has_control

    def to_json(self) -> str:
        """What `from_json` reads."""
        return json.dumps(
            {
                "nodes": [*map(_described, self.nodes)],
                "image_bytes": self.image_bytes,
                "kernels": {name: [*use] for name, use in self.kernels.items()},
                "launched": {name: [*map(list, each)] for name, each in self.launched.items()},
            }
        )

    @staticmethod
    def from_json(text: str) -> LaunchPlan:
        """What `to_json` wrote. Raises ValueError, TypeError or LookupError for other text."""
        told = json.loads(text)
        kernels = {str(n): (int(a), int(b), int(c)) for n, (a, b, c) in told["kernels"].items()}
        launched = {
            str(name): [(str(f), int(b), int(t), int(s)) for f, b, t, s in each]
            for name, each in told["launched"].items()
        }
        nodes = [*map(_node, told["nodes"])]
        return LaunchPlan(nodes, int(told["image_bytes"]), kernels, launched)


def every_node(nodes: Sequence[Node]) -> Iterator[Node]:
    """All nodes, with those inside others."""
    for node in nodes:
        yield node
        if isinstance(node, LibraryCall):
            yield from every_node([*node.after, *node.otherwise])
        elif isinstance(node, Repeat):
            yield from every_node([*node.condition, *node.body])
        elif isinstance(node, Choose):
            for branch in node.branches:
                yield from every_node(branch)


def _described(node: Node) -> list[Any]:
    if isinstance(node, Launch):
        sizes = node.blocks, node.threads, node.shared_bytes
        return [
            "launch",
            node.function,
            [*map(_words, node.arguments)],
            *sizes,
            node.source,
            node.kernel,
        ]
    if isinstance(node, HostCall):
        return ["host", node.text, [*map(_words, node.arguments)], node.source, node.kernel]
    if isinstance(node, LibraryCall):
        parts = ([*map(_described, nodes)] for nodes in (node.after, node.otherwise))
        arguments = [*map(_words, node.arguments)]
        return ["library", node.text, arguments, *parts, node.source, node.kernel]
    if isinstance(node, Repeat):
        condition, body = ([*map(_described, nodes)] for nodes in (node.condition, node.body))
        return ["repeat", condition, _words(node.predicate), body]
    return ["choose", _words(node.selector), [[*map(_described, b)] for b in node.branches]]


def _node(given: Sequence[Any]) -> Node:
    kind, *rest = given
    if kind == "launch":
        function, arguments, blocks, threads, shared, source, kernel = rest
        places = [*map(_place, arguments)]
        sizes = int(blocks), int(threads), int(shared)
        return Launch(str(function), places, *sizes, str(source), str(kernel))
    if kind == "host":
        text, arguments, source, kernel = rest
        return HostCall(str(text), [*map(_place, arguments)], str(source), str(kernel))
    if kind == "library":
        text, arguments, after, otherwise, source, kernel = rest
        places = [*map(_place, arguments)]
        parts = _launches(after), _launches(otherwise)
        return LibraryCall(str(text), places, *parts, str(source), str(kernel))
    if kind == "repeat":
        condition, predicate, body = rest
        return Repeat([*map(_node, condition)], _place(predicate), [*map(_node, body)])
    if kind == "choose":
        selector, branches = rest
        return Choose(_place(selector), [[*map(_node, branch)] for branch in branches])
    raise ValueError(f"no node of a plan is a {kind!r}")


def _launches(given: Sequence[Any]) -> list[Launch]:
    return [node for node in map(_node, given) if isinstance(node, Launch)]


def _words(place: DeviceAddress) -> list[Any]:
    return [place.memory, place.index, place.offset]


def _place(given: Sequence[Any]) -> DeviceAddress:
    memory, index, offset = given
    if memory not in (INPUT, OUTPUT, CONSTANT, WORKSPACE):
        raise ValueError(f"no memory is called {memory!r}")
    return DeviceAddress(memory, int(index), int(offset))
