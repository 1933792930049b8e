"""``reduce``: the smallest part of a module for which a command still succeeds.

python -m tracejit reduce step.hlo --while 'python still_wrong.py {}' -o small.hlo
"""

from __future__ import annotations

import argparse
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

from tracejit.commandline.files import Commands, command, positive, read_module, write
from tracejit.errors import ArgumentError
from tracejit.graph import Module
from tracejit.hlo import to_text
from tracejit.passes.delta_debugging import reduced
from tracejit.traversal import instruction_count


def add_command(commands: Commands) -> None:
    made = command(commands, "reduce", _reduce, "make a module smaller while a command succeeds")
    made.add_argument(
        "--while",
        dest="test",
        metavar="CMD",
        required=True,
        help="a command of the shell, {} being the file to try, or the file comes last; it must "
        "exit with 0 as long as the file shows what is looked for",
    )
    made.add_argument(
        "--timeout",
        type=positive,
        default=60,
        metavar="SECONDS",
        help="after which a command counts as failed (default: 60)",
    )
    made.add_argument("-o", "--output", metavar="FILE", help="write there")


def _reduce(arguments: argparse.Namespace) -> None:
    module = read_module(arguments.file)
    with tempfile.TemporaryDirectory(prefix="tracejit-") as folder:
        judge = _Command(arguments.test, Path(folder, "module.hlo"), arguments.timeout)
        if not judge(module):
            raise ArgumentError(f"reduce: {judge.said} on {arguments.file} itself; it must succeed")
        made = reduced(module, judge)
    print(
        f"{instruction_count(module)} instructions reduced to {instruction_count(made)}; "
        f"the command ran {judge.runs} times",
        file=sys.stderr,
    )
    write(to_text(made), arguments.output)


class _Command:
    """Whether the user's command succeeds on a module; ``said`` is how it ended last."""

    def __init__(self, text: str, file: Path, timeout: int) -> None:
        self._file, self._timeout = file, timeout
        place = shlex.quote(str(file))
        self._text = text.replace("{}", place) if "{}" in text else f"{text} {place}"
        self.runs, self.said = 0, ""

    def __call__(self, module: Module) -> bool:
        self._file.write_text(to_text(module), encoding="utf-8")
        self.runs += 1
        try:
            done = subprocess.run(
                self._text,
                shell=True,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=self._timeout,
            )
        except subprocess.TimeoutExpired:
            self.said = f"the command took longer than {self._timeout} seconds"
            return False
        self.said = f"the command exits with {done.returncode}"
        return done.returncode == 0
