"""Convolutions with all options of XLA's ConvGeneralDilated, of anything that can be indexed."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from tracejit.backends.tvm.codegen.kernel_body import KernelBody, nothing, one_after_another
from tracejit.backends.tvm.cpu.kernels.arithmetic import Value
from tracejit.backends.tvm.cpu.kernels.conv.correlation import Correlation, SpatialAxis
from tracejit.backends.tvm.cpu.kernels.conv.direct import DirectConvolution
from tracejit.backends.tvm.cpu.kernels.conv.direct_plan import direct_plan
from tracejit.backends.tvm.cpu.kernels.conv.phases import Phases, phases
from tracejit.backends.tvm.cpu.kernels.gemm.gemm import gemm
from tracejit.backends.tvm.cpu.machine import Machine
from tracejit.backends.tvm.ir.tir import Expr, Stmt, const, i32, loop
from tracejit.backends.tvm.tune.knobs import MODEL, Knobs


@dataclass(frozen=True)
class ConvolutionShape:
    """Sizes of a convolution, in the order batch, features, spatial dimensions.

    ``batch``, ``in_features`` and ``in_sizes`` are the left operand's; the right operand has
    ``out_features`` x (``in_features`` / ``feature_group_count``) x ``window``.
    """

    batch: int
    in_features: int
    out_features: int
    in_sizes: tuple[int, ...]
    window: tuple[int, ...]
    strides: tuple[int, ...]
    padding: tuple[tuple[int, int], ...]
    lhs_dilation: tuple[int, ...]
    rhs_dilation: tuple[int, ...]
    window_reversal: tuple[bool, ...]
    feature_group_count: int = 1
    batch_group_count: int = 1

    @property
    def axes(self) -> tuple[SpatialAxis, ...]:
        """The spatial dimensions, with the results' sizes."""
        return tuple(
            SpatialAxis(size, _results(size, *rest), rest[0], rest[1], rest[2][0], rest[4], rest[3])
            for size, *rest in zip(
                self.in_sizes,
                self.window,
                self.strides,
                self.padding,
                self.lhs_dilation,
                self.rhs_dilation,
                strict=True,
            )
        )

    @property
    def out_sizes(self) -> tuple[int, ...]:
        """The spatial sizes of the result."""
        return tuple(axis.result for axis in self.axes)

    @property
    def out_batch(self) -> int:
        return self.batch // self.batch_group_count


def _results(
    size: int,
    window: int,
    stride: int,
    padding: tuple[int, int],
    lhs_dilation: int,
    rhs_dilation: int,
) -> int:
    spread = (size - 1) * lhs_dilation + 1 if size else 0
    reach = (window - 1) * rhs_dilation + 1 if window else 0
    room = spread + sum(padding) - reach
    return room // stride + 1 if room >= 0 else 0


