"""Graphs that are made in blocks: as a pass is given them, and as the interpreter takes them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import tracejit as tj
from tracejit.graph import Computation, Instruction, Module
from tracejit.ops.layout import full
from tracejit.runtime import importing_tvm
from tracejit.traversal import transform

with importing_tvm():
    from tracejit.backends.tvm.ir.internal_ops import UNDEFINED
    from tracejit.backends.tvm.passes.canonicalize.canonicalize import canonicalize


def simple(function: Callable[..., Any], *arguments: Any) -> Module:
    """What a function records of arguments, simplified."""
    entry = tj.jit(function).lower(*arguments).module.entry
    (root,) = canonicalize([entry.root])
    return Module("test", Computation(entry.name, entry.parameters, root))


def defined(module: Module) -> Module:
    """The module with NaN for what is undefined in its entry, and nobody may read."""
    entry = module.entry

    def visit(instruction: Instruction, _: Sequence[Instruction]) -> Instruction | None:
        return full(instruction.array_shape, np.nan) if instruction.op is UNDEFINED else None

    (root,) = transform([entry.root], visit)
    return Module("test", Computation(entry.name, entry.parameters, root))
