"""Compiles kernels: wraps a body in a C function, and runs TVM's and LLVM's passes.

Kernels are plain C functions over raw pointers. TVM's calling convention would cost 20 ms of
compile time for argument checks in each kernel; here the program's entry checks the arguments
once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tvm
from tvm import tirx
from tvm.ir import GlobalVar, PointerType, PrimType, TensorLoad
from tvm_ffi import structural_walk

from tracejit.backends.abi import ENTRY
from tracejit.backends.tvm.cpu.mathematics import link
from tracejit.backends.tvm.cpu.objects.deinterleave_vectors import strided
from tracejit.backends.tvm.cpu.objects.lifetimes import lifetimes
from tracejit.backends.tvm.cpu.objects.stored_indices import indexes_by_stored
from tracejit.backends.tvm.cpu.objects.wrap_integers import wrapping
from tracejit.backends.tvm.cpu.processor import Processor
from tracejit.backends.tvm.ir.tir import (
    AllocBuffer,
    BufferStore,
    DeclBuffer,
    Expr,
    IfThenElse,
    Stmt,
    importing,
    itemsize,
    nbytes,
    seq,
)
from tracejit.backends.tvm.program.program import Kernel
from tracejit.backends.tvm.verification.optimised_code import refuse_forwarded_indices
from tracejit.backends.tvm.verification.program import is_wanted
from tracejit.errors import CompilationError

STACK_LIMIT = 256 << 10
"""Bytes that one kernel may allocate: threads have 8 MiB of stack, on some systems 512 KiB."""

_DIVISIONS = (tirx.Div, tirx.Mod, tirx.FloorDiv, tirx.FloorMod)
_CHOICES = (tirx.Min, tirx.Max, tirx.Select)
_PACKED_CALL = tvm.ir.Op.get("tirx.tvm_call_packed")
_BUILD = tvm.get_global_func("target.build.llvm")
_LOAD_TEXT = tvm.get_global_func("ffi.Module.load_from_file.ll")


@dataclass(frozen=True)
class Contents:
    """Properties of a body that decide how it is lowered.

    With ``guards_narrow_stores`` it stores elements of less than four bytes under a condition.
    LLVM must not vectorise such loops: it widens a masked store of one narrow element to four
    bytes, which overwrites the next one. ``indexes_by_stored`` is that of `stored_indices`.
    ``has_integers``: there is integer arithmetic other than sums and products of loop variables.
    ``is_flat``: buffers have one dimension, and indices are sums of products.
    """

    stack_bytes: int
    callbacks: tuple[str, ...]
    guards_narrow_stores: bool
    indexes_by_stored: bool
    has_integers: bool
    is_flat: bool

    def __or__(self, other: Contents) -> Contents:
        """The properties of two bodies together."""
        return Contents(
            self.stack_bytes + other.stack_bytes,
            tuple(dict.fromkeys((*self.callbacks, *other.callbacks))),
            self.guards_narrow_stores or other.guards_narrow_stores,
            self.indexes_by_stored or other.indexes_by_stored,
            self.has_integers or other.has_integers,
            self.is_flat and other.is_flat,
        )


def contents(body: Stmt) -> Contents:
    """The properties of a body: bytes allocated, names of functions called back, and more."""
    sizes: list[int] = []
    names: dict[str, None] = {}
    own: set[str] = set()
    guarded: set[str] = set()
    ranks: set[int] = set()
    types: set[str] = set()

    def allocation(node: Any) -> None:
        sizes.append(nbytes(node.buffer))
        own.add(str(node.buffer.name))

    def store(node: Any) -> None:
        ranks.add(len(node.indices))

    def load(node: Any) -> None:
        ranks.add(len(node.indices))
        types.add(str(node.ty))

    def cast(node: Any) -> None:
        if not isinstance(node.value, tirx.IntImm):
            types.add(str(node.ty))

    def division(node: Any) -> None:
        ranks.add(0)

    def choice(node: Any) -> None:
        ranks.add(0)
        types.add(str(node.ty))

    def branch(node: Any) -> None:
        structural_walk(node, [(BufferStore, guard)])

    def guard(node: Any) -> None:
        if itemsize(node.buffer) < 4:
            guarded.add(str(node.buffer.name))

    def call(node: Any) -> None:
        types.add(str(node.ty))
        if _PACKED_CALL.same_as(node.op):
            names[str(node.args[0].value)] = None

    structural_walk(
        body,
        [
            (AllocBuffer, allocation),
            (BufferStore, store),
            (TensorLoad, load),
            (tirx.Cast, cast),
            (tvm.ir.Call, call),
            (IfThenElse, branch),
            (_DIVISIONS, division),
            (_CHOICES, choice),
        ],
    )
    return Contents(
        sum(sizes),
        tuple(names),
        bool(guarded - own),
        indexes_by_stored(body),
        any(kind.startswith(("int", "uint")) for kind in types),
        ranks <= {1},
    )


def c_function(name: str, parameters: Sequence[Expr], body: Stmt) -> tirx.PrimFunc:
    """``int32 name(parameters…)``: 0, or -1 if the body fails.

    The parameters are `tirx.Var`s, 64-bit integers or pointers.
    """
    function = tirx.PrimFunc([*parameters], body, ret_type=PrimType("int32"))
    return function.with_attrs(
        {"global_symbol": name, "tirx.noalias": True, "s_tir": True, "calling_conv": 0}
    )


def packed_function(name: str, parameters: Sequence[Expr], body: Stmt) -> tirx.PrimFunc:
    """The same as a function that TVM finds by name, with arguments in memory.

    Arguments are not checked: they are those of `c_function`.
    """
    handles = [tirx.Var(word, PointerType(PrimType("int64"))) for word in ("self", "given", "made")]
    count = tirx.Var("count", "int32")
    words = tirx.decl_buffer((2 * len(parameters),), "int64", name="words", data=handles[1])
    unpacked: list[Stmt] = [DeclBuffer(words, data=handles[1])]
    for index, parameter in enumerate(parameters):
        # TVMFFIAny: a word for the type, and a word for the value.
        unpacked.append(tirx.Bind(parameter, tirx.reinterpret(parameter.ty, words[2 * index + 1])))
    order = [handles[0], handles[1], count, handles[2]]
    return c_function(f"__tvm_ffi_{name}", order, seq(*unpacked, body))


# Only loops marked so are unrolled. TVM's automatic choice multiplies extents as 32-bit numbers,
# and unrolled loops for which the product with the size of the body overflows.
_UNROLLING = {"tirx.UnrollLoop": {"auto_max_depth": -1}}
_WRAP = tvm.transform.module_pass(
    lambda module, context: wrapping(module), opt_level=0, name="tracejit.Wrap"
)
_READ_WHOLE_VECTORS = tvm.transform.module_pass(
    lambda module, context: strided(module), opt_level=0, name="tracejit.ReadWholeVectors"
)
_SAY_LIFETIMES = tvm.transform.module_pass(
    lambda module, context: lifetimes(module), opt_level=0, name="tracejit.SayLifetimes"
)
_LINK_MATHEMATICS = {
    fast: tvm.transform.module_pass(
        lambda module, context, fast=fast: link(module, fast),
        opt_level=0,
        name="tracejit.LinkMathematics",
    )
    for fast in (False, True)
}

# TVM gives every module functions between f16 and f32, which take longer to compile than a small
# kernel. If nothing calls them, common symbols of the same names replace them.
_NO_CONVERSIONS = "".join(
    f"@{name} = common global i8 0\n" for name in ("__truncsfhf2", "__extendhfsf2")
)


def _import(text: str) -> Any:
    """A pass that adds LLVM's text to a module."""

    def add(module: Any, context: Any) -> Any:
        (variable, function), *rest = module.functions.items()
        functions = {variable: function.with_body(importing(text, function.body)), **dict(rest)}
        return tvm.IRModule(functions, attrs=module.attrs)

    return tvm.transform.module_pass(add, opt_level=0, name="tracejit.Import")


