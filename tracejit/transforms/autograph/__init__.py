"""Python's own `if`, `while` and `for` on traced values: a function is rewritten.

jit(f, autograph=True)
tj.autograph(f)                 also a decorator; the rewritten function, for grad, vmap and jit

What no traced value decides runs as Python always runs it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracejit.loading import members_of, on_first_use

if TYPE_CHECKING:
    from tracejit.transforms.autograph.capture_policy import counted_loops
    from tracejit.transforms.autograph.conversion import autograph, called, keeps_to_itself
    from tracejit.transforms.autograph.loop_capture import REFUSALS

__all__ = ["REFUSALS", "autograph", "called", "counted_loops", "keeps_to_itself"]

__getattr__ = on_first_use(
    __name__,
    members=members_of(
        __name__,
        {
            "conversion": "autograph called keeps_to_itself",
            "loop_capture": "REFUSALS",
            "capture_policy": "counted_loops",
        },
    ),
)


def __dir__() -> list[str]:
    return __all__
