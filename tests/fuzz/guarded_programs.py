"""A program that dies if compiled code touches memory that is not its own.

Random graphs run with every input, output and workspace right before, then right behind, a page
that no access survives, outputs and workspaces filled with one pattern, then another; the results
must be the same. ``python -m tests.fuzz.guarded_programs``; with ``--planted`` the arrays are an
item shorter than the code was compiled for.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from unittest import mock

import numpy as np

from tests.backends_tvm.kernel_harness import guarded
from tests.fuzz.arguments import arguments
from tests.fuzz.choices import Choices
from tests.fuzz.graphs import drawn
from tests.runtime.programs import loaded
from tests.tolerances import same_bits
from tracejit.backends.abi import ALIGNMENT
from tracejit.backends.artifact import InProcess
from tracejit.graph import Module
from tracejit.runtime import executable, importing_tvm, workspace
from tracejit.runtime import result_arena as results

with importing_tvm():
    from tracejit.backends.tvm.compile import compile_for

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
        # By bytes: `as_strided` knows no element types but NumPy's own.
        reach = np.lib.stride_tricks.as_strided(short.view(np.uint8), (whole.nbytes,), (1,))
        return reach.view(dtype).reshape(shape)


@contextmanager
def placed(at_end: bool, missing: int = 0) -> Iterator[None]:
    """Outputs and workspaces of programs that are loaded here touch a forbidden page."""

    def take(nbytes: int) -> np.ndarray:
        # Code rounds the start up; what follows the rounded start is exactly the workspace.
        whole = filled((nbytes + ALIGNMENT,), np.dtype(np.uint8), at_end)
        return guarded(whole, at_end=at_end, align=ALIGNMENT)

    with ExitStack() as stack:
        for module in (executable, results):
            stack.enter_context(mock.patch.object(module, "np", GuardedNumPy(at_end, missing)))
        stack.enter_context(mock.patch.object(results, "is_shared", return_value=False))
        stack.enter_context(mock.patch.object(workspace, "take", take))
        stack.enter_context(mock.patch.object(workspace, "give", return_value=None))
        yield


def twice(
    artifact: bytes | InProcess, given: Sequence[np.ndarray], missing: int = 0
) -> tuple[list[np.ndarray], str]:
    """The results of a run in guarded memory, and how those of one in memory that held something
    else differ.
    """
    found = []
    for at_end in (True, False):
        with placed(at_end, missing):
            arrays = [guarded(x, at_end=at_end, align=x.itemsize) for x in given]
            results = loaded(artifact).run(arrays)
            assert results is not None, "the arrays were refused"
            found.append([np.array(result) for result in results])
    for number, (one, other) in enumerate(zip(*found, strict=True)):
        if same_bits(one, other):
            return found[0], f"result {number} depends on what memory held"
    return found[0], ""


def main() -> None:
    missing = int("--planted" in sys.argv)
    for seed in range(12):
        entry = drawn(Choices(random.Random(seed).randint), 3, 12).entry
        print(seed, flush=True)
        assert not twice(compile_for(Module("test", entry)), arguments(entry, seed), missing)[1]
    print("done")


if __name__ == "__main__":
    main()
