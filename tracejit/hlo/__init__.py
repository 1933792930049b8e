"""HLO text: what XLA prints and reads.

to_text(module)      the module as text, which is also str(module)
parse(text)          the module that a text describes
"""

from __future__ import annotations

from tracejit.graph import Module
from tracejit.hlo.parser import parse
from tracejit.hlo.printer import to_text

Module.formatter = to_text

__all__ = ["parse", "to_text"]