_DROP_CONVERSIONS = _import(_NO_CONVERSIONS)


REFUSALS = (RuntimeError, TypeError, ValueError)
"""The exceptions of TVM's checks."""

MakeFunction = Callable[[str, Sequence[Expr], Stmt], tirx.PrimFunc]
"""`c_function` or `packed_function`."""


def kernel_function(kernel: Kernel, held: Contents, make: MakeFunction) -> tirx.PrimFunc:
    """A function with a pointer for each parameter; it fails when a callback raises.

    Raises `CompilationError` if the body allocates more than `STACK_LIMIT` bytes, or allocates at
    all and has callbacks.
    """
    if held.stack_bytes > STACK_LIMIT or (held.callbacks and held.stack_bytes):
        limit = 0 if held.callbacks else STACK_LIMIT
        raise CompilationError(
            f"kernel {kernel.name} allocates {held.stack_bytes} bytes where {limit} are allowed; "
            "larger scratch memory belongs in the workspace, as a parameter"
        )
    return make(kernel.name, *pointers_and_body(kernel))


def pointers_and_body(kernel: Kernel) -> tuple[list[Expr], Stmt]:
    """A pointer for each parameter, and the kernel's body in terms of them."""
    pointers, declarations = [], []
    for parameter in kernel.parameters:
        pointer = tirx.Var(parameter.name, tirx.buffer_data_pointer_type(parameter))
        pointers.append(pointer)
        declarations.append(DeclBuffer(parameter, data=pointer))
    return pointers, seq(*declarations, kernel.body)


