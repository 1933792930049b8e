"""docs/derivatives.md does what it says."""

from __future__ import annotations

import doctest
import re

from tests.autodiff.derivatives_page import PAGE, page
from tracejit.autodiff.reverse import differentiate
from tracejit.graph import OPS


def test_the_page_runs() -> None:
    text = PAGE.read_text(encoding="utf-8")
    code = "\n".join(re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE))
    example = doctest.DocTestParser().get_doctest(code, {}, "derivatives", None, 0)
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    runner = doctest.DocTestRunner(optionflags=flags)
    failures: list[str] = []
    result = runner.run(example, out=failures.append)
    assert result.attempted > 40
    assert result.failed == 0, "".join(failures)


def test_the_table_is_what_the_rules_say() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert page(text) == text, "write it anew: python -m tests.autodiff.derivatives_page"


def test_every_operation_has_a_derivative_or_a_reason_for_none() -> None:
    silent = [n for n, op in OPS.items() if not (differentiate.get(op) or differentiate.reason(op))]
    assert not silent
