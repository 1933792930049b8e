"""jit by the interpreter, for tests of what is recorded: compiling machine code takes its time.

A test folder whose conftest.py imports the fixture uses it everywhere.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tracejit.backends.target import Target
from tracejit.graph import Module
from tracejit.transforms.checked import Checked
from tracejit.transforms.interpreted import Interpreted
from tracejit.transforms.jit.hooks import Compiler, Executable, use_compiler


def by_interpreter(module: Module, target: Target, check: bool) -> Executable:
    """The interpreter in the compiler's place."""
    return Checked(module) if check else Interpreted(module)


@pytest.fixture(autouse=True)
def interpreted() -> Iterator[Compiler]:
    """Functions that are compiled within the test run by the interpreter.

    The fixture's value is the compiler that the product uses.
    """
    before = use_compiler(by_interpreter)
    assert before is not None
    yield before
    use_compiler(before)


@pytest.fixture
def machine_code(interpreted: Compiler) -> None:
    """Functions that are compiled within the test run as they do for users."""
    use_compiler(interpreted)
