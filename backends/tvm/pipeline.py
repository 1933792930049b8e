"""The pipeline: every graph pass, in the order in which they run.

    optimized(computation, machine)     the graph that kernels are lowered from

`MODULE` runs once, over the whole program. `FRAGMENT` runs over the result, then over each loop
body, loop condition and branch, outermost first. `REROLL` prepares long graphs for `reroll`.
Passes over kernels and machine code come later, in `cpu.objects.build`.
"""

from __future__ import annotations

from collections.abc import Sequence

from tracejit.backends.tvm.ir.graph import Graph, flattened_graph
from tracejit.backends.tvm.ir.limits import Limits
from tracejit.backends.tvm.passes.canonicalize.canonicalize import canonicalize
from tracejit.backends.tvm.passes.canonicalize.constant_folding import fold_constants
from tracejit.backends.tvm.passes.canonicalize.dead_results import eliminate_dead_results
from tracejit.backends.tvm.passes.canonicalize.sort_dead_operands import (
    eliminate_dead_sort_operands,
)
from tracejit.backends.tvm.passes.canonicalize.sort_promote_type import promote_sort_keys
from tracejit.backends.tvm.passes.canonicalize.sort_to_topk import convert_sorts_to_topk
from tracejit.backends.tvm.passes.canonicalize.split_index_vectors import split_index_vectors
from tracejit.backends.tvm.passes.legalize.collectives import legalize_devices
from tracejit.backends.tvm.passes.legalize.composites import legalize
from tracejit.backends.tvm.passes.loops.constant_state import propagate_constant_state
from tracejit.backends.tvm.passes.loops.dead_state import eliminate_dead_state
from tracejit.backends.tvm.passes.loops.fuse_scans import fuse_scans
from tracejit.backends.tvm.passes.loops.fuse_whiles import fuse_whiles
from tracejit.backends.tvm.passes.loops.if_conversion import convert_ifs
from tracejit.backends.tvm.passes.loops.mask_to_bounds import convert_masks_to_bounds
from tracejit.backends.tvm.passes.loops.predicate_reductions import predicate_reductions
from tracejit.backends.tvm.passes.loops.scalarize import scalarize
from tracejit.backends.tvm.passes.loops.scan_contractions import hoist_scan_contractions
from tracejit.backends.tvm.passes.loops.vectorize import (
    as_vectors,
    over_loop,
    vectorize_loops,
    with_hoisted_contractions,
    with_promoted_scalars,
)
from tracejit.backends.tvm.passes.manager import (
    Context,
    Options,
    Pass,
    Session,
    on_limits,
    on_roots,
    run_passes,
)
from tracejit.backends.tvm.passes.nested_computations import with_optimized_computations
from tracejit.backends.tvm.passes.reroll.reroll import reroll
from tracejit.backends.tvm.passes.tile.split_concats import split_concats
from tracejit.backends.tvm.passes.tile.tile_and_fuse import tile_and_fuse
from tracejit.graph import Computation, Instruction
from tracejit.ops.control import OPTIMIZATION_BARRIER
from tracejit.traversal import transform


def optimized(computation: Computation, limits: Limits, session: Session | None = None) -> Graph:
    """The graph of a computation after all passes, with a parameter for each of its arrays.

    Raises `UnsupportedError` for an op between devices, `ArgumentError` for a pass to leave out
    that there is not, or that is not optional.
    """
    context = Context(limits, computation.name, lists=LISTS, session=session or Session())
    context.session.options.check(LISTS)
    graph = Graph.of(computation)
    context.session.dump(graph, context.name, "input")
    made = _fragment(run_passes(MODULE, graph, context), context)
    context.session.dump(made, context.name, "optimized")
    return made


def _fragment(graph: Graph, context: Context) -> Graph:
    made = run_passes(FRAGMENT, graph, context)
    return with_optimized_computations(made, context, _fragment)


def without_barriers(roots: Sequence[Instruction]) -> list[Instruction]:
    """The roots without OptimizationBarriers, which constrain only the passes before."""
    return transform(
        roots, lambda i, operands: operands[0] if i.op is OPTIMIZATION_BARRIER else None
    )


def _one_device(graph: Graph, context: Context) -> Graph:
    return Graph.of(legalize_devices(graph.computation(context.name)))


def _flattened(graph: Graph, context: Context) -> Graph:
    return flattened_graph(graph.computation(context.name))


def _anew(graph: Graph, context: Context) -> Graph:
    return graph.with_roots(canonicalize(graph.roots, anew=True))


def _reroll(graph: Graph, context: Context) -> Graph:
    def prepared(roots: Sequence[Instruction]) -> list[Instruction]:
        return context.run("reroll", graph.with_roots(roots)).roots

    return graph.with_roots(reroll(graph.roots, prepared))


def _is_nested(graph: Graph, context: Context) -> bool:
    return context.is_nested


def _has_wide_vectors(graph: Graph, context: Context) -> bool:
    return context.limits.vector_bytes >= context.limits.wide_sorts


