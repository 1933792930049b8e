"""Runs contraction kernels on plain memory: what the tests and timings of `kernels` share.

compiled = Compiled([a, b, c], work)      # TIR buffers, in the order of the arguments
compiled(x, y, z)                         # NumPy arrays

`guarded` puts an array right before or right behind memory that must not be touched.
"""

from __future__ import annotations

import ctypes
import mmap
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import tvm
from tvm.ir import GlobalVar, PrimType

from tracejit.backends.target import Target
from tracejit.backends.tvm.codegen.kernel_body import KernelBody
from tracejit.backends.tvm.cpu.machine import Machine
from tracejit.backends.tvm.cpu.mathematics import link
from tracejit.backends.tvm.cpu.objects.linker import find_linker
from tracejit.backends.tvm.cpu.processor import Processor, processor_of
from tracejit.backends.tvm.ir.narrow_types import decode, encode
from tracejit.backends.tvm.ir.tir import (
    Buffer,
    DeclBuffer,
    Expr,
    Stmt,
    buffer,
    const,
    nbytes,
    seq,
    store,
    tirx,
)
from tracejit.shapes import ElementType

HOST = processor_of()
MACHINE = HOST.machine

_libc = ctypes.CDLL(None, use_errno=True)
_PROT_NONE = 0


def _levels() -> dict[str, tuple[Processor, Machine]]:
    """Processors that this one can run the code of, and what kernels are scheduled for on each."""
    narrow = replace(HOST.machine, vector_bytes=16)
    found = {"16 bytes, 32 registers": (HOST, replace(narrow, architecture="aarch64"))}
    if HOST.architecture != "x86_64":
        return found
    for name, processor in (("SSE2", "x86-64"), ("AVX2", "x86-64-v3"), ("AVX-512", "x86-64-v4")):
        target = processor_of(Target(f"cpu:{processor}"))
        if not target.lacking:
            found[name] = target, target.machine
    if "AVX2" in found:
        target = found["AVX2"][0]
        found["16 bytes, FMA"] = target, replace(target.machine, vector_bytes=16)
    return found


LEVELS = _levels()
"""The instruction sets and schedules that kernels are tested with besides this machine's own."""


class Compiled:
    """A kernel as a C function, loaded; its scratch is allocated here, and full of NaNs."""

    def __init__(
        self,
        parameters: Sequence[Buffer],
        work: KernelBody,
        target: Processor = HOST,
    ) -> None:
        self.module = _compile([*parameters, *work.scratch], work.statement, target)
        with tempfile.TemporaryDirectory() as folder:
            compiled, library = Path(folder, "kernel.o"), Path(folder, "kernel.so")
            self.module.write_to_file(str(compiled), "o")
            command = [*(find_linker() or []), "-o", str(library), str(compiled)]
            subprocess.run(command, check=True, capture_output=True)
            # TVM's loader gives the library the runtime's functions, such as parallel loops.
            self._loaded = tvm.runtime.load_module(str(library))
            self._function = ctypes.CDLL(str(library)).kernel
        self._function.restype = ctypes.c_int
        self._sizes = [nbytes(b) for b in work.scratch]
        self.place_scratch(_aligned)

    def place_scratch(self, allocate: Callable[[int], np.ndarray]) -> None:
        """Put the scratch where ``allocate`` says, a function from bytes to an array of them."""
        self._scratch = [allocate(size) for size in self._sizes]
        for array in self._scratch:
            array[...] = 0xFF

    def __call__(self, *arrays: np.ndarray) -> None:
        assert self.bind(*arrays)() == 0

    def bind(self, *arrays: np.ndarray) -> Callable[[], int]:
        """A function without arguments that runs the kernel; the arrays must be kept alive."""
        pointers = [ctypes.c_void_p(array.ctypes.data) for array in (*arrays, *self._scratch)]
        function = self._function
        return lambda: int(function(*pointers))


def _compile(parameters: Sequence[Buffer], statement: Stmt, target: Processor) -> Any:
    """``int32 kernel(void*, …)`` as machine code."""
    pointers = [tirx.Var(b.name, tirx.buffer_data_pointer_type(b)) for b in parameters]
    declared = [DeclBuffer(b, data=p) for b, p in zip(parameters, pointers, strict=True)]
    function = tirx.PrimFunc(pointers, seq(declared, statement), ret_type=PrimType("int32"))
    function = function.with_attrs(
        {"global_symbol": "kernel", "tirx.noalias": True, "s_tir": True, "calling_conv": 0}
    )
    t = tirx.transform
    passes = [
        *(t.BindTarget(target.tvm), t.StmtSimplify(), t.FlattenBuffer()),
        *(t.VectorizeLoop(True), t.UnrollLoop()),
    ]
    module = tvm.IRModule({GlobalVar("kernel"): function})
    linked = link(tvm.transform.Sequential(passes)(module))
    build = tvm.get_global_func("target.build.llvm")
    return build(t.LowerIntrin()(linked), target.tvm)


