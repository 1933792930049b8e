"""What code is compiled for: a device and its processor, such as "cpu:znver3" or "cuda:sm_90a".

    Target("cpu:x86-64-v3").resolved()
    Target("cuda").resolved()                    # the architecture of the first CUDA device
    Target("cpu", fast_math=True).resolved()     # TRACEJIT_CPU says which, else this machine's

Needs no compiler: whether LLVM knows the processor is found out when something is compiled.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, replace

from tracejit.errors import AttributeValueError
from tracejit.loading import load

DEVICE = "cpu"
CUDA = "cuda"
NATIVE = "native"
"""The processor of this machine, whatever ``TRACEJIT_CPU`` says."""

VARIABLE = "TRACEJIT_CPU"
"""The environment variable that names the processor which "cpu" is."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_ARCHITECTURE = re.compile(r"sm_[1-9][0-9]{1,2}[af]?")


@dataclass(frozen=True)
class Target:
    """A device and a processor, as users name them, and how freely arithmetic is compiled.

    With ``fast_math`` arithmetic may be reordered and functions may be less exact.
    """

    name: str = DEVICE
    fast_math: bool = False

    def resolved(self) -> Target:
        """The same target with its processor named, which "cpu" leaves to the environment.

        "cuda" leaves it to the first device. Raises `AttributeValueError` for a name of another
        form, and for an unsuitable ``TRACEJIT_CPU``; `DeviceNotFoundError` for "cuda" where there
        is no device.
        """
        name: object = self.name
        device, colon, processor = (name if isinstance(name, str) else "").partition(":")
        known = {DEVICE: _NAME, CUDA: _ARCHITECTURE}.get(device)
        if known is None or (colon and not known.fullmatch(processor)):
            raise AttributeValueError(
                f"target must be 'cpu', 'cpu:PROCESSOR', such as 'cpu:x86-64-v3', 'cuda' or "
                f"'cuda:ARCHITECTURE', such as 'cuda:sm_90a', not {self.name!r}"
            )
        if colon:
            return self
        if device == CUDA:
            return replace(self, name=f"{CUDA}:{load('tracejit.cuda.device').device_of().arch}")
        processor = os.environ.get(VARIABLE, "").strip() or NATIVE
        if not _NAME.fullmatch(processor):
            raise AttributeValueError(
                f"{VARIABLE} must be a processor's name, such as x86-64-v3, not {processor!r}"
            )
        return replace(self, name=f"{DEVICE}:{processor}")

    @property
    def is_cuda(self) -> bool:
        """Whether the code is for a CUDA device."""
        return self.name.partition(":")[0] == CUDA

    @property
    def device(self) -> str:
        """Which kernels of custom ops the code has: ``"CPU"`` or ``"GPU"``."""
        return "GPU" if self.is_cuda else "CPU"

    @property
    def processor(self) -> str:
        """LLVM's name of the processor, `NATIVE`, or a CUDA architecture; of a resolved target."""
        return self.name.partition(":")[2]


CPU = Target()
"""The default of everything that compiles."""
