"""``bisect``: the first change of the compiler's passes after which a module computes otherwise."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tracejit import api, tree
from tracejit.backends.target import Target
from tracejit.commandline.files import Commands, arguments_for, command, read_arrays, read_module
from tracejit.graph import Module


def add_command(commands: Commands) -> None:
    made = command(commands, "bisect", _bisect, "find the pass after which compiled code is wrong")
    made.add_argument(
        "arrays",
        nargs="*",
        metavar="ARRAYS",
        help=".npy or .npz files with the arguments in order; those left out are random",
    )
    made.add_argument("--seed", type=int, default=0, help="of random arguments (default: 0)")
    made.add_argument("--target", default="cpu", help="what to compile for (default: cpu)")
    made.add_argument(
        "--tolerance",
        type=float,
        default=1e-4,
        help="of results, relative to their greatest magnitude (default: 1e-4)",
    )


def _bisect(arguments: argparse.Namespace) -> None:
    module = read_module(arguments.file)
    values = arguments_for(module, read_arrays(arguments.arrays), arguments.seed)
    expected = _leaves(api.interpret(module, *values))

    changes = api.pass_changes(module, Target(arguments.target))

    def is_right(count: int) -> bool:
        found = _leaves(_compiled(module, arguments.target, count)(*values))
        return agree(found, expected, arguments.tolerance)

    if is_right(len(changes)):
        print("compiled code computes what the interpreter computes")
        return
    number = first_wrong(len(changes), is_right)
    if number == 0:
        print("wrong without any pass that can be left out: look at kernels and their order")
        return
    name, graph = changes[number - 1]
    print(f"right after {number - 1} of {len(changes)} changes; the next one is wrong:")
    print(f"the pass {name} over {graph}")
    print("TRACEJIT_DUMP=folder writes the graph before and after it")


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
