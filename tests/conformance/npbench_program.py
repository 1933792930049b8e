"""One program of NPBench, run and timed by one engine, in the process that this is.

    python -m tests.conformance.npbench_program PATH NAME PRESET ENGINE

Prints one line of JSON, a `Finding`, then serves as a contestant.
"""

from __future__ import annotations

import copy
import importlib
import inspect
import json
import sys
import time
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any, Protocol

import numpy as np

import tracejit as tj
from tests.conformance.contestants import Finding, serve
from tracejit import errors, tree

ENGINES = {"tracejit": "numpy", "numpy": "numpy", "jax": "jax", "numba": "numba_n"}
"""Whose file of a program an engine runs: <program>_<this>.py."""

SMALL: dict[str, dict[str, Any]] = {
    "adi": {"TSTEPS": 2, "N": 16},
    "azimint_hist": {"N": 4000, "npt": 100},
    "azimint_naive": {"N": 4000, "npt": 20},
    "channel_flow": {"ny": 21, "nx": 21},
    "cavity_flow": {"ny": 21, "nx": 21, "nt": 3},
    "cholesky": {"N": 12},
    "cholesky2": {"N": 100},
    "contour_integral": {"NR": 20, "NM": 30, "num_int_pts": 8},
    "correlation": {"M": 16, "N": 20},
    "covariance": {"M": 16, "N": 20},
    "crc16": {"N": 8},
    "deriche": {"W": 16, "H": 12},
    "doitgen": {"NR": 6, "NQ": 6, "NP": 16},
    "durbin": {"N": 24},
    "floyd_warshall": {"N": 24},
    "gramschmidt": {"M": 16, "N": 12},
    "heat_3d": {"TSTEPS": 5, "N": 10},
    "jacobi_1d": {"TSTEPS": 10, "N": 100},
    "jacobi_2d": {"TSTEPS": 5, "N": 30},
    "lu": {"N": 12},
    "ludcmp": {"N": 12},
    "mlp": {"S0": 300, "S1": 200, "S2": 200},
    "nussinov": {"N": 8},
    "seidel_2d": {"TSTEPS": 2, "N": 10},
    "symm": {"M": 10, "N": 12},
    "syr2k": {"M": 10, "N": 12},
    "syrk": {"M": 10, "N": 12},
    "trisolv": {"N": 24},
    "trmm": {"M": 10, "N": 12},
    "vadv": {"I": 10, "J": 10, "K": 8},
}
"""Smaller sizes than preset S, for programs whose Python loops make a graph of every step."""


class Program:
    """A program as its description in ``bench_info`` has it, with its arguments made."""

    def __init__(self, path: Path, name: str, preset: str) -> None:
        self.info = json.loads((path / "bench_info" / f"{name}.json").read_text())["benchmark"]
        self._folder = path / "npbench" / "benchmarks" / self.info["relative_path"]
        if str(self._folder) not in sys.path:
            sys.path.insert(0, str(self._folder))
        sizes = self.info["parameters"]["S" if preset == "small" else preset]
        self._handed_out: dict[str, Any] | None = None
        self._copied: set[str] | None = None
        self._data: dict[str, Any] = {**sizes, **(SMALL.get(name, {}) if preset == "small" else {})}
        init = self.info.get("init")
        if init:
            make = getattr(importlib.import_module(self.info["module_name"]), init["func_name"])
            made = make(*(self._data[one] for one in init["input_args"]))
            names = init["output_args"]
            made = [made] if len(names) == 1 else made
            self._data.update(zip(names, made, strict=True))

    def kernel(self, postfix: str) -> Callable[..., Any] | None:
        """The function of one library's file, or None where there is no such file."""
        module = f"{self.info['module_name']}_{postfix}"
        if not (self._folder / f"{module}.py").exists():
            return None
        found: Callable[..., Any] = getattr(importlib.import_module(module), self.info["func_name"])
        return found

    def written(self) -> list[str]:
        """The arguments that the program writes its results to, as its description has it."""
        return [name for name in self.info["output_args"] if name in self.info["array_args"]]

    def arguments(self) -> dict[str, Any]:
        """A copy of the arguments, by the description's names, in order."""
        if self._handed_out is not None:
            return self._handed_out
        return {
            one: copy.deepcopy(self._data[one])
            if self._copied is None or one in self._copied
            else self._data[one]
            for one in self.info["input_args"]
        }

    def copy_only(self, names: Collection[str]) -> None:
        """From now on copies are made of these arguments alone: nobody writes to the others.

        What is copied just before a call is not where what is used again and again is.
        """
        self._copied = set(names)

    def hand_out(self, arguments: dict[str, Any]) -> None:
        """Gives these, which nobody writes to, to all who ask from now on."""
        self._handed_out = arguments


