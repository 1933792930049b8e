"""A Linux for AArch64 in a folder: Debian's Python, the wheels of our dependencies, a linker.

Emulated(folder).run(["-m", "tests.portability.worker", "0", "1"])

Needs Debian's ``qemu-user`` and ``gcc-aarch64-linux-gnu``, and the package clients apt-get and pip.
Nothing is installed on the machine itself: packages are unpacked under the folder.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import tomli

CHECKOUT = Path(__file__).resolve().parents[2]

ARCHITECTURE = "arm64"
PREFIX = "aarch64-linux-gnu-"
EMULATOR = "qemu-aarch64"
# The oldest and newest C libraries whose wheels are taken; pip takes each by its own name only.
PLATFORMS = [f"manylinux_2_{minor}_aarch64" for minor in range(17, 37)] + ["manylinux2014_aarch64"]
TEST_PACKAGES = ["hypothesis", "pytest"]


class MissingToolError(Exception):
    """The machine lacks a program; the message says what to install."""


@dataclass(frozen=True)
class Emulated:
    """The emulated machine whose files are in ``folder``; made when it is first used."""

    folder: Path

    @property
    def root(self) -> Path:
        """What the emulated programs take their libraries from."""
        return self.folder / "root"

    @property
    def python(self) -> Path:
        """The emulated interpreter."""
        return next(path for path in (self.root / "usr/bin").glob("python3.*") if path.is_file())

    def prepare(self) -> None:
        """Unpacks the emulated system. Raises `MissingToolError` where a program is missing."""
        for tool in (EMULATOR, PREFIX + "gcc", PREFIX + "ld", "apt-get", "dpkg-deb"):
            if shutil.which(tool) is None:
                raise MissingToolError(
                    f"{tool} was not found: apt-get install qemu-user gcc-aarch64-linux-gnu"
                )
        done = self.folder / "done"
        if done.exists():
            return
        shutil.rmtree(self.folder, ignore_errors=True)
        self._unpack_system()
        self._unpack_wheels()
        self._link_tools()
        done.touch()

    def run(self, arguments: Sequence[str], **environment: str) -> subprocess.Popen[str]:
        """Starts the emulated Python in the checkout; its output is a pipe."""
        known = {
            "PATH": str(self.folder / "bin"),
            "PYTHONPATH": f"{CHECKOUT}{os.pathsep}{self.folder / 'site'}",
            "QEMU_LD_PREFIX": str(self.root),
            "TRACEJIT_CACHE": "0",
            # The emulator may hang where a process with threads forks.
            "TRACEJIT_COMPILE_SERVER": "0",
            "HOME": str(self.folder),
        }
        command = [str(shutil.which(EMULATOR)), str(self.python), *arguments]
        return subprocess.Popen(
            command,
            cwd=CHECKOUT,
            env=known | environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def _unpack_system(self) -> None:
        for name in ("lists/partial", "archives/partial", "root"):
            (self.folder / name).mkdir(parents=True)
        (self.folder / "status").touch()
        apt = [
            "apt-get",
            "-qq",
            f"-oAPT::Architecture={ARCHITECTURE}",
            f"-oAPT::Architectures={ARCHITECTURE}",
            "-oAPT::Install-Recommends=0",
            f"-oAPT::Sandbox::User={os.environ.get('USER', 'root')}",
            f"-oDir::State::Lists={self.folder / 'lists'}",
            f"-oDir::State::status={self.folder / 'status'}",
            f"-oDir::Cache={self.folder}",
            f"-oDir::Cache::archives={self.folder / 'archives'}",
            "-oDebug::NoLocking=1",
        ]
        subprocess.run([*apt, "update"], check=True)
        wanted = ["python3", "libstdc++6", "libgcc-s1"]
        subprocess.run([*apt, "-y", "--download-only", "install", *wanted], check=True)
        for package in sorted((self.folder / "archives").glob("*.deb")):
            subprocess.run(["dpkg-deb", "-x", str(package), str(self.root)], check=True)

    def _unpack_wheels(self) -> None:
        with (CHECKOUT / "pyproject.toml").open("rb") as file:
            needed = tomli.load(file)["project"]["dependencies"]
        version = self.python.name.removeprefix("python")
        platforms = [word for name in PLATFORMS for word in ("--platform", name)]
        wheels = self.folder / "wheels"
        command = [sys.executable, "-m", "pip", "download", "-q", "--only-binary=:all:"]
        command += ["--python-version", version, *platforms, "-d", str(wheels)]
        subprocess.run([*command, *needed, *TEST_PACKAGES], check=True)
        for wheel in wheels.glob("*.whl"):
            zipfile.ZipFile(wheel).extractall(self.folder / "site")

    def _link_tools(self) -> None:
        (self.folder / "bin").mkdir()
        for name, tool in {"cc": "gcc", "gcc": "gcc", "ld": "ld"}.items():
            (self.folder / "bin" / name).symlink_to(str(shutil.which(PREFIX + tool)))
