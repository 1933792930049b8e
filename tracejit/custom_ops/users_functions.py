"""What a user's shape or gradient function raises, with the name of its op in front.

with raised_by("ZeroOut", "the shape function"):
    ...
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tracejit.errors import InvalidArgumentError, TracejitError


@contextmanager
def raised_by(op: str, function: str) -> Iterator[None]:
    """Errors of tracejit's own pass, those that name no op with it; others are their cause."""
    try:
        yield
    except TracejitError as error:
        if not error.message.startswith(f"{op}:"):
            error.message = f"{op}: {error.message}"
            error.args = (f"{op}: {error}",)
        raise
    except Exception as error:
        raise InvalidArgumentError(
            f"{op}: {function} raised {type(error).__name__}: {error}"
        ) from error
