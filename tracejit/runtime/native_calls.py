"""The calls of functions of compiled libraries in a program that is loaded.

with_records(artifact)      the artifact with records that the program's code can use
"""

from __future__ import annotations

import weakref
from dataclasses import replace

import numpy as np

from tracejit.backends.artifact import Artifact
from tracejit.backends.native_abi import RECORD_WORDS
from tracejit.errors import UnsupportedError
from tracejit.hlo import parse
from tracejit.runtime.callbacks import view
from tracejit.shapes import AnyShape, Shape, TupleShape
from tracejit.targets import find_target


def with_records(artifact: Artifact) -> Artifact:
    """The artifact with a record for each call, whose functions are instantiated.

    The calls' states live as long as the constants do. Raises `UnknownTargetError` for a target
    that is not registered, `UnsupportedError` for one that is no function of a compiled library,
    and what the functions return.
    """
    constants = list(artifact.constants)
    for number, text in artifact.native_calls.items():
        constants[number] = _record(text)
    return replace(artifact, constants=constants)


def _record(text: str) -> np.ndarray:
    call = parse(text).entry.root
    attributes = call.attributes
    name = attributes["custom_call_target"]
    native = find_target(name, call.source).native
    if native is None:
        raise UnsupportedError(
            f"custom_call: {name!r} was a function of a compiled library when the program was "
            "compiled, and is none now",
            call.source,
        )
    constraints = attributes["operand_layout_constraints"] or [o.shape for o in call.operands]
    site = native.site(
        [shape for shape in constraints if isinstance(shape, Shape)],
        _arrays(call.shape),
        attributes["backend_config"],
        attributes["output_to_operand_aliasing"],
        call.source,
    )
    record = view(site.address, (RECORD_WORDS,), np.uint64)
    weakref.finalize(record, site.close)
    return record


def _arrays(shape: AnyShape) -> list[Shape]:
    if isinstance(shape, TupleShape):
        return [array for element in shape.elements for array in _arrays(element)]
    return [shape] if isinstance(shape, Shape) else []
