"""Settings of programs for CUDA devices, from the environment."""

from __future__ import annotations

import os

from tracejit.cuda import nvrtc

REPRODUCIBLE = "TRACEJIT_REPRODUCIBLE"
"""Whether a program gives the same bits each time, where that is slower."""


def is_reproducible() -> bool:
    """Whether floats are added in one order where several threads add to one place."""
    return os.environ.get(REPRODUCIBLE, "").strip() not in ("", "0")


def settings_text() -> str:
    """What the settings change in compiled programs: equal texts, equal programs."""
    return os.environ.get(nvrtc.VARIABLE, "") + f" reproducible={is_reproducible()}"
