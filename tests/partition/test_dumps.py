"""What JAX lowers for several devices is partitioned as it says."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tracejit as tj
from tests.partition import dumps
from tracejit.errors import HloParseError
from tracejit.hlo import parse
from tracejit.passes.partition import is_annotated

ROOT = Path(__file__).resolve().parents[2]
NAMES = (
    "constrained, scanned, halted, chosen, by hand, by hand along one, looked up, "
    "looked up in rows, attended, pooled, ordered"
).split(", ")


@pytest.fixture(scope="module")
def of_jax(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    path = tmp_path_factory.mktemp("jax") / "dumps"
    command = [sys.executable, "-m", dumps.__name__, str(path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, Any] = pickle.loads(path.read_bytes())
    assert list(found) == NAMES
    return found


@pytest.mark.parametrize("form", ["hlo", "stablehlo"])
@pytest.mark.parametrize("name", NAMES)
def test_as_lowered(name: str, form: str, of_jax: dict[str, Any]) -> None:
    hlo, stablehlo, _, arrays, wanted = of_jax[name]
    module = parse(hlo) if form == "hlo" else tj.from_stablehlo(stablehlo)
    assert module.num_partitions == 4
    assert is_annotated(module)
    text = str(module)
    assert str(parse(text)) == text
    results = [tj.interpret(module, *arrays)]
    if form == "hlo":
        results.append(tj.compile(module)(*arrays))
    for made in results:
        leaves = [np.asarray(leaf) for leaf in tj.tree.leaves(made)]
        for ours, theirs in zip(leaves, wanted, strict=True):
            np.testing.assert_allclose(ours, theirs, 1e-4, 1e-5)


def test_what_xla_has_partitioned_is_left_alone(of_jax: dict[str, Any]) -> None:
    """A compiled program is what one partition runs; its shardings are of what it was."""
    _, _, text, (x, w), (total, _) = of_jax["constrained"]
    module = parse(text)
    assert module.num_partitions == 4
    assert not is_annotated(module)
    parts = [x[:4], x[:4], x[4:], x[4:]], [w[:, :4], w[:, 4:], w[:, :4], w[:, 4:]]
    made, _ = tj.interpret(module, *parts)
    np.testing.assert_allclose(made, [total] * 4, 1e-5)


EDGE = """HloModule m, frontend_attributes={{xla.sdy.meshes={{mesh = #sdy.mesh<["a"=2]>}}}}
ENTRY e {{
  x = f32[4] parameter(0)
  ROOT y = f32[2] custom-call(x), custom_call_target="xla.sdy.GlobalToLocalShape",
    frontend_attributes={{xla.sdy.in_shardings="#sdy.sharding_per_value<[{}]>",
    xla.sdy.manual_axes="#sdy<manual_axes{{\\"a\\"}}>"}}
}}"""


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (r'<@mesh, [{\"a\":(1)2}]>', "parts of an axis"),
        (r'<@other, [{\"a\"}]>', "the module names no mesh 'other'"),
        ("", "0 shardings for 1 operands"),
    ],
)  # fmt: skip
def test_edges_that_cannot_be_read_are_named(value: str, message: str) -> None:
    with pytest.raises(HloParseError, match=message):
        parse(EDGE.format(value))
