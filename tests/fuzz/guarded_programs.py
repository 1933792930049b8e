"""A program that dies if compiled code touches memory that is not its own.

Random graphs run with every input, output and workspace right before, then right behind, a page
that no access survives, outputs and workspaces filled with one pattern, then another; the results
must be the same. ``python -m tests.fuzz.guarded_programs``; with ``--planted`` the arrays are an
item shorter than the code was compiled for.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Sequence
from unittest import mock

import numpy as np

from tests.backends_tvm.compiled import compiled
from tests.backends_tvm.kernel_harness import guarded
from tests.fuzz.arguments import arguments
from tests.fuzz.choices import Choices
from tests.fuzz.graphs import drawn
from tests.tolerances import same_bits
from tracejit.backends.abi import ALIGNMENT
from tracejit.graph import Computation
from tracejit.runtime import executable, workspace
from tracejit.runtime import result_arena as results

# What memory holds that nobody has written: NaN or -1, and a small number or a large negative one.
PATTERNS = {True: 0xFF, False: 0xA5}


def filled(shape: Sequence[int], dtype: np.dtype, at_end: bool) -> np.ndarray:
    """A new array of bytes that show where they are read before they are written."""
    made = np.empty(shape, dtype)
    made.reshape(-1).view(np.uint8)[...] = PATTERNS[at_end]
    return made


class GuardedNumPy:
    """NumPy as `tracejit.runtime` sees it, whose new arrays touch a forbidden page."""

    def __init__(self, at_end: bool, missing: int) -> None:
        self.at_end, self.missing = at_end, missing

    def __getattr__(self, name: str) -> object:
        return getattr(np, name)

    def empty(self, shape: Sequence[int], dtype: np.dtype) -> np.ndarray:
        whole = filled(shape, dtype, self.at_end)
        if not self.missing or not whole.size:
            return guarded(whole, at_end=self.at_end, align=whole.itemsize)
        # An array that says it is whole, an item of which lies on the forbidden page.
        short = guarded(whole.reshape(-1)[self.missing :], at_end=True, align=whole.itemsize)
        return np.lib.stride_tricks.as_strided(short, whole.shape, whole.strides)


def place(at_end: bool, missing: int = 0) -> None:
    """From now on, outputs and workspaces of programs that are loaded touch a forbidden page."""
    for module in (executable, results):
        mock.patch.object(module, "np", GuardedNumPy(at_end, missing)).start()
    mock.patch.object(results, "is_shared", return_value=False).start()

    def take(nbytes: int) -> np.ndarray:
        # Code rounds the start up; what follows the rounded start is exactly the workspace.
        whole = filled((nbytes + ALIGNMENT,), np.dtype(np.uint8), at_end)
        return guarded(whole, at_end=at_end, align=ALIGNMENT)

    mock.patch.object(workspace, "take", take).start()
    mock.patch.object(workspace, "give", return_value=None).start()


def run(entry: Computation, given: Sequence[np.ndarray], missing: int) -> None:
    found = []
    for at_end in (True, False):
        place(at_end, missing)
        arrays = [guarded(x, at_end=at_end, align=x.itemsize) for x in given]
        results = compiled(entry).run(arrays)
        assert results is not None, "the arrays were refused"
        found.append([np.array(result) for result in results])
    for left, right in zip(*found, strict=True):
        assert not same_bits(left, right)


def main() -> None:
    missing = int("--planted" in sys.argv)
    for seed in range(12):
        entry = drawn(Choices(random.Random(seed).randint), 3, 12).entry
        print(seed, flush=True)
        run(entry, arguments(entry, seed), missing)
    print("done")


if __name__ == "__main__":
    main()
