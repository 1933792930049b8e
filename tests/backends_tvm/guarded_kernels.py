"""A program that dies if a kernel touches memory that is not its own.

Every array, scratch included, begins right behind or ends right before a page that no access
survives. Run as ``python -m tests.backends_tvm.guarded_kernels``; with ``--planted`` a kernel that
reads one item too many runs in the same way.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterator

import numpy as np

from tests.backends_tvm.kernel_harness import MACHINE, Compiled, Operand, Pair, guarded
from tests.backends_tvm.test_kernels_convolution import CASES, FIRST, LAST
from tests.backends_tvm.test_kernels_convolution import LARGE as LARGE_CONVOLUTIONS
from tests.backends_tvm.test_kernels_gemm import COLUMNS, LARGE, ROWS, SHAPES
from tracejit.backends.tvm.codegen.kernel_body import KernelBody
from tracejit.backends.tvm.cpu.kernels.conv.convolution import convolution
from tracejit.backends.tvm.cpu.kernels.gemm.bounded_product import bounded
from tracejit.backends.tvm.cpu.kernels.gemm.contraction import Contraction
from tracejit.backends.tvm.cpu.kernels.gemm.gemm import gemm
from tracejit.backends.tvm.cpu.kernels.linalg.blocked_systems import (
    cholesky_factors_by_blocks,
    general_systems_by_blocks,
    triangular_systems_by_blocks,
)
from tracejit.backends.tvm.cpu.kernels.linalg.elimination import General, general_systems
from tracejit.backends.tvm.cpu.kernels.linalg.triangular import (
    Factors,
    Systems,
    cholesky_factors,
    triangular_systems,
)
from tracejit.backends.tvm.ir.tir import i32, loop

Case = tuple[str, list[Operand], Callable[[], KernelBody]]


def products() -> Iterator[Case]:
    for number, (b, m, n, k) in enumerate([*SHAPES, *LARGE.values()]):
        # Each layout of an operand meets each kind of shape, though not in every combination.
        orders = [(ROWS, COLUMNS)[number >> bit & 1] for bit in range(3)]
        shapes = [(b, m, k), (b, k, n), (b, m, n)]
        operands = [Operand("o", s, "float32", o) for s, o in zip(shapes, orders, strict=True)]

        def made(
            m: int = m, n: int = n, k: int = k, b: int = b, operands: list[Operand] = operands
        ) -> KernelBody:
            x, y, z = operands
            return gemm(
                m, n, k, x.load, y.load, z.store,
                accumulate_dtype="float32", machine=MACHINE, batch=b,
            )  # fmt: skip

        yield f"{b}x{m}x{n}x{k}", operands, made


def products_within_bounds() -> Iterator[Case]:
    sizes = ((1, 83), (6, 83), (75, 19))
    runs = ((0, 0), (0, 1), (1, 1), (0, 2), (3, 2))
    for (m, k), order, (first, left) in itertools.product(sizes, (ROWS, COLUMNS), runs):
        operands = [
            Operand("o", (1, m, k), "float32", order),
            Operand("o", (1, k, 1), "float32"),
            Operand("o", (1, m, 1), "float32"),
        ]

        def made(
            m: int = m, k: int = k, first: int = first, end: int = k - left,
            operands: list[Operand] = operands,
        ) -> KernelBody:  # fmt: skip
            x, y, z = operands
            problem = Contraction.of(m, 1, k, x.load, y.load, z.store, "float32", "int32")
            return bounded(problem, i32(first), i32(end), MACHINE, m > 6)

        yield f"{m}x{k} from {first} to {k - left}", operands, made


def convolutions() -> Iterator[Case]:
    for name, s in {**CASES, **LARGE_CONVOLUTIONS}.items():
        for order in (FIRST, LAST):
            own = order if len(s.in_sizes) == 2 else None
            per_group = s.in_features // s.feature_group_count
            operands = [
                Operand("x", (s.batch, s.in_features, *s.in_sizes), "float32", own),
                Operand("w", (s.out_features, per_group, *s.window), "float32"),
                Operand("z", (s.out_batch, s.out_features, *s.out_sizes), "float32", own),
            ]

            def made(operands: list[Operand] = operands, s=s) -> KernelBody:  # type: ignore[no-untyped-def]
                x, w, z = operands
                return convolution(
                    s, x.load, w.load, z.store, accumulate_dtype="float32", machine=MACHINE
                )

            yield f"{name} {order}", operands, made


def by_blocks() -> Iterator[Case]:
    for size, columns in ((32, 1), (70, 3), (97, 40)):
        square = Operand("a", (2, size, size), "float32")
        sides, made = (Operand(name, (2, size, columns), "float32") for name in "bx")
        factor = Operand("f", (2, size, size), "float32")

        def factors(size: int = size, a: Operand = square, f: Operand = factor) -> KernelBody:
            return cholesky_factors_by_blocks(Factors(2, size, "float32", a.load, f.store), MACHINE)

        def triangular(
            size: int = size, m: int = columns, a: Operand = square, b: Operand = sides,
            x: Operand = made,
        ) -> KernelBody:  # fmt: skip
            systems = Systems(2, size, m, "float32", False, a.load, b.load, x.store)
            return triangular_systems_by_blocks(systems, MACHINE)

        def general(
            size: int = size, m: int = columns, a: Operand = square, b: Operand = sides,
            x: Operand = made,
        ) -> KernelBody:  # fmt: skip
            return general_systems_by_blocks(
                General(2, size, m, "float32", a.load, b.load, x.store), MACHINE
            )

        yield f"factors {size}", [square, factor], factors
        yield f"triangular {size}x{columns}", [square, sides, made], triangular
        yield f"general {size}x{columns}", [square, sides, made], general


def of_complex_numbers() -> Iterator[Case]:
    for size, columns in ((5, 1), (19, 13)):
        square, factor = (Operand(name, (2, size, size), "complex64") for name in "af")
        sides, made = (Operand(name, (2, size, columns), "complex64") for name in "bx")

        def factors(size: int = size, a: Operand = square, f: Operand = factor) -> KernelBody:
            return cholesky_factors(Factors(2, size, "float32", a.load, f.store, Pair), MACHINE)

        def triangular(
            size: int = size, m: int = columns, a: Operand = square, b: Operand = sides,
            x: Operand = made,
        ) -> KernelBody:  # fmt: skip
            systems = Systems(2, size, m, "float32", False, a.load, b.load, x.store, Pair)
            return triangular_systems(systems, MACHINE)

        def general(
            size: int = size, m: int = columns, a: Operand = square, b: Operand = sides,
            x: Operand = made,
        ) -> KernelBody:  # fmt: skip
            systems = General(2, size, m, "float32", a.load, b.load, x.store, pair=Pair)
            return general_systems(systems, MACHINE)

        yield f"complex factors {size}", [square, factor], factors
        yield f"complex triangular {size}x{columns}", [square, sides, made], triangular
        yield f"complex general {size}x{columns}", [square, sides, made], general


def planted() -> Iterator[Case]:
    x, z = Operand("x", (100,), "float32"), Operand("z", (101,), "float32")
    yield "planted", [x, z], lambda: KernelBody(loop(101, lambda i: z.store(i, x.load(i))))


def run(operands: list[Operand], work: KernelBody) -> None:
    """The same results wherever arrays lie."""
    compiled = Compiled([o.buffer for o in operands], work)
    generator = np.random.default_rng(0)
    arrays = [o.in_memory(o.random(generator)) for o in operands]
    found = []
    for at_end in (True, False):
        placed = [guarded(array, at_end=at_end) for array in arrays]

        def scratch(size: int, at_end: bool = at_end) -> np.ndarray:
            return guarded(np.zeros(size, np.uint8), at_end=at_end, align=64)

        compiled.place_scratch(scratch)
        compiled(*placed)
        found.append(placed[-1].copy())
    np.testing.assert_array_equal(*found)


def main() -> None:
    kinds = (products, products_within_bounds, convolutions, by_blocks, of_complex_numbers)
    chosen = (planted,) if "--planted" in sys.argv else kinds
    cases = [case for kind in chosen for case in kind()]
    for name, operands, made in cases:
        print(name, flush=True)
        run(operands, made())
    print("done")


if __name__ == "__main__":
    main()
