"""docs/operations.md: every op of the table with what can be done with it.

    python -m tests.project.operations_page          writes the page anew

A column that an op lacks says **missing**, and the page begins with the list of such ops.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path

from tests.project import checkout
from tests.samples.base import Sample
from tests.samples.cases import families
from tracejit.autodiff.reverse import differentiate
from tracejit.backends.numpy import interpret
from tracejit.backends.tvm.codegen.rules import indexed, pointwise
from tracejit.backends.tvm.codegen.scalar.table import scalar
from tracejit.backends.tvm.cpu.root_rules import rooted
from tracejit.backends.tvm.cuda.table import rooted as cuda_rooted
from tracejit.backends.tvm.passes.legalize import collectives
from tracejit.backends.tvm.passes.legalize.composites import expansions
from tracejit.backends.tvm.passes.legalize.tokens_and_async import CALLS, simpler_names
from tracejit.backends.tvm.target.host_calls import ONLY_ON_HOSTS, HostLibraries
from tracejit.builder import XlaBuilder
from tracejit.graph import OPS, Op
from tracejit.hlo.attributes import READABLE, WRITABLE
from tracejit.ops.base import (
    ALL,
    COMPLEX,
    FLOATING,
    INEXACT,
    INTEGRAL,
    LOGICAL,
    NUMERIC,
    ORDERED,
    function_name,
)
from tracejit.ops.constants import CONSTANT, GET_TUPLE_ELEMENT, PARAMETER, TUPLE
from tracejit.ops.custom import CUSTOM_CALL
from tracejit.shapes import ElementType

__all__ = ["collectives", "page"]  # the module is imported for the table it fills

PAGE = checkout.ROOT / "docs" / "operations.md"
MISSING = "**missing**"

# Methods that have no op of their own, by the op that they are made of.
COMPOSED: dict[str, tuple[str, ...]] = {
    "Atan2": ("Atan",),
    "BroadcastInDim": ("Broadcast",),
    "Call": ("CompositeCall",),
    "Compare": (
        *("Eq", "Ne", "Ge", "Gt", "Le", "Lt", "EqTotalOrder", "NeTotalOrder"),
        *("GeTotalOrder", "GtTotalOrder", "LeTotalOrder", "LtTotalOrder"),
    ),
    "Complex": ("Conj",),
    "Concatenate": ("ConcatInDim",),
    "Conditional": ("ConditionalIndexed",),
    "Constant": ("ConstantLiteral",),
    "ConvGeneralDilated": (
        *("Conv", "ConvGeneral", "ConvWithGeneralDimensions", "ConvWithGeneralPadding"),
    ),
    "DotGeneral": ("Dot",),
    "Pad": ("PadInDim",),
    "Reshape": ("Collapse",),
    "Rng": ("RngUniform", "RngNormal"),
    "RoundNearestAfz": ("Round",),
    "Slice": ("SliceInDim",),
    "Infeed": ("InfeedWithToken",),
    "Outfeed": ("OutfeedWithToken",),
    "AllReduce": ("CrossReplicaSum",),
    "Send": ("SendWithToken", "SendToHost"),
    "Recv": ("RecvWithToken", "RecvFromHost"),
    "AllToAll": ("AllToAllTuple",),
    "CollectivePermute": ("CollectivePermuteSlices",),
}

NAMED: tuple[tuple[str, Collection[ElementType]], ...] = (
    ("all", ALL),
    ("numeric", NUMERIC),
    ("ordered", ORDERED),
    ("inexact", INEXACT),
    ("floating", FLOATING),
    ("complex", COMPLEX),
    ("logical", LOGICAL),
    ("integral", INTEGRAL),
)

INTRODUCTION = """\
# Operations

Every operation of the op table. `python -m tests.project.operations_page` writes this page from
the table, and a test compares them.

- **builder**: the methods of `tracejit.builder.XlaBuilder` that make it; some are compositions of
  several operations and stand where their main one is. Without one, the operation is met in dumps
  of XLA only: it is parsed, printed and executed.
- **text**: its opcode in HLO text, printed and parsed with all attributes.
- **element types**: those that its samples are tried with against XLA. *logical* is pred and the
  integers, *ordered* these and floating point, *numeric* all but pred, *inexact* floating point
  and complex.
- **interpret**: evaluated with NumPy.
- **compile**: machine code for the CPU. *loop*: computed element by element, joined with its
  neighbours; *indices*: elements taken from other places, joined likewise; *kernel*: a kernel of
  its own; *rewritten*: composed of other operations first; *structure*: what programs are made of;
  *call*: one call back into NumPy, SciPy or a registered function.
- **cuda**: kernels for NVIDIA GPUs, by the same words. *kernel*: threads share the work of a
  result; *threads*: plain loops, a thread for each element, row or window; *host*: the program
  waits, and the host evaluates it.
