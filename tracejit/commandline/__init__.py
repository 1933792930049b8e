"""The command line: ``python -m tracejit COMMAND``; ``--help`` lists the commands.

main(["run", "step.hlo", "--seed", "1"])       the exit code: 0, 1 for an error, 2 for wrong usage
"""

from __future__ import annotations

from tracejit.commandline.main import main

__all__ = ["main"]
