"""What MkDocs calls while it builds the documentation's site: links to source files become names.

mkdocs build --strict       writes out/site; mkdocs.yml names this file
"""

from __future__ import annotations

import re
from typing import Any

_TO_A_SOURCE = re.compile(r"\[([^\]]+)\]\((?:\.\./)+[^)]*\)")


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Links that leave ``docs/`` work in a checkout, and lead nowhere on the site."""
    return _TO_A_SOURCE.sub(r"\1", markdown)
