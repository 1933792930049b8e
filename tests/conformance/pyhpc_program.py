"""One program of pyhpc-benchmarks, run and timed by one engine, in the process that this is.

    python -m tests.conformance.pyhpc_program PATH NAME SIZE ENGINE

Prints one line of JSON, a `Finding`, then serves as a contestant.
"""

from __future__ import annotations

import copy
import importlib
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import tracejit as tj
from tests.conformance import as_jax
from tests.conformance.contestants import Finding, serve
from tests.conformance.npbench_program import Run, differences, nothing, timed
from tracejit import errors, tree

PROGRAMS = {
    "equation_of_state": ("eos", "gsw_dHdT"),
    "isoneutral_mixing": ("isoneutral", "isoneutral_diffusion_pre"),
    "turbulent_kinetic_energy": ("tke", "integrate_tke"),
}
"""By folder: what its files' names begin with, and the function that does the work."""
FILES = {
    "tracejit": "numpy",
    "as jax": "jax",
    "numpy": "numpy",
    "jax": "jax",
    "numba": "numba",
    "pytorch": "pytorch",
}
"""Whose file of a program an engine runs; "as jax" is tracejit in JAX's place."""


class Program:
    """A program, with its arguments made for one number of elements."""

    def __init__(self, path: Path, name: str, size: int) -> None:
        if str(path) not in sys.path:
            sys.path.insert(0, str(path))
        self.package = f"benchmarks.{name}"
        self.prefix, self.kernel = PROGRAMS[name]
        self._inputs = importlib.import_module(self.package).generate_inputs(size)
        self.prepare: Callable[..., Sequence[Any]] | None = None
        """Makes the arrays of a library out of NumPy's."""

    def arguments(self) -> dict[str, Any]:
        """Copies of the arguments, by their numbers, as the engine takes them."""
        given: Sequence[Any] = copy.deepcopy(self._inputs)
        if self.prepare is not None:
            given = self.prepare(*given, device="cpu")
        return {str(i): value for i, value in enumerate(given)}

    def module(self, library: str) -> Any:
        """The file written for a library."""
        return importlib.import_module(f"{self.package}.{self.prefix}_{library}")


def kernel(program: Program, engine: str) -> Callable[..., Any]:
    """What ``engine`` calls, with NumPy arrays or its own."""
    if engine == "as jax":
        as_jax.install()
    module = program.module(FILES[engine])
    if engine == "tracejit":
        return tj.jit(module.run)
    if engine == "as jax":
        return tj.jit(getattr(module, program.kernel))
    if engine == "jax":
        importlib.import_module("jax").config.update("jax_enable_x64", True)
    # In no library's time, as in the suite itself.
    program.prepare = getattr(module, "prepare_inputs", None)
    found: Callable[..., Any] = module.run
    return found


def find(program: Program, name: str, engine: str) -> Run:
    """What comes of the program; its results are compared with those of NumPy's file."""
    with np.errstate(all="ignore"):
        expected = program.module("numpy").run(*program.arguments().values())
        call = kernel(program, engine)
        start = time.perf_counter()
        try:
            result = call(*program.arguments().values())
        except errors.TracejitError as error:
            return Finding(name, "refused", str(error).splitlines()[0]), nothing
        first = time.perf_counter() - start
        found = [np.asarray(leaf) for leaf in tree.leaves(result)]
        reason = differences(tree.leaves(expected), found, 1e-8, 1e-8)
    return Finding(name, "differs" if reason else "equal", reason, "", first), call


def main() -> int:
    """Runs the program that the command line names."""
    path, name, size, engine = sys.argv[1:]
    program = Program(Path(path).resolve(), name, int(size))
    found, call = find(program, name, engine)
    with np.errstate(all="ignore"):
        serve(found, lambda seconds: timed(call, program, seconds))
    return 0


if __name__ == "__main__":
    sys.exit(main())
