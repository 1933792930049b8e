"""What the portable part of the compiler asks a target in numbers.

Passes, fusion and kernels under construction compare with these, and with no processor by name.
The defaults are those of the least of targets: one thread, no vectors, no kernels of its own.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

# Rows, columns and products are counted in 32 bits, up to whole tiles and shares of threads.
LONGEST_GROUP = (1 << 31) - (1 << 20)


@dataclass(frozen=True)
class Limits:
    """One target: its widths, its sizes in bytes, and from where on something pays."""

    vector_bytes: int = 1
    """Bytes that one thread loads, computes or stores at once."""
    threads: int = 1
    """How many share a loop: the threads of a processor, the multiprocessors of a GPU."""
    _: KW_ONLY
    l2: int = 512 << 10
    """Bytes that stay near each of the ``threads`` while a tile is worked on."""
    parallel_work: int = 1 << 17
    """Elements times cost per element from which a second thread pays for being woken, which takes
    up to 7 us: 10,000 sines, at 5 us, do not."""
    pieces: int = 4
    """Pieces of work for each thread: the last ones even out what the others took longer."""
    most_lanes: int = 64
    """No vector has more elements."""
    stack_bytes: int = 8 << 10
    """A kernel's own buffer lies on the stack up to this size; a larger one in the workspace."""
    row_bytes: int = 0
    """Local arrays of a row that one kernel keeps between its phases; 0 fuses no rows."""
    least_rows: int = 4
    """Fewer rows are not fused, unless there is little work at all: they leave threads idle."""
    longest_column: int = 0
    """Rows that are columns of memory are fused up to this length: longer ones leave the cache."""
    cut_cumulative: int = 1 << 62
    """Elements of one row from which its cumulative reduction is done in parts, in parallel."""
    selected_few: int = 0
    """The first few elements of a sorted row, up to this number, are selected, not sorted, if they
    are at most a quarter of the row."""
    selected: int = 0
    """Up to this number, the first elements of a sorted row are selected if the row is three times
    as long as their square: each element that enters moves half of them."""
    wide_sorts: int = 1 << 30
    """Bytes of a vector from which narrow keys are sorted faster as keys of 32 bits."""
    device: str = "CPU"
    """Whose kernels of custom ops are used: the CPU's or the GPU's."""
    fourier_kernels: bool = False
    """Whether Fourier transforms of smooth lengths have kernels; else they are matrix products."""

    @property
    def tile_bytes(self) -> int:
        """What all threads together hold near them."""
        return self.l2 * self.threads

    def selects(self, kept: int, length: int) -> bool:
        """Whether a selection of the first ``kept`` of a row is quicker than a sort."""
        if kept <= self.selected_few:
            return 0 < kept and 4 * kept <= length
        return kept <= self.selected and 3 * kept * kept <= length