def _aligned(size: int) -> np.ndarray:
    whole = np.zeros(size + 64, np.uint8)
    start = -whole.ctypes.data % 64
    return whole[start : start + size]


def guarded(array: np.ndarray, *, at_end: bool, align: int = 1) -> np.ndarray:
    """A copy of ``array`` that touches a page which no access survives, with its end or start."""
    page = mmap.PAGESIZE
    inside = -(-max(array.nbytes, 1) // page) * page
    memory = mmap.mmap(-1, inside + 2 * page)
    whole = np.frombuffer(memory, np.uint8)
    for offset in (0, page + inside):
        address = ctypes.c_void_p(whole.ctypes.data + offset)
        assert _libc.mprotect(address, ctypes.c_size_t(page), _PROT_NONE) == 0
    start = page + ((inside - array.nbytes) // align * align if at_end else 0)
    copy = whole[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


class Pair(NamedTuple):
    """What the accessors of complex operands exchange in the tests."""

    real: Expr
    imaginary: Expr


class Operand:
    """An array of a NumPy dtype as TIR memory: a flat buffer, read and written by element.

    ``order`` lists the dimensions of ``shape`` from the outermost to the innermost in memory.
    """

    def __init__(
        self, name: str, shape: Sequence[int], dtype: Any, order: Sequence[int] | None = None
    ) -> None:
        self.shape = tuple(shape)
        self.dtype = np.dtype(dtype)
        self.order = tuple(order or range(len(shape)))
        self.is_complex = self.dtype.kind == "c"
        self._memory_dtype = _MEMORY.get(self.dtype, str(self.dtype))
        size = int(np.prod(self.shape, dtype=np.int64)) * (2 if self.is_complex else 1)
        self.buffer = buffer(name, (max(size, 1),), self._memory_dtype)

    def address(self, indices: Sequence[Expr]) -> Expr:
        """Row-major in ``order``."""
        address: Expr = const(0, "int32")
        for dimension in self.order:
            address = address * self.shape[dimension] + indices[dimension]
        return address

    def load(self, *indices: Expr) -> Any:
        at = self.address(indices)
        if self.is_complex:
            return Pair(self.buffer[2 * at], self.buffer[2 * at + 1])
        if self.dtype == np.dtype(ml_dtypes.bfloat16):
            return decode(self.buffer[at], ElementType.BF16)
        return self.buffer[at]

    def store(self, *indices_and_value: Any) -> Stmt:
        *indices, value = indices_and_value
        at = self.address(indices)
        if self.is_complex:
            return seq(
                store(self.buffer, 2 * at, value.real),
                store(self.buffer, 2 * at + 1, value.imaginary),
            )
        if self.dtype == np.dtype(ml_dtypes.bfloat16):
            value = encode(value, ElementType.BF16)
        return store(self.buffer, at, tirx.Cast(self._memory_dtype, value))

    def random(self, generator: np.random.Generator) -> np.ndarray:
        """Numbers of this operand's shape: small for floats, of any bits for integers."""
        if self.dtype.kind in "iu":
            info = np.iinfo(self.dtype)
            bits = generator.integers(0, 256, (*self.shape, info.bits // 8), "uint8")
            return np.asarray(bits.view(self.dtype)[..., 0])
        values: Any = generator.standard_normal(self.shape)
        if self.is_complex:
            values = values + 1j * generator.standard_normal(self.shape)
        return np.asarray(values, self.dtype)

    def in_memory(self, array: np.ndarray) -> np.ndarray:
        """``array`` as it lies in memory: contiguous in ``order``."""
        return np.ascontiguousarray(array.transpose(self.order))

    def from_memory(self, array: np.ndarray) -> np.ndarray:
        return np.moveaxis(array, range(array.ndim), self.order)


_MEMORY = {np.dtype(ml_dtypes.bfloat16): "uint16"}
_MEMORY |= {np.dtype("complex64"): "float32", np.dtype("complex128"): "float64"}


def accumulate_dtype(dtype: Any) -> str:
    """What sums of products of ``dtype`` are held in."""
    dtype = np.dtype(dtype)
    if dtype == np.dtype(ml_dtypes.bfloat16) or dtype == np.dtype(np.float16):
        return "float32"
    return _MEMORY.get(dtype, str(dtype))