MODULE = (
    Pass(
        "legalize-devices",
        _one_device,
        "first: later passes do not support tokens, async pairs, dynamic shapes and collectives",
        optional=False,
    ),
    Pass(
        "flatten-tuples",
        _flattened,
        "later passes expect one parameter and one output for each array",
        requires=("legalize-devices",),
        optional=False,
    ),
    Pass(
        "constant-folding",
        on_roots(fold_constants),
        "before vectorize-loops, which compares indices with constants",
    ),
    Pass(
        "vectorize-loops",
        vectorize_loops,
        "before reroll, which would turn vectorised straight-line code into loops",
        requires=("flatten-tuples",),
    ),
    Pass(
        "reroll",
        _reroll,
        "before canonicalize, which merges parts of unrolled iterations, so that they differ",
    ),
)

LOOPS = (
    Pass(
        "scalar-promotion",
        over_loop(with_promoted_scalars),
        "first: later passes see a promoted element as scalar state",
    ),
    Pass(
        "if-conversion",
        on_roots(convert_ifs),
        "before vectorize, which supports no branches; undone if the loop stays",
    ),
    Pass(
        "predicate-reductions",
        on_roots(lambda roots: [predicate_reductions(root) for root in roots]),
        "after if-conversion, whose selects it moves into the terms of a reduction",
    ),
    Pass(
        "vectorize",
        over_loop(as_vectors),
        "after the passes that remove obstacles to batching the body",
    ),
    Pass(
        "hoist-contractions",
        over_loop(with_hoisted_contractions),
        "after vectorize: for loops that could not be vectorised",
    ),
)

REROLL = (
    Pass("canonicalize-anew", _anew, "gives unrolled iterations equal forms without merging them"),
)

FRAGMENT = (
    Pass(
        "canonicalize",
        on_roots(canonicalize),
        "first: fuse-scans compares instructions, so equal ones must be one",
    ),
    Pass(
        "fuse-scans",
        on_roots(fuse_scans),
        "before hoist-scan-contractions, which then hoists from one loop",
        requires=("canonicalize",),
    ),
    Pass(
        "hoist-scan-contractions",
        on_limits(hoist_scan_contractions),
        "before legalize: a Scan states which inputs it slices, a While does not",
    ),
    Pass(
        "tile-and-fuse",
        on_limits(tile_and_fuse),
        "before legalize, which expands the composites between two products",
    ),
    Pass(
        "legalize",
        on_limits(legalize),
        "before kernels are planned: composite ops have none; Scan becomes While",
        optional=False,
    ),
    Pass(
        "fuse-whiles",
        on_roots(fuse_whiles),
        "after legalize has turned Scans into Whiles",
        requires=("legalize",),
    ),
    Pass(
        "constant-state",
        on_roots(propagate_constant_state),
        "before the body is optimised, which can then use the constants",
        requires=("legalize",),
    ),
    Pass(
        "dead-state",
        on_roots(eliminate_dead_state),
        "after constant-state, which leaves state without readers",
    ),
    Pass(
        "canonicalize",
        on_roots(canonicalize),
        "merges common subexpressions of legalize and of the loop passes",
    ),
    Pass(
        "remove-barriers",
        on_roots(without_barriers),
        "after all passes that an OptimizationBarrier constrains; kernels do not support it",
        optional=False,
    ),
    Pass(
        "dead-results",
        on_roots(eliminate_dead_results),
        "after canonicalize has merged equal results",
    ),
    Pass(
        "dead-sort-operands",
        on_roots(eliminate_dead_sort_operands),
        "after dead-results; before sort-to-topk",
    ),
    Pass(
        "sort-to-topk",
        on_limits(convert_sorts_to_topk),
        "after dead-sort-operands, so that a top-k carries only operands that are used",
    ),
    Pass(
        "promote-sort-keys",
        on_roots(promote_sort_keys),
        "after sort-to-topk, which has faster kernels for narrow keys",
        when=_has_wide_vectors,
    ),
    Pass(
        "split-index-vectors",
        on_roots(split_index_vectors),
        "after canonicalize has exposed concatenated indices",
    ),
    Pass(
        "scalarize",
        on_roots(scalarize),
        "after all passes over whole arrays; only in loops and branches",
        when=_is_nested,
    ),
    Pass(
        "canonicalize",
        on_roots(canonicalize),
        "merges common subexpressions of scalarized arrays",
        when=_is_nested,
    ),
    Pass(
        "mask-to-bounds",
        on_roots(convert_masks_to_bounds),
        "after canonicalize: masks are in canonical form",
        when=_is_nested,
    ),
    Pass(
        "canonicalize",
        on_roots(canonicalize),
        "removes masks that have become bounds",
        when=_is_nested,
    ),
    Pass(
        "split-concats",
        on_limits(split_concats),
        "last: every other pass sees whole arrays",
    ),
)

LISTS = {"module": MODULE, "loops": LOOPS, "reroll": REROLL, "fragment": FRAGMENT}


def applied(
    name: str, roots: Sequence[Instruction], limits: Limits | None = None
) -> list[Instruction]:
    """The roots after the first pass of that name alone, whatever the environment selects."""
    (found, *_) = [each for passes in LISTS.values() for each in passes if each.name == name]
    context = Context(limits or Limits(), lists=LISTS, session=Session(Options()))
    return found.run(Graph((), roots), context).roots
