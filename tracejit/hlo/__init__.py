"""HLO text: what XLA prints and reads; StableHLO text out.

to_text(module)         the module as HLO text, which is also str(module)
parse(text)             the module that HLO text describes
to_stablehlo(module)    the module as StableHLO text
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracejit.graph import Module
from tracejit.hlo.printer import to_text
from tracejit.loading import on_first_use

if TYPE_CHECKING:
    from tracejit.hlo.parser import parse
    from tracejit.hlo.stablehlo import to_stablehlo

__all__ = ["parse", "to_stablehlo", "to_text"]

Module.formatter = to_text
__getattr__ = on_first_use(
    __name__,
    members={"parse": "tracejit.hlo.parser", "to_stablehlo": "tracejit.hlo.stablehlo"},
)
