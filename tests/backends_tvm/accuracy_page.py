"""What docs/accuracy.md states: each function's bounds in f32, f64 and complex; NaN for none."""

from __future__ import annotations

import re

from tests.project import checkout

_ROW = re.compile(r"^\| (\w+) \| ([\d.]+) \| ([\d.]+) \| ([\d.]*) ?\|$", re.MULTILINE)
_TEXT = (checkout.ROOT / "docs" / "accuracy.md").read_text()

STATED = {
    name: (float(f32), float(f64), float(both or "nan"))
    for name, f32, f64, both in _ROW.findall(_TEXT)
}
