"""Compiles and checks samples, and prints a line for each: run by another process, which counts.

python -m tests.portability.worker FIRST STEP [LAST]

Lines are ``begin N NAME``, then ``right N`` or ``wrong N REASON``. A sample that ends the process
leaves a ``begin`` without an answer.
"""

from __future__ import annotations

import sys

from tests.portability.checking import cases, problem


def main(first: int, step: int, last: int | None = None) -> None:
    """Every ``step``-th case from ``first`` on, up to ``last``."""
    for number, case in list(enumerate(cases()))[first:last:step]:
        print(f"begin {number} {case.name}", flush=True)
        found = problem(case)
        print(f"wrong {number} {found}" if found else f"right {number}", flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
