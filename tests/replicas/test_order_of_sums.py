"""Sums that MPI's own Allreduce makes are begun in one order on every rank."""

from __future__ import annotations

import numpy as np

from tests.building import computation
from tracejit import ops
from tracejit.runtime.devices.collectives import Call, all_reduce
from tracejit.runtime.devices.communicator import Communicator, Parts, Tag, Transfer
from tracejit.runtime.devices.device import Device, Operation
from tracejit.shapes import ElementType, Shape

BIG = 1 << 15


class _Scripted(Transfer):
    def __init__(self) -> None:
        self.is_over = False

    def test(self) -> bool:
        return self.is_over

    def missing(self) -> list[int]:
        return []

    def cancel(self) -> None:
        pass


class _FourRanks(Communicator):
    """The first of four ranks; ``sums`` are the sizes of arrays whose sum was begun."""

    has_sum = True
    unit = "rank"
    timeout = 10.0
    number, count = 0, 4

    def __init__(self) -> None:
        self.exchanges: list[_Scripted] = []
        self.sums: list[tuple[int, str]] = []

    def exchange(
        self, tag: Tag, sends: Parts, receives: Parts, is_message: bool = False
    ) -> Transfer:
        self.exchanges.append(_Scripted())
        return self.exchanges[-1]

    def sum(self, members: tuple[int, ...], given: np.ndarray, result: np.ndarray) -> Transfer:
        self.sums.append((given.size, str(given.dtype)))
        made = _Scripted()
        made.is_over = True
        return made

    def pause(self, attempt: int) -> None:
        pass

    def state_of(self, number: int, transfer: Transfer) -> str | None:
        return None

    def announce(self, state: str) -> None:
        pass


def _begun(device: Device, size: int, element_type: ElementType) -> Operation:
    shape = Shape(element_type, (size,))
    add = ops.scalar_computation("add", element_type)
    entry = computation("reduced", lambda x: ops.all_reduce(x, add), shape)
    given = np.zeros(size, shape.dtype)
    call = Call(device, entry.root, [given], [np.empty_like(given)], Tag("reduced", size))
    operation = Operation("all_reduce", None, all_reduce(call), call.results)
    device.begin(operation)
    return operation


def test_sums_are_begun_in_the_order_of_their_ops() -> None:
    """The second op is ready first: on another rank it may not be."""
    communicator = _FourRanks()
    device = Device(communicator, 4, 1, {})
    with device.running():
        first = _begun(device, BIG, ElementType.S32)
        second = _begun(device, BIG + 1, ElementType.S64)
        communicator.exchanges[1].is_over = True
        assert not second.test()
        assert communicator.sums == []
        communicator.exchanges[0].is_over = True
        assert first.test()
        assert second.test()
    assert communicator.sums == [(BIG, "int32"), (BIG + 1, "int64")]


def test_short_integers_are_added_here() -> None:
    """Open MPI's sums of 8 and 16 bits saturate, and XLA's wrap around."""
    for element_type in (ElementType.S8, ElementType.U8, ElementType.S16, ElementType.U16):
        communicator = _FourRanks()
        device = Device(communicator, 4, 1, {})
        with device.running():
            operation = _begun(device, BIG, element_type)
            while not operation.test():
                communicator.exchanges[-1].is_over = True
        assert communicator.sums == []
