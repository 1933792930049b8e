"""StableHLO's test files cut into modules that XLA can read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

_SEPARATOR = re.compile(r"^// -----.*$", re.MULTILINE)
_CONSTANT_CHECK = re.compile(
    r"check\.(expect_\w+)_const\s+(%[\w#]+),\s*(dense<.*?>)\s*:\s*(tensor<[\w<>]*>)"
    r"(?=\s*$)",
    re.MULTILINE | re.DOTALL,
)
_CHECK = re.compile(
    r"check\.(expect_\w+)\s+(%[\w#]+),\s*(%[\w#]+)[^:\n]*:\s*(tensor<.*>)(?=\s*$)", re.MULTILINE
)
_FUNCTION = re.compile(r"func\.func (?:public |private )?@([\w.]+)\(\) *(?:attributes[^{]*)?\{")


@dataclass(frozen=True)
class Source:
    """One module: its text and where it is from."""

    name: str
    text: str


def modules(paths: Iterable[Path]) -> Iterator[Source]:
    """Every module of the files, and of the .mlir files in the folders, in order of names."""
    for path in paths:
        for file in sorted(path.rglob("*.mlir")) if path.is_dir() else [path]:
            parts = _SEPARATOR.split(file.read_text(encoding="utf-8"))
            for number, part in enumerate(parts):
                if "func.func" not in part:
                    continue
                name = file.name if len(parts) == 1 else f"{file.name}#{number}"
                yield Source(name, readable(part))


def readable(text: str) -> str:
    """The module with checks as custom calls, and the function that checks as its entry."""
    numbers = iter(range(1_000_000))

    def against_constant(found: re.Match[str]) -> str:
        kind, actual, literal, of = found.groups()
        expected = f"%expected.{next(numbers)}"
        return (
            f"{expected} = stablehlo.constant {literal} : {of}\n"
            f"  {_custom_call(kind, actual, expected, of)}"
        )

    def against_value(found: re.Match[str]) -> str:
        kind, actual, expected, of = found.groups()
        return _custom_call(kind, actual, expected, of.partition(", tensor")[0])

    text = _CONSTANT_CHECK.sub(against_constant, text)
    text = _CHECK.sub(against_value, text)
    if "@main" in text:
        return text
    names = _FUNCTION.findall(text)
    return re.sub(rf"@{re.escape(names[-1])}\b", "@main", text) if names else text


def _custom_call(kind: str, actual: str, expected: str, of: str) -> str:
    return (
        f"stablehlo.custom_call @check.{kind}({actual}, {expected}) "
        f"{{has_side_effect = true}} : ({of}, {of}) -> ()"
    )
