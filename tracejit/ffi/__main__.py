"""``python -m tracejit.ffi --cflags``: options for the compiler of a library of handlers."""

from __future__ import annotations

import argparse

from tracejit.ffi import cflags


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tracejit.ffi", description=__doc__)
    parser.add_argument("--cflags", action="store_true", required=True)
    parser.parse_args()
    print(*cflags())


if __name__ == "__main__":
    main()
