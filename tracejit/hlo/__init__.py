"""HLO text: what XLA prints and reads; StableHLO text out.

to_text(module)         the module as HLO text, which is also str(module)
parse(text)             the module that HLO text describes
to_stablehlo(module)    the module as StableHLO text
"""

from __future__ import annotations

from tracejit.graph import Module
from tracejit.hlo.parser import parse
from tracejit.hlo.printer import to_text
from tracejit.hlo.stablehlo import to_stablehlo

Module.formatter = to_text

__all__ = ["parse", "to_stablehlo", "to_text"]
