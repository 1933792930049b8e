"""A pytest plugin for the array-API suite: failing examples are shown as found, not made smaller.

Each smaller example would be compiled again.
"""

from __future__ import annotations

import pytest
from hypothesis import Phase, settings


@pytest.hookimpl(trylast=True)
def pytest_configure() -> None:
    """The suite's settings without hypothesis's last phases."""
    settings.register_profile(
        "found", parent=settings(), phases=(Phase.explicit, Phase.reuse, Phase.generate)
    )
    settings.load_profile("found")
