"""The machine that compiled code runs on: what its processor can do, and how many cores we may use.

Needs nothing but the operating system, so that a process that finds its program in the disk cache
can ask without loading a compiler.
"""

from __future__ import annotations

import functools
import os
import platform
from dataclasses import dataclass
from pathlib import Path

from tracejit import system

# The list of processors repeats itself for every core and is slow to read on a large machine.
_ONE_CORE = 8192


# What a core has of its second cache, where nothing says so, and the sizes that schedules know.
_USUAL = 512 << 10
_LEAST, _MOST = 256 << 10, 1 << 20
_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


MOST_THREADS = 1024
"""More threads may be more than the system can start, which would end the process."""


@dataclass(frozen=True)
class HostMachine:
    """A processor: code compiled for one is only run on an equal one.

    ``features`` are the operating system's names (``avx2``, ``avx512f`` …), sorted; empty where it
    does not list them. ``l2`` is what a core has of the second cache, in bytes, as far as schedules
    go by it: 256 KiB to 1 MiB.
    """

    architecture: str
    model: str
    features: tuple[str, ...]
    l2: int = _USUAL


@functools.cache
def host() -> HostMachine:
    """The processor this process runs on."""
    listed = _listed()
    model = listed.get("model name") or platform.processor()
    features = listed.get("flags") or listed.get("features") or ""
    architecture = platform.machine().lower()
    return HostMachine(architecture, model, tuple(sorted(features.lower().split())), second_cache())


def _listed() -> dict[str, str]:
    """The first core's lines of the list of processors, keys in lower case; empty elsewhere."""
    try:
        with system.PROCESSOR_LIST.open(encoding="utf-8", errors="replace") as file:
            text = file.read(_ONE_CORE)
    except OSError:
        return {}
    pairs = (line.partition(":") for line in text.split("\n\n")[0].splitlines())
    return {key.strip().lower(): value.strip() for key, _, value in pairs}


def second_cache(folder: Path = system.CACHE_LIST) -> int:
    """One core's share of the second cache, in bytes, within what schedules know.

    As Linux lists caches in ``folder``; 512 KiB where it does not, and on other systems.
    """
    sizes: dict[str, tuple[int, int]] = {}
    for entry in _listed_caches(folder):
        try:
            level, kind, size, sharing = (
                (entry / name).read_text(encoding="utf-8").strip()
                for name in ("level", "type", "size", "shared_cpu_map")
            )
        except OSError:
            continue
        if kind != "Instruction" and size[:-1].isdecimal() and size[-1] in _UNITS:
            processors = sharing.replace(",", "")
            sizes[level] = (int(size[:-1]) * _UNITS[size[-1]], int(processors, 16).bit_count())
    if not {"1", "2"} <= sizes.keys():
        return _USUAL
    # The first cache is a core's own, whichever of its threads share it.
    cores = max(1, sizes["2"][1] // max(1, sizes["1"][1]))
    return min(max(sizes["2"][0] // cores, _LEAST), _MOST)


def _listed_caches(folder: Path) -> list[Path]:
    try:
        return sorted(folder / name for name in os.listdir(folder) if name.startswith("index"))
    except OSError:
        return []


def thread_count() -> int:
    """How many threads compiled code uses.

    ``TVM_NUM_THREADS``, else ``OMP_NUM_THREADS``, where the user has set one to a positive number,
    at most `MOST_THREADS`; else `usable_cores`.
    """
    for name in ("TVM_NUM_THREADS", "OMP_NUM_THREADS"):
        wanted = system.natural_number(os.environ.get(name, "").partition(",")[0])
        if wanted:
            return min(wanted, MOST_THREADS)
    return usable_cores()


def usable_cores() -> int:
    """The cores this process may use: its affinity, and the quotas of its control groups."""
    quotas = [quota for folder in _cgroup_folders() if (quota := _quota(folder)) is not None]
    return max(1, min([system.affinity(), *quotas]))


def _cgroup_folders() -> list[Path]:
    """The folders of this process's control groups and of the groups that contain them."""
    try:
        lines = system.OWN_CONTROL_GROUPS.read_text(encoding="utf-8").splitlines()
    except OSError:
        return []
    found: list[Path] = []
    for line in lines:
        _, controllers, group = line.split(":", 2)
        if controllers and "cpu" not in controllers.split(","):
            continue
        root = system.CONTROL_GROUPS / controllers if controllers else system.CONTROL_GROUPS
        folder = root / group.lstrip("/")
        found.extend(f for f in (folder, *folder.parents) if f == root or root in f.parents)
    return found


def _quota(folder: Path) -> int | None:
    """Whole cores that one control group grants, rounded up; None without a limit."""
    try:
        if (folder / "cpu.max").exists():
            quota, period = (folder / "cpu.max").read_text(encoding="utf-8").split()
        else:
            quota = (folder / "cpu.cfs_quota_us").read_text(encoding="utf-8").strip()
            period = (folder / "cpu.cfs_period_us").read_text(encoding="utf-8").strip()
    except OSError:
        return None
    parts, whole = system.natural_number(quota), system.natural_number(period)
    return None if parts is None or not whole else max(1, -(-parts // whole))