def differences(expected: Any, found: Any, tolerance: float, norm: float) -> str:
    """Where two results, or sets of arguments, are not equal; empty where they are.

    Elements that differ by more than ``tolerance`` may still do so by less than ``norm``, the
    suite's own bound of the difference's norm by the array's: iterations that diverge multiply
    the last digit.
    """
    expected, found = tree.leaves(expected), tree.leaves(found)
    if len(expected) != len(found):
        return f"{len(found)} values, not {len(expected)}"
    for number, (right, ours) in enumerate(zip(expected, found, strict=True)):
        right, ours = np.asarray(right), np.asarray(ours)
        if right.shape != ours.shape or right.dtype != ours.dtype:
            return f"value {number} is {ours.dtype}{ours.shape}, not {right.dtype}{right.shape}"
        with np.errstate(all="ignore"):
            # Relative to the largest element: a sum of terms that cancel is as exact as they are.
            finite = np.abs(right[np.isfinite(right)])
            scale = float(finite.max()) if finite.size else 0.0
            close = np.isclose(ours, right, tolerance, tolerance * scale, equal_nan=True)
            error = np.linalg.norm(ours - right) / max(np.linalg.norm(right), 1e-300)
        if not close.all() and not error < norm:
            worst = np.abs(ours - right)[~close].max()
            return (
                f"value {number}: {(~close).sum()} of {close.size} elements, by up to {worst:.3g}"
            )
    return ""


def tolerance_of(arguments: Mapping[str, Any], result: Any) -> float:
    """1e-8 for float64 alone, 1e-3 where something has a narrower float type."""
    leaves = [np.asarray(leaf).dtype for leaf in tree.leaves((dict(arguments), result))]
    narrow = any(dtype in (np.float32, np.complex64, np.float16) for dtype in leaves)
    return 1e-3 if narrow else 1e-8


