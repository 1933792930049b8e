"""Numbers for readers: bytes, counts and seconds with their units."""

from __future__ import annotations


def bytes_text(count: int) -> str:
    for unit, size in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count} B"


def count_text(count: int) -> str:
    for unit, size in ((" T", 10**12), (" G", 10**9), (" M", 10**6), (" k", 10**3)):
        if count >= size:
            return f"{count / size:.1f}{unit}"
    return str(count)


def time_text(seconds: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.2f} {unit}"
    return f"{seconds * 1e9:.0f} ns"
