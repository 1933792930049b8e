"""HLO text: what XLA prints and reads; StableHLO text out.

to_text(module)         the module as HLO text, which is also str(module)
parse(text)             the module that HLO text describes
to_stablehlo(module)    the module as StableHLO text
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracejit.graph import Module
from tracejit.hlo.printer import to_text
from tracejit.loading import load, on_first_use

if TYPE_CHECKING:
    from tracejit.hlo.parser import parse
    from tracejit.hlo.stablehlo import to_stablehlo

__all__ = ["parse", "to_stablehlo", "to_text"]


def _read(text: str) -> Module:
    """What unpickles a module."""
    read: Module = load("tracejit.hlo.parser").parse(text)
    return read


Module.formatter = to_text
Module.reader = _read
__getattr__ = on_first_use(
    __name__,
    members={"parse": "tracejit.hlo.parser", "to_stablehlo": "tracejit.hlo.stablehlo"},
)


def __dir__() -> list[str]:
    return __all__
