"""Special ways to write a kernel, and what of the compiler is asked whether to take each.

A way is left out by exchanging that function for one that says no, or a threshold for another.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

_TVM = "tracejit.backends.tvm."
_SORT = "cpu/schedule/sort/"


def _no(*arguments: Any, **options: Any) -> Any:
    return None


def _none(*arguments: Any) -> set[Any]:
    return set()


def _given(first: Any, *arguments: Any) -> Any:
    return first


@dataclass(frozen=True)
class Way:
    """``function`` of ``module`` answers whether kernels are written so; ``without`` does instead.

    ``files`` are those that only this way needs. With ``is_late`` it changes machine code alone,
    which the program's text does not show.
    """

    name: str
    files: tuple[str, ...]
    module: str
    function: str
    without: Callable[..., Any] | int = _no
    is_late: bool = False

    @contextmanager
    def left_out(self) -> Iterator[None]:
        """Inside, no kernel is written in this way."""
        with self._exchanged(self.without):
            yield

    @contextmanager
    def watched(self, taken: set[str]) -> Iterator[None]:
        """Inside, the name is added to ``taken`` as soon as the way is taken."""
        function = getattr(*self._place())
        if not callable(function):
            # Whether it matters shows in the program's text.
            taken.add(self.name)
            yield
            return

        def watching(*arguments: Any, **options: Any) -> Any:
            made = function(*arguments, **options)
            if self.is_late or made:
                taken.add(self.name)
            return made

        with self._exchanged(watching):
            yield

    @contextmanager
    def _exchanged(self, function: Callable[..., Any] | int) -> Iterator[None]:
        owner, name = self._place()
        before = getattr(owner, name)
        setattr(owner, name, function)
        try:
            yield
        finally:
            setattr(owner, name, before)

    def _place(self) -> tuple[Any, str]:
        """The module or the class that holds the function, and its name there."""
        *owners, name = self.function.split(".")
        module: Any = importlib.import_module(_TVM + self.module)
        return functools.reduce(getattr, owners, module), name


def _sort(name: str, function: str, *files: str) -> Way:
    paths = tuple(f"{_SORT}{file}.py" for file in files)
    return Way(f"sort: {name}", paths, "cpu.schedule.sort.choose", function)


WAYS = (
    _sort("vectors", "suits_vectors", "quicksort"),
    _sort("flags", "suits_flags", "flags"),
    _sort("host", "suits_library", "host_sort"),
    Way("sort: selection", (f"{_SORT}select.py",), "ir.limits", "Limits.selects"),
    _sort("words", "suits_words", "argsort"),
    Way(
        "transposition: registers (text)",
        ("cpu/schedule/transpose/register_blocks.py",),
        "cpu.schedule.pointwise",
        "transpose_kernel",
    ),
    Way(
        "reduction: extremes (text)",
        ("cpu/schedule/reduce/row_kernels.py", "cpu/schedule/reduce/float_extremes.py"),
        "cpu.schedule.reduce.rows",
        "row_in_text",
    ),
    Way(
        "reduction: argmax (text)",
        ("cpu/schedule/reduce/argmax_code.py",),
        "cpu.schedule.reduce.rows",
        "argmax_in_text",
    ),
    Way(
        "fusion: horizontal",
        ("fusion/horizontal.py",),
        "fusion.planner",
        "fuse_horizontally",
        _given,
    ),
    Way(
        "fusion: snapshots",
        ("fusion/snapshot_reads.py",),
        "fusion.planner",
        "snapshot_reads",
        _none,
    ),
    Way(
        "rows: columns",
        ("cpu/schedule/rows/column_kernel.py",),
        "ir.limits",
        "Limits.are_columns",
    ),
    Way("loops: one kernel", ("cpu/loop_kernel.py",), "cpu.target", "in_registers"),
    Way(
        "eigenvalues: rotations",
        ("cpu/kernels/linalg/jacobi.py", "cpu/kernels/linalg/batched_rotations.py"),
        "cpu.kernels.linalg.symmetric",
        "LARGEST",
        0,
    ),
    Way(
        "singular values: rotations",
        ("cpu/kernels/linalg/one_sided_jacobi.py",),
        "cpu.kernels.linalg.singular_values",
        "LARGEST",
        0,
    ),
    Way(
        "convolution: planes",
        ("cpu/kernels/conv/planes.py",),
        "cpu.kernels.conv.planes",
        "_MOST_PLANES",
        0,
    ),
    Way(
        "scatter: copies", (), "cpu.schedule.scatter.scatter", "_copies", lambda frame, work: (1, 1)
    ),
    Way(
        "code: TIR to LLVM",
        ("cpu/llvm/tir_to_llvm.py", "cpu/llvm/expressions.py", "cpu/llvm/registers.py"),
        "cpu.objects.build",
        "_is_written",
        is_late=True,
    ),
    Way(
        "code: strided vectors",
        ("cpu/objects/deinterleave_vectors.py",),
        "cpu.objects.tir_pipeline",
        "strided",
        _given,
        is_late=True,
    ),
    Way(
        "code: identical kernels",
        ("cpu/objects/identical_code_folding.py", "cpu/objects/rebase_pointers.py"),
        "cpu.objects.build",
        "fold_identical_kernels",
        _given,
        is_late=True,
    ),
)
