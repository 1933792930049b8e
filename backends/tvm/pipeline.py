"""The pipeline: every graph pass, in the order in which they run.

    optimized(computation, machine)     the graph that kernels are lowered from

`MODULE` runs once, over the whole program. `FRAGMENT` runs over the result, then over each loop
body, loop condition and branch, outermost first. `REROLL` prepares long graphs for `reroll`.
Passes over kernels and machine code come later, in `cpu.objects.build`.
"""

from __future__ import annotations

from collections.abc import Sequence

from tracejit.backends.tvm.cpu.schedule.sort.quicksort import VECTOR_BYTES
from tracejit.backends.tvm.ir.graph import Graph, flattened_graph
from tracejit.backends.tvm.ir.machine import Machine
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
    on_machine,
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


def optimized(computation: Computation, machine: Machine, session: Session | None = None) -> Graph:
    """The graph of a computation after all passes, with a parameter for each of its arrays.

    Raises `UnsupportedError` for an op between devices.
    """
    context = Context(machine, computation.name, lists=LISTS, session=session or Session())
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
    return context.machine.vector_bytes == VECTOR_BYTES


MODULE = (
    Pass(
        "legalize-devices",
        _one_device,
        "first: tokens, async pairs, dynamic shapes and collectives are unknown to what follows",
        optional=False,
    ),
    Pass(
        "flatten-tuples",
        _flattened,
        "every later pass takes one parameter and one output for each array",
        requires=("legalize-devices",),
        optional=False,
    ),
    Pass(
        "constant-folding",
        on_roots(fold_constants),
        "before loops are vectorised, whose bodies compare what they index with constants",
    ),
    Pass(
        "vectorize-loops",
        vectorize_loops,
        "before re-rolling, which would make loops of what this has made straight code",
        requires=("flatten-tuples",),
    ),
    Pass(
        "reroll",
        _reroll,
        "while steps that Python unrolled still look alike: canonicalisation merges their parts",
    ),
)

LOOPS = (
    Pass(
        "scalar-promotion",
        over_loop(with_promoted_scalars),
        "first: an element that all steps write is state of the loop, and no array",
    ),
    Pass(
        "if-conversion",
        on_roots(convert_ifs),
        "a body is batched only if it has no branches; where it stays a loop, they stay",
    ),
    Pass(
        "predicate-reductions",
        on_roots(lambda roots: [predicate_reductions(root) for root in roots]),
        "after if-conversion, whose choices become terms of a sum that is vectorised",
    ),
    Pass(
        "vectorize",
        over_loop(as_vectors),
        "the body in its last form, batched over the counter",
    ),
    Pass(
        "hoist-contractions",
        over_loop(with_hoisted_contractions),
        "where the loop stays, its products of all steps come before it",
    ),
)

REROLL = (Pass("canonicalize-anew", _anew, "equal steps stay apart, and get equal forms"),)

FRAGMENT = (
    Pass(
        "canonicalize", on_roots(canonicalize), "first: the passes over scans compare instructions"
    ),
    Pass(
        "fuse-scans",
        on_roots(fuse_scans),
        "before contractions are hoisted, which then come out of one loop",
        requires=("canonicalize",),
    ),
    Pass(
        "hoist-scan-contractions",
        on_roots(hoist_scan_contractions),
        "while a Scan still says which inputs are one slice for each step",
    ),
    Pass(
        "tile-and-fuse",
        on_machine(tile_and_fuse),
        "before legalisation, while what lies between two products is one op for each step",
    ),
    Pass(
        "legalize",
        on_roots(legalize),
        "composite ops have no kernels; Scan becomes While",
        optional=False,
    ),
    Pass(
        "fuse-whiles",
        on_roots(fuse_whiles),
        "after legalisation has made loops of Scans",
        requires=("legalize",),
    ),
    Pass(
        "constant-state",
        on_roots(propagate_constant_state),
        "state that all steps keep is known inside the body, before the body is optimised",
        requires=("legalize",),
    ),
    Pass(
        "dead-state",
        on_roots(eliminate_dead_state),
        "after constant-state, which leaves state that nobody reads",
    ),
    Pass(
        "canonicalize",
        on_roots(canonicalize),
        "what legalisation and the loop passes have made has common parts",
    ),
    Pass(
        "remove-barriers",
        on_roots(without_barriers),
        "all that had to respect an OptimizationBarrier has run; kernels do not know it",
        optional=False,
    ),
    Pass(
        "dead-results",
        on_roots(eliminate_dead_results),
        "after canonicalize, when results that were equal are one",
    ),
    Pass(
        "dead-sort-operands",
        on_roots(eliminate_dead_sort_operands),
        "after dead-results; before sorts are cut to their first elements",
    ),
    Pass(
        "sort-to-topk",
        on_roots(convert_sorts_to_topk),
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
        "a gather's or slice's index that is made number by number needs no memory",
    ),
    Pass(
        "scalarize",
        on_roots(scalarize),
        "in loops and branches, whose short vectors become numbers in registers",
        when=_is_nested,
    ),
    Pass(
        "canonicalize",
        on_roots(canonicalize),
        "scalars that were elements of short vectors have common parts",
        when=_is_nested,
    ),
    Pass(
        "mask-to-bounds",
        on_roots(convert_masks_to_bounds),
        "a mask that compares a counter with an iota is by now in its canonical form",
        when=_is_nested,
    ),
    Pass(
        "canonicalize",
        on_roots(canonicalize),
        "masks that have become bounds are used no more",
        when=_is_nested,
    ),
    Pass(
        "split-concats",
        on_roots(split_concats),
        "last: every other pass sees the whole array",
    ),
)

LISTS = {"module": MODULE, "loops": LOOPS, "reroll": REROLL, "fragment": FRAGMENT}


def applied(
    name: str, roots: Sequence[Instruction], machine: Machine | None = None
) -> list[Instruction]:
    """The roots after the first pass of that name alone, whatever the environment selects."""
    (found, *_) = [each for passes in LISTS.values() for each in passes if each.name == name]
    context = Context(machine or Machine(), lists=LISTS, session=Session(Options()))
    return found.run(Graph((), roots), context).roots
