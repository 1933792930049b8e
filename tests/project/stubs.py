"""The stubs of the packages that import their modules late: the same names, for type checkers.

python -m tests.project.stubs          writes them anew
"""

from __future__ import annotations

import importlib
import re
from pathlib import Path

from tests.project import checkout
from tracejit.loading import members_of

PACKAGES = ("tracejit.lax", "tracejit.nn", "tracejit.numpy")


def path_of(package: str) -> Path:
    """Where the stub of a package lies."""
    return checkout.modules()[package].with_suffix(".pyi")


def natural(pair: tuple[str, str]) -> tuple[object, ...]:
    """The order of imports: by module, then by name, in which numbers count as such."""
    module, name = pair
    parts = re.split(r"(\d+)", name)
    return module, *(int(part) if part.isdigit() else part for part in parts)


def imported(module: str, name: str) -> str:
    """The import of one name, formatted."""
    line = f"from {module} import {name} as {name}"
    return line if len(line) <= 100 else f"from {module} import (\n    {name} as {name},\n)"


def stub(package: str) -> str:
    """What the stub of a package must be: each name imported under its own name."""
    made = importlib.import_module(package)
    names = members_of(package, made.NAMES)
    pairs = [*((package, name) for name in made.SUBMODULES), *((names[n], n) for n in names)]
    lines = [imported(*pair) for pair in sorted(pairs, key=natural)]
    lines += ["", "__all__: list[str]"]
    lines += ["__array_api_version__: str"] if package == "tracejit.numpy" else []
    return "\n".join([*lines, ""])


def main() -> None:
    for package in PACKAGES:
        path_of(package).write_text(stub(package), encoding="utf-8")


if __name__ == "__main__":
    main()
