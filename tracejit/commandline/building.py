"""``compile``: how long a module takes to compile and to run; ``export``: what was made of it."""

from __future__ import annotations

import argparse
import statistics
import time

from tracejit import api
from tracejit.commandline.files import (
    Commands,
    arguments_for,
    command,
    read_arrays,
    read_module,
    write,
)
from tracejit.commandline.showing import FORMS


def add_compile(commands: Commands) -> None:
    made = command(commands, "compile", _compile, "compile a module and time it")
    made.add_argument("arrays", nargs="*", metavar="ARRAYS", help=".npy or .npz files, as in run")
    made.add_argument("--seed", type=int, default=0, help="of random arguments (default: 0)")
    made.add_argument("--target", default="cpu", help="what to compile for (default: cpu)")
    made.add_argument(
        "--repeat", type=_positive, default=10, help="how often to run it (default: 10)"
    )


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError(f"{number} is not positive")
    return number


def _compile(arguments: argparse.Namespace) -> None:
    module = read_module(arguments.file)
    values = arguments_for(module, read_arrays(arguments.arrays), arguments.seed)
    start = time.perf_counter()
    compiled = api.compile(module, arguments.target)
    built = time.perf_counter()
    compiled(*values)
    runs = []
    for _ in range(arguments.repeat):
        begin = time.perf_counter()
        compiled(*values)
        runs.append(time.perf_counter() - begin)
    print(f"module {module.name}")
    print(f"compiled in {1e3 * (built - start):.1f} ms")
    print(f"ran in {1e3 * statistics.median(runs):.4f} ms (median of {len(runs)})")
    print(f"fastest {1e3 * min(runs):.4f} ms")


def add_export(commands: Commands) -> None:
    made = command(commands, "export", _export, "write a module in another form")
    made.add_argument(
        "--to", dest="form", choices=sorted(FORMS), required=True, help="what to write"
    )
    made.add_argument("-o", "--output", metavar="FILE", required=True, help="where")


def _export(arguments: argparse.Namespace) -> None:
    module = read_module(arguments.file)
    write(FORMS[arguments.form](module), arguments.output)