def compile_kernels(
    functions: Sequence[tirx.PrimFunc], target: Processor, held: Contents, quick: bool = False
) -> Any:
    """Machine code of some kernels, as a TVM module.

    ``held`` are the properties of all bodies together. ``quick`` leaves out LLVM's slowest passes:
    for kernels that are not worth them, or for which they are wrong.

    Python's lock is released most of the time, so modules are compiled concurrently on threads.
    Raises `CompilationError` for TIR that TVM rejects.

    TVM's default pipeline has more passes. `StmtSimplify` applies integer rules to floats: x - x
    becomes 0 and x != x false, whether x is NaN or not. `StorageRewrite` moves small buffers out
    of the loops that use them, and `LowerTVMBuiltin` moves them from the stack to a pool, which
    costs 50 ns each and may prevent promotion to a register; the second is needed only for
    callbacks. LLVM does the work of `CommonSubexprElim`, and emitters choose the types of indices
    themselves.
    """
    t = tirx.transform
    passes = [
        t.BindTarget(target.tvm),
        *([] if held.is_flat else [t.FlattenBuffer()]),
        t.VectorizeLoop(True),
        _READ_WHOLE_VECTORS,
        t.UnrollLoop(),
        *([_WRAP] if held.has_integers else []),
        _SAY_LIFETIMES,
        _LINK_MATHEMATICS[target.fast_math],
        *([t.LowerTVMBuiltin()] if held.callbacks else []),
        t.LowerIntrin(),
        *([_DROP_CONVERSIONS] if target.converts_halves else []),
    ]
    return _compiled(functions, passes, target.tvm_quick if quick else target.tvm)


def compile_text(text: str, file: Path) -> Any:
    """Machine code of LLVM text, through ``file``, as a TVM module.

    The text names its target. Only instruction selection optimises it.
    """
    if is_wanted():
        refuse_forwarded_indices(text)
    file.write_text(text)
    return _LOAD_TEXT(str(file), "ll")


def compile_entry_in_process(body: Stmt, address: Expr, target: Processor) -> Any:
    """A TVM module with a function `abi.ENTRY` of one ``address``, for this process alone."""
    t = tirx.transform
    passes = [
        t.BindTarget(target.tvm_unoptimised),
        *([_DROP_CONVERSIONS] if target.converts_halves else []),
    ]
    return _compiled([packed_function(ENTRY, [address], body)], passes, target.tvm_unoptimised)


def _compiled(functions: Sequence[tirx.PrimFunc], passes: Sequence[Any], target: Any) -> Any:
    module = tvm.IRModule({GlobalVar(f.attrs["global_symbol"]): f for f in functions})
    try:
        with tvm.transform.PassContext(config=_UNROLLING):
            made = tvm.transform.Sequential(passes)(module)
        built = _BUILD(made, target)
    except REFUSALS as error:
        names = ", ".join(str(f.attrs["global_symbol"]) for f in functions)
        raise CompilationError(f"TVM cannot compile {names}: {error}") from error
    if is_wanted():
        refuse_forwarded_indices(str(built.inspect_source("ll")))
    return built
