"""Runs the tests of autograd (HIPS/autograd) with tracejit in autograd's place.

    python -m tests.conformance.autograd PATH [-k EXPRESSION] [FILE ...]

PATH is a checkout. For the run, the names `autograd`, `autograd.numpy`, `autograd.scipy` and
`autograd.test_util` stand for tracejit's. Prints how many tests passed and failed, and which ones
do not apply, with the reason.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from tests.conformance.array_api import ROOT, outcomes
from tests.options import checkout

_SLOPE = "the slope of |x| at 0 is 1, as JAX's"
_ORDER = "complex numbers have no order in XLA"
_DIAGONAL = "autograd's own make_diagonal"

NOT_APPLICABLE: dict[str, str] = {
    "test_builtins.py::test_isinstance": "arguments of grad are arrays and numbers alone",
    "test_fft.py::test_rfftn_odd_not_implemented": "works here",
    "test_graphs.py::test_assignment_raises_error": "works here",
    "test_numpy.py::test_diagonal": _DIAGONAL,
    "test_numpy.py::test_make_diagonal": _DIAGONAL,
    "test_scalar_ops.py::test_abs": _SLOPE,
    "test_scalar_ops.py::test_absolute": _SLOPE,
    "test_scipy.py::test_dirichlet_logpdf_x": "autograd.scipy.stats",
    "test_scipy.py::test_dirichlet_pdf_x": "autograd.scipy.stats",
    "test_systematic.py::test_max": _ORDER,
    "test_systematic.py::test_min": _ORDER,
    "test_wrappers.py::test_custom_where": "autograd's own np.where, of Python's types",
    "test_wrappers.py::test_custom_where_dtypes": "autograd's own np.where, of Python's types",
    "test_wrappers.py::test_dtypes": "long double, which XLA does not have",
    "test_wrappers.py::test_wrapped_name_and_docs": "the names of autograd's own wrappers",
    "test_vspaces.py": "autograd's own vector spaces",
}
"""Tests, and files of tests, of what is autograd's alone."""


def arguments(given: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.conformance.autograd")
    parser.add_argument("path", type=checkout("tests"), help="a checkout of HIPS/autograd")
    parser.add_argument("files", nargs="*", help="some of the suite's test files; all by default")
    parser.add_argument("-k", default="", help="pytest's expression of which tests to run")
    parser.add_argument("--verbose", action="store_true", help="show what pytest prints")
    return parser.parse_args(given)


def run(given: argparse.Namespace, report: Path) -> None:
    """Runs pytest over the suite, which writes ``report``."""
    path = given.path.resolve()
    files = [str(path / "tests" / name) for name in given.files] or [str(path / "tests")]
    command = [sys.executable, "-m", "pytest", *files, f"--junitxml={report}", "-q", "--tb=short"]
    command += ["-c", os.devnull, f"--rootdir={path}", "-p", "tests.conformance.autograd_names"]
    command += ["-p", "no:cacheprovider", "-p", "no:xdist", "-W", "ignore"]
    command += ["-k", given.k] if given.k else []
    search = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")]))
    environment = {**os.environ, "AUTOGRAD_PATH": str(path), "PYTHONPATH": search}
    hidden = None if given.verbose else subprocess.DEVNULL
    subprocess.run(command, cwd=path / "tests", env=environment, stdout=hidden, check=False)


def reason_of(name: str, message: str) -> str | None:
    """Why a test that did not pass does not apply; None if it does."""
    listed = NOT_APPLICABLE.get(name.partition("[")[0])
    listed = listed or NOT_APPLICABLE.get(name.partition("::")[0])
    if listed is None and message.startswith("not applicable: "):
        # autograd.scipy.stats.norm.cdf -> autograd.scipy.stats
        return ".".join(message.removeprefix("not applicable: ").split(".")[:3])
    return message if listed is None and message.endswith("is required for this test") else listed


def main(given: Sequence[str] | None = None) -> int:
    """Runs the suite and prints the counts; 0 if nothing failed."""
    options = arguments(given)
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        run(options, report)
        found = list(outcomes(report))
    passed = sum(outcome == "passed" for _, outcome, _ in found)
    others = [(name, message) for name, outcome, message in found if outcome != "passed"]
    denied = [reason for one in others if (reason := reason_of(*one)) is not None]
    failed = [one for one in others if reason_of(*one) is None]
    for name, message in failed:
        print(f"failed: {name}: {message[:200]}")
    for reason, count in Counter(denied).most_common():
        print(f"not applicable, {count} tests: {reason}")
    print(f"{passed} passed, {len(failed)} failed, {len(denied)} not applicable")
    return 0 if passed and not failed else 1


if __name__ == "__main__":
    sys.exit(main())
