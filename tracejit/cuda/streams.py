"""Streams: the queues of a device's work.

    with using_stream(torch.cuda.current_stream().cuda_stream): f(x)    # in the caller's queue
    Stream.current(device).synchronize()

Work on one stream runs in order. Each device has a stream of our own, which all threads share.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tracejit.cuda.device import Device
from tracejit.errors import ArgumentError

_NON_BLOCKING = 1


class Stream:
    """A stream of a device; ``handle`` is the driver's, 0 the device's default stream.

    ``last`` is the launch that was queued last, for messages of errors that surface later.
    """

    def __init__(self, device: Device, handle: int) -> None:
        self.device = device
        self.handle = handle
        self.last = ""

    def __repr__(self) -> str:
        return f"<stream {self.handle:#x} of CUDA device {self.device.number}>"

    def __cuda_stream__(self) -> tuple[int, int]:
        """The protocol's version and the handle, for other libraries."""
        return 0, self.handle

    def synchronize(self) -> None:
        """Waits for the stream's work. Raises `DeviceError` where some of it failed."""
        after = f" up to {self.last}" if self.last else ""
        with self.device.context() as call:
            call("cuStreamSynchronize", self.handle, doing=f"cuda: queued work{after}")

    @staticmethod
    def current(device: Device) -> Stream:
        """The stream of `using_stream` in this thread, else the device's own."""
        chosen = getattr(_chosen, "handle", None)
        return _own(device) if chosen is None else Stream(device, chosen)


class _Chosen(threading.local):
    handle: int | None = None


_chosen = _Chosen()
_streams: dict[int, tuple[int, Stream]] = {}
_lock = threading.Lock()


def _own(device: Device) -> Stream:
    with _lock:
        generation, stream = _streams.get(device.number, (-1, None))
        if stream is None or generation != device.generation:
            with device.context() as call:
                stream = Stream(device, call.handle("cuStreamCreate", _NON_BLOCKING))
            _streams[device.number] = device.generation, stream
        return stream


def handle_of(stream: Any) -> int:
    """The driver's handle of a stream: an integer, or an object with ``__cuda_stream__``.

    Raises `ArgumentError` for anything else.
    """
    protocol = getattr(stream, "__cuda_stream__", None)
    if protocol is not None:
        _, handle = protocol() if callable(protocol) else protocol
        return int(handle)
    if isinstance(stream, int) and not isinstance(stream, bool) and stream >= 0:
        return stream
    raise ArgumentError(
        f"stream must be an integer or have __cuda_stream__; it is {type(stream).__name__}"
    )


@contextmanager
def using_stream(stream: Any) -> Iterator[None]:
    """Within the block, calls of this thread queue their work on ``stream``."""
    before, _chosen.handle = _chosen.handle, handle_of(stream)
    try:
        yield
    finally:
        _chosen.handle = before
