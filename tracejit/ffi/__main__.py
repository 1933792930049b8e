"""``python -m tracejit.ffi``: what a compiler of a library of handlers or ops must know."""

from __future__ import annotations

import argparse

from tracejit.errors import UnsupportedError
from tracejit.ffi import cflags, header_dir, include_dir


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tracejit.ffi", description=__doc__)
    asked = parser.add_mutually_exclusive_group(required=True)
    asked.add_argument("--cflags", action="store_true", help="the compiler's options, in one line")
    asked.add_argument("--header-dir", action="store_true", help="the folder of tracejit/ops.h")
    asked.add_argument("--include-dir", action="store_true", help="the folder of XLA's headers")
    given = parser.parse_args()
    if given.cflags:
        print(*cflags())
        return
    try:
        print(header_dir() if given.header_dir else include_dir())
    except UnsupportedError as error:
        parser.exit(1, f"{error}\n")


if __name__ == "__main__":
    main()
