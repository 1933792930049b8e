"""Every engine held to the instructions of a lesser processor: `--processor x86-64-v3`.

On a processor that has no more, the variables change nothing.
"""

from __future__ import annotations

from collections.abc import Mapping

_AVX2 = {
    "TRACEJIT_CPU": "x86-64-v3",
    # XLA's limit does not hold for its library YNNPACK: with it, products of float32 ran at 146
    # Gflop/s on a core whose peak by AVX2 is 121.
    "XLA_FLAGS": "--xla_cpu_max_isa=AVX2 --xla_cpu_experimental_ynn_fusion_type=",
    "ATEN_CPU_CAPABILITY": "avx2",
    # oneDNN and MKL are PyTorch's, OpenBLAS is NumPy's and that of JAX's linear algebra.
    "ONEDNN_MAX_CPU_ISA": "AVX2",
    "MKL_ENABLE_INSTRUCTIONS": "AVX2",
    "OPENBLAS_CORETYPE": "Haswell",
    "NPY_DISABLE_CPU_FEATURES": "X86_V4 AVX512_ICL",
}

ENVIRONMENTS: Mapping[str, Mapping[str, str]] = {"native": {}, "x86-64-v3": _AVX2}
"""What the engines read, by the name of a processor."""
