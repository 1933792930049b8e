"""The parts of a statement, as functions, and its variables, as a function that reads them and one
that sets them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

Action = Callable[..., Any]
Get = Callable[[], tuple[Any, ...]]
Put = Callable[[Sequence[Any]], None]
