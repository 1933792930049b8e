"""Memory of large results, used again when nothing refers to it any more.

Fresh memory comes from the system zeroed, page by page, as it is first written, which may take ten
times as long as the kernel that writes it; and what a program frees goes back to the system as soon
as there is much of it. A large result is therefore a view of a block that is remembered here. When
nothing but this module refers to the block, the result is gone and every view and export of it
with it, and the next result of that size is a new view of the same block.

At most ``TRACEJIT_RESULTS_LIMIT`` bytes are remembered, 256 MiB unless it is set; 0 turns reuse
off. Blocks of a size that no call asks for during `IDLE_SECONDS` go back to the system.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from weakref import WeakValueDictionary

import numpy as np

from tracejit.backends.abi import ALIGNMENT, ArraySpec
from tracejit.system import after_fork, natural_number

FROM_BYTES = 1 << 16
"""Smaller results own their memory: the C library keeps as much for the next ones."""

IDLE_SECONDS = 10.0

Allocate = Callable[[], list[np.ndarray]]
Block = tuple[np.ndarray, int]
"""Memory, and where its first multiple of `ALIGNMENT` lies."""


class Size:
    """The blocks for results of one size, the last one handed out at the end, free or not."""

    def __init__(self, nbytes: int) -> None:
        self.nbytes = nbytes
        self.blocks: deque[Block] = deque()  # append and pop are atomic
        self.taken = 0
        self.taken_before = 0


_sizes: WeakValueDictionary[int, Size] = WeakValueDictionary()
# Never waited for where results are made: what is freed meanwhile may run any code, this one too.
_lock = threading.Lock()
_watched: list[threading.Thread] = []


def limit() -> int:
    """How many bytes are remembered at most, in blocks that are free and others."""
    given = natural_number(os.environ.get("TRACEJIT_RESULTS_LIMIT", ""))
    return 256 << 20 if given is None else given


def is_shared(spec: ArraySpec) -> bool:
    """Whether results of this kind are views of blocks."""
    return FROM_BYTES <= spec.nbytes <= limit()


def allocator(specs: Sequence[ArraySpec]) -> Allocate:
    """A function that makes one array of each kind, which hold anything."""
    if any(map(is_shared, specs)):
        makers = [_maker(spec) for spec in specs]
        return lambda: [make() for make in makers]
    shapes = [spec.shape for spec in specs]
    dtypes = [spec.dtype for spec in specs]
    empty = np.empty
    return lambda: [*map(empty, shapes, dtypes)]


def release() -> None:
    """Forgets all blocks; those that are free go back to the system."""
    for size in list(_sizes.values()):
        size.blocks.clear()


def _references(block: Block) -> int:
    """Counted where a caller holds the tuple, and nothing else holds its memory: `_ALONE`."""
    memory, _ = block
    return sys.getrefcount(memory)


_ALONE = _references((np.empty(1), 0))


def _maker(spec: ArraySpec) -> Callable[[], np.ndarray]:
    shape, dtype = spec.shape, spec.dtype
    ndarray, empty = np.ndarray, np.empty
    if not is_shared(spec):
        return lambda: empty(shape, dtype)
    size = _sizes.setdefault(spec.nbytes, Size(spec.nbytes))
    blocks = size.blocks
    most = limit()

    def make() -> np.ndarray:
        size.taken += 1
        try:
            # A block that was popped is seen by no other thread, and once it is back, `memory`
            # below counts as a reference to it.
            block = blocks.pop()
            if _references(block) != _ALONE:
                # Results that live until the next ones are made leave the oldest block free.
                blocks.append(block)
                block = blocks.popleft()
                if _references(block) != _ALONE:
                    blocks.append(block)
                    block = _new(size, most)
        except IndexError:
            block = _new(size, most)
        memory, offset = block
        blocks.append(block)
        made: np.ndarray = ndarray(shape, dtype, memory, offset)
        return made

    return make


def _new(size: Size, most: int) -> Block:
    """A block that nobody refers to, and room for it among those that are remembered."""
    nbytes = size.nbytes + ALIGNMENT
    try:
        memory = np.empty(nbytes, np.uint8)
    except MemoryError:
        release()
        memory = np.empty(nbytes, np.uint8)
    if _lock.acquire(blocking=False):
        try:
            _make_room(size.nbytes, most)
            _watch()
        finally:
            _lock.release()
    return memory, -memory.ctypes.data % ALIGNMENT


def _make_room(nbytes: int, most: int) -> None:
    """Forgets the oldest blocks of the sizes that have most of the memory."""
    held = {size: size.nbytes * len(size.blocks) for size in list(_sizes.values())}
    total = sum(held.values()) + nbytes
    while total > most:
        size = max(held, key=held.__getitem__)
        if not size.blocks:
            return
        size.blocks.popleft()
        held[size] -= size.nbytes
        total -= size.nbytes


def _watch() -> None:
    """Schedules the release of idle memory, while there is any."""
    if not _watched:
        watcher = threading.Thread(target=_until_nothing_is_left, name="tracejit", daemon=True)
        try:
            watcher.start()
        except RuntimeError:  # the interpreter ends, or there are too many threads
            return
        _watched.append(watcher)


def _until_nothing_is_left() -> None:
    while True:
        time.sleep(IDLE_SECONDS)
        with _lock:
            if not _give_back_idle():
                _watched.clear()
                return


def _give_back_idle() -> bool:
    """Forgets the blocks of sizes not taken since the call before; whether any are left."""
    left = False
    for size in list(_sizes.values()):
        if size.taken == size.taken_before:
            size.blocks.clear()
        size.taken_before = size.taken
        left = left or bool(size.blocks)
    return left


def _after_fork() -> None:
    """The thread that watches is not there, and another one may have held the lock."""
    global _lock
    _lock = threading.Lock()
    _watched.clear()


after_fork(_after_fork)
