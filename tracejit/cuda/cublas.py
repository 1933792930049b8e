"""Matrix products by cuBLASLt, NVIDIA's library, opened by ctypes where it is installed.

    product = Product.from_json(text)               # what a compiled program says of a product
    library = cublas()                              # None where the library is not installed
    library.multiply(device, product, addresses, workspace, stream)

The library is that of the package ``nvidia-cublas`` (``pip install 'tracejit[cuda]'``), or what the
environment variable ``TRACEJIT_LIBCUBLASLT`` names; "none" keeps to kernels of our own.
"""

from __future__ import annotations

import ctypes
import json
import threading
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any

from tracejit.cuda.device import Device
from tracejit.cuda.libraries import candidates, chosen
from tracejit.cuda.streams import Stream
from tracejit.errors import DeviceError, DeviceNotFoundError

VARIABLE = "TRACEJIT_LIBCUBLASLT"
"""The environment variable that names cuBLASLt's library; "none" keeps to kernels of our own."""

WORKSPACE_BYTES = 32 << 20
"""Memory for the sums of blocks that share a result: what NVIDIA recommends for sm_90."""

ALIGNMENT = 256
"""Addresses are not better aligned than that, for the choice of an algorithm."""

_FILES = ("cu*/lib/libcublasLt.so.*", "cublas/lib/libcublasLt.so.*")
_NAMES = ("libcublasLt.so.13", "libcublasLt.so.12")


@dataclass(frozen=True)
class Matrix:
    """A row-major matrix in memory, ``offset`` bytes behind an address, or its transpose.

    A line begins ``stride`` elements after the one before, a matrix ``batch_stride`` after the one
    before.
    """

    is_transposed: bool
    stride: int
    batch_stride: int = 0
    offset: int = 0


@dataclass(frozen=True)
class Product:
    """``lhs @ rhs``, and a ``bias`` for each column; the result is dense and row-major.

    ``operands`` and ``result`` are element types by NumPy's names. ``is_tf32`` lets operands of
    float32 be rounded to 11 bits.
    """

    batches: int
    rows: int
    columns: int
    depth: int
    operands: str
    result: str
    lhs: Matrix
    rhs: Matrix
    bias_offset: int | None = None
    is_tf32: bool = False

    def to_json(self) -> str:
        """What `from_json` reads."""
        return json.dumps(asdict(self))

    @staticmethod
    def from_json(text: str) -> Product:
        """What `to_json` wrote. Raises ValueError, TypeError or LookupError for other text."""
        told = json.loads(text)
        told |= {side: Matrix(**told[side]) for side in ("lhs", "rhs")}
        return Product(**told)


class _Scalar(ctypes.Structure):
    """A number of the scale's type: float, double, or a pair of either."""

    _fields_ = (("bytes", ctypes.c_ubyte * 16),)

    @staticmethod
    def of(number: int, kind: type[ctypes.c_float] | type[ctypes.c_double]) -> _Scalar:
        made = _Scalar()
        ctypes.memmove(ctypes.byref(made), ctypes.byref(kind(number)), ctypes.sizeof(kind))
        return made


class Algorithm(ctypes.Structure):
    """cublasLtMatmulHeuristicResult_t."""

    _fields_ = (
        ("algorithm", ctypes.c_uint64 * 8),
        ("workspace_bytes", ctypes.c_size_t),
        ("status", ctypes.c_int),
        ("waves", ctypes.c_float),
        ("reserved", ctypes.c_int * 4),
    )


DATA_TYPES = {
    "float32": "CUDA_R_32F",
    "float64": "CUDA_R_64F",
    "float16": "CUDA_R_16F",
    "bfloat16": "CUDA_R_16BF",
    "complex64": "CUDA_C_32F",
    "complex128": "CUDA_C_64F",
}
"""cudaDataType by NumPy's names."""

NUMBERS = {
    "CUDA_R_32F": 0,
    "CUDA_R_64F": 1,
    "CUDA_R_16F": 2,
    "CUDA_C_32F": 4,
    "CUDA_C_64F": 5,
    "CUDA_R_16BF": 14,
    "CUBLAS_OP_N": 0,
    "CUBLAS_OP_T": 1,
    "CUBLAS_COMPUTE_32F": 68,
    "CUBLAS_COMPUTE_64F": 70,
    "CUBLAS_COMPUTE_32F_FAST_TF32": 77,
    "CUBLASLT_EPILOGUE_BIAS": 4,
    "CUBLASLT_MATMUL_DESC_TRANSA": 3,
    "CUBLASLT_MATMUL_DESC_TRANSB": 4,
    "CUBLASLT_MATMUL_DESC_EPILOGUE": 7,
    "CUBLASLT_MATMUL_DESC_BIAS_POINTER": 8,
    "CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT": 5,
    "CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET": 6,
    "CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES": 1,
    "CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES": 5,
    "CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES": 6,
    "CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES": 7,
    "CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES": 8,
}
"""The constants of the library's headers that are used here."""

