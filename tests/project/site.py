"""What MkDocs calls while it builds the documentation's site.

mkdocs build --strict       writes out/site; mkdocs.yml names this file

Links to source files become names. Examples lose their prompts, so that what a reader copies runs:

    >>> x = np.ones(2)          x = np.ones(2)
    >>> x.sum()          ->     x.sum()
    2.0
                                2.0
"""

from __future__ import annotations

import re
from itertools import groupby
from typing import Any

_TO_A_SOURCE = re.compile(r"\[([^\]]+)\]\((?:\.\./)+[^)]*\)")
_EXAMPLES = re.compile(r"^```(?:python|pycon)\n(>>> .*?)^```$", re.DOTALL | re.MULTILINE)
_PROMPT = re.compile(r"(>>>|\.\.\.)( |$)")
_OPTION = re.compile(r" *# doctest: .*")


def on_page_markdown(markdown: str, **_: Any) -> str:
    """The page as the site shows it."""
    # Links that leave ``docs/`` work in a checkout, and lead nowhere on the site.
    markdown = _TO_A_SOURCE.sub(r"\1", markdown)
    return _EXAMPLES.sub(lambda found: without_prompts(found[1]), markdown)


def without_prompts(examples: str) -> str:
    """Blocks of code, and of what it prints, in turns."""
    lines: list[tuple[bool, str]] = []
    is_code = True
    for line in examples.splitlines():
        # "..." among what is printed stands for more of it.
        is_code = _is_code(line, is_code)
        text = _OPTION.sub("", _PROMPT.sub("", line, count=1)) if is_code else line
        lines.append((is_code, text))
    blocks = []
    for of_code, group in groupby(lines, lambda pair: pair[0]):
        text = "\n".join(line for _, line in group).strip("\n")
        blocks.append(f"```{'python' if of_code else '{ .text .no-copy }'}\n{text}\n```")
    return "\n\n".join(blocks)


def _is_code(line: str, after_code: bool) -> bool:
    """Whether a line is code, or blank after code."""
    return line.startswith(">>>") or (after_code and (not line or bool(_PROMPT.match(line))))
