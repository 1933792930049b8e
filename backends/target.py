"""What code is compiled for: "cpu", this machine, or "cpu:znver3", another processor.

    Target("cpu:x86-64-v3").resolved()
    Target("cpu", fast_math=True).resolved()     # TRACEJIT_CPU says which, else this machine's

Needs no compiler: whether LLVM knows the processor is found out when something is compiled.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, replace

from tracejit.errors import AttributeValueError

DEVICE = "cpu"
NATIVE = "native"
"""The processor of this machine, whatever ``TRACEJIT_CPU`` says."""

VARIABLE = "TRACEJIT_CPU"
"""The environment variable that names the processor which "cpu" is."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


@dataclass(frozen=True)
class Target:
    """A device and a processor, as users name them, and how freely arithmetic is compiled.

    With ``fast_math`` arithmetic may be reordered and functions may be less exact.
    """

    name: str = DEVICE
    fast_math: bool = False

    def resolved(self) -> Target:
        """The same target with its processor named, which "cpu" leaves to the environment.

        Raises `AttributeValueError` for a name of another form, and for an unsuitable
        ``TRACEJIT_CPU``.
        """
        device, colon, processor = self.name.partition(":")
        if device != DEVICE or (colon and not _NAME.fullmatch(processor)):
            raise AttributeValueError(
                f"target must be 'cpu' or 'cpu:PROCESSOR', such as 'cpu:x86-64-v3', "
                f"not {self.name!r}"
            )
        if colon:
            return self
        processor = os.environ.get(VARIABLE, "").strip() or NATIVE
        if not _NAME.fullmatch(processor):
            raise AttributeValueError(
                f"{VARIABLE} must be a processor's name, such as x86-64-v3, not {processor!r}"
            )
        return replace(self, name=f"{DEVICE}:{processor}")

    @property
    def processor(self) -> str:
        """LLVM's name of the processor, or `NATIVE`; of a target that is resolved."""
        return self.name.partition(":")[2]


CPU = Target()
"""The default of everything that compiles."""
