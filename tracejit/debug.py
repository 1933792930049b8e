"""Looking at values while a traced program runs.

debug.print("loss {:.3f} at step {step}", loss, step=i)
debug.callback(history.append, loss)
"""

from __future__ import annotations

import builtins
from typing import Any

from tracejit.callbacks import callback


def print(fmt: str, *args: Any, **kwargs: Any) -> None:
    """Prints ``fmt.format(*args, **kwargs)`` whenever the program comes here.

    Works in `jit`, loops, branches, `grad` and `vmap`, and outside of all.
    """
    callback(lambda *a, **k: builtins.print(fmt.format(*a, **k), flush=True), *args, **kwargs)


__all__ = ["callback", "print"]
