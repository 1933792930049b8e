"""Whole programs written for JAX, which run with another import and give what JAX gives."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tracejit as tj

PROGRAMS = sorted((Path(__file__).parent / "jax_programs").glob("*.py"))


def ported(text: str) -> str:
    """The program with `tracejit` in place of `jax` in its imports alone."""
    text = re.sub(r"^import jax$", "import tracejit as jax", text, flags=re.M)
    return re.sub(r"^(import|from) jax\b", r"\1 tracejit", text, flags=re.M)


def result(path: Path, text: str) -> dict[str, Any]:
    names: dict[str, Any] = {"__name__": path.stem}
    exec(compile(text, str(path), "exec"), names)
    found: dict[str, Any] = names["main"]()
    return found


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_as_jax(path: Path) -> None:
    jax = pytest.importorskip("jax")
    text = path.read_text(encoding="utf-8")
    before = jax.config.jax_enable_x64
    try:
        expected = result(path, text)
    finally:
        jax.config.update("jax_enable_x64", before)
    found = result(path, ported(text))
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-6, atol=1e-9, err_msg=name)


def test_settings_of_jax() -> None:
    tj.config.update("jax_enable_x64", True)
    tj.config.update("jax_platform_name", "cpu")
    with pytest.raises(TypeError, match="jax_enable_x64 cannot be False; float64 stays float64"):
        tj.config.update("jax_enable_x64", False)
    with pytest.raises(TypeError, match=r"jax_debug_nans cannot be True; write jit\(f, check=True"):
        tj.config.update("jax_debug_nans", True)
    with pytest.raises(TypeError, match="'jax_log_compiles' is no setting of tracejit; jit has"):
        tj.config.update("jax_log_compiles", True)


def test_devices_by_their_names() -> None:
    assert tj.device_count() == len(tj.local_devices()) == tj.local_device_count()
    assert (tj.process_index(), tj.process_count()) == (0, 1)
    assert tj.device_count("gpu") == len(tj.devices("cuda"))
    assert tj.lax.Precision.HIGHEST == "highest"
    assert "multiply" in str(tj.make_jaxpr(lambda x: x * x)(np.ones(3)))
