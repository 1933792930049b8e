"""Infeed and Outfeed through host queues: threads, timeouts, shapes, loops."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import tracejit as tj
from tests.building import computation
from tracejit import ops
from tracejit.errors import ArgumentError, QueueTimeoutError, ShapeError
from tracejit.graph import Computation, Instruction, Module
from tracejit.queues import Queue, feeds
from tracejit.shapes import TOKEN, ElementType, Shape, TupleShape
from tracejit.verifier import verify

S32, F64 = ElementType.S32, ElementType.F64
ROW = Shape(F64, (3,))


def running_sum() -> Module:
    """Reads n rows, puts out the sum so far after each, and returns the last one."""
    state = TupleShape((Shape(S32), ROW, TOKEN))

    def body(s: Instruction) -> Instruction:
        left, total, token = ops.elements_of(s)
        row, after = ops.elements_of(ops.infeed(token, ROW))
        total = ops.add(total, row)
        return ops.tuple_([ops.sub(left, ops.constant(1, S32)), total, ops.outfeed(total, after)])

    more = computation("more", lambda s: ops.gt(ops.elements_of(s)[0], ops.constant(0, S32)), state)
    n = ops.parameter(0, Shape(S32))
    init = ops.tuple_([n, ops.full(ROW, 0), ops.after_all([])])
    loop = ops.while_(more, computation("body", body, state), init)
    entry = Computation("entry", (n,), ops.elements_of(loop)[1])
    return verify(Module("running_sum", entry))


@pytest.fixture(params=["interpreted", "compiled"])
def run(request: pytest.FixtureRequest) -> object:
    module = running_sum()
    return tj.compile(module) if request.param == "compiled" else lambda n: tj.interpret(module, n)


def test_loop_reads_and_writes(run: object) -> None:
    with feeds(Queue("in", 5.0), Queue("out")) as (given, results):

        def feed() -> None:
            for i in range(4):
                given.put(np.full(3, float(i)))

        feeder = threading.Thread(target=feed)
        feeder.start()
        last = run(np.int32(4))  # type: ignore[operator]
        feeder.join()
        assert last.tolist() == [6, 6, 6]
        assert [results.get(0.0)[0] for _ in range(4)] == [0, 1, 3, 6]
        assert len(results) == 0


def test_a_datum_of_another_shape_is_refused_and_stays(run: object) -> None:
    with feeds(Queue("in", 0.0), Queue("out")) as (given, _):
        given.put(np.zeros(4))
        with pytest.raises(ShapeError, match=r"in: the program reads f64\[3\].* f64\[4\]"):
            run(np.int32(1))  # type: ignore[operator]
        assert len(given) == 1


def test_waiting_ends(run: object) -> None:
    with feeds(Queue("in", 0.01), Queue("out")):
        with pytest.raises(QueueTimeoutError, match=r"in: nothing was put in for 0.01 s"):
            run(np.int32(1))  # type: ignore[operator]
        with pytest.raises(TimeoutError):
            run(np.int32(1))  # type: ignore[operator]


def test_queues_are_a_threads_own() -> None:
    with feeds(Queue("mine"), Queue("mine")) as mine:
        seen = []
        other = threading.Thread(target=lambda: seen.append(tj.queues.current_feeds()))
        other.start()
        other.join()
        assert tj.queues.current_feeds() == mine
    assert seen == [(tj.infeed, tj.outfeed)]


def test_what_is_put_is_copied() -> None:
    queue = Queue("q")
    array = np.zeros(2)
    queue.put((array, 3))
    array[:] = 1
    first, second = queue.get(0.0)
    assert first.tolist() == [0, 0]
    assert second == 3
    queue.put(np.arange(3, dtype=">i4"))
    assert queue.take(Shape(S32, (3,))).dtype.isnative
    with pytest.raises(ArgumentError):
        queue.put("text")
    queue.put(1)
    queue.clear()
    with pytest.raises(QueueTimeoutError):
        queue.get(0.0)


def test_an_infeed_of_tuples() -> None:
    token = ops.after_all([])
    both = TupleShape((ROW, Shape(S32)))
    (first, second), _ = (ops.elements_of(e) for e in ops.elements_of(ops.infeed(token, both)))
    module = Module("two", Computation("entry", (), ops.tuple_([second, first])))
    for way in (tj.interpret, lambda m: tj.compile(m)()):
        with feeds(Queue("in", 0.0), Queue("out")) as (given, _):
            given.put([np.ones(3), np.int32(7)])
            number, row = way(module)
            assert number == 7
            assert row.tolist() == [1, 1, 1]
