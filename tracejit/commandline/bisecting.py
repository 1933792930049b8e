"""``bisect``: the smallest part of a module that computes otherwise, and the pass that does it."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tracejit import api, tree
from tracejit.backends.target import Target
from tracejit.commandline.files import (
    Commands,
    arguments_for,
    command,
    random_value,
    read_arrays,
    read_module,
    write,
)
from tracejit.graph import Computation, Instruction, Module
from tracejit.hlo import to_text
from tracejit.loading import load
from tracejit.ops.constants import PARAMETER, parameter
from tracejit.passes.delta_debugging import reduced
from tracejit.traversal import in_order, substitute


def add_command(commands: Commands) -> None:
    made = command(
        commands,
        "bisect",
        _bisect,
        "find the smallest part of a module that is compiled wrongly, and the pass",
    )
    made.add_argument(
        "arrays",
        nargs="*",
        metavar="ARRAYS",
        help=".npy or .npz files with the arguments in order; those left out are random",
    )
    made.add_argument("--seed", type=int, default=0, help="of random arguments (default: 0)")
    made.add_argument("--target", default="cpu", help="what to compile for (default: cpu)")
    made.add_argument(
        "--against",
        default=INTERPRETER,
        metavar="OTHER",
        help="who is right: interpreter (the default), xla (jaxlib's), or another target",
    )
    made.add_argument(
        "--tolerance",
        type=float,
        default=1e-4,
        help="of results, relative to their greatest magnitude (default: 1e-4)",
    )
    made.add_argument("-o", "--output", metavar="FILE", help="write the part that differs there")


def _bisect(arguments: argparse.Namespace) -> None:
    module = read_module(arguments.file)
    values = arguments_for(module, read_arrays(arguments.arrays), arguments.seed)
    known = _KnownValues(module, values, arguments.seed)
    right = side(arguments.against)

    def differ(part: Module) -> bool:
        given = known.arguments(part)
        found = _leaves(_compiled(part, arguments.target, _ALL)(*given))
        return not agree(found, right(part, given), arguments.tolerance)

    is_interpreter = arguments.against == INTERPRETER
    said = "the interpreter" if is_interpreter else arguments.against
    changes = api.pass_changes(module, Target(arguments.target)) if is_interpreter else []
    expected = right(module, values)

    def is_right(count: int) -> bool:
        found = _leaves(_compiled(module, arguments.target, count)(*values))
        return agree(found, expected, arguments.tolerance)

    if not differ(module):
        print(f"compiled code computes what {said} computes")
        return
    if is_interpreter:
        _print_pass(changes, first_wrong(len(changes), is_right) if changes else 0)
    if differ(module):
        print(f"the smallest part that differs from {said}:")
        write(to_text(reduced(module, differ, known.stands_for)), arguments.output)


def _print_pass(changes: Sequence[tuple[str, str]], number: int) -> None:
    if number == 0:
        print("wrong without any pass that can be left out: look at kernels and their order")
        return
    name, graph = changes[number - 1]
    print(f"right after {number - 1} of {len(changes)} changes; the next one is wrong:")
    print(f"the pass {name} over {graph}")
    print("TRACEJIT_DUMP=folder writes the graph before and after it")


_ALL = 10**9
INTERPRETER, XLA = "interpreter", "xla"


def side(name: str) -> Callable[[Module, Sequence[Any]], list[np.ndarray]]:
    """What computes the expected results: the interpreter, XLA, or code for a target.

    Raises `AttributeValueError` for another name.
    """
    if name == INTERPRETER:
        return lambda module, values: _leaves(api.interpret(module, *values))
    if name == XLA:
        return lambda module, values: load("tracejit.interop.xla").compile_on_xla(module)(values)
    target = Target(name).resolved().name
    return lambda module, values: _leaves(api.compile(module, target)(*values))


class _KnownValues:
    """The arguments of parts of a module: what its instructions compute on some arguments."""

    def __init__(self, module: Module, values: Sequence[Any], seed: int) -> None:
        self._values = dict(zip(module.entry.parameters, values, strict=True))
        self._seed = seed

    def stands_for(self, new: Instruction, old: Instruction) -> None:
        """Gives a new parameter the value that an instruction has."""
        if old not in self._values:
            self._values[old] = self._computed(old)
        self._values[new] = self._values[old]

    def arguments(self, module: Module) -> list[Any]:
        """The parameters' values; random where sizes were changed."""
        rng = np.random.default_rng(self._seed)
        drawn = [random_value(rng, p.shape) for p in module.entry.parameters]
        pairs = zip(module.entry.parameters, drawn, strict=True)
        return [self._values.setdefault(p, value) for p, value in pairs]

    def _computed(self, instruction: Instruction) -> Any:
        given = [i for i in in_order((instruction,)) if i.op is PARAMETER]
        new = {p: parameter(number, p.shape) for number, p in enumerate(given)}
        (root,) = substitute([instruction], new)
        computation = Computation("value", tuple(new.values()), root)
        return api.interpret(computation, *(self._values[p] for p in given))


def first_wrong(count: int, is_right: Callable[[int], bool]) -> int:
    """The least number of changes with which a module is wrong, as it is with all ``count``."""
    if not is_right(0):
        return 0
    right, wrong = 0, count
    while wrong - right > 1:
        middle = (right + wrong) // 2
        if is_right(middle):
            right = middle
        else:
            wrong = middle
    return wrong


def agree(found: Sequence[Any], expected: Sequence[Any], tolerance: float) -> bool:
    """Whether arrays differ by rounding only."""
    for one, other in zip(found, expected, strict=True):
        if one.dtype.kind in "biu":
            if not np.array_equal(one, other):
                return False
            continue
        wide = np.complex128 if one.dtype.kind == "c" else np.float64
        left, right = one.astype(wide), other.astype(wide)
        scale = float(np.max(np.abs(right), initial=0, where=np.isfinite(right)))
        if not np.allclose(left, right, rtol=0, atol=tolerance * scale, equal_nan=True):
            return False
    return True


def _leaves(results: Any) -> list[np.ndarray]:
    return [np.asarray(leaf) for leaf in tree.leaves(results)]


def _compiled(module: Module, target: str, changes: int) -> Callable[..., Any]:
    """The module compiled with the first ``changes`` alone."""
    before = os.environ.get("TRACEJIT_PASSES")
    kept = [entry for entry in (before or "").split(",") if entry and not entry.startswith(":")]
    os.environ["TRACEJIT_PASSES"] = ",".join([*kept, f":{changes}"])
    try:
        return api.compile(module, target)
    finally:
        if before is None:
            del os.environ["TRACEJIT_PASSES"]
        else:
            os.environ["TRACEJIT_PASSES"] = before
