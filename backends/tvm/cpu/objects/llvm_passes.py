"""Which kernels LLVM optimises by all of its passes, and which by those that take little time.

When: `build` asks for each kernel, and tuning for a kernel that may be built either way.
"""

from __future__ import annotations

from tracejit.backends.tvm.analysis.kernel_stats import COLUMNS, NOTHING, KernelStats

# A kernel of less work runs for a few microseconds: LLVM's slowest passes save nothing there, and
# take up to nine tenths of the compile time.
_HOT = 1 << 19
# They save a tenth to a half where unrolled scalar code is only vectorised by them: in kernels
# that compute all of one of these, unless windows are vectorised; and up to a third in
# convolutions with few products per number, where copying dominates.
_FEW_PRODUCTS = 128
_ALWAYS_HOT = (
    {"reduce-window"},
    {"select-and-scatter"},
    {"sort"},
)
# These kernels are vectorised already, in a good order.
_WRITTEN_OUT = {"vector sort", "selection"}


def needs_few_passes(stats: KernelStats) -> bool:
    """Whether a kernel gains nothing by LLVM's slowest passes.

    It does little work, or is vectorised. Nothing is known of hand-written kernels.
    """
    if stats.schedule in _WRITTEN_OUT:
        return True
    if stats.schedule == COLUMNS and stats.in_vectors:
        return True
    if stats is NOTHING or any(ops.issubset(stats.ops) for ops in _ALWAYS_HOT):
        return False
    moved = (stats.bytes_read + stats.bytes_written) // 4
    if "convolution" in stats.ops:
        return stats.in_vectors and stats.flops >= _FEW_PRODUCTS * moved
    return stats.in_vectors or stats.flops + 16 * stats.transcendentals + moved < _HOT