def convolution(
    shape: ConvolutionShape,
    lhs: Callable[..., Value],
    rhs: Callable[..., Value],
    store: Callable[..., Stmt],
    *,
    accumulate_dtype: str,
    machine: Machine,
    index_dtype: str = "int32",
    choices: Knobs = MODEL,
) -> KernelBody:
    """``store(n, o, *position, value)`` for every image, out feature and position.

    ``lhs(n, c, *position)`` and ``rhs(o, c, *tap)`` return expressions, or pairs (real, imaginary)
    of them; they may be called for any index that exists, more than once, and not beyond. Each
    result is stored once; its value has ``accumulate_dtype``, which operands are converted to.
    Integers wrap around. ``index_dtype`` is the type of the indices that accessors are given,
    ``choices`` decides between alternative implementations.
    """
    groups = shape.feature_group_count * shape.batch_group_count
    if groups > 1 and not shape.in_sizes:
        # Schedules of groups want a dimension to run along: one of size 1.
        return convolution(
            ConvolutionShape(
                shape.batch, shape.in_features, shape.out_features, (1,), (1,), (1,), ((0, 0),),
                (1,), (1,), (False,), shape.feature_group_count, shape.batch_group_count,
            ),
            lambda n, c, _: lhs(n, c),
            lambda o, c, _: rhs(o, c),
            lambda n, o, _, value: store(n, o, value),
            accumulate_dtype=accumulate_dtype, machine=machine, index_dtype=index_dtype,
            choices=choices,
        )  # fmt: skip
    batch = shape.out_batch
    features = shape.in_features // shape.feature_group_count
    axes = shape.axes
    if shape.out_features == 0 or batch == 0 or 0 in shape.out_sizes:
        return nothing()

    def left(n: Expr, c: Expr, *position: Expr) -> Value:
        if shape.batch_group_count == 1:
            return lhs(n, c, *position)
        # A batch group is a feature group whose features are other images.
        return lhs(c // features * batch + n, c % features, *position)

    def right(o: Expr, c: Expr, *tap: Expr) -> Value:
        taps = zip(tap, axes, shape.window_reversal, strict=True)
        return rhs(o, c, *(a.window - 1 - t if is_reversed else t for t, a, is_reversed in taps))

    problem = Correlation.of(
        batch, groups, features, shape.out_features // groups, axes,
        left, right, store, accumulate_dtype, index_dtype,
    )  # fmt: skip
    if features == 0 or problem.taps == 0:
        return _zeros(problem)
    if groups > 1 or not all(axis.is_pointwise for axis in axes):
        return one_after_another([_direct(each, machine, choices) for each in phases(problem)])

    # Pointwise: a matrix product of pixels with features, for each image, or for all images if
    # their pixels are contiguous.
    pixels = math.prod(shape.out_sizes)
    together = problem.left_access.walks(1) or pixels == 1
    images, rows = (1, batch * pixels) if together else (batch, pixels)

    def place(b: Expr, i: Expr) -> tuple[Expr, list[Expr]]:
        position: list[Expr] = []
        for size in reversed(shape.out_sizes[1:]):
            position.insert(0, i % size)
            i = i // size
        if not together:
            return b, [i, *position] if axes else []
        first = shape.out_sizes[0] if axes else 1
        return i // first, [i % first, *position] if axes else []

    def pixel(b: Expr, i: Expr, q: Expr) -> Value:
        n, position = place(b, i)
        return lhs(n, q, *position)

    def put(b: Expr, i: Expr, j: Expr, value: Value) -> Stmt:
        n, position = place(b, i)
        return store(n, j, *position, value)

    nowhere = [const(0, index_dtype)] * len(axes)
    return gemm(
        rows, shape.out_features, features, pixel, lambda b, q, j: rhs(j, q, *nowhere), put,
        accumulate_dtype=accumulate_dtype, machine=machine, batch=images, index_dtype=index_dtype,
        choices=choices,
    )  # fmt: skip


def _direct(phases: Phases, machine: Machine, choices: Knobs) -> KernelBody:
    first = phases.at(i32(0))
    if first.batch * first.results == 0:
        return nothing()
    plan = direct_plan(first, machine, choices) if first.taps else None
    made: list[KernelBody] = []

    def one(number: Expr) -> Stmt:
        problem = phases.at(number)
        made.append(_zeros(problem) if plan is None else DirectConvolution(problem, plan).work())
        return made[-1].statement

    statement = one(i32(0)) if phases.count == 1 else loop(phases.count, one)
    return made[0]._replace(statement=statement)


def _zeros(problem: Correlation) -> KernelBody:
    sizes = [problem.batch, problem.groups * problem.out_features]
    sizes += [axis.result for axis in problem.axes]

    def nest(*indices: Expr) -> Stmt:
        if len(indices) == len(sizes):
            return problem.store(*indices, problem.arithmetic.zero)
        return loop(sizes[len(indices)], lambda i: nest(*indices, i))

    return KernelBody(nest())
