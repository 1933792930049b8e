"""Where a kernel's own memory comes to life: said of what is read in wider vectors than written.

    module = lifetimes(module)          # once, after loops are vectorised

LLVM 22 joins vectors that are stored side by side, and read as one, into a tree of shuffles. It
puts them where the last of the memory is written, though the other stores may come after that, and
then refuses what it has made: "Instruction does not dominate all uses". It leaves alone what it is
told the life of, which makes no other difference to it.
"""

from __future__ import annotations

from typing import Any

import tvm
from tvm import tirx
from tvm.ir import TensorLoad
from tvm_ffi import structural_mutate, structural_walk

from tracejit.backends.tvm.ir.tir import AllocBuffer, BufferStore, Evaluate, Expr, Stmt, seq

_JOINING = 22
"""The first version of LLVM that joins vectors; those before it have another way to say this."""


def lifetimes(module: Any) -> Any:
    """An IRModule of the same functions, with the beginnings of some of their buffers' lives."""
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
    """The names of buffers that are read in wider vectors than they are written in."""
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
    """How many numbers a value holds: of float32x8, eight."""
    return int(str(value.ty).partition("x")[2] or 1)
