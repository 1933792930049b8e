"""The layouts that a module's header asks for, which its entry's own text may lack.

    HloModule m, entry_computation_layout={(f32[2,3]{0,1})->f32[2,3]{0,1}}

XLA gives arguments and results these layouts whatever stands in the computation.
"""

from __future__ import annotations

from collections.abc import Sequence

from tracejit.errors import ShapeError
from tracejit.graph import Computation, Instruction
from tracejit.hlo.lexer import Lexer
from tracejit.hlo.shapes import read_shape
from tracejit.ops.constants import PARAMETER, TUPLE
from tracejit.ops.dumps import COPY
from tracejit.shapes import AnyShape, same_layout
from tracejit.traversal import inline_with_effects

EntryLayout = tuple[tuple[AnyShape, ...], AnyShape]
"""The shapes of the parameters and of the result."""


def read_entry_layout(lexer: Lexer) -> EntryLayout:
    """What stands in ``{(f32[2,3]{0,1}, s32[])->f32[2]{0}}``. Raises `HloParseError`."""
    lexer.expect("{")
    lexer.expect("(")
    parameters = []
    while not lexer.accept(")"):
        parameters.append(read_shape(lexer))
        if not lexer.at(")"):
            lexer.expect(",")
    if lexer.token.kind != "arrow":
        raise lexer.error("expected -> and the shape of the result")
    lexer.advance()
    result = read_shape(lexer)
    lexer.expect("}")
    return tuple(parameters), result


def with_entry_layout(entry: Computation, layout: EntryLayout) -> Computation:
    """``entry`` with its first parameters and its result laid out so.

    Raises `ShapeError` where the shapes are others.
    """
    shapes, result = layout
    own = [p.shape for p in entry.parameters[: len(shapes)]]
    if own != list(shapes) or entry.root.shape != result:
        given = ", ".join(map(str, own))
        raise ShapeError(
            f"entry_computation_layout: parameters and result must be ({given}) -> "
            f"{entry.root.shape}, as in computation {entry.name}"
        )
    if not all(map(same_layout, own, shapes)):
        entry = _with_parameters(entry, shapes)
    if same_layout(entry.root.shape, result):
        return entry
    root = entry.root
    op, operands = (TUPLE, root.operands) if root.op is TUPLE else (COPY, (root,))
    root = Instruction(op, operands, result, {}, root.source, sharding=root.sharding)
    return Computation(entry.name, entry.parameters, root, entry.effects)


def _with_parameters(entry: Computation, shapes: Sequence[AnyShape]) -> Computation:
    parameters = list(entry.parameters)
    for i, shape in enumerate(shapes):
        attributes = {**parameters[i].attributes, "shape": shape}
        given = parameters[i]
        parameters[i] = Instruction(
            PARAMETER, (), shape, attributes, given.source, sharding=given.sharding
        )
    root, effects = inline_with_effects(entry, parameters)
    return Computation(entry.name, tuple(parameters), root, effects)
