"""The package list, the wheel and the sdist hold the product, all of it, once."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.project import checkout


def run(*command: str | Path, cwd: Path) -> str:
    """Run a command to its end, and show what it said when it fails."""
    done = subprocess.run(command, cwd=cwd, text=True, capture_output=True, check=False)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def build(kind: str, source: Path, into: Path) -> Path:
    """The one wheel or sdist that `source` builds."""
    run(sys.executable, "-m", "build", "--no-isolation", f"--{kind}", "-o", into, source, cwd=into)
    (made,) = into.iterdir()
    return made


@dataclass(frozen=True)
class Distributions:
    wheel: Path
    sdist: Path
    wheel_from_sdist: Path


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Distributions:
    """Both kinds, built from a copy: the checkout gets no `build/`, and workers do not meet."""
    folder = tmp_path_factory.mktemp("distributions")
    source = folder / "source"
    source.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(checkout.ROOT / name, source)
    for path in checkout.SOURCES.values():
        skip = shutil.ignore_patterns("__pycache__")
        shutil.copytree(path, source / path.name, symlinks=True, ignore=skip)
    for name in ("wheel", "sdist", "wheel-from-sdist", "unpacked"):
        (folder / name).mkdir()
    wheel = build("wheel", source, folder / "wheel")
    shutil.rmtree(source / "build")
    sdist = build("sdist", source, folder / "sdist")
    shutil.unpack_archive(sdist, folder / "unpacked")
    (unpacked,) = (folder / "unpacked").iterdir()
    return Distributions(wheel, sdist, build("wheel", unpacked, folder / "wheel-from-sdist"))


def wheel_files(path: Path) -> list[str]:
    with zipfile.ZipFile(path) as archive:
        return sorted(name for name in archive.namelist() if ".dist-info/" not in name)


def product_files() -> list[str]:
    """The files that a wheel must hold, under the names it must give them."""
    return sorted(
        f"{package.replace('.', '/')}/{path.relative_to(folder).as_posix()}"
        for package, folder in checkout.SOURCES.items()
        for path in folder.rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    )


def setuptools_settings() -> dict[str, Any]:
    settings: dict[str, Any] = checkout.settings()["tool"]["setuptools"]
    return settings


def test_package_list_is_the_disk() -> None:
    """When this fails, bring `[tool.setuptools] packages` in pyproject.toml up to date."""
    on_disk = {
        name if path.name == "__init__.py" else name.rpartition(".")[0]
        for name, path in checkout.modules().items()
    }
    listed = setuptools_settings()["packages"]
    assert listed == sorted(on_disk), f"packages = {json.dumps(sorted(on_disk), indent=4)}"


def test_every_package_has_an_init() -> None:
    modules = checkout.modules()
    assert [name for name in setuptools_settings()["packages"] if name not in modules] == []


def test_links_point_at_the_folders() -> None:
    links = {path.name for path in checkout.SOURCES["tracejit"].iterdir() if path.is_symlink()}
    assert links == {"autodiff", "backends"}
    for name in links:
        link = checkout.ROOT / "tracejit" / name
        assert link.readlink() == Path("..") / name
        assert setuptools_settings()["package-dir"][f"tracejit.{name}"] == name


@pytest.mark.parametrize("name", ["autodiff", "backends"])
def test_bare_names_raise(name: str) -> None:
    """From the checkout's root the folder is importable; it must say what to write instead."""
    done = subprocess.run(
        [sys.executable, "-c", f"import {name}"],
        cwd=checkout.ROOT,
        text=True,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 1
    assert f"ImportError: this folder is the package tracejit.{name}" in done.stderr


def test_uninstalled_checkout_works() -> None:
    """`-S` leaves out site-packages' editable hook; the dependencies come back by path."""
    script = (
        "import sys; sys.path[:0] = [sys.argv[1]]; sys.path.append(sys.argv[2])\n"
        "import tracejit.autodiff, tracejit.backends; print(tracejit.autodiff.__file__)"
    )
    libraries = sysconfig.get_paths()["purelib"]
    printed = run(sys.executable, "-S", "-c", script, checkout.ROOT, libraries, cwd=Path("/"))
    assert Path(printed.strip()) == checkout.ROOT / "tracejit" / "autodiff" / "__init__.py"


def test_wheel_holds_the_product_once(built: Distributions) -> None:
    assert wheel_files(built.wheel) == product_files()


def test_sdist_holds_the_product_once(built: Distributions) -> None:
    with tarfile.open(built.sdist) as archive:
        members = {name.partition("/")[2]: m for m in archive.getmembers() if (name := m.name)}
    expected = {path.relative_to(checkout.ROOT).as_posix() for path in checkout.modules().values()}
    assert {name for name in members if name.endswith(".py")} == expected
    assert {"LICENSE", "README.md", "pyproject.toml", "tracejit/py.typed"} <= members.keys()


def test_sdist_builds_the_same_wheel(built: Distributions) -> None:
    assert wheel_files(built.wheel_from_sdist) == product_files()


def test_wheel_works_outside_the_checkout(built: Distributions, tmp_path: Path) -> None:
    """A fresh environment gets the wheel; this one's site-packages lends it the dependencies.

    A folder named in a `.pth` file has its own `.pth` files ignored, so the editable install of
    the checkout, which is one, does not reach the fresh environment.
    """
    environment = tmp_path / "environment"
    venv.create(environment, symlinks=True)
    python = environment / "bin" / "python"
    pip = (sys.executable, "-m", "pip", "-q", "--python", python)
    run(*pip, "install", "--no-deps", "--no-index", built.wheel, cwd=tmp_path)
    say_where = "import sysconfig; print(sysconfig.get_paths()['purelib'])"
    site_packages = Path(run(python, "-I", "-c", say_where, cwd=tmp_path).strip())
    lent = dict.fromkeys(sysconfig.get_paths()[kind] for kind in ("purelib", "platlib"))
    (site_packages / "lent.pth").write_text("\n".join(lent) + "\n")

    smoke = shutil.copy(Path(__file__).with_name("smoke.py"), tmp_path)
    printed = run(python, "-I", smoke, environment, cwd=tmp_path)
    assert "works" in printed
