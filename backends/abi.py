"""How compiled code is called: the one convention that the builder emits and the runtime obeys.

A program is one C function, ``int32 tracejit_main(address)``. The address is that of a tuple

    (table, *inputs, *outputs[, workspace])

of NumPy arrays. The function reads the arrays' data pointers out of the objects themselves, after
it has compared each input's and output's type, element type, shape, contiguity and alignment with
``table``, and outputs are writable, which costs some two nanoseconds an array where asking Python
would cost hundreds. It returns 0, or -1 when an argument does not fit or a kernel failed; in the
first case nothing ran.

``table`` holds the facts of one process as 64-bit words: the address of the type ``numpy.ndarray``,
the address of every constant, then for every input and output the address of its dtype, its rank
and its dimensions. Its last word is the address of the record that lets signals end a program (see
`tracejit.runtime.interrupts`).

What is read are the fields that CPython's and NumPy's own C macros read, at the offsets below.
`readable` checks them against live objects; where they do not fit, `Records` spells the same words
out in memory of our own, slower and just as right.
"""

from __future__ import annotations

import ctypes
import enum
import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

ENTRY = "tracejit_main"

EVALUATE = "tracejit.evaluate"
"""The callback that evaluates an op, given as HLO text, on the memory at some addresses."""

SORT_VALUES = "tracejit.sort_values"
"""The callback that sorts an array; see `tracejit.runtime.sorting`."""

OUTSIDE = "tracejit.outside"
"""The callback that ends a program before an access outside of a buffer."""

COLLECTIVE = "tracejit.collective"
"""The callback that works with other devices; see `tracejit.runtime.devices.host_call`."""

C_CONTIGUOUS_AND_ALIGNED = 0x0101
"""NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_ALIGNED, of NumPy's C interface."""

WRITEABLE = 0x0400
"""NPY_ARRAY_WRITEABLE, which outputs must be as well."""

STACK_BYTES = 16 << 10
"""A workspace up to this size lives on the stack and is not passed."""

ALIGNMENT = 64
"""Where a workspace starts: a cache line, and the widest vector register."""

STATE_WORDS = 8
"""The length of a `SignalState`, which fills a line of the cache."""


class SignalState(enum.IntEnum):
    """The 64-bit words of one call by which a signal ends it; the others are zero.

    A call whose ``FLAG`` is set skips the rest of its work. The clock is read again at ``NEXT``,
    ``RECORD`` is the address of a `SignalRecord`, and `tracejit_count` notes in ``LAST`` when the
    last row of iterations began, and in ``LENGTH`` how many iterations it had.
    """

    FLAG = 0
    NEXT = 1
    RECORD = 2
    LAST = 3
    LENGTH = 4


class SignalRecord(enum.IntEnum):
    """The 64-bit words of a process by which compiled code lets Python handle signals.

    The addresses of functions; the number of the main thread, which alone handles signals; the
    exception that ended a call; and the number of a thread whose program was given up.
    """

    THREAD = 0
    MAIN = 1
    TAKE = 2
    CHECK = 3
    FETCH = 4
    GIVE = 5
    TYPE = 6
    VALUE = 7
    TRACEBACK = 8
    GIVEN_UP = 9


_WORD = 8
_RANK_MASK = (1 << 32) - 1
_HEADER = object.__basicsize__


@dataclass(frozen=True)
class Layout:
    """Byte offsets into a tuple and into an ndarray; all are multiples of eight.

    ``rank`` and ``flags`` are 32 bits wide, everything else 64.
    """

    type: int = _HEADER - _WORD
    length: int = _HEADER
    items: int = tuple.__basicsize__
    data: int = _HEADER
    rank: int = _HEADER + 8
    dimensions: int = _HEADER + 16
    dtype: int = _HEADER + 40
    flags: int = _HEADER + 48


LAYOUT = Layout()


@dataclass(frozen=True)
class ArraySpec:
    """The dtype (native byte order) and shape of an argument or a result."""

    dtype: np.dtype
    shape: tuple[int, ...]

    @property
    def nbytes(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64)) * self.dtype.itemsize

    def __str__(self) -> str:
        return f"{self.dtype}[{','.join(map(str, self.shape))}]"


