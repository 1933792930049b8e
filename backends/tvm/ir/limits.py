"""What the portable part of the compiler asks a target in numbers.

Passes, fusion and kernels under construction compare with these, and with no processor by name.
The defaults are those of the least of targets: one thread, no vectors, no kernels of its own.
Numbers that bound the compiler's own work, such as how far a search goes, are constants beside it.
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
    small_rows: int = 1 << 13
    """Rows of this number of elements in all are fused, however few rows there are."""
    least_columns: int = 16
    """Fewer rows that are columns of memory are not computed side by side."""
    most_phases: int = 12
    """Kernels of one row that run one after the other while it is in cache."""
    begun_rows: tuple[int, int, int] = (32, 256, 1 << 14)
    """Rows begin with a pointwise kernel if their length is a multiple of the first number, at
    least the second and at most the third."""
    shared_cost: int = 4
    """The least cost, in additions, of a value that is stored, not recomputed by each kernel."""
    amplified_cost: int = 8
    """The least cost times copies of a broadcast value that is stored, not recomputed by each."""
    repeated_cost: int = 20
    """The same for a value that overlapping slices read, as in stencils of stencils."""
    epilogue_cost: int = 6
    """The highest cost of a contraction's epilogue."""
    epilogue_size: int = 32
    """The largest expression of an epilogue, with rounding expanded."""
    columns_cost: int = 16
    """The highest cost of a cumulative op's operand that is computed during a scan of columns."""
    rows_cost: int = 1
    """The same for a scan along a row."""
    gathered_part: int = 3
    """An array is computed where it is gathered if at most 1/``gathered_part`` of it is read."""
    updated_part: int = 4
    """An update that needs other elements is stored first if it is at most 1/``updated_part`` of
    its array."""
    split_from: int = 1 << 13
    """Elements of a concatenation from which it is split: smaller ones take hardly any time."""
    most_boxes: int = 9
    """The most boxes that a result is split into: three along each of two dimensions."""
    box_cost: int = 24
    """The highest cost of operands that boxes recompute: that of storing and loading an element."""
    least_batched: int = 4
    """The least iterations of a loop that is vectorised, ..."""
    largest_step: int = 4096
    """... the most elements of an array in an iteration, more being vectors already, ..."""
    largest_batch: int = 1 << 20
    """... and the most elements of a batched array."""
    least_hoisted: int = 8
    """The least iterations of a loop whose contractions are computed before it."""
    hoisted_bytes: int = 64 << 20
    """The most bytes of each array that is stacked for that."""
    scanned_bytes: int = 1 << 20
    """The most bytes that a Scan's contractions stack, unless they are stacked anyway."""
    swapped_state: int = 2 << 10
    """Bytes of a loop's state from which two buffers are used in turn, in place of a copy."""
    wide_sorts: int = 1 << 30
    """Bytes of a vector from which narrow keys are sorted faster as keys of 32 bits."""
    runs_iterations: bool = False
    """Whether each thread may run whole iterations of a loop, where these are independent."""
    device: str = "CPU"
    """Whose kernels of custom ops are used: the CPU's or the GPU's."""
    fourier_kernels: bool = False
    """Whether Fourier transforms of smooth lengths have kernels; else they are matrix products."""

    @property
    def registers(self) -> int:
        """How many vector registers there are."""
        return 16

    @property
    def tile_bytes(self) -> int:
        """What all threads together hold near them."""
        return self.l2 * self.threads

    def are_columns(self, count: int) -> bool:
        """Whether this number of neighbours in memory is computed side by side."""
        return count >= self.least_columns

    def batches(self, count: int, size: int = 1) -> bool:
        """Whether loops of ``count`` iterations over arrays of ``size`` are vectorised."""
        fits = size <= self.largest_step and size * count <= self.largest_batch
        return fits and count >= self.least_batched

    def hoists(self, count: int, nbytes: int = 0) -> bool:
        """Whether ``count`` iterations over arrays of ``nbytes`` are stacked before a loop."""
        return count >= self.least_hoisted and count * nbytes <= self.hoisted_bytes

    def selects(self, kept: int, length: int) -> bool:
        """Whether a selection of the first ``kept`` of a row is quicker than a sort."""
        if kept <= self.selected_few:
            return 0 < kept and 4 * kept <= length
        return kept <= self.selected and 3 * kept * kept <= length
