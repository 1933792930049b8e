"""Fingerprints of modules: texts that differ wherever HLO text does, and are quicker to write.

fingerprint(module) == fingerprint(hlo.parse(str(module)))          True
"""

from __future__ import annotations

import hashlib

import numpy as np

from tracejit.graph import Module
from tracejit.hlo.printer import to_text

_FEW_BYTES = 64


def fingerprint(module: Module) -> str:
    """The module's text with the bits of constants in place of their values, hashed where many."""
    return to_text(module, literal=_bits)


def _bits(array: np.ndarray) -> str:
    if array.nbytes <= _FEW_BYTES:
        return array.tobytes().hex()
    # Of element types that Python's buffers do not know, too.
    data = np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
    return f"sha256 {hashlib.sha256(data).hexdigest()}"
