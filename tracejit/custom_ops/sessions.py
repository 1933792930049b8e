"""Variables that kernels of several ops share, as the state of a session.

session = Session(count=np.zeros(3))
with session:
    add_to_count(x)                     # its kernel writes to current_session()["count"]
session["count"]
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar, Token
from typing import Any

from typing_extensions import Self

from tracejit.errors import ArgumentError


class Session:
    """Variables by name: arrays, or whatever else kernels keep between calls.

    Inside ``with session:`` kernels find it by `current_session`, those that compiled code calls
    too. A program does not belong to a session: the same one runs on the variables of whichever is
    entered. Sessions may be entered inside each other; threads enter their own.
    """

    def __init__(self, **variables: Any) -> None:
        self._variables = variables
        self._lock = threading.RLock()
        self._own = threading.local()

    def __getitem__(self, name: str) -> Any:
        """A variable. Raises `ArgumentError` for a name that the session does not have."""
        try:
            return self._variables[name]
        except KeyError:
            known = ", ".join(map(repr, sorted(self._variables))) or "none"
            raise ArgumentError(
                f"Session: there is no variable {name!r}; there are {known}"
            ) from None

    def __setitem__(self, name: str, value: Any) -> None:
        self._variables[name] = value

    def __iter__(self) -> Iterator[str]:
        return iter(self._variables)

    @contextmanager
    def locked(self) -> Iterator[Self]:
        """Keeps out other threads that lock the session, where variables are changed."""
        with self._lock:
            yield self

    def __enter__(self) -> Self:
        tokens: list[Token[Session | None]] = self._own.__dict__.setdefault("tokens", [])
        tokens.append(_current.set(self))
        return self

    def __exit__(self, *_: object) -> None:
        _current.reset(self._own.tokens.pop())


_current: ContextVar[Session | None] = ContextVar("session", default=None)


def current_session() -> Session:
    """The session that is entered. Raises `ArgumentError` outside of all."""
    found = _current.get()
    if found is None:
        raise ArgumentError(
            "current_session: no session is entered; call the op inside `with session:`"
        )
    return found
