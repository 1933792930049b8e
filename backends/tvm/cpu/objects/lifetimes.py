"""A TIR pass that marks the lifetimes of buffers that are loaded in wider vectors than stored.

    module = lifetimes(module)          # once, after loops are vectorised

LLVM 22 joins adjacent vector stores that are loaded as one vector into a tree of shuffles. It
inserts them at the last store of the buffer, though other stores may come later, and then rejects
the result: "Instruction does not dominate all uses". It skips buffers with lifetime markers, which
make no other difference.
"""

from __future__ import annotations

from typing import Any

import tvm
from tvm import tirx
from tvm.ir import TensorLoad
from tvm_ffi import structural_mutate, structural_walk

from tracejit.backends.tvm.ir.tir import AllocBuffer, BufferStore, Evaluate, Expr, Stmt, seq

_JOINING = 22
"""The first version of LLVM that joins such stores; earlier ones have another intrinsic."""


def lifetimes(module: Any) -> Any:
    """An IRModule with lifetime markers for some buffers."""
    if tvm.target.codegen.llvm_version_major() < _JOINING:
        return module
    functions = {
        variable: function.with_body(_said(function.body))
        for variable, function in module.functions.items()
    }
    return tvm.IRModule(functions, attrs=module.attrs)


def _said(body: Stmt) -> Stmt:
    joined = _joined(body)
    if not joined:
        return body

    def begin(node: Any, mutator: Any) -> Any:
        if str(node.buffer.name) not in joined:
            return node
        life = tirx.call_llvm_intrin("void", "llvm.lifetime.start.p0", node.buffer.data)
        return seq(node, Evaluate(life))

    return structural_mutate(body, [(AllocBuffer, begin)])


def _joined(body: Stmt) -> set[str]:
    """The names of buffers that are loaded in wider vectors than they are stored."""
    own: set[str] = set()
    narrowest: dict[str, int] = {}
    widest: dict[str, int] = {}

    def allocation(node: Any) -> None:
        own.add(str(node.buffer.name))

    def store(node: Any) -> None:
        name, lanes = str(node.buffer.name), _lanes(node.value)
        if lanes > 1:
            narrowest[name] = min(lanes, narrowest.get(name, lanes))

    def load(node: Any) -> None:
        name = str(node.source.name)
        widest[name] = max(_lanes(node), widest.get(name, 1))

    structural_walk(body, [(AllocBuffer, allocation), (BufferStore, store), (TensorLoad, load)])
    written = own & narrowest.keys() & widest.keys()
    return {name for name in written if widest[name] > narrowest[name]}


def _lanes(value: Expr) -> int:
    """The number of lanes of a value: eight for float32x8."""
    return int(str(value.ty).partition("x")[2] or 1)
