"""``explain``: the kernels that a module is compiled to, and what limits each."""

from __future__ import annotations

import argparse

from tracejit import api
from tracejit.commandline.files import (
    Commands,
    arguments_for,
    command,
    read_arrays,
    read_module,
    write,
)


def add_command(commands: Commands) -> None:
    made = command(
        commands, "explain", _explain, "print the kernels of a compiled module and their costs"
    )
    made.add_argument("arrays", nargs="*", metavar="ARRAYS", help=".npy or .npz files, as in run")
    made.add_argument("--seed", type=int, default=0, help="of random arguments (default: 0)")
    made.add_argument("--measure", action="store_true", help="run and time every kernel")
    made.add_argument("--target", default="cpu", help="what to compile for (default: cpu)")
    made.add_argument("-o", "--output", metavar="FILE", help="write there")


def _explain(arguments: argparse.Namespace) -> None:
    module = read_module(arguments.file)
    given = read_arrays(arguments.arrays)
    compiled = api.compile(module, arguments.target)
    values = arguments_for(module, given, arguments.seed) if arguments.measure or given else []
    report = compiled.explain(*values, measure=bool(values) or arguments.measure)
    write(f"module {module.name}\n{report}\n", arguments.output)
