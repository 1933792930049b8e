"""The reference interpreter: a module for each family of ops, imported when it is first needed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracejit.loading import members_of, on_first_use

if TYPE_CHECKING:
    from tracejit.backends.numpy.interpreter import evaluate, evaluate_instruction, interpret
    from tracejit.backends.numpy.prepared import prepared

__all__ = ["evaluate", "evaluate_instruction", "interpret", "prepared"]

__getattr__ = on_first_use(
    __name__,
    members=members_of(
        __name__,
        {"interpreter": "evaluate evaluate_instruction interpret", "prepared": "prepared"},
    ),
)


def __dir__() -> list[str]:
    return __all__
