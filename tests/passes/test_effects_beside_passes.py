"""Side effects switch off no pass, and happen once and in order in what passes have changed."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tracejit as tj
from tests.fuzz.arguments import arguments
from tests.passes.test_golden import CASES, MACHINE, program_of
from tracejit import ops
from tracejit.graph import Computation, Instruction, Module
from tracejit.queues import Queue, feeds
from tracejit.runtime import importing_tvm
from tracejit.shapes import ElementType, Shape, TupleShape
from tracejit.traversal import inline_with_effects, unreached
from tracejit.verifier import verify

with importing_tvm():
    from tests.lowered import lower
    from tracejit.backends.tvm import pipeline
    from tracejit.backends.tvm.ir.graph import Graph
    from tracejit.backends.tvm.ir.tuples import flattened
    from tracejit.backends.tvm.passes.manager import Context, Options, Pass, Session, run_passes

PAIR = Shape(ElementType.F32, (2,))
RUN = ("constant-folding", "fuse-whiles", "reroll", "vectorize-loops", "canonicalize", "fuse-scans")
RUNNABLE = [path for path in CASES if path.parent.name in RUN]
cases = pytest.mark.parametrize("path", CASES, ids=lambda p: f"{p.parent.name}-{p.stem}")
runnable = pytest.mark.parametrize("path", RUNNABLE, ids=lambda p: f"{p.parent.name}-{p.stem}")


def put(value: Instruction) -> Instruction:
    return ops.outfeed(value, ops.after_all([]))


def drawn() -> Instruction:
    limits = [ops.constant(np.float32(x)) for x in (0, 1)]
    return ops.rng_uniform(limits[0], limits[1], PAIR)


def loud(module: Module) -> Module:
    """The program, numbers drawn, taken from and put into queues before and after it.

    The root needs the later draw, and nothing the first.
    """
    parameters = [ops.parameter(n, p.shape) for n, p in enumerate(module.entry.parameters)]
    effects = [put(drawn())]
    given, _ = ops.elements_of(ops.infeed(ops.after_all([]), PAIR))
    root, own = inline_with_effects(module.entry, parameters)
    effects += [*own, *map(put, flattened(root)), put(given)]
    root = ops.tuple_([drawn(), root, ops.add(given, given)])
    entry = Computation("loud", tuple(parameters), root, unreached(root, effects))
    return verify(Module("loud", entry, module.replica_count, module.num_partitions))


def changed_by(module: Module) -> set[str]:
    session = Session(Options(verify=True))
    pipeline.optimized(module.entry, MACHINE, session)
    return {name for name, _ in session.changes}


@cases
def test_every_pass_runs_beside_effects(path: Path) -> None:
    module = program_of(path)
    assert changed_by(module) <= changed_by(loud(module))


def test_loops_in_a_loop_with_effects_are_vectorised() -> None:
    (path,) = [path for path in CASES if path.parent.name == "vectorize-loops"]
    module = program_of(path)
    state = TupleShape((Shape(ElementType.S32), *(p.shape for p in module.entry.parameters)))
    inner = ops.parameter(0, state)
    count, *given = ops.elements_of(inner)
    root, _ = inline_with_effects(module.entry, given)
    next_state = ops.tuple_([ops.sub(count, ops.constant(1, ElementType.S32)), *given])
    effects = unreached(next_state, [put(count), *map(put, flattened(root))])
    body = Computation("body", (inner,), next_state, effects)
    asked = ops.parameter(0, state)
    more = ops.gt(ops.elements_of(asked)[0], ops.constant(0, ElementType.S32))
    whole = ops.parameter(0, state)
    loop = ops.while_(Computation("more", (asked,), more), body, whole)
    assert "vectorize-loops" in changed_by(Module("outer", Computation("outer", (whole,), loop)))


def run(module: Module, given: list[np.ndarray], compiled: bool) -> list[np.ndarray]:
    """Results, then what was put into the queue."""
    with feeds(Queue("in", 0.0), Queue("out", 0.0)) as (data, results):
        data.put(np.array([5, 7], np.float32))
        if compiled:
            made: Any = tj.compile(module, seed=7)(*given)
        else:
            made = tj.interpret(module, *given, seed=7)
        assert len(data) == 0
        found = [np.asarray(results.get(0.0)) for _ in range(len(results))]
    return [np.asarray(leaf) for leaf in tj.tree.leaves(made)] + found


@runnable
def test_effects_happen_once_in_order_and_draws_are_the_same(path: Path) -> None:
    module = loud(program_of(path))
    given = arguments(module.entry, 1)
    expected, found = [run(module, given, compiled) for compiled in (False, True)]
    assert len(found) == len(expected) >= 6
    for ours, right in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours, right, 1e-5, 1e-6)
    # Draws and what comes from a queue are the same bit for bit.
    first = [x for x in expected if x.shape == (2,)]
    assert len({x.tobytes() for x in first}) >= 4
    assert [x.tobytes() for x in found if x.shape == (2,)] == [x.tobytes() for x in first]


def bodies(function: Any, *given: np.ndarray) -> list[str]:
    """The kernels of a function, but for those that call back."""
    module = tj.jit(function).lower(*given).module
    program = lower(module.entry, MACHINE, {})
    return sorted(_renumbered(str(k.body)) for k in program.kernels if "custom_call" not in k.name)


def _renumbered(text: str) -> str:
    """The text with variables numbered in the order in which they come."""
    numbers: dict[str, str] = {}
    return re.sub(r"_\d+\b", lambda m: numbers.setdefault(m[0], f"_v{len(numbers)}"), text)


def test_a_callback_beside_two_loops_leaves_their_kernels_as_they_are() -> None:
    def loops(a: Any, b: Any, other: Any) -> Any:
        c = b * 1
        for i in range(40):
            for j in range(40):
                c[i, j] += a[i, j] * np.sin(c[i, j] * 0.5)
        return c

    def watched(a: Any, b: Any, other: Any) -> Any:
        tj.debug.callback(lambda x: None, other)
        c = loops(a, b, other)
        tj.debug.callback(lambda x: None, other)
        return c

    given = [np.ones((40, 40)), np.ones((40, 40)), np.ones(3)]
    assert bodies(loops, *given) == bodies(watched, *given)
    assert bodies(tj.autograph(loops), *given) == bodies(tj.autograph(watched), *given)


def test_effects_that_a_pass_rebuilds_backwards_stay_in_order() -> None:
    """The pass manager puts them in order again, and what they need before them."""

    def backwards(graph: Graph, context: Context) -> Graph:
        made = [put(ops.neg(effect.operands[0])) for effect in reversed(graph.effects)]
        return Graph(graph.parameters, graph.outputs, made[::-1])

    x = ops.parameter(0, PAIR)
    before = [put(ops.add(x, x)), put(x), put(ops.mul(x, x))]
    graph = Graph([x], [x], before)
    made = run_passes([Pass("backwards", backwards, "a test")], graph, Context(MACHINE))
    assert [e.operands[0].operands[0] for e in made.effects] == [e.operands[0] for e in before]
    serials = [effect.serial for effect in made.effects]
    assert serials == sorted(serials)
    assert [e.op.name for e in made.computation("c").effects] == ["Outfeed"] * 3
