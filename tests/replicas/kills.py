"""Kills one rank of several at random points of a training run, and watches how the others end.

    python -m tests.replicas.kills [--runs 100] [--ranks 2] [--hosts]

Every run must end by itself within `BOUND` seconds of the kill, with a status that is not 0 and
without a rank that says that it is through. With ``--hosts`` each rank lies in a network namespace
of its own, joined by a pair of virtual cables, so that messages go through TCP.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

import tracejit as tj
from tests.replicas.mpi import environment
from tracejit import P, lax

ROOT = Path(__file__).resolve().parents[2]
BOUND = 20.0
"""The most seconds from the kill to the end of all ranks."""

HOSTS = ("10.197.41.1", "10.197.41.2")


def train(folder: Path) -> None:
    """On a rank: steps for ever, after the first of which it writes its process number."""
    tj.distributed.initialize()
    rank, count = tj.distributed.process_index(), tj.distributed.process_count()
    mesh = tj.make_mesh((count,), ("batch",))

    @tj.shard_map(mesh=mesh, in_specs=(P(), P("batch")), out_specs=(P(), P()))
    def step(weights: list[np.ndarray], x: np.ndarray) -> tuple[list[np.ndarray], np.ndarray]:
        def loss(weights: list[np.ndarray]) -> Any:
            hidden = x
            for weight in weights:
                hidden = np.tanh(hidden @ weight)
            return (hidden**2).mean()

        value, gradients = tj.value_and_grad(loss)(weights)
        value, gradients = lax.pmean((value, gradients), "batch")
        return [w - 0.1 * g for w, g in zip(weights, gradients, strict=True)], value

    rng = np.random.default_rng(0)
    weights = [rng.standard_normal((256, 256)).astype(np.float32) / 16 for _ in range(4)]
    x = rng.standard_normal((32, 256)).astype(np.float32)
    for number in range(1_000_000):
        weights, _ = step(weights, x)
        if number == 0:
            (folder / f"{rank}.new").write_text(str(os.getpid()))
            (folder / f"{rank}.new").rename(folder / f"rank{rank}")
    print(f"rank {rank} is through", flush=True)


@contextmanager
def two_hosts() -> Iterator[list[str]]:
    """Options and a prefix for MPICH's mpiexec.

    Raises `PermissionError` where namespaces may not be made, or the launcher is another one.
    """
    version = subprocess.run([_mpiexec(), "--version"], capture_output=True, text=True).stdout
    if "HYDRA" not in version:
        raise PermissionError("the launcher is not MPICH's")
    names = [f"tracejit{os.getpid()}{end}" for end in "ab"]
    with tempfile.TemporaryDirectory() as folder:
        shell = Path(folder) / "shell"
        lines = [
            "#!/bin/bash",
            'while [[ "$1" == -* ]]; do shift; done',
            "host=$1; shift",
            *[
                f'[ "$host" = {address} ] && exec ip netns exec {name} bash -c "$*"'
                for name, address in zip(names, HOSTS, strict=True)
            ],
        ]
        shell.write_text("\n".join(lines) + "\n")
        shell.chmod(0o755)
        try:
            for name in names:
                _ip("netns", "add", name)
            _ip("-n", names[0], "link", "add", "cable", "type", "veth", "peer", "name", "other")
            _ip("-n", names[0], "link", "set", "other", "netns", names[1], "name", "cable")
            for name, address in zip(names, HOSTS, strict=True):
                _ip("-n", name, "addr", "add", f"{address}/24", "dev", "cable")
                _ip("-n", name, "link", "set", "cable", "up")
                _ip("-n", name, "link", "set", "lo", "up")
            yield [
                *["ip", "netns", "exec", names[0], _mpiexec()],
                *["-launcher", "ssh", "-launcher-exec", str(shell), "-hosts", ",".join(HOSTS)],
                *["-localhost", HOSTS[0], "-ppn", "1"],
            ]
        finally:
            for name in names:
                subprocess.run(["ip", "netns", "delete", name], capture_output=True)


def _ip(*arguments: str) -> None:
    if shutil.which("ip") is None:
        raise PermissionError("there is no ip command")
    done = subprocess.run(["ip", *arguments], capture_output=True, text=True)
    if done.returncode:
        raise PermissionError(f"ip {' '.join(arguments)}: {done.stderr.strip()}")


def _mpiexec() -> str:
    return str(Path(sysconfig.get_path("scripts")) / "mpiexec")


def kill_one(start: Sequence[str], ranks: int, chance: random.Random) -> float:
    """One run; the seconds from the kill to its end. Raises `AssertionError` for a bad end."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        program = [sys.executable, "-m", "tests.replicas.kills", "--train", name]
        process = subprocess.Popen(
            [*start, "-n", str(ranks), *program],
            cwd=ROOT,
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        try:
            end = time.monotonic() + 120
            while len(list(folder.glob("rank*"))) < ranks:
                assert process.poll() is None, process.communicate()[0][-3000:]
                assert time.monotonic() < end, "the ranks did not begin"
                time.sleep(0.01)
            time.sleep(chance.uniform(0, 0.3))
            victim = chance.randrange(ranks)
            os.kill(int((folder / f"rank{victim}").read_text()), signal.SIGKILL)
            killed = time.monotonic()
            text, _ = process.communicate(timeout=BOUND)
            assert process.returncode != 0, text[-3000:]
            assert "is through" not in text, text[-3000:]
            left = [path for path in folder.glob("rank*") if _lives(int(path.read_text()))]
            assert not left, f"still there: {left}"
            return time.monotonic() - killed
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.communicate()


def _lives(process: int) -> bool:
    end = time.monotonic() + 5
    while time.monotonic() < end:
        try:
            state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return False
        if state == "Z":
            return False
        time.sleep(0.05)
    return True


def main() -> int:
    parser = argparse.ArgumentParser("python -m tests.replicas.kills")
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--hosts", action="store_true", help="each rank on a host of its own")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--train", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.train is not None:
        train(options.train)
        return 0
    chance = random.Random(options.seed)
    times = []
    if options.hosts:
        with two_hosts() as start:
            times = [kill_one(start, 2, chance) for _ in range(options.runs)]
    else:
        times = [kill_one([_mpiexec()], options.ranks, chance) for _ in range(options.runs)]
    print(
        f"{len(times)} runs ended after the kill of a rank: median {np.median(times):.2f} s, "
        f"longest {max(times):.2f} s"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
