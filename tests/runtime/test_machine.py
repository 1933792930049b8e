"""What is found out about the machine, and how many threads follow from it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.runtime.processes import finished, start
from tracejit import system
from tracejit.backends import machine
from tracejit.runtime.library import SPIN_COUNT


@pytest.fixture
def unset(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TVM_NUM_THREADS", "OMP_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def cores(monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(machine, "usable_cores", lambda: 12)
    return 12


def test_the_host_is_described() -> None:
    host = machine.host()
    assert host is machine.host()
    assert host.architecture
    assert host.model
    assert list(host.features) == sorted(host.features)
    if host.architecture == "x86_64" and Path("/proc/cpuinfo").exists():
        assert "sse2" in host.features


def listed(folder: Path, *caches: tuple[str, str, str, str]) -> Path:
    """Files as Linux lists caches: level, type, size, and a mask of the processors that share."""
    for number, lines in enumerate(caches):
        entry = folder / f"index{number}"
        entry.mkdir()
        for name, line in zip(("level", "type", "size", "shared_cpu_map"), lines, strict=True):
            (entry / name).write_text(line + "\n")
    return folder


@pytest.mark.parametrize(
    ("second", "first", "share"),
    [
        (("1024K", "1"), "1", 1 << 20),
        (("1024K", "00000000,00000003"), "00000000,00000003", 1 << 20),
        (("2048K", "ff"), "3", 512 << 10),
        (("1M", "f"), "1", 256 << 10),
        (("4M", "1"), "1", 1 << 20),
        (("128K", "1"), "1", 256 << 10),
        (("unknown", "1"), "1", 512 << 10),
    ],
)
def test_a_cores_share_of_the_second_cache(
    tmp_path: Path, second: tuple[str, str], first: str, share: int
) -> None:
    caches = [
        ("1", "Data", "48K", first),
        ("1", "Instruction", "32K", first),
        ("2", "Unified", *second),
        ("3", "Unified", "32768K", "ffff"),
    ]
    assert machine.second_cache(listed(tmp_path, *caches)) == share


def test_caches_that_nothing_lists(tmp_path: Path) -> None:
    assert machine.second_cache(tmp_path / "nowhere") == 512 << 10
    assert machine.second_cache(listed(tmp_path, ("2", "Unified", "1M", "1"))) == 512 << 10
    assert machine.host().l2 == machine.second_cache()


@pytest.mark.usefixtures("unset")
def test_threads_are_the_usable_cores(cores: int) -> None:
    assert machine.thread_count() == cores


@pytest.mark.usefixtures("unset", "cores")
@pytest.mark.parametrize(
    ("variables", "threads"),
    [
        ({"TVM_NUM_THREADS": "3"}, 3),
        ({"OMP_NUM_THREADS": "5"}, 5),
        ({"OMP_NUM_THREADS": "5,2"}, 5),
        ({"TVM_NUM_THREADS": "3", "OMP_NUM_THREADS": "5"}, 3),
        ({"TVM_NUM_THREADS": "0", "OMP_NUM_THREADS": "5"}, 5),
        ({"TVM_NUM_THREADS": "many"}, 12),
        ({"TVM_NUM_THREADS": "-1"}, 12),
        ({"TVM_NUM_THREADS": ""}, 12),
        ({"TVM_NUM_THREADS": "²"}, 12),
        ({"TVM_NUM_THREADS": "9" * 5000}, 12),
        ({"TVM_NUM_THREADS": "99999999"}, machine.MOST_THREADS),
    ],
)
def test_the_users_choice_comes_first(
    variables: dict[str, str], threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert machine.thread_count() == threads


def test_affinity_bounds_the_cores() -> None:
    assert 1 <= machine.usable_cores() <= (os.cpu_count() or 1)


@pytest.mark.parametrize(
    ("files", "cores"),
    [
        ({}, None),
        ({"cpu.max": "max 100000\n"}, None),
        ({"cpu.max": "150000 100000\n"}, 2),
        ({"cpu.max": "50000 100000\n"}, 1),
        ({"cpu.max": "400000 100000\n"}, 4),
        ({"cpu.cfs_quota_us": "-1\n", "cpu.cfs_period_us": "100000\n"}, None),
        ({"cpu.cfs_quota_us": "300000\n", "cpu.cfs_period_us": "100000\n"}, 3),
        ({"cpu.cfs_quota_us": "300000\n"}, None),
        ({"cpu.cfs_quota_us": "300000\n", "cpu.cfs_period_us": "0\n"}, None),
    ],
)
def test_quotas_of_control_groups(files: dict[str, str], cores: int | None, tmp_path: Path) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    assert machine._quota(tmp_path) == cores


def test_the_smallest_quota_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    quotas = {"outer": "700000 100000", "inner": "200000 100000"}
    for name, text in quotas.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "cpu.max").write_text(text)
    monkeypatch.setattr(system, "affinity", lambda: 64)
    folders = [tmp_path / "outer"]
    monkeypatch.setattr(machine, "_cgroup_folders", lambda: folders)
    assert machine.usable_cores() == 7
    folders.append(tmp_path / "inner")
    assert machine.usable_cores() == 2


HOSTILE = """
import numpy as np
import tracejit as tj
import warnings
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    print(*tj.jit(lambda x: tj.numpy.sort(x) + tj.random.normal(tj.random.key(0)) * 0)(np.ones(2)))
print(*sorted({str(each.message).split()[0] for each in caught}))
"""


@pytest.mark.parametrize(
    "variables",
    [
        {"TVM_NUM_THREADS": "²", "TRACEJIT_CACHE_LIMIT": "³"},
        {"CC": "gcc 'x", "OMP_NUM_THREADS": "٣" * 5000},
        {"CC": "false", "TRACEJIT_RESULTS_LIMIT": "9" * 5000},
        {"TRACEJIT_SEED": "²", "TRACEJIT_PROGRESS": "²", "TVM_BIND_THREADS": "²"},
        {"TVM_THREAD_POOL_SPIN_COUNT": "²", "TVM_NUM_THREADS": "3"},
        {"TRACEJIT_CACHE": "²", "TRACEJIT_CACHE_DIR": "~²²/" + "x" * 300},
        {"XDG_CACHE_HOME": "/proc/self/²", "HOME": "²", "PATH": "²"},
    ],
    ids=lambda variables: " ".join(variables),
)
def test_no_value_of_the_environment_ends_a_program(
    variables: dict[str, str], tmp_path: Path
) -> None:
    """Warnings name the variables, and answers are right."""
    chosen = {"TRACEJIT_CACHE_DIR": str(tmp_path), **variables}
    said = finished(start(HOSTILE, **chosen)).splitlines()
    assert said[0] == "1.0 1.0"


THREADS_WAIT = """
import os
from tracejit.runtime.library import runtime
runtime()
print(os.environ["TVM_THREAD_POOL_SPIN_COUNT"])
"""


@pytest.mark.parametrize("chosen", [None, "7"])
def test_threads_sleep_soon_unless_the_user_says_otherwise(
    chosen: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While they yield, the process cannot end."""
    monkeypatch.delenv("TVM_THREAD_POOL_SPIN_COUNT", raising=False)
    given = {} if chosen is None else {"TVM_THREAD_POOL_SPIN_COUNT": chosen}
    assert finished(start(THREADS_WAIT, **given)).strip() == (chosen or str(SPIN_COUNT))
