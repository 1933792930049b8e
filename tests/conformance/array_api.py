"""Runs the array-API conformance suite (data-apis/array-api-tests), traced and compiled.

    python -m tests.conformance.array_api PATH [--max-examples N] [-k EXPRESSION] [FILE ...]

PATH is a checkout of the suite with its submodule; the suite needs pytest, hypothesis and
ndindex. Prints how many tests passed and failed, and which ones static shapes do not allow.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
NAMESPACE = "tests.conformance.array_api_namespace"

DYNAMIC = "the result's shape depends on the elements"
NOT_ALLOWED = {
    "test_set_functions.py::test_unique_all": DYNAMIC,
    "test_set_functions.py::test_unique_counts": DYNAMIC,
    "test_set_functions.py::test_unique_inverse": DYNAMIC,
    "test_set_functions.py::test_unique_values": DYNAMIC,
    "test_searching_functions.py::test_nonzero": DYNAMIC,
    "test_searching_functions.py::test_nonzero_zerodim_error": DYNAMIC,
    "test_array_object.py::test_getitem_masking": DYNAMIC,
    "test_manipulation_functions.py::test_repeat[array]": DYNAMIC,
}
"""Tests that no graph of static shapes can pass, with the reason."""


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.conformance.array_api")
    parser.add_argument("path", type=Path, help="a checkout of data-apis/array-api-tests")
    parser.add_argument("files", nargs="*", help="some of the suite's test files; all by default")
    parser.add_argument("--max-examples", type=int, default=5, help="of hypothesis, for each test")
    parser.add_argument("-k", default="", help="pytest's expression of which tests to run")
    parser.add_argument("--verbose", action="store_true", help="show what pytest prints")
    return parser.parse_args()


def run(given: argparse.Namespace, report: Path) -> None:
    """Runs pytest over the suite, which writes ``report``."""
    search = [str(ROOT), os.environ.get("PYTHONPATH", "")]
    environment = {
        **os.environ,
        "ARRAY_API_TESTS_MODULE": NAMESPACE,
        "PYTHONPATH": os.pathsep.join(filter(None, search)),
    }
    folder = given.path / "array_api_tests"
    files = [str(folder / name) for name in given.files] or [str(folder)]
    command = [sys.executable, "-m", "pytest", *files, f"--junitxml={report}", "-q", "--tb=short"]
    command += [f"--max-examples={given.max_examples}", "--disable-deadline", "--derandomize"]
    command += [
        "-p",
        "no:cacheprovider",
        "-p",
        "no:xdist",
        "-W",
        "ignore",
        *(["-k", given.k] if given.k else []),
    ]
    hidden = None if given.verbose else subprocess.DEVNULL
    subprocess.run(command, cwd=given.path, env=environment, stdout=hidden, check=False)


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
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        run(given, report)
        found = list(outcomes(report))
    denied = [(n, o) for n, o, _ in found if n in NOT_ALLOWED and o != "passed"]
    failed = [(n, m) for n, o, m in found if o == "failed" and n not in NOT_ALLOWED]
    skipped = [(n, m) for n, o, m in found if o == "skipped" and n not in NOT_ALLOWED]
    passed = sum(o == "passed" for _, o, _ in found)
    for name, _ in denied:
        print(f"not allowed by static shapes: {name}: {NOT_ALLOWED[name]}")
    for name, message in skipped:
        print(f"skipped: {name}: {message}")
    for name, message in failed:
        print(f"failed: {name}: {message[:200]}")
    share = passed / max(passed + len(failed), 1)
    print(
        f"{passed} passed, {len(failed)} failed ({share:.1%} of those allowed), {len(denied)} not "
        f"allowed by static shapes, {len(skipped)} skipped by the suite"
    )
    return 0 if share >= 0.95 else 1


if __name__ == "__main__":
    sys.exit(main())
