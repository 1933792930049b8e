"""CUDA graphs of a program's launches: queued by one call of the driver, for addresses seen before.

    graph = graphs.found(call, addresses, workspace, queue)
    if graph is not None: graph.launch(call, stream)

A graph holds addresses, so one is captured when the same ones come a second time: arguments that
are donated, or results that take turns in a loop. Other calls launch kernel after kernel.
"""

from __future__ import annotations

import ctypes
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from tracejit.cuda.driver import Driver
from tracejit.cuda.memory import Memory
from tracejit.cuda.streams import Stream

MOST = 8
"""Graphs that a program keeps, the latest used."""
REMEMBERED = 64
"""Sets of addresses that were seen once."""
_NON_BLOCKING = 1
_THREAD_LOCAL = 1  # CU_STREAM_CAPTURE_MODE_THREAD_LOCAL: other threads may do as they like

Key = tuple[int, ...]
"""The stream, and the addresses of arguments and results."""


@dataclass
class Graph:
    """An executable graph, and the workspace that its kernels share."""

    handle: int
    workspace: Memory
    last: str

    def launch(self, call: Driver, stream: Stream) -> None:
        """Queues all of its kernels."""
        stream.last = self.last
        call("cuGraphLaunch", self.handle, stream.handle, doing=f"cuda: {self.last}")


class Graphs:
    """The graphs of a program on one device; threads may share them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._graphs: OrderedDict[Key, Graph] = OrderedDict()
        self._seen: OrderedDict[Key, None] = OrderedDict()
        self._stream: Stream | None = None
        self._works = True

    def found(
        self,
        call: Driver,
        key: Key,
        workspace: Callable[[], Memory],
        queue: Callable[[Stream, Memory], None],
    ) -> Graph | None:
        """The graph for these addresses, captured now if they were seen once; else None.

        ``queue`` launches the kernels on a stream, with a workspace.
        """
        with self._lock:
            known = self._graphs.get(key)
            if known is not None:
                self._graphs.move_to_end(key)
                return known
            if key not in self._seen or not self._works:
                self._seen[key] = None
                if len(self._seen) > REMEMBERED:
                    self._seen.popitem(last=False)
                return None
            made = self._captured(call, workspace(), queue)
            self._works = made is not None
            if made is not None:
                self._graphs[key] = made
                if len(self._graphs) > MOST:
                    _, oldest = self._graphs.popitem(last=False)
                    call.function("cuGraphExecDestroy")(oldest.handle)
            return made

    def _captured(
        self, call: Driver, workspace: Memory, queue: Callable[[Stream, Memory], None]
    ) -> Graph | None:
        """A new graph; None where the driver makes none."""
        if self._stream is None:
            handle = call.handle("cuStreamCreate", _NON_BLOCKING)
            self._stream = Stream(workspace.device, handle)
        if call.function("cuStreamBeginCapture_v2")(self._stream.handle, _THREAD_LOCAL):
            return None
        graph = ctypes.c_uint64()
        try:
            queue(self._stream, workspace)
        finally:
            call("cuStreamEndCapture", self._stream.handle, ctypes.byref(graph))
        handle = call.handle("cuGraphInstantiateWithFlags", graph.value, 0)
        call("cuGraphDestroy", graph.value)
        return Graph(handle, workspace, f"a graph of launches, the last {self._stream.last}")