_H = ctypes.c_void_p
_P = ctypes.c_uint64
_I = ctypes.c_int
_N = ctypes.c_size_t
_MADE = ctypes.POINTER(ctypes.c_void_p)
_SIGNATURES: dict[str, tuple[Any, ...]] = {
    "cublasLtCreate": (_MADE,),
    "cublasLtMatmulDescCreate": (_MADE, _I, _I),
    "cublasLtMatmulDescSetAttribute": (_H, _I, _H, _N),
    "cublasLtMatrixLayoutCreate": (_MADE, _I, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_int64),
    "cublasLtMatrixLayoutSetAttribute": (_H, _I, _H, _N),
    "cublasLtMatmulPreferenceCreate": (_MADE,),
    "cublasLtMatmulPreferenceSetAttribute": (_H, _I, _H, _N),
    "cublasLtMatmulPreferenceDestroy": (_H,),
    "cublasLtMatmulAlgoGetHeuristic": (
        *(_H, _H, _H, _H, _H, _H, _H),
        _I,
        ctypes.POINTER(Algorithm),
        ctypes.POINTER(_I),
    ),
    "cublasLtMatmul": (_H, _H, _H, _P, _H, _P, _H, _H, _P, _H, _P, _H, _H, _P, _N, _H),
}


@dataclass
class _Plan:
    """How one product is computed, for addresses of one alignment."""

    description: int
    layouts: Sequence[int]
    algorithm: Algorithm
    one: _Scalar
    zero: _Scalar


