"""The page on the command line: every command on it runs, and says what the page says."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.project import checkout
from tracejit.commandline import main
from tracejit.commandline.main import parser

PAGE = (checkout.ROOT / "docs" / "command_line.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.M | re.S)


COMMANDS = [line for block in blocks("bash") for line in block.splitlines()]

SAID: dict[str, Callable[[str], bool]] = {
    "show layer.hlo --as listing": lambda out: "# layer.py:8" in out and "=%add {add}" in out,
    "cost layer.hlo --top 3": lambda out: out.splitlines()[1].split()[:2] == ["1", "524,288"],
    "cost layer.hlo --by line": lambda out: "layer.py:9" in out,
    "profile layer.hlo": lambda out: "tanh(" in out and "dot(" in out and "(layer.py:7)" in out,
    "diff layer.hlo layer.hlo": lambda out: out == "the graphs are equal\n",
    "bisect layer.hlo": lambda out: out == "compiled code computes what the interpreter computes\n",
    "export layer.hlo -o layer.so --header layer.h": lambda out: "bytes of memory in a call" in out,
    "export layer.hlo -o layer.a --target cpu:x86-64-v2": lambda out: "bytes, " in out,
    "bisect layer.hlo --against xla": lambda out: "computes what xla computes" in out,
}


@pytest.mark.parametrize("command", COMMANDS)
def test_command(
    command: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("layer.hlo").write_text(blocks("hlo")[0])
    python, minus, package, *arguments = shlex.split(command)
    assert [python, minus, package] == ["python", "-m", "tracejit"]
    assert main(arguments) == 0
    out = capsys.readouterr().out
    said = SAID.get(shlex.join(arguments))
    assert said is None or said(out), out
    if arguments[0] == "reduce":
        assert Path("small.hlo").read_text().endswith(blocks("hlo-output")[0])
    for made in re.findall(r"(?:-o|--html|--header) (\S+)", command):
        assert Path(made).stat().st_size


def test_every_command_is_on_the_page() -> None:
    commands = parser()._subparsers._group_actions[0].choices  # type: ignore[union-attr]
    assert {command.split()[3] for command in COMMANDS} == set(commands or ())
    assert {shlex.join(shlex.split(command)[3:]) for command in COMMANDS} >= set(SAID)
