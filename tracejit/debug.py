"""Looking at values while a traced program runs.

debug.print("loss {:.3f} at step {step}", loss, step=i)
debug.callback(history.append, loss)
debug.breakpoint()
"""

from __future__ import annotations

import builtins
import sys
from types import FrameType
from typing import Any

from tracejit.callbacks import callback
from tracejit.errors import ArgumentError
from tracejit.trace.convert import in_words
from tracejit.tracebacks import api_boundary


@api_boundary
def print(fmt: str, *args: Any, **kwargs: Any) -> None:
    """Prints ``fmt.format(*args, **kwargs)`` whenever the program comes here.

    Works in `jit`, loops, branches, `grad` and `vmap`, and outside of all. Raises `ArgumentError`
    where ``fmt`` is no text.
    """
    if not isinstance(fmt, str):
        raise ArgumentError(
            f"debug.print: begins with the text to print, not with {in_words(type(fmt))}; write "
            f"debug.print('{{}}', x)"
        )
    callback(lambda *a, **k: builtins.print(fmt.format(*a, **k), flush=True), *args, **kwargs)


def breakpoint() -> None:
    """Stops in Python's debugger whenever the program comes here, as `breakpoint()` does.

    The local variables are there with the values that they have at this place of the program;
    ``PYTHONBREAKPOINT`` chooses the debugger.
    """
    frame = sys._getframe(1)
    place = f"{frame.f_code.co_filename}:{frame.f_lineno}"
    names = {name: value for name, value in frame.f_locals.items() if name.isidentifier()}
    callback(_Stop(frame, place), names)


class _Stop:
    def __init__(self, frame: FrameType, place: str) -> None:
        self._globals = frame.f_globals
        self._code = compile("breakpoint()", f"<traced program at {place}>", "exec")

    def __call__(self, values: dict[str, Any]) -> None:
        module = {**self._globals, "__builtins__": builtins}
        exec(self._code, module, dict(values))


__all__ = ["breakpoint", "callback", "print"]


def __dir__() -> list[str]:
    return __all__
