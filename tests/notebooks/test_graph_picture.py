"""The picture of a graph: every instruction once, below what it uses."""

from __future__ import annotations

import io
from types import ModuleType

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from tests.notebooks import scripts
from tracejit.hlo import parse

SQUARES = """HloModule squares

add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}

ENTRY main {
  x = f32[3] parameter(0)
  y = f32[3] parameter(1)
  square = f32[3] multiply(x, x)
  zero = f32[] constant(0)
  ROOT total = f32[] reduce(square, zero), dimensions={0}, to_apply=add
}
"""


@pytest.fixture(scope="module")
def graph_picture() -> ModuleType:
    return scripts.load("graph_picture")


def test_rows(graph_picture: ModuleType) -> None:
    """The constant stands above the reduction that uses it, the unused parameter at the top."""
    rows = graph_picture.in_rows(parse(SQUARES))
    assert [[i.op.opcode for i in row] for row in rows] == [
        ["parameter", "parameter"],
        ["multiply", "constant"],
        ["reduce"],
    ]


def test_places(graph_picture: ModuleType) -> None:
    rows = graph_picture.in_rows(parse(SQUARES))
    places = {f"{i.op.opcode} {i.shape}": at for i, at in graph_picture.places(rows).items()}
    assert places["multiply f32[3]"] == (-0.5, -1.0)
    assert places["constant f32[]"] == (0.5, -1.0)
    assert places["reduce f32[]"] == (0.0, -2.0)


def test_draw(graph_picture: ModuleType) -> None:
    figure = graph_picture.draw(parse(SQUARES), "squares")
    FigureCanvasAgg(figure).print_png(io.BytesIO())  # type: ignore[no-untyped-call]
    (axes,) = figure.axes
    assert axes.get_title() == "squares"
    texts = [text.get_text() for text in axes.texts if text.get_text()]
    assert sorted(texts) == [
        "constant\nf32[]",
        "multiply\nf32[3]",
        "parameter\nf32[3]",
        "parameter\nf32[3]",
        "reduce\nf32[]",
    ]
    arrows = [text for text in axes.texts if not text.get_text()]
    assert len(arrows) == 4
