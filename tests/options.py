"""Types of command line options: what cannot be meant is refused before any work is done.

parser.add_argument("path", type=checkout("bench_info"))
parser.add_argument("--threads", type=threads)
"""

from __future__ import annotations

import os
from argparse import ArgumentTypeError
from collections.abc import Callable
from pathlib import Path


def count(text: str) -> int:
    """An integer of at least one."""
    if not text.strip().lstrip("+-").isdecimal() or int(text) < 1:
        raise ArgumentTypeError(f"{text!r} is not a number of at least 1")
    return int(text)


def threads(text: str) -> int:
    """A number of threads that have a processor each."""
    number, most = count(text), len(os.sched_getaffinity(0))
    if number > most:
        raise ArgumentTypeError(f"{number} threads, but only {most} processors may be used")
    return number


def seconds(text: str) -> float:
    """A positive time."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise ArgumentTypeError(f"{text!r} is not a positive number of seconds")
    return value


def existing(text: str) -> Path:
    """A file or folder that is there."""
    path = Path(text)
    if not path.exists():
        raise ArgumentTypeError(f"there is no {text}")
    return path


def checkout(part: str) -> Callable[[str], Path]:
    """A folder that has ``part`` in it, by which a project is known."""

    def folder(text: str) -> Path:
        path = existing(text)
        if not (path / part).exists():
            raise ArgumentTypeError(f"{text} is no checkout: it has no {part}")
        return path

    return folder
