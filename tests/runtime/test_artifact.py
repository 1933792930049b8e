"""The file format: what is packed comes out again, and damage anywhere is noticed."""

from __future__ import annotations

import numpy as np
import pytest

from tests.runtime.programs import MEMORY, addition, built, spec
from tracejit.backends.artifact import Artifact, ArtifactError, pack, unpack

CONSTANTS = [np.arange(n, dtype=np.int8).astype(d).reshape(n, 1) for n, d in enumerate(MEMORY)]
ARTIFACT = Artifact(
    inputs=[spec(dtype, *range(n % 4)) for n, dtype in enumerate(MEMORY)],
    outputs=[spec("float32"), spec("bfloat16", 1 << 40, 0)],
    constants=CONSTANTS,
    workspace_bytes=1 << 45,
    callbacks=["tests.one", "tests.two"],
)
LIBRARY = bytes(range(256)) * 3 + b"odd"


def test_what_is_packed_is_unpacked() -> None:
    found = unpack(pack(LIBRARY, ARTIFACT))
    assert found.inputs == ARTIFACT.inputs
    assert found.outputs == ARTIFACT.outputs
    assert found.workspace_bytes == ARTIFACT.workspace_bytes
    assert found.callbacks == ARTIFACT.callbacks
    assert len(found.constants) == len(CONSTANTS)
    for made, given in zip(found.constants, CONSTANTS, strict=True):
        assert (made.dtype, made.shape) == (given.dtype, given.shape)
        assert made.tobytes() == given.tobytes()
        assert made.flags.aligned
        assert not made.flags.writeable


def test_the_library_comes_first() -> None:
    assert pack(LIBRARY, ARTIFACT).startswith(LIBRARY)


def test_every_damaged_byte_is_noticed() -> None:
    data = pack(LIBRARY, ARTIFACT)
    for position in range(len(data)):
        damaged = bytearray(data)
        damaged[position] ^= 1 << position % 8
        with pytest.raises(ArtifactError):
            unpack(bytes(damaged))


def test_every_truncation_is_noticed() -> None:
    data = pack(LIBRARY, ARTIFACT)
    for length in range(len(data)):
        with pytest.raises(ArtifactError):
            unpack(data[:length])
        with pytest.raises(ArtifactError):
            unpack(data[len(data) - length :])


@pytest.mark.parametrize("data", [b"", b"x", bytes(1000), b"tracejit" * 100])
def test_what_is_no_artifact_is_noticed(data: bytes) -> None:
    with pytest.raises(ArtifactError):
        unpack(data)


def test_builds_are_reproducible() -> None:
    """Nothing of the moment or the machine's folders gets into a file."""
    assert built(addition()) == built(addition())
