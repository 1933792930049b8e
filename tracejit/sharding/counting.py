"""How many devices and processes there are, by JAX's names."""

from __future__ import annotations

from typing import Any

from tracejit.runtime.devices.world import rank_communicator
from tracejit.sharding.mesh import devices

_PLATFORMS = {"gpu": "cuda"}


def default_backend() -> str:
    """The platform that `jit` compiles for unless a ``target`` says otherwise: "cpu".

    >>> tj.default_backend()
    'cpu'
    """
    return "cpu"


def device_count(backend: str | None = None) -> int:
    """How many devices a platform has, "cpu" by default: the ranks of MPI, else one.

    Raises `ArgumentError` for a platform that is none of "cpu", "gpu" and "cuda".

    >>> tj.device_count()
    1
    """
    return len(_devices(backend))


def local_devices(backend: str | None = None) -> list[Any]:
    """The devices of this process, as `device_count` counts them.

    Raises `ArgumentError` for another platform.

    >>> len(tj.local_devices())
    1
    """
    own = process_index()
    return [one for one in _devices(backend) if getattr(one, "process_index", own) == own]


def local_device_count(backend: str | None = None) -> int:
    """How many of the devices are this process's.

    Raises `ArgumentError` for another platform.

    >>> tj.local_device_count()
    1
    """
    return len(local_devices(backend))


def process_index() -> int:
    """The rank of this process in MPI, 0 without.

    >>> tj.process_index()
    0
    """
    communicator = rank_communicator()
    return 0 if communicator is None else communicator.number


def process_count() -> int:
    """How many ranks MPI has, 1 without.

    >>> tj.process_count()
    1
    """
    communicator = rank_communicator()
    return 1 if communicator is None else communicator.count


def _devices(backend: str | None) -> list[Any]:
    return devices(_PLATFORMS.get(backend or "cpu", backend or "cpu"))
