"""`LlvmProduct`: the common part of products of known sizes and strides, as LLVM text.

TVM sees a call, and LLVM's passes find nothing to do: sums are SSA values, sizes and strides
constants.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tracejit.backends.tvm.cpu.kernels.gemm.contraction import Contraction
from tracejit.backends.tvm.cpu.kernels.gemm.product import Plain
from tracejit.backends.tvm.cpu.kernels.sharing import on_workers, share
from tracejit.backends.tvm.cpu.llvm.builder import Value
from tracejit.backends.tvm.cpu.llvm.kinds import KINDS
from tracejit.backends.tvm.cpu.llvm.procedures import Procedure
from tracejit.backends.tvm.ir.tir import Expr, Stmt

Step = Callable[[list[str], list[Value]], list[Value]]
"""``step(addresses, sums)``: the sums after one more step."""


class LlvmProduct(Procedure):
    """``int32 name(ptr left, ptr right, ptr result, i64 first, i64 count)`` under construction.

    It computes ``count`` pieces from number ``first`` on: matrices of a batch, or pieces of one
    matrix, which has ``pieces``. Its name begins with ``name``, and contains the ``choices``.
    """

    def __init__(
        self,
        name: str,
        choices: Sequence[int],
        problem: Contraction,
        found: Plain,
        batch: int,
        pieces: int,
        lanes: int,
    ) -> None:
        kind = KINDS[problem.arithmetic.dtype]
        numbers = [problem.m, problem.n, problem.k, min(batch, 2), *choices]
        numbers += [*found.left_steps, *found.right_steps, *found.result_steps]
        named = "_".join(str(number).replace("-", "minus") for number in numbers)
        names = ["left", "right", "result"]
        super().__init__(f"{name}_{kind.name}_{named}", names, ["first", "count"], lanes)
        self.kind = kind
        self.problem = problem
        self.found = found
        self._pieces = pieces
        self._batch = batch

    def piece(self, number: str, left: str, right: str, result: str) -> None:
        """Write the code for piece ``number`` of matrices that begin at these addresses."""
        raise NotImplementedError

    def shared(self, workers: int) -> Stmt:
        """The whole product, by at most ``workers`` threads."""
        total = self._batch if self._batch > 1 else self._pieces
        workers = min(workers, total)
        self.when(self.holds("sgt", "%count", "0"), self._all)
        memories = [self.found.left.data, self.found.right.data, self.found.result.data]

        def work(worker: Expr) -> Stmt:
            some = (each.astype("int64") for each in share(worker, total, workers))
            return self.called([*memories, *some])

        return on_workers(workers, work)

    def _all(self) -> None:
        if self._batch == 1:
            places = self._beginnings("0")
            self.loop("%count", lambda n: self.piece(self.sum("%first", n), *places))
            return

        def matrix(number: str) -> None:
            places = self._beginnings(self.sum("%first", number))
            self.loop(str(self._pieces), lambda n: self.piece(n, *places))

        self.loop("%count", matrix)

    def _beginnings(self, b: str) -> list[str]:
        """The addresses of matrix ``b`` in both operands and in the result."""
        found = self.found
        steps = (found.left_steps, found.right_steps, found.result_steps)
        offsets = [self.sum(self.product(b, str(each[1])), str(each[0])) for each in steps]
        names = ("%left", "%right", "%result")
        return [self.address(name, offset) for name, offset in zip(names, offsets, strict=True)]

    def fused(self, a: Value, b: Value, total: Value) -> Value:
        """``a * b + total``."""
        return self.call(self.kind, f"fmuladd.{self.suffix(self.kind)}", a, b, total)

    def steps(
        self, count: str, first: Sequence[tuple[str, int]], sums: Sequence[Value], step: Step
    ) -> list[Value]:
        """A loop of ``count`` > 0 iterations of ``step``, beginning with ``sums``.

        ``first`` are the addresses of the first iteration, and the bytes by which each advances.
        """
        if count == "1":
            return step([address for address, _ in first], list(sums))
        top, done = self.fresh("steps", "done")
        (left,), addresses = self.fresh("%left"), self.fresh(*["%at"] * len(first))
        names = self.fresh(*["%sum"] * len(sums))
        before = self.block
        self.jump(top)
        self.start(top)
        places = self.reserve(1 + len(first) + len(sums))
        made = step(addresses, [Value(self, self.kind, name) for name in names])
        rest = self.difference(left, "1")
        heads = [(left, "i64", count, rest)]
        for address, (begin, distance) in zip(addresses, first, strict=True):
            # Opaque, so that LLVM does not search for better addresses.
            moved = self.address(address, str(distance))
            heads.append(
                (address, "ptr", begin, self.bits(f'call ptr asm "", "=r,0"(ptr {moved})'))
            )
        kind = self.type(self.kind)
        for name, begun, new in zip(names, sums, made, strict=True):
            heads.append((name, kind, begun.text, new.text))
        last = self.block
        for place, (name, type_, begin, after) in zip(places, heads, strict=True):
            self.fill(place, name, f"phi {type_} [ {begin}, %{before} ], [ {after}, %{last} ]")
        self.act(f"br i1 {self.holds('ne', rest, '0')}, label %{top}, label %{done}")
        self.start(done)
        return made
