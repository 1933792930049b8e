"""A compiled program as one string of bytes: a shared library with all that is needed to call it.

    library | constants, each at a multiple of 64 | explanation | description (JSON) | footer

A linker ignores what follows a library, so the file is loaded as it is. The footer ends the file
and holds the description's length, a mark, and the SHA-256 of everything before it: a file that is
torn, truncated or damaged is recognised before any of its code is mapped.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes  # gives NumPy the names of the narrow element types
import numpy as np

from tracejit.backends.abi import ArraySpec

_FOOTER = struct.Struct("<Q8s32s")
_MARK = b"tracejit"
_ALIGNMENT = 64

assert np.dtype("bfloat16") == ml_dtypes.bfloat16


class ArtifactError(ValueError):
    """Bytes that are no artifact, or a damaged one."""


@dataclass(frozen=True)
class Artifact:
    """What the runtime must know of a compiled program besides its code.

    ``callbacks`` are the names of the Python functions that its kernels call; ``explanation`` is an
    `tracejit.backends.explanation.Explanation` in JSON, which is only read on demand. ``aliases``
    has, by the numbers of outputs, the inputs whose memory they are written to. ``lacking`` names
    what the code may use of its ``processor`` that the machine it was compiled on has not. A
    program for a device has a ``plan``, a `tracejit.backends.launch_plan.LaunchPlan` in JSON.
    ``native_calls`` has, by the numbers of constants, the calls of functions of compiled libraries
    whose records these are, as HLO text. A program that ``is_long`` may take more than a tenth of a
    second. Where it ``runs_apart``, it may do so without a poll, and calls no function of the
    user's.
    """

    inputs: Sequence[ArraySpec]
    outputs: Sequence[ArraySpec]
    constants: Sequence[np.ndarray]
    workspace_bytes: int
    callbacks: Sequence[str]
    explanation: bytes = b""
    aliases: Mapping[int, int] = field(default_factory=dict)
    processor: str = ""
    lacking: Sequence[str] = ()
    plan: str = ""
    native_calls: Mapping[int, str] = field(default_factory=dict)
    is_long: bool = False
    runs_apart: bool = False


@dataclass(frozen=True)
class InProcess:
    """A program compiled into this process, because no file could be written.

    ``entry`` takes the arguments of `abi` and returns 0 or -1.
    """

    entry: Callable[[int], int]
    artifact: Artifact


def pack(library: bytes, artifact: Artifact) -> bytes:
    """The bytes of a file that `unpack` reads and the operating system loads."""
    parts = [library]
    length = len(library)
    offsets = []
    for array in artifact.constants:
        padding = -length % _ALIGNMENT
        offsets.append(length + padding)
        parts += [bytes(padding), array.tobytes()]
        length += padding + array.nbytes
    parts.append(artifact.explanation)
    description = json.dumps(
        {
            "inputs": [_described(spec) for spec in artifact.inputs],
            "outputs": [_described(spec) for spec in artifact.outputs],
            "constants": [
                [*_described(ArraySpec(array.dtype, array.shape)), offset]
                for array, offset in zip(artifact.constants, offsets, strict=True)
            ],
            "workspace_bytes": artifact.workspace_bytes,
            "callbacks": [*artifact.callbacks],
            "explanation": [length, len(artifact.explanation)],
            "aliases": [*artifact.aliases.items()],
            "processor": artifact.processor,
            "lacking": [*artifact.lacking],
            "plan": artifact.plan,
            "native_calls": [*artifact.native_calls.items()],
            "is_long": artifact.is_long,
            "runs_apart": artifact.runs_apart,
        }
    ).encode()
    body = b"".join([*parts, description, _FOOTER.pack(len(description), _MARK, b"")[:-32]])
    return body + hashlib.sha256(body).digest()


def unpack(data: bytes) -> Artifact:
    """Read what `pack` wrote; the constants are read-only views of ``data``.

    Raises `ArtifactError` for anything else.
    """
    if len(data) < _FOOTER.size:
        raise ArtifactError("too short")
    size, mark, digest = _FOOTER.unpack_from(data, len(data) - _FOOTER.size)
    if mark != _MARK:
        raise ArtifactError("no footer")
    if hashlib.sha256(memoryview(data)[: -len(digest)]).digest() != digest:
        raise ArtifactError("checksum differs")
    end = len(data) - _FOOTER.size
    try:
        return _read(data, json.loads(data[end - size : end]))
    except (LookupError, TypeError, ValueError, OverflowError, RecursionError) as error:
        raise ArtifactError(f"a description of something else: {error!r}") from error


def _read(data: bytes, description: Mapping[str, Any]) -> Artifact:
    """What a description says. Raises many kinds of errors for one that `pack` did not write."""
    inputs = [_spec(*entry) for entry in description["inputs"]]
    outputs = [_spec(*entry) for entry in description["outputs"]]
    begin, count = description["explanation"]
    aliases = {_number(o, len(outputs)): _number(i, len(inputs)) for o, i in description["aliases"]}
    constants = [_constant(data, *entry) for entry in description["constants"]]
    native = {_number(n, len(constants)): _text(call) for n, call in description["native_calls"]}
    return Artifact(
        inputs,
        outputs,
        constants,
        _number(description["workspace_bytes"], 1 << 62),
        [*map(_text, description["callbacks"])],
        data[_number(begin, len(data)) :][: _number(count, len(data))],
        aliases,
        _text(description["processor"]),
        [*map(_text, description["lacking"])],
        _text(description["plan"]),
        native,
        bool(description["is_long"]),
        bool(description["runs_apart"]),
    )


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ArtifactError(f"{value!r} where a name is expected")
    return value


def _described(spec: ArraySpec) -> tuple[str, tuple[int, ...]]:
    return spec.dtype.name, spec.shape


def _number(given: object, limit: int) -> int:
    """An integer from 0 up to the limit. Raises `ArtifactError` for anything else."""
    if type(given) is not int or not 0 <= given < limit:
        raise ArtifactError(f"{given!r} is no number below {limit}")
    return given


def _spec(dtype: str, shape: list[int]) -> ArraySpec:
    made = np.dtype(dtype)
    if made.name != dtype or made.hasobject or not made.itemsize:
        raise ArtifactError(f"{dtype!r} is no element type")
    return ArraySpec(made, tuple(_number(size, 1 << 62) for size in shape))


def _constant(data: bytes, dtype: str, shape: list[int], offset: int) -> np.ndarray:
    spec = _spec(dtype, shape)
    flat = np.frombuffer(data, np.uint8, spec.nbytes, _number(offset, len(data)))
    return flat.view(spec.dtype).reshape(spec.shape)
