"""What the checks of accesses in compiled code call that could not be proven to stay in bounds."""

from __future__ import annotations

from tracejit.backends.abi import OUTSIDE
from tracejit.errors import CompilationError
from tracejit.runtime.callbacks import callback


@callback(OUTSIDE)
def outside(text: str, index: int) -> None:
    """Raises `CompilationError` for an access that would leave its buffer."""
    raise CompilationError(f"code generation: {text.format(index)}; please report it")
