"""A loaded program, to be called with NumPy arrays.

executable = load(path)
outputs = executable([x, y])       # copies arrays that are laid out otherwise, explains others
outputs = executable.run([x, y])   # the same in half a microsecond; None for such arrays
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tracejit.backends.abi import STACK_BYTES, ArraySpec, address_of, table
from tracejit.backends.artifact import Artifact, unpack
from tracejit.errors import ArgumentError, CompilationError, UnsupportedError
from tracejit.loading import load as load_module
from tracejit.runtime import interrupts, result_arena, workspace
from tracejit.runtime.apart import apart
from tracejit.runtime.callbacks import keep_lost, raise_lost, raise_pending, require
from tracejit.runtime.donation import are_apart, are_donatable, to_write_over
from tracejit.runtime.library import Entry, runtime
from tracejit.runtime.memory_limit import require_workspace
from tracejit.system import loadable_path

if TYPE_CHECKING:
    from tracejit.runtime.tuning_notes import Tuning

Run = Callable[[Sequence[object]], list[np.ndarray] | None]


class Executable:
    """What one program needs to run; threads may share it.

    ``run(arrays)`` returns new outputs, or None unless every argument is exactly the ndarray that
    ``inputs`` describes: of that dtype object, shape, C-contiguous and aligned. It raises what a
    callback raised. Arguments are never written, but for those numbered in ``donated``: they become
    results; where they cannot be written over, `run` returns None, and a call works on copies.
    ``library`` is None for code that lies in no file; ``tuning`` says how it was tuned, if it was.
    """

    run: Run
    tuning: Tuning | None = None

    def __init__(
        self, entry: Entry, artifact: Artifact, library: ctypes.CDLL | None = None
    ) -> None:
        require(artifact.callbacks)
        if artifact.native_calls:
            artifact = load_module("tracejit.runtime.native_calls").with_records(artifact)
        self.artifact = artifact
        self.library = library
        self.inputs = tuple(artifact.inputs)
        self.outputs = tuple(artifact.outputs)
        self.donated = tuple(artifact.aliases.values())
        self.run = _runner(entry, artifact)
        if artifact.callbacks:
            self.run = _losing_nothing(self.run)
        elif artifact.native_calls:
            keep_lost()
        # The caller's arrays are not written to when the call has ended.
        if artifact.runs_apart and not artifact.aliases:
            self.run = apart(self.run)
        # What the function's table points to lives as long as the function, even held alone.
        self.run.__dict__["artifact"] = artifact

    def __call__(self, arguments: Sequence[object]) -> list[np.ndarray]:
        """New outputs for arrays of any layout and either byte order.

        Raises `ArgumentError` for a wrong number of arguments, or for one that is not an array of
        the element type and shape compiled for.
        """
        outputs = self.run(arguments)
        if outputs is not None:
            return outputs
        arrays = self.conformed(arguments)
        if self.donated:
            arrays = to_write_over(arguments, arrays, self.donated)
        outputs = self.run(arrays)
        if outputs is None:
            raise CompilationError(f"compiled code failed: {runtime().message()}")
        return outputs

    def conformed(self, arguments: Sequence[object]) -> list[np.ndarray]:
        """The arguments as compiled code takes them: themselves, or copies in the right layout.

        Raises `ArgumentError` as a call does.
        """
        if len(arguments) != len(self.inputs):
            raise ArgumentError(
                f"compiled for {len(self.inputs)} arguments, called with {len(arguments)}"
            )
        pairs = enumerate(zip(arguments, self.inputs, strict=True))
        return [conformed(argument, spec, number) for number, (argument, spec) in pairs]


def load(path: Path, artifact: Artifact | None = None) -> Executable:
    """The program in a file that `pack` made.

    Raises `ArtifactError` for a damaged file, before any of its code is loaded, and `OSError` for
    one that cannot be read or loaded. Code that this processor cannot run is not loaded: calls
    raise `UnsupportedError`.
    """
    return _loaded(path, unpack(path.read_bytes()) if artifact is None else artifact)


def load_open(descriptor: int, path: Path, artifact: Artifact) -> Executable:
    """The program in a file that is open, whatever has become of its ``path``.

    The path is used only where the system cannot load open files. Raises `OSError` for a file that
    cannot be loaded.
    """
    return _loaded(loadable_path(descriptor) or path, artifact)


def _loaded(path: str | Path, artifact: Artifact) -> Executable:
    if artifact.plan:
        made: Executable = load_module("tracejit.runtime.cuda_executable").CudaExecutable(
            Path(path).read_bytes(), artifact
        )
        return made
    if artifact.lacking:
        return Executable(_refusal(artifact), artifact)
    entry, library = runtime().load(path)
    return Executable(entry, artifact, library)


def _refusal(artifact: Artifact) -> Entry:
    """The entry of a program that this processor cannot run."""

    def refuse(address: int) -> int:
        raise UnsupportedError(
            f"call: this machine lacks {', '.join(artifact.lacking)}, for which the program is "
            f"compiled (target 'cpu:{artifact.processor}'); export it, or compile it for 'cpu'"
        )

    return refuse


def _runner(entry: Entry, artifact: Artifact) -> Run:
    """`Executable.run`: as few steps as there can be."""
    specs = [*artifact.inputs, *artifact.outputs]
    facts = table(specs, artifact.constants, interrupts.address())
    nbytes = artifact.workspace_bytes
    require_workspace(nbytes)
    allocate, address = result_arena.allocator(artifact.outputs), address_of()

    if artifact.aliases:
        return _donating(entry, artifact, facts)

    def run(arguments: Sequence[object]) -> list[np.ndarray] | None:
        outputs = allocate()
        arrays = (facts, *arguments, *outputs)
        if entry(address(arrays)):
            raise_pending()
            return None
        return outputs

    def run_in_workspace(arguments: Sequence[object]) -> list[np.ndarray] | None:
        outputs = allocate()
        memory = workspace.take(nbytes)
        arrays = (facts, *arguments, *outputs, memory)
        status = entry(address(arrays))
        workspace.give(memory)
        if status:
            raise_pending()
            return None
        return outputs

    if nbytes > STACK_BYTES:
        return run_in_workspace
    if len(artifact.outputs) != 1 or result_arena.is_shared(artifact.outputs[0]):
        return run
    shape, dtype = artifact.outputs[0].shape, artifact.outputs[0].dtype
    empty = np.empty

    def run_for_one(arguments: Sequence[object]) -> list[np.ndarray] | None:
        output = empty(shape, dtype)
        arrays = (facts, *arguments, output)
        if entry(address(arrays)):
            raise_pending()
            return None
        return [output]

    return run_for_one


def _losing_nothing(run: Run) -> Run:
    """`Executable.run` of a program that calls Python functions, at whose start a signal may be
    handled.
    """

    def run_with_calls(arguments: Sequence[object]) -> list[np.ndarray] | None:
        keep_lost()
        outputs = run(arguments)
        raise_lost()
        return outputs

    return run_with_calls


def _donating(entry: Entry, artifact: Artifact, facts: np.ndarray) -> Run:
    """`Executable.run` where arguments become results."""
    shared = dict(artifact.aliases)
    count, donated = len(artifact.inputs), tuple(shared.values())
    fresh = [n for n in range(len(artifact.outputs)) if n not in shared]
    # The position of each output among the arguments and the new arrays.
    made = {number: count + place for place, number in enumerate(fresh)}
    places = [{**shared, **made}[number] for number in range(len(artifact.outputs))]
    pick = itemgetter(*places) if len(places) > 1 else lambda arrays: (arrays[places[0]],)
    nbytes = artifact.workspace_bytes
    allocate = result_arena.allocator([artifact.outputs[number] for number in fresh])
    address = address_of()

    def run(arguments: Sequence[object]) -> list[np.ndarray] | None:
        if len(arguments) != count:
            return None
        # The function itself sees whether they are writable.
        if not are_apart(arguments) and not are_donatable(arguments, donated):
            return None
        outputs: list[Any] = [*pick((*arguments, *allocate()))]
        if nbytes <= STACK_BYTES:
            arrays = (facts, *arguments, *outputs)
            status = entry(address(arrays))
        else:
            memory = workspace.take(nbytes)
            arrays = (facts, *arguments, *outputs, memory)
            status = entry(address(arrays))
            workspace.give(memory)
        if status:
            raise_pending()
            return None
        return outputs

    return run


def conformed(argument: object, spec: ArraySpec, number: int) -> np.ndarray:
    """The argument as compiled code takes it: itself, or a copy in the right layout."""
    if not isinstance(argument, (np.ndarray, np.generic)):
        given = type(argument).__name__
        raise ArgumentError(f"argument {number} must be an array, {spec}; it is of type {given}")
    if isinstance(argument, np.ma.MaskedArray):
        raise ArgumentError(f"argument {number} is a masked array, and its mask would be ignored")
    array = np.asarray(argument)
    if array.shape != spec.shape or array.dtype.newbyteorder("=") != spec.dtype:
        given = str(ArraySpec(array.dtype, array.shape))
        raise ArgumentError(f"argument {number} must be {spec}; it is {given}")
    if array.flags.c_contiguous and array.flags.aligned and array.dtype is spec.dtype:
        return array
    copy = np.empty(spec.shape, spec.dtype)
    copy[...] = array
    return copy
