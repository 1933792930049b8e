"""``grad``: the gradient of a module, as a module."""

from __future__ import annotations

import argparse

from tracejit.commandline.files import Commands, command, read_module, write
from tracejit.hlo import to_stablehlo, to_text
from tracejit.transforms.module_gradient import gradient_of

_WRITERS = {"hlo": to_text, "stablehlo": to_stablehlo}


def add_command(commands: Commands) -> None:
    made = command(commands, "grad", _grad, "print the gradient of a module as a module")
    made.add_argument(
        "--wrt",
        type=_numbers,
        metavar="NUMBERS",
        help="the parameters, such as 0,2 (default: all floating and complex arrays)",
    )
    made.add_argument("--value", action="store_true", help="return the module's results as well")
    made.add_argument(
        "--cotangents",
        action="store_true",
        help="take a cotangent for each result as further parameters; without this, the module "
        "must return one real number",
    )
    made.add_argument("--as", dest="form", choices=sorted(_WRITERS), default="hlo")
    made.add_argument("-o", "--output", metavar="FILE", help="write there")


def _numbers(text: str) -> list[int]:
    return [int(number) for number in text.split(",")]


def _grad(arguments: argparse.Namespace) -> None:
    module = read_module(arguments.file)
    made = gradient_of(
        module, arguments.wrt, value=arguments.value, cotangents=arguments.cotangents
    )
    write(_WRITERS[arguments.form](made), arguments.output)
