"""``run``: a module on arrays from files, or on random ones."""

from __future__ import annotations

import argparse

import numpy as np

from tracejit import api, tree
from tracejit.commandline.files import (
    DISTRIBUTIONS,
    Commands,
    arguments_for,
    command,
    read_arrays,
    read_module,
    write_arrays,
)


def add_command(commands: Commands) -> None:
    made = command(commands, "run", _run, "run a module and print or save its results")
    made.add_argument(
        "arrays",
        nargs="*",
        metavar="ARRAYS",
        help=".npy or .npz files with the arguments in order; those left out are random",
    )
    made.add_argument("--seed", type=int, default=0, help="of random arguments (default: 0)")
    made.add_argument(
        "--random",
        nargs="?",
        const=DISTRIBUTIONS[0],
        choices=DISTRIBUTIONS,
        default=DISTRIBUTIONS[0],
        help="what random arguments are: normal (small integers, truth values) or special "
        "(signed zeros, infinities, NaN, the least and the greatest numbers among them)",
    )
    made.add_argument(
        "--interpret", action="store_true", help="by the reference interpreter, not compiled"
    )
    made.add_argument("--target", default="cpu", help="what to compile for (default: cpu)")
    made.add_argument("-o", "--output", metavar="FILE", help="save the results as .npy or .npz")


def _run(arguments: argparse.Namespace) -> None:
    module = read_module(arguments.file)
    given = read_arrays(arguments.arrays)
    values = arguments_for(module, given, arguments.seed, arguments.random)
    if arguments.interpret:
        results = api.interpret(module, *values)
    else:
        results = api.compile(module, arguments.target)(*values)
    arrays = [np.asarray(leaf) for leaf in tree.leaves(results)]
    if arguments.output is not None:
        write_arrays(arrays, arguments.output)
        return
    for number, array in enumerate(arrays):
        print(f"result {number}: {array.dtype}{list(array.shape)}")
        print(array)