def written(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """The names of the arrays whose elements are others than before."""
    return [
        name
        for name, value in before.items()
        if isinstance(value, np.ndarray) and not np.array_equal(value, after[name], equal_nan=True)
    ]


ATTEMPTS = {
    "sizes": {"everything": False, "autograph": False},
    "numbers": {"everything": True, "autograph": False},
    "autograph": {"everything": False, "autograph": True},
}
"""How a kernel is compiled, one after the other until it is not refused: integers are static; all
numbers are; Python's control flow on values is rewritten."""


def compiled(
    kernel: Callable[..., Any],
    arguments: Mapping[str, Any],
    mutated: Collection[str],
    everything: bool,
    autograph: bool,
) -> Callable[..., Any]:
    """The kernel under `jit`: numbers for sizes are static, or all numbers."""
    kinds: Any = bool | int | float | complex | str | np.generic
    exact: Any = bool | int | str | np.integer
    # Parameters with defaults that the description does not name keep them.
    names = list(inspect.signature(kernel).parameters)[: len(arguments)]
    parameters = dict(zip(names, arguments.items(), strict=True))
    static = [
        parameter
        for parameter, (_, value) in parameters.items()
        if isinstance(value, kinds if everything else exact)
    ]
    writes = [parameter for parameter, (name, _) in parameters.items() if name in mutated]
    if writes:
        return tj.jit(kernel, static_argnames=static, autograph=autograph, mutates=writes)
    return tj.jit(kernel, static_argnames=static, autograph=autograph)


class WithArguments(Protocol):
    """A program of any suite."""

    def arguments(self) -> dict[str, Any]:
        """A copy of the arguments, in order."""


def timed(call: Callable[..., Any], program: WithArguments, seconds: float) -> list[float]:
    """The seconds of each call, with arguments of its own, until ``seconds`` are over."""
    samples: list[float] = []
    end = time.perf_counter() + seconds
    while not samples or time.perf_counter() < end:
        given = tuple(program.arguments().values())
        start = time.perf_counter()
        call(*given)
        samples.append(time.perf_counter() - start)
    return samples


Run = tuple[Finding, Callable[..., Any]]
"""What came of a program, and what is to be timed."""


def nothing(*given: Any) -> None:
    """In place of what cannot be called."""


def run_trifle(engine: str) -> None:
    """The least program, compiled: what an engine loads to do that is in no program's time."""
    if engine == "tracejit":
        tj.jit(lambda x: -x)(np.ones(2))
    elif engine == "jax":
        jax = importlib.import_module("jax")
        jax.jit(jax.numpy.negative)(np.ones(2)).block_until_ready()
    elif engine == "numba":
        importlib.import_module("numba").njit(lambda x: -x)(np.ones(2))


def run_ours(program: Program, name: str) -> Run:
    """The NumPy file under `jit` against the NumPy file."""
    kernel = program.kernel("numpy")
    assert kernel is not None, "a program without a NumPy file"
    before, expected = program.arguments(), program.arguments()
    with np.errstate(all="ignore"):
        result = kernel(*expected.values())
        mutated = {*written(before, expected), *program.written()}
    run_trifle("tracejit")
    tolerance = tolerance_of(before, result)
    attempt, given, refusal, start = None, program.arguments(), "", 0.0
    for options in ATTEMPTS.values():
        call = compiled(kernel, before, mutated, **options)
        given = program.arguments()
        start = time.perf_counter()
        try:
            attempt = (call(*given.values()),)
        except errors.TracejitError as error:
            refusal = refusal or f"{type(error).__name__}: {error}".splitlines()[0]
            if isinstance(error, errors.CompilationError):
                break
            continue
        break
    if attempt is None:
        return Finding(name, "refused", refusal), nothing
    first = time.perf_counter() - start
    norm = float(program.info.get("norm_error", 1e-5))
    reason = differences(result, attempt[0], tolerance, norm)
    reason = reason or differences(expected, given, tolerance, norm)
    outcome = "differs" if reason else "equal"
    program.copy_only(mutated)
    how = next(how for how, one in ATTEMPTS.items() if one is options)
    return Finding(name, outcome, reason, how, first), call


def run_peer(program: Program, name: str, engine: str) -> Run:
    """Another library's own file of the program, or the NumPy file as it is.

    JAX is given arrays of its own, as the suite does, so that none are copied in its time.
    """
    kernel = program.kernel(ENGINES[engine])
    if kernel is None:
        return Finding(name, "absent", f"no file for {engine}"), nothing
    if engine == "jax":
        jax = importlib.import_module("jax")
        jax.config.update("jax_enable_x64", True)
        given = {
            n: jax.numpy.asarray(v) if isinstance(v, np.ndarray) else v
            for n, v in program.arguments().items()
        }
        program.hand_out(given)

    run_trifle(engine)

    def call(*given: Any) -> Any:
        result = kernel(*given)
        for leaf in tree.leaves(result):
            getattr(leaf, "block_until_ready", lambda: None)()
        return result

    before, given = program.arguments(), program.arguments()
    start = time.perf_counter()
    with np.errstate(all="ignore"):
        call(*given.values())
        first = time.perf_counter() - start
    program.copy_only({*written(before, given), *program.written()})
    return Finding(name, "ran", "", "", first), call


def main() -> int:
    """Runs the program that the command line names."""
    path, name, preset, engine = sys.argv[1:]
    program = Program(Path(path), name, preset)
    run = run_ours(program, name) if engine == "tracejit" else run_peer(program, name, engine)
    found, call = run
    with np.errstate(all="ignore"):
        serve(found, lambda seconds: timed(call, program, seconds))
    return 0


if __name__ == "__main__":
    sys.exit(main())
