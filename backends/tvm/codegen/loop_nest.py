"""Loop nests: analyses an iteration space, splits and merges its dimensions, and emits loops.

space = Space(dimensions)
space.settle(lambda scope: scope.compute(root, space.indices), inputs)
axes = space.axes()                      # as few loops as the accesses allow
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from tvm_ffi import structural_map

from tracejit.affine import Affine
from tracejit.backends.tvm.codegen.access_analysis import Accesses
from tracejit.backends.tvm.ir.affine import LoopVariable
from tracejit.backends.tvm.ir.tir import PARALLEL, Expr, For, Stmt, const, loop, seq, tirx
from tracejit.graph import Instruction


@dataclass(frozen=True)
class Axis:
    """Adjacent loop variables fused to one loop; addresses use only the last one's coefficient."""

    members: tuple[LoopVariable, ...]
    extent: int

    @property
    def last(self) -> LoopVariable:
        return self.members[-1]

    def count(self, positions: dict[LoopVariable, Expr]) -> Count:
        """A loop whose number is the position on this axis."""

        def place(number: Expr) -> None:
            positions[self.last] = number

        return Count(self.extent, place)


class Space:
    """The loop variables of an iteration space and, for each dimension, its index over them."""

    def __init__(self, dimensions: Sequence[int]) -> None:
        self.variables = [LoopVariable(f"d{i}", size) for i, size in enumerate(dimensions)]
        self.indices = [variable.index for variable in self.variables]

    def split(self, variable: LoopVariable, inner: int) -> None:
        """Replace ``variable`` by two, the second of extent ``inner``."""
        high = LoopVariable(variable.name + "h", variable.extent // inner)
        low = LoopVariable(variable.name + "l", inner)
        position = self.variables.index(variable)
        self.variables[position : position + 1] = [high, low]
        both = high.index * inner + low.index
        self.indices = [index.replace(variable, both) for index in self.indices]


def settle(
    spaces: Sequence[Space],
    ask: Callable[[Accesses], None],
    is_input: Callable[[Instruction], bool],
    scope: Callable[[Callable[[Instruction], bool]], Accesses] = Accesses,
) -> Accesses:
    """Analyse the accesses of ``ask``, splitting variables until every reshape is affine.

    If a split is impossible the index stays opaque, which is slower but correct.
    """
    while True:
        accesses = scope(is_input)
        ask(accesses)
        wishes = [
            (space, variable, inner)
            for variable, inner in accesses.splits.items()
            for space in spaces
            if variable in space.variables
        ]
        if not wishes:
            return accesses
        for space, variable, inner in wishes:
            space.split(variable, inner)


def merge(
    variables: Sequence[LoopVariable],
    addresses: Iterable[Affine],
    unmergeable: Iterable[LoopVariable],
) -> list[Axis]:
    """``variables``, outermost first, merged to as few axes as possible.

    Neighbours are merged if all addresses step through them alike. Variables of extent 1 vanish.
    """
    fixed = set(unmergeable)
    known = list(addresses)
    axes: list[Axis] = []
    for variable in variables:
        if variable.extent == 1:
            continue
        if (
            axes
            and _alike(axes[-1].last, variable, known)
            and not fixed & {axes[-1].last, variable}
        ):
            last = axes.pop()
            axes.append(Axis((*last.members, variable), last.extent * variable.extent))
        else:
            axes.append(Axis((variable,), variable.extent))
    return axes


def _alike(outer: LoopVariable, inner: LoopVariable, addresses: Iterable[Affine]) -> bool:
    return all(a.coefficient(outer) == a.coefficient(inner) * inner.extent for a in addresses)


@dataclass(frozen=True)
class Count:
    """One loop to emit: its extent, and a function that receives its number."""

    extent: int
    place: Callable[[Expr], None]


def in_vectors(extent: int, lanes: int, dtype: str, place: Callable[[Expr], None]) -> Count:
    """Vectors that cover ``extent`` elements: the last may overlap the one before.

    ``place`` receives the first element of each.
    """

    def begin(number: Expr) -> None:
        first = number * const(lanes, dtype)
        place(tirx.min(first, const(extent - lanes, dtype)) if extent % lanes else first)

    return Count(-(-extent // lanes), begin)


def nest(
    counts: Sequence[Count],
    body: Callable[[], Stmt | Sequence[Stmt]],
    *,
    parallel: int = 1,
    dtype: str = "int32",
) -> Stmt:
    """``body`` inside loops, outermost first.

    With ``parallel`` above 1 the outermost loops are fused into one parallel loop of at least that
    many iterations, as far as there are any.
    """
    fused = 0
    product = 1
    while parallel > 1 and fused < len(counts) and product < parallel:
        product *= counts[fused].extent
        fused += 1

    def serial(position: int) -> Stmt:
        if position == len(counts):
            inner = body()
            return seq(*inner) if isinstance(inner, list | tuple) else inner
        count = counts[position]

        def inside(number: Expr) -> Stmt:
            count.place(number)
            return serial(position + 1)

        return loop(count.extent, inside, dtype=dtype)

    if fused == 0 or product == 1:
        return serial(0)

    def inside(number: Expr) -> Stmt:
        for count in reversed(counts[1:fused]):
            count.place(tirx.truncmod(number, const(count.extent, dtype)))
            number = tirx.truncdiv(number, const(count.extent, dtype))
        counts[0].place(number)
        return serial(fused)

    return loop(product, inside, PARALLEL, dtype=dtype)


def together(statements: Sequence[Stmt]) -> Stmt:
    """Independent statements in sequence; adjacent parallel loops of equal extent become one.

    Threads are woken once, and LLVM has one function to compile.
    """
    made: list[Stmt] = []
    for statement in statements:
        before = made[-1] if made else None
        made[-1:] = [statement] if before is None else _merged(before, statement)
    return seq(made)


def _merged(first: Stmt, second: Stmt) -> list[Stmt]:
    if not (_is_parallel(first) and _is_parallel(second)):
        return [first, second]
    if int(first.extent) != int(second.extent) or str(first.min.ty) != str(second.min.ty):
        return [first, second]
    old, new = second.loop_var, first.loop_var
    body = structural_map(second.body, (tirx.Var, lambda v: new if v.same_as(old) else v))
    return [For(new, first.min, first.extent, PARALLEL, seq(first.body, body))]


def _is_parallel(statement: Stmt) -> bool:
    is_loop = isinstance(statement, For) and int(statement.kind) == int(PARALLEL)
    return is_loop and isinstance(statement.extent, tirx.IntImm)
