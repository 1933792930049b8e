"""What the measurements were taken on."""

from __future__ import annotations

import os
import platform
from pathlib import Path

# Libraries whose threads wait for each other suffer most from what else runs.
BUSY = 0.3


def first_line(path: Path, start: str) -> str:
    """What follows the colon in the first line that begins so, or nothing."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return next((line.partition(":")[2].strip() for line in lines if line.startswith(start)), "")


def resident_bytes(most: bool) -> int | None:
    """The memory that this process holds, or the most it ever held; None where nothing says so."""
    said = first_line(Path("/proc/self/status"), "VmHWM" if most else "VmRSS")
    return 1024 * int(said.split()[0]) if said else None


def caches() -> str:
    """The caches of the first processor: `L1 48K, L2 1024K, L3 32768K`."""
    folder = Path("/sys/devices/system/cpu/cpu0/cache")
    found = []
    for index in sorted(folder.glob("index*")):
        if (index / "type").read_text().strip() != "Instruction":
            level, size = ((index / name).read_text().strip() for name in ("level", "size"))
            found.append(f"L{level} {size}")
    return ", ".join(found)


def describe(threads: int) -> dict[str, str]:
    """The machine, the threads used of it, and how busy it was with other work."""
    model = first_line(Path("/proc/cpuinfo"), "model name") or platform.processor()
    flags = set(first_line(Path("/proc/cpuinfo"), "flags").split())
    vectors = next((name for name in ("avx512f", "avx2", "avx") if name in flags), "")
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return {
        "processor": " ".join(filter(None, (model, platform.machine(), vectors))),
        "processors": f"{os.cpu_count()}, {threads} used",
        "caches": caches(),
        "memory": f"{memory:.0f} GiB",
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "other work before": other_work(os.getloadavg()[0]),
    }


def other_work(load: float) -> str:
    """The load of the last minute, in words where it makes the times doubtful."""
    return f"load {load:.2f}" + (", so that all times are doubtful" if load > BUSY else "")
