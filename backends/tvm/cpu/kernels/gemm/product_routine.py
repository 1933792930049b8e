"""The precompiled routine of a register tile: products of any sizes and strides, as LLVM text.

It does the same as a kernel of `tiled`: packs columns of the right operand into panels, shares row
and column tiles among threads, and takes blocks of rows past all columns. Sizes and strides are
read from `FIELDS` at run time, so one compiled routine serves all programs of a process.

Here are the functions that divide the work among threads; `product_work` is the work of one
thread.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from functools import partial

from tracejit.backends.tvm.cpu.kernels.gemm.product_copies import copy, edge, runs
from tracejit.backends.tvm.cpu.kernels.gemm.product_tile import column
from tracejit.backends.tvm.cpu.kernels.gemm.product_vocabulary import (
    POINTERS,
    ProductFunction,
    Variant,
    WorkFunction,
    i64s,
)
from tracejit.backends.tvm.cpu.kernels.gemm.product_work import pack, work
from tracejit.backends.tvm.cpu.llvm.procedures import Procedure
from tracejit.backends.tvm.ir.routine_call import Routine

_LAUNCHED = ("b", "matrices", "g", "kind", "workers")
_PACK, _WORK, _SHARE = "0", "1", "2"  # The kinds of work of a thread.


@functools.cache
def product_routine(variant: Variant) -> Routine:
    """The routine, a function of all `POINTERS`: its kernels multiply, its driver does everything
    else.
    """
    types = ", ".join(["ptr"] * 3 + ["i64"] * 14)
    driver = [
        "declare i32 @TVMBackendParallelLaunch(ptr, ptr, i32)",
        f"declare i32 @{variant.column}({types})",
        *_control(variant),
        *(_threads(variant), _launch(variant), _share(variant), _all(variant)),
    ]
    edges = [f"declare i32 @{variant.edge}(ptr, ptr, i64, i64, i64, i64)"] * variant.edges
    kernels = [*edges, column(variant)]
    return Routine(variant.name, "\n".join([*kernels, ""]), "\n".join([*driver, ""]))


@functools.cache
def product_parts(variant: Variant) -> str:
    """The text of ``pack`` and ``work`` alone, functions of all `POINTERS` and a `WORK_ITEM`."""
    return "\n".join([column(variant), *_control(variant)])


def _control(variant: Variant) -> list[str]:
    """The functions that copy and that control one thread's work; none starts threads."""
    own_edge = [edge(variant)] if variant.edges or variant.copies else []
    if not variant.copies:
        return [*own_edge, work(variant)]
    return [*own_edge, copy(variant), runs(variant), pack(variant), work(variant)]


def _all(variant: Variant) -> str:
    """The routine's entry function."""
    p = WorkFunction(variant.name, variant.tile)
    del p._parameters[len(POINTERS) :]
    p.make_room(f"%closure = alloca [{len(POINTERS) + len(_LAUNCHED)} x i64]")
    for number, name in enumerate(POINTERS):
        p.act(f"store ptr %{name}, ptr {p.address('%closure', str(8 * number))}")
    sharers = p.fields["sharers"]
    workers = p.fields["workers"]

    pointers = [f"ptr %{pointer}" for pointer in POINTERS]
    is_alone = p.holds("eq", workers, "1")

    def launched(kind: str, count: str, *place: str) -> None:
        p.run(f"{variant.name}_launch", "ptr %closure", *i64s(*place, kind, count))

    def run(name: str, kind: str, *place: str) -> None:
        p.branches(
            is_alone,
            lambda: p.run(f"{variant.name}_{name}", *pointers, *i64s(*place, "0", "0")),
            lambda: launched(kind, workers, *place),
        )

    def matrices() -> None:
        _phases(
            variant,
            p,
            "0",
            p.fields["batch"],
            lambda b, g: run("pack", _PACK, b, "1", g),
            lambda b, matrices, g: run("work", _WORK, b, matrices, g),
        )

    is_shared = p.holds("ne", sharers, "0")
    p.branches(is_shared, lambda: launched(_SHARE, sharers, "0", "0", "0"), matrices)
    return p.whole()


def _phases(
    variant: Variant,
    p: WorkFunction,
    first: str,
    count: str,
    pack_group: Callable[[str, str], None],
    work_on: Callable[[str, str, str], None],
) -> None:
    """Some matrices: all together if nothing is packed, else one by one, in groups of columns."""
    f = p.fields

    def each(number: str) -> None:
        b = p.sum(first, number)

        def group(g: str) -> None:
            pack_group(b, g)
            work_on(b, "1", g)

        p.loop(f["groups"], group)

    if not variant.copies:
        work_on(first, count, "0")
        return
    copies = p.holds("ne", f["pack_right"], "0")
    p.branches(copies, lambda: p.repeated(count, each), lambda: work_on(first, count, "0"))


def _share(variant: Variant) -> str:
    """A worker's share of the batch."""
    p = WorkFunction(f"{variant.name}_share", variant.tile)
    batch, sharers = p.fields["batch"], p.fields["sharers"]
    first, count = p.share("%w", batch, p.parts(batch, sharers))
    pointers = [f"ptr %{pointer}" for pointer in POINTERS]

    def run(name: str, *place: str) -> None:
        p.run(f"{variant.name}_{name}", *pointers, *i64s(*place, "%w", "0"))

    _phases(
        variant,
        p,
        first,
        count,
        lambda b, g: run("pack", b, "1", g),
        lambda b, matrices, g: run("work", b, matrices, g),
    )
    return p.whole()


def _threads(variant: Variant) -> str:
    """The function of a thread: tasks are assigned to threads round-robin."""
    p = ProductFunction(f"{variant.name}_threads", ["pool", "closure"], [], 1)
    p._parameters.insert(0, "i32 %thread")
    own = p.bits("sext i32 %thread to i64")
    threads = p.bits(f"load i32, ptr {p.address('%pool', '8')}, align 8")
    threads = p.bits(f"sext i32 {threads} to i64")
    pointers = [_pointer(p, n) for n in range(len(POINTERS))]
    b, matrices, g, kind, workers = (
        p.number("%closure", len(POINTERS) + n) for n in range(len(_LAUNCHED))
    )
    left = p.difference(p.sum(workers, p.difference(threads, "1")), own)
    count = p.ratio(left, threads)

    def one(number: str) -> None:
        w = p.sum(own, p.product(number, threads))
        typed = [*(f"ptr {pointer}" for pointer in pointers), *i64s(b, matrices, g, "0", w)]
        kinds = [(_WORK, "work"), (_SHARE, "share")]
        for which, name in [(_PACK, "pack"), *kinds] if variant.copies else kinds:
            function = f"{variant.name}_{name}"
            p.when(p.holds("eq", kind, which), partial(p.run, function, *typed))

    p.repeated(count, one)
    return p.whole()


def _launch(variant: Variant) -> str:
    """Start one kind of work on all threads."""
    p = ProductFunction(f"{variant.name}_launch", ["closure"], _LAUNCHED, 1)
    for number, name in enumerate(_LAUNCHED, len(POINTERS)):
        p.act(f"store i64 %{name}, ptr {p.address('%closure', str(8 * number))}")
    threads = f"ptr @{variant.name}_threads"
    p.run("TVMBackendParallelLaunch", threads, "ptr %closure", "i32 0")
    return p.whole()


def _pointer(p: Procedure, number: int) -> str:
    return p.bits(f"load ptr, ptr {p.address('%closure', str(8 * number))}")
