"""The pattern of a sparse matrix as a picture: where elements are stored."""

from __future__ import annotations

from typing import Any

import numpy as np

from tracejit.display.page import paragraph

MOST_CELLS = 64
"""Rows and columns of the picture; cells of larger matrices hold several elements."""
_SIZE = 320


def matrix_text(matrix: Any) -> str:
    """Its shape, element type and how many elements are stored, in one line."""
    rows, columns = matrix.shape
    share = matrix.nnz / (rows * columns) if rows and columns else 0.0
    return (
        f"{rows} x {columns} {type(matrix).__name__} of {matrix.dtype}, {matrix.nnz} elements "
        f"stored, {share:.2%}"
    )


def matrix_html(matrix: Any) -> str:
    """A square for each part of the matrix that has elements, darker where it is fuller."""
    rows, columns = matrix.shape
    if not rows or not columns or not matrix.nnz:
        return paragraph(matrix_text(matrix))
    down, across = min(rows, MOST_CELLS), min(columns, MOST_CELLS)
    found = matrix.tocoo()
    cells = np.zeros((down, across), np.int64)
    row, column = (np.asarray(index, np.int64) for index in (found.row, found.col))
    np.add.at(cells, (row * down // rows, column * across // columns), 1)
    side = _SIZE / max(down, across)
    width, height = side * across, side * down
    squares = [
        f'<rect x="{side * j:.1f}" y="{side * i:.1f}" width="{side:.1f}" height="{side:.1f}" '
        f'fill-opacity="{0.35 + 0.65 * cells[i, j] / cells.max():.2f}"/>'
        for i, j in zip(*map(np.ndarray.tolist, np.nonzero(cells)), strict=True)
    ]
    return (
        f'{paragraph(matrix_text(matrix))}<svg viewBox="-1 -1 {width + 2:.0f} {height + 2:.0f}" '
        f'width="{width + 2:.0f}" role="img" aria-label="Where elements are stored">'
        f'<rect class="frame" width="{width:.1f}" height="{height:.1f}"/>{"".join(squares)}</svg>'
    )
