"""The interface of the store in which the compiler keeps object files for other processes.

data = store.find_object(text)      # the object file compiled from a text, or None
store.keep_object(text, data)
"""

from __future__ import annotations

from typing import Protocol


class ObjectStore(Protocol):
    """Object files by the text that they were compiled from, which names its target."""

    def find_object(self, source: str) -> bytes | None:
        """The object file, None if there is none that is sound."""

    def keep_object(self, source: str, data: bytes) -> bool:
        """Keep an object file; False, without a warning, if that is not possible."""
