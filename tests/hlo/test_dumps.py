"""What JAX and XLA dump is read, checked, printed, and computes what XLA computes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tracejit as tj
from tests.judge import parse_xla, run_xla
from tests.samples.values import usual_values
from tests.tolerances import differences
from tracejit import tree
from tracejit.equality import same_graph
from tracejit.errors import UnsupportedError
from tracejit.graph import Instruction, Module
from tracejit.hlo import parse, to_text
from tracejit.traversal import called_computations, instructions
from tracejit.verifier import verify

FOLDER = Path(__file__).parent / "dumps"
NAMES = sorted(path.name for path in FOLDER.glob("*.hlo"))
PAIRS = sorted({name.partition(".")[0] for name in NAMES} - {"bigconst", "callback", "rng_bits"})


def read(name: str) -> Module:
    return verify(parse((FOLDER / name).read_text(encoding="utf-8")))


def arguments(module: Module) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    shapes = [p.array_shape for p in module.entry.parameters]
    return [usual_values(rng, shape.dimensions, shape.element_type) for shape in shapes]


def disagreement(actual: Any, expected: Any) -> list[str]:
    """What differs by more than rounding in another order."""
    found = []
    for one, other in zip(tree.leaves(actual), tree.leaves(expected), strict=True):
        left, right = np.asarray(one), np.asarray(other)
        coarse = right.dtype.kind in "fc" and right.dtype.itemsize > 2
        sizes = np.abs(right.astype(np.complex128)) if coarse else np.zeros(1)
        scale = float(np.max(sizes, initial=0, where=np.isfinite(sizes)))
        found.append(differences(left, right, 1e-5 if coarse else None, scale))
    return [text for text in found if text]


@pytest.mark.parametrize("name", NAMES)
def test_is_read_and_printed(name: str) -> None:
    module = read(name)
    text = to_text(module)
    assert same_graph(parse(text), module)
    if "custom-call" not in text:
        assert same_graph(parse(parse_xla(text)), module)


@pytest.mark.parametrize("name", PAIRS)
def test_computes_what_xla_does_before_and_after_its_passes(name: str) -> None:
    before, after = read(f"{name}.before.hlo"), read(f"{name}.after.hlo")
    arrays = arguments(before)
    expected = run_xla(before, *arrays)
    assert not disagreement(tj.interpret(before, *arrays), expected)
    assert not disagreement(tj.interpret(after, *arrays), expected)


@pytest.mark.exhaustive
@pytest.mark.parametrize("kind", ["before", "after"])
@pytest.mark.parametrize("name", PAIRS)
def test_compiled(name: str, kind: str) -> None:
    module = read(f"{name}.{kind}.hlo")
    arrays = arguments(module)
    assert not disagreement(tj.compile(module)(*arrays), tj.interpret(module, *arrays))


def test_a_constant_that_was_left_out_comes_last() -> None:
    module = read("bigconst.after.hlo")
    x, constant = (np.arange(200, dtype=np.float32).reshape(20, 10) * f for f in (1, 3))
    assert (np.asarray(tj.interpret(module, x, constant)) == x + constant).all()


def test_what_only_the_dumping_process_has_is_named() -> None:
    module = read("callback.before.hlo")
    with pytest.raises(UnsupportedError, match="xla_ffi_python_cpu_callback"):
        tj.interpret(module, *arguments(module))


def test_top_k_is_known_again() -> None:
    assert "topk(" in to_text(read("sorts.after.hlo"))


def test_lines_of_the_program_are_kept() -> None:
    sources = {str(i.source) for i in _all(read("cnn.after.hlo")) if i.source}
    assert any(source.startswith("programs.py:") for source in sources)


def _all(module: Module) -> list[Instruction]:
    return [i for c in called_computations(module) for i in instructions(c)]
