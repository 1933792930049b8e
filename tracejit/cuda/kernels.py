"""Kernels that users write in CUDA C, for custom calls and custom ops.

    CudaKernel(source, "scale", blocks=4, threads=256)

A kernel's parameters are pointers: to each operand, in order, then to each result.
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass

from tracejit.errors import AttributeValueError

MOST_THREADS = 1024
MOST_SHARED_BYTES = 227 << 10
"""What no device grants a block more of."""
_KERNEL = re.compile(r"__global__\s+void\s+(?:__launch_bounds__\([^)]*\)\s*)?(\w+)")


@dataclass(frozen=True)
class CudaKernel:
    """A kernel in CUDA C, and how it is launched: ``blocks`` of ``threads``, in one dimension.

    ``source`` is the text with the function ``name``, ``extern "C"`` or not, and what it calls;
    shapes are numbers in it. ``shared_bytes`` of dynamic shared memory begin at the pointer that
    ``DYNAMIC_SHARED(pointer);`` declares.

    Raises `AttributeValueError` for a source without that kernel, and for sizes no device has.

    >>> text = "__global__ void copy(const int* x, int* y) { y[threadIdx.x] = x[threadIdx.x]; }"
    >>> kernel = tj.cuda.CudaKernel(text, "copy", blocks=1, threads=3)
    """

    source: str
    name: str
    blocks: int
    threads: int
    shared_bytes: int = 0

    def __post_init__(self) -> None:
        kernels = _KERNEL.findall(self.source)
        if self.name not in kernels:
            there = ", ".join(kernels) or "none"
            raise AttributeValueError(
                f"CudaKernel: the source has no kernel {self.name!r}; it has {there}"
            )
        for what, number, least, most in (
            ("blocks", self.blocks, 1, (1 << 31) - 1),
            ("threads", self.threads, 1, MOST_THREADS),
            ("shared_bytes", self.shared_bytes, 0, MOST_SHARED_BYTES),
        ):
            if not least <= number <= most:
                raise AttributeValueError(
                    f"CudaKernel: {what} must be from {least} to {most}, not {number!r}"
                )

    def script(self) -> str:
        """All of it as text, which `from_script` reads."""
        return json.dumps(asdict(self))

    @staticmethod
    def from_script(text: str) -> CudaKernel:
        """What `script` wrote."""
        return CudaKernel(**json.loads(text))

    def text(self, name: str) -> str:
        """The source with the kernel named otherwise, and its other names out of others' way."""
        renamed = re.sub(rf"\b{self.name}\b", name, self.source)
        lines = renamed.splitlines()
        directives = [line for line in lines if line.lstrip().startswith("#include")]
        others = [line for line in lines if not line.lstrip().startswith("#include")]
        inside = "\n".join(others)
        return "\n".join(
            [*directives, f"namespace of_{name} {{", inside, "}", f"using of_{name}::{name};", ""]
        )