def table(
    specs: Sequence[ArraySpec], constants: Sequence[np.ndarray], signals: int = 0
) -> np.ndarray:
    """The first item of every call's tuple; ``specs`` are the inputs', then the outputs'.

    ``signals`` is the address of the record that tells Python to handle signals.

    The caller keeps ``constants`` and the dtypes alive as long as the table.
    """
    words = [id(np.ndarray), *(array.ctypes.data for array in constants)]
    for spec in specs:
        words += [id(spec.dtype), len(spec.shape), *spec.shape]
    return np.array([*words, signals], np.int64)


@functools.cache
def readable() -> bool:
    """Whether this Python's tuples and this NumPy's arrays are laid out as `LAYOUT` says."""
    if ctypes.sizeof(ctypes.c_void_p) != _WORD or type(id(None)) is not int:
        return False
    array = np.zeros((3, 5), np.float32)
    pair = (array, array[:, ::2])
    pair[1].flags.writeable = False
    return _words_of(pair) == [_expected(item) for item in pair] and _length(pair) == len(pair)


def _word(address: int) -> int:
    return ctypes.c_int64.from_address(address).value


def _length(pair: tuple[np.ndarray, ...]) -> int:
    return _word(id(pair) + LAYOUT.length)


def _words_of(arrays: tuple[np.ndarray, ...]) -> list[list[int]]:
    """What compiled code would read of each array, without following a doubtful pointer."""
    found = []
    for index, array in enumerate(arrays):
        if _word(id(arrays) + LAYOUT.items + index * _WORD) != id(array):
            return []
        at = id(array)
        words = [_word(at + o) for o in (LAYOUT.type, LAYOUT.data, LAYOUT.dtype)]
        words += [_word(at + LAYOUT.rank) & _RANK_MASK]
        words += [_word(at + LAYOUT.flags) & (C_CONTIGUOUS_AND_ALIGNED | WRITEABLE)]
        if words == _expected(array)[:-1]:
            dimensions = _word(at + LAYOUT.dimensions)
            words += [[_word(dimensions + d * _WORD) for d in range(array.ndim)] == [*array.shape]]
        found.append(words)
    return found


def _expected(array: np.ndarray) -> list[int]:
    """The same words, asked of Python."""
    flags = array.flags.c_contiguous * 0x0001 + array.flags.aligned * 0x0100
    flags += array.flags.writeable * WRITEABLE
    return [id(np.ndarray), array.ctypes.data, id(array.dtype), array.ndim, flags, True]


def address_of() -> Callable[[tuple[Any, ...]], int]:
    """What gives a program the address of its tuple; both must live until the call returns."""
    return id if readable() else Records


class Records(int):
    """The address of a tuple's words, spelled out; keeps them alive as long as it lives itself."""

    _words: tuple[np.ndarray, ...]

    def __new__(cls, items: tuple[Any, ...]) -> Records:
        block = np.zeros(LAYOUT.items // _WORD + len(items), np.int64)
        records = [_record(item) for item in items]
        block[LAYOUT.length // _WORD] = len(items)
        block[LAYOUT.items // _WORD :] = [words.ctypes.data for words, _ in records]
        self = super().__new__(cls, block.ctypes.data)
        self._words = (block, *(words for pair in records for words in pair))
        return self


def _record(item: Any) -> tuple[np.ndarray, np.ndarray]:
    """One array's words, and its dimensions, which they point at; of others, the type alone."""
    words = np.zeros(LAYOUT.flags // _WORD + 1, np.int64)
    words[LAYOUT.type // _WORD] = id(type(item))
    if type(item) is not np.ndarray:
        return words, words
    dimensions = np.array([*item.shape, 0], np.int64)
    words[LAYOUT.data // _WORD] = item.ctypes.data
    words[LAYOUT.rank // _WORD] = item.ndim
    words[LAYOUT.dimensions // _WORD] = dimensions.ctypes.data
    words[LAYOUT.dtype // _WORD] = id(item.dtype)
    words[LAYOUT.flags // _WORD] = _expected(item)[4]
    return words, dimensions