- **differentiate**: a derivative, which can be differentiated again, or why there is none.
- **samples**: how many ways it is called in tests, each with all its element types.
"""


def methods(op: Op) -> list[str]:
    """The builder's methods that make ``op``."""
    found = [spelling(name) for name in (op.name, *COMPOSED.get(op.name, ()))]
    return [name for name in found if name is not None]


def spelling(name: str) -> str | None:
    """The method of this name of XLA's, if there is one."""
    snake = function_name(name)
    return next((s for s in (snake, f"{snake}_") if hasattr(XlaBuilder, s)), None)


def element_types(op: Op) -> str:
    """The types of the op's samples, as one of the named sets where they are one."""
    found = {t for sample in _samples(op) for t in sample.element_types}
    for name, types in NAMED:
        if found == set(types):
            return name
    rest, words = set(found), []
    for name, types in NAMED:
        if rest >= set(types):
            words.append(name)
            rest -= set(types)
    return ", ".join([*words, *[str(t) for t in ElementType if t in rest]])


def compiled(op: Op) -> str:
    if op in {PARAMETER, CONSTANT, TUPLE, GET_TUPLE_ELEMENT, *CALLS}:
        return "structure"
    if HostLibraries().call(op) is not None:
        return "call"
    if rooted.get(op) is not None:
        return "kernel"
    if pointwise.get(op) is not None:
        return "loop"
    if indexed.get(op) is not None:
        return "indices"
    # The family of dynamic sizes becomes pairs of arrays and sizes, in
    # backends/tvm/passes/legalize/dynamic_shapes.py.
    is_rewritten = (
        simpler_names.get(op) is not None
        or expansions.get(op) is not None
        or op.family == "dynamic_sizes"
    )
    return "rewritten" if is_rewritten else MISSING


def on_cuda(op: Op) -> str:
    if HostLibraries(ONLY_ON_HOSTS).call(op) is not None and op is not CUSTOM_CALL:
        return "host"
    if cuda_rooted.get(op) is not None:
        return "kernel or host" if op is CUSTOM_CALL else "kernel"
    if scalar.get(op) is not None:
        return "threads"
    told = compiled(op)
    if told in ("kernel", "call"):
        return "rewritten" if expansions.get(op) is not None else MISSING
    return told


def differentiated(op: Op) -> str:
    return "yes" if differentiate.get(op) is not None else differentiate.reason(op) or MISSING


def interpreted(op: Op) -> str:
    return "yes" if interpret.get(op) is not None else interpret.reason(op) or MISSING


def text(op: Op) -> str:
    kinds = {attribute.kind for attribute in op.attributes}
    return f"`{op.opcode}`" if kinds <= WRITABLE & READABLE else MISSING


def _samples(op: Op) -> list[Sample]:
    return [s for family in families().values() for s in family if s.op == op.name]


def row(op: Op) -> list[str]:
    """The cells of the op's row."""
    return [
        op.name,
        ", ".join(f"`{name}`" for name in methods(op)),
        text(op),
        element_types(op),
        interpreted(op),
        compiled(op),
        on_cuda(op),
        differentiated(op),
        str(len(_samples(op)) or MISSING),
    ]


COLUMNS = (
    "operation",
    "builder",
    "text",
    "element types",
    "interpret",
    "compile",
    "cuda",
    "differentiate",
    "samples",
)


def page() -> str:
    """The whole page, as it should be."""
    by_family: dict[str, list[Op]] = {}
    for op in OPS.values():
        by_family.setdefault(op.family, []).append(op)
    rows = {op: row(op) for op in OPS.values()}
    missing = [f"{op.name} ({gaps})" for op, cells in rows.items() if (gaps := _gaps(cells))]
    parts = [INTRODUCTION]
    parts.append(f"{len(OPS)} operations. Missing: {'; '.join(sorted(missing)) or 'nothing'}.\n")
    for family in sorted(by_family):
        table = _table(rows[op] for op in by_family[family])
        lines = [f"## {family.replace('_', ' ')}", "", *table]
        parts.append("\n".join(lines) + "\n")
    return "\n".join(parts)


def _gaps(cells: list[str]) -> str:
    """The columns that say missing."""
    return ", ".join(c for c, cell in zip(COLUMNS, cells, strict=True) if cell == MISSING)


def _table(rows: Iterable[list[str]]) -> list[str]:
    lines = [COLUMNS, ["---"] * len(COLUMNS), *rows]
    return [f"| {' | '.join(cells)} |" for cells in lines]


def main(path: Path = PAGE) -> None:
    """Writes the page."""
    path.parent.mkdir(exist_ok=True)
    path.write_text(page(), encoding="utf-8")
    print(f"{path} has {len(OPS)} operations")


if __name__ == "__main__":
    main()
