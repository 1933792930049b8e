"""``python -m tracejit``: the command line."""

from __future__ import annotations

import sys

from tracejit.commandline import main

if __name__ == "__main__":
    sys.exit(main())
