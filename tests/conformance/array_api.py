"""Runs the array-API conformance suite (data-apis/array-api-tests), traced and compiled.

    python -m tests.conformance.array_api PATH [--max-examples N] [-k EXPRESSION] [FILE ...]

PATH is a checkout of the suite with its submodule; the suite needs pytest, hypothesis, ndindex and
pytest-json-report. Each of its files runs in a process of its own. Prints how many tests passed and
failed, and which ones static shapes do not allow.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from tests.options import checkout, count

ROOT = Path(__file__).parents[2]
NAMESPACE = "tests.conformance.array_api_namespace"
SETTINGS = "tests.conformance.array_api_settings"

DYNAMIC = "the result's shape depends on the elements"
NOT_ALLOWED = {
    "test_set_functions.py::test_unique_all": DYNAMIC,
    "test_set_functions.py::test_unique_counts": DYNAMIC,
    "test_set_functions.py::test_unique_inverse": DYNAMIC,
    "test_set_functions.py::test_unique_values": DYNAMIC,
    "test_searching_functions.py::test_nonzero": DYNAMIC,
    "test_searching_functions.py::test_nonzero_zerodim_error": DYNAMIC,
    "test_array_object.py::test_getitem_masking": DYNAMIC,
    "test_manipulation_functions.py::test_repeat": f"{DYNAMIC} of an array of repeats",
}
"""Tests that no graph of static shapes can pass, with the reason."""

DIVISION = "floor division by or of infinities gives NumPy's numbers"
AGAINST_NUMPY = {
    "floor_divide(": DIVISION,
    "__floordiv__(": DIVISION,
    "__ifloordiv__(": DIVISION,
    "expm1((real(x_i) is +0 or real(x_i) == -0)": "expm1 keeps the sign of a real zero, as NumPy's",
    "tanh(real(x_i) is +infinity and isfinite(imag(x_i)) and imag(x_i) > 0)": (
        "the zero has the sign of sin 2y, as in NumPy and C's annex G"
    ),
}
"""Special cases, by how their description begins, in which the suite asks for what NumPy is not."""


def reason_of(name: str) -> str | None:
    """Why a test fails that asks for other numbers than NumPy's; None for other tests."""
    _, _, case = name.partition("[")
    return next((why for start, why in AGAINST_NUMPY.items() if case.startswith(start)), None)


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.conformance.array_api")
    parser.add_argument(
        "path", type=checkout("array_api_tests"), help="a checkout of data-apis/array-api-tests"
    )
    parser.add_argument("files", nargs="*", help="some of the suite's test files; all by default")
    parser.add_argument("--max-examples", type=count, default=5, help="of each test")
    parser.add_argument("-k", default="", help="pytest's expression of which tests to run")
    parser.add_argument("--verbose", action="store_true", help="show what pytest prints")
    return parser.parse_args()


def run(given: argparse.Namespace, file: Path, report: Path) -> int:
    """Runs pytest over one file of the suite, which writes ``report``; pytest's exit status."""
    search = [str(ROOT), os.environ.get("PYTHONPATH", "")]
    environment = {
        **os.environ,
        "ARRAY_API_TESTS_MODULE": NAMESPACE,
        "PYTHONPATH": os.pathsep.join(filter(None, search)),
    }
    command = [sys.executable, "-m", "pytest", str(file), f"--junitxml={report}", "-q"]
    command += [f"--max-examples={given.max_examples}", "--disable-deadline", "--derandomize"]
    command += ["--tb=short", "-W", "ignore"]
    for plugin in ("no:cacheprovider", "no:xdist", SETTINGS):
        command += ["-p", plugin]
    command += ["-k", given.k] if given.k else []
    hidden = None if given.verbose else subprocess.DEVNULL
    return subprocess.run(
        command, cwd=given.path, env=environment, stdout=hidden, check=False
    ).returncode


def outcomes(report: Path) -> Iterator[tuple[str, str, str]]:
    """Each test's name, outcome (passed, failed, skipped) and message."""
    for case in ElementTree.parse(report).iter("testcase"):
        name = f"{case.get('classname', '').rpartition('.')[2]}.py::{case.get('name')}"
        for child in case:
            if child.tag in ("failure", "error"):
                yield name, "failed", (child.get("message") or "").splitlines()[0]
                break
            if child.tag == "skipped":
                yield name, "skipped", child.get("message") or ""
                break
        else:
            yield name, "passed", ""


def main() -> int:
    """Runs the suite and prints the counts; 0 if at least 95 % of what is allowed pass."""
    given = arguments()
    folder = given.path.resolve() / "array_api_tests"
    names = given.files or sorted(file.name for file in folder.glob("test_*.py"))
    found: list[tuple[str, str, str]] = []
    for name in names:
        start = time.perf_counter()
        with tempfile.TemporaryDirectory() as reports:
            report = Path(reports) / "report.xml"
            status = run(given, folder / name, report)
            here = list(outcomes(report)) if report.exists() else [(name, "failed", f"{status=}")]
        found += here
        counts = Counter(outcome for _, outcome, _ in here)
        said = ", ".join(f"{number} {outcome}" for outcome, number in sorted(counts.items()))
        print(
            f"{name}: {said or 'nothing to run'} ({time.perf_counter() - start:.0f} s)", flush=True
        )
    denied = [(n, o) for n, o, _ in found if n in NOT_ALLOWED and o != "passed"]
    failed = [(n, m) for n, o, m in found if o == "failed" and n not in NOT_ALLOWED]
    skipped = [(n, m) for n, o, m in found if o == "skipped" and n not in NOT_ALLOWED]
    passed = sum(o == "passed" for _, o, _ in found)
    for name, _ in denied:
        print(f"not allowed by static shapes: {name}: {NOT_ALLOWED[name]}")
    for name, message in skipped:
        print(f"skipped: {name}: {message}")
    for name, message in failed:
        why = reason_of(name)
        said = message[:200] if why is None else f"against NumPy: {why}"
        print(f"failed: {name}: {said}")
    share = passed / max(passed + len(failed), 1)
    print(
        f"{passed} passed, {len(failed)} failed ({share:.1%} of those allowed), {len(denied)} not "
        f"allowed by static shapes, {len(skipped)} skipped by the suite"
    )
    return 0 if share >= 0.95 else 1


if __name__ == "__main__":
    sys.exit(main())