class Cublas:
    """cuBLASLt's library; any number of threads may call it."""

    def __init__(self, library: ctypes.CDLL, path: str) -> None:
        self.path = path
        self._library = library
        self._lock = threading.Lock()
        self._handles: dict[tuple[int, int], int] = {}
        self._plans: dict[tuple[object, ...], _Plan | None] = {}
        for name, arguments in _SIGNATURES.items():
            function = getattr(library, name)
            function.argtypes, function.restype = arguments, ctypes.c_int
        library.cublasLtGetStatusName.restype = ctypes.c_char_p

    def multiply(
        self,
        device: Device,
        product: Product,
        addresses: Sequence[int],
        workspace: int,
        stream: Stream,
    ) -> bool:
        """Queues a product; ``addresses`` are those of lhs, rhs, the bias if any, and the result.

        False where the library has no algorithm for it. Raises `DeviceError` where it fails.
        """
        lhs, rhs, *bias, result = addresses
        # The library's matrices go by columns: the transpose of the result is rhs.T @ lhs.T.
        a, b = rhs + product.rhs.offset, lhs + product.lhs.offset
        added = bias[0] + (product.bias_offset or 0) if bias else 0
        places = a, b, result, *([added] if bias else [])
        aligned = tuple(_alignment(place) for place in places)
        with self._lock, device.context():
            handle = self._handle(device)
            key = device.number, device.generation, product, aligned
            if key not in self._plans:
                self._plans[key] = self._planned(handle, product, aligned, added)
            plan = self._plans[key]
            if plan is None:
                return False
            if bias:
                self._set_bias(plan.description, added)
            left, right, made = plan.layouts
            self._require(
                self._library.cublasLtMatmul(
                    handle,
                    plan.description,
                    ctypes.byref(plan.one),
                    *(a, left, b, right),
                    ctypes.byref(plan.zero),
                    *(result, made, result, made),
                    ctypes.byref(plan.algorithm.algorithm),
                    *(workspace, plan.algorithm.workspace_bytes if workspace else 0),
                    stream.handle,
                ),
                f"{stream.last}, a product of {product.rows} x {product.depth} and "
                f"{product.depth} x {product.columns} {product.operands}",
            )
        return True

    def _handle(self, device: Device) -> int:
        key = device.number, device.generation
        if key not in self._handles:
            self._handles[key] = self._made("cublasLtCreate")
        return self._handles[key]

    def _planned(
        self, handle: int, product: Product, aligned: Sequence[int], bias: int
    ) -> _Plan | None:
        is_double = product.operands in ("float64", "complex128")
        compute = "CUBLAS_COMPUTE_64F" if is_double else "CUBLAS_COMPUTE_32F"
        if product.is_tf32:
            compute = "CUBLAS_COMPUTE_32F_FAST_TF32"
        scale = {"complex64": "CUDA_C_32F", "complex128": "CUDA_C_64F"}.get(
            product.operands, "CUDA_R_64F" if is_double else "CUDA_R_32F"
        )
        operation = self._made("cublasLtMatmulDescCreate", NUMBERS[compute], NUMBERS[scale])

        def describe(name: str, value: Any) -> None:
            self._set("MatmulDesc", operation, f"MATMUL_DESC_{name}", value)

        for name, matrix in (("TRANSA", product.rhs), ("TRANSB", product.lhs)):
            turned = "CUBLAS_OP_T" if matrix.is_transposed else "CUBLAS_OP_N"
            describe(name, ctypes.c_int32(NUMBERS[turned]))
        if product.bias_offset is not None:
            describe("EPILOGUE", ctypes.c_int32(NUMBERS["CUBLASLT_EPILOGUE_BIAS"]))
            self._set_bias(operation, bias)
        rows, columns, depth = product.rows, product.columns, product.depth
        dense = Matrix(False, columns, rows * columns)
        layouts = [
            self._layout(product.operands, columns, depth, product.rhs, product.batches),
            self._layout(product.operands, depth, rows, product.lhs, product.batches),
            self._layout(product.result, columns, rows, dense, product.batches),
        ]
        found = self._chosen(handle, operation, layouts, aligned)
        if found is None:
            return None
        kind = ctypes.c_double if is_double else ctypes.c_float
        return _Plan(operation, layouts, found, _Scalar.of(1, kind), _Scalar.of(0, kind))

    def _layout(self, dtype: str, rows: int, columns: int, matrix: Matrix, batches: int) -> int:
        """A layout by columns; a matrix that is transposed lies the other way in memory."""
        sizes = (columns, rows) if matrix.is_transposed else (rows, columns)
        kind = NUMBERS[DATA_TYPES[dtype]]
        made = self._made("cublasLtMatrixLayoutCreate", kind, *sizes, matrix.stride)
        if batches > 1:
            count, step = ctypes.c_int32(batches), ctypes.c_int64(matrix.batch_stride)
            self._set("MatrixLayout", made, "MATRIX_LAYOUT_BATCH_COUNT", count)
            self._set("MatrixLayout", made, "MATRIX_LAYOUT_STRIDED_BATCH_OFFSET", step)
        return made

    def _chosen(
        self, handle: int, operation: int, layouts: Sequence[int], aligned: Sequence[int]
    ) -> Algorithm | None:
        """The algorithm that the library takes for best; None where it has none."""
        wishes = self._made("cublasLtMatmulPreferenceCreate")

        def wish(name: str, value: Any) -> None:
            self._set("MatmulPreference", wishes, f"MATMUL_PREF_{name}", value)

        wish("MAX_WORKSPACE_BYTES", ctypes.c_uint64(WORKSPACE_BYTES))
        a, b, d = aligned[:3]
        for name, alignment in (("A", a), ("B", b), ("C", d), ("D", d)):
            wish(f"MIN_ALIGNMENT_{name}_BYTES", ctypes.c_uint32(alignment))
        found, count = Algorithm(), ctypes.c_int()
        left, right, made = layouts
        status = self._library.cublasLtMatmulAlgoGetHeuristic(
            *(handle, operation, left, right, made, made, wishes),
            1,
            ctypes.byref(found),
            ctypes.byref(count),
        )
        self._library.cublasLtMatmulPreferenceDestroy(wishes)
        return None if status or not count.value or found.status else found

    def _set_bias(self, operation: int, address: int) -> None:
        value = ctypes.c_uint64(address)
        self._set("MatmulDesc", operation, "MATMUL_DESC_BIAS_POINTER", value)

    def _made(self, name: str, *arguments: Any) -> int:
        made = ctypes.c_void_p()
        self._require(getattr(self._library, name)(ctypes.byref(made), *arguments), name)
        return made.value or 0

    def _set(self, kind: str, handle: int, attribute: str, value: Any) -> None:
        function = getattr(self._library, f"cublasLt{kind}SetAttribute")
        number = NUMBERS[f"CUBLASLT_{attribute}"]
        status = function(handle, number, ctypes.byref(value), ctypes.sizeof(value))
        self._require(status, attribute)

    def _require(self, status: int, doing: str) -> None:
        if status:
            name = self._library.cublasLtGetStatusName(status).decode()
            raise DeviceError(f"cuda: {doing}: cuBLAS says {name}")


def _alignment(address: int) -> int:
    """The largest power of two that divides an address, `ALIGNMENT` at most."""
    return min(address & -address, ALIGNMENT) or ALIGNMENT


@cache
def cublas() -> Cublas | None:
    """cuBLASLt; None where it is not installed.

    Raises `DeviceNotFoundError` where the environment variable names a library that does not load.
    """
    if chosen(VARIABLE) == "none":
        return None
    for path in candidates(VARIABLE, _FILES, _NAMES):
        try:
            return Cublas(ctypes.CDLL(path), path)
        except (OSError, AttributeError) as error:
            if chosen(VARIABLE):
                raise DeviceNotFoundError(f"cuda: {VARIABLE}: {error}") from None
    return None
