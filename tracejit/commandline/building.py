"""``compile``: times of compiling and running; ``export``: a library; ``to-c``: a file of C."""

from __future__ import annotations

import argparse
import keyword
import re
import statistics
import time
from pathlib import Path

from tracejit import api
from tracejit.backends.target import Target
from tracejit.commandline.files import (
    Commands,
    arguments_for,
    command,
    positive,
    read_arrays,
    read_module,
    write,
)
from tracejit.commandline.showing import FORMS
from tracejit.errors import ArgumentError
from tracejit.transforms.export import export, of_module, to_c

_LIBRARIES = (".so", ".dylib", ".dll", ".a")


def add_compile(commands: Commands) -> None:
    made = command(commands, "compile", _compile, "compile a module and time it")
    made.add_argument("arrays", nargs="*", metavar="ARRAYS", help=".npy or .npz files, as in run")
    made.add_argument("--seed", type=int, default=0, help="of random arguments (default: 0)")
    made.add_argument("--target", default="cpu", help="what to compile for (default: cpu)")
    made.add_argument(
        "--repeat", type=positive, default=10, help="how often to run it (default: 10)"
    )


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
        "--to",
        dest="form",
        choices=["library", *sorted(FORMS)],
        help="what to write: text, or a library for C, the default for .so, .dylib, .dll and .a",
    )
    made.add_argument("-o", "--output", metavar="FILE", required=True, help="where")
    made.add_argument("--header", metavar="FILE", help="write the library's header for C")
    made.add_argument("--python", metavar="FILE", help="write a Python module for the library")
    made.add_argument("--target", help="what the library is compiled for (default: cpu)")
    made.add_argument("--name", help="of the library's function (default: the file's)")
    made.add_argument(
        "--gradients",
        action="store_true",
        help="a second function of the library: NAME_value_and_grad",
    )
    made.add_argument(
        "--threads", type=positive, help="that the library uses at most (default: as many as here)"
    )


def _export(arguments: argparse.Namespace) -> None:
    module = read_module(arguments.file)
    form = arguments.form
    if form is None and Path(arguments.output).suffix in _LIBRARIES:
        form = "library"
    given = {name: getattr(arguments, name) for name in ("header", "python", "name", "threads")}
    if form == "library":
        target = Target() if arguments.target is None else Target(arguments.target)
        options = {"gradients": arguments.gradients, "target": target, **given}
        print(export(of_module(module), arguments.output, **options))
        return
    if form is None:
        raise ArgumentError(f"export: say what to write to {arguments.output} with --to")
    if arguments.gradients or any(v is not None for v in (*given.values(), arguments.target)):
        raise ArgumentError(f"export: --to {form} is text, which takes only --output")
    write(FORMS[form](module), arguments.output)


def add_to_c(commands: Commands) -> None:
    made = command(commands, "to-c", _to_c, "write a module as one file of C, in scalar loops")
    made.add_argument("-o", "--output", metavar="FILE", help="write there")
    made.add_argument("--name", help="of the function (default: the file's, or the module's)")


def _to_c(arguments: argparse.Namespace) -> None:
    module = read_module(arguments.file)
    output = arguments.output
    stem = module.name if output in (None, "-") else Path(output).stem
    own = re.sub(r"[^A-Za-z0-9_]", "_", stem).strip("_")
    name = arguments.name or ("program" if not own or keyword.iskeyword(own) else own)
    write(to_c(of_module(module), name), output)
