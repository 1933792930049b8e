"""The commands and their arguments; errors are single lines, with exit code 1."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from traceback import walk_stack

from tracejit.commandline import (
    bisecting,
    building,
    costing,
    differentiating,
    explaining,
    measuring,
    reducing,
    running,
    showing,
)
from tracejit.errors import TracejitError
from tracejit.sources import Source


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command that ``argv`` (by default the process's arguments) names."""
    arguments = parser().parse_args(argv)
    try:
        arguments.command(arguments)
    except TracejitError as error:
        return _fail(error.message if _is_running(error.source) else str(error))
    except BrokenPipeError:
        sys.stderr.close()  # the reader has seen enough; Python would complain when it flushes
        return 0
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        return _fail(f"{place}{error.strerror or error}")
    return 0


def _is_running(source: Source | None) -> bool:
    """Whether a line is one of this process's, not one that the HLO text names."""
    return source is None or any(f.f_code.co_filename == source.file for f, _ in walk_stack(None))


def _fail(message: str) -> int:
    print(f"tracejit: {' '.join(message.split())}", file=sys.stderr)
    return 1


def parser() -> argparse.ArgumentParser:
    """What the command line understands."""
    whole = argparse.ArgumentParser(
        prog="python -m tracejit",
        description="Show, run, measure, differentiate, compile, export, compare and reduce HLO.",
    )
    commands = whole.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for add in (
        showing.add_command,
        running.add_command,
        differentiating.add_command,
        building.add_compile,
        explaining.add_command,
        building.add_export,
        building.add_to_c,
        bisecting.add_command,
        measuring.add_stats,
        measuring.add_diff,
        costing.add_cost,
        costing.add_profile,
        reducing.add_command,
    ):
        add(commands)
    return whole
