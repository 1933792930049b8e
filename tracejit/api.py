"""The one place that joins all parts: what runs a graph is chosen here."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from tracejit.backends.target import CPU, Target
from tracejit.errors import ArgumentError, MemoryLimitError, UnsupportedError
from tracejit.graph import Computation, Instruction, Module
from tracejit.hlo import to_text
from tracejit.hlo.fingerprint import fingerprint
from tracejit.loading import load
from tracejit.ops.inlining import inlined
from tracejit.passes import native_calls
from tracejit.passes.input_layouts import in_memory_order, inverse, order_of
from tracejit.runtime import DiskCache, Executable, cache_key, importing_tvm
from tracejit.runtime.code_generator import generate, has_own_kernels
from tracejit.runtime.donation import require_donatable
from tracejit.runtime.locks import ProcessLock
from tracejit.runtime.memory_limit import require_memory
from tracejit.runtime.progress import noted, reported
from tracejit.runtime.structure import assembled, flattened, value_of
from tracejit.shapes import AnyShape, TupleShape
from tracejit.system.garbage import collecting_garbage_later
from tracejit.targets import CALLBACK, calls_back, kernel_texts
from tracejit.trace.evaluation import use_evaluator
from tracejit.tracebacks import api_boundary
from tracejit.transforms.jit import hooks
from tracejit.transforms.jit.compiled import CompiledProgram
from tracejit.transforms.jit.staging import has_own_derivatives
from tracejit.traversal import called_computations, instructions

if TYPE_CHECKING:
    from tracejit.backends.numpy.streams import Stream
    from tracejit.passes.partition import Partitioned
    from tracejit.runtime.explaining import Report
    from tracejit.runtime.tuned import TunedPrograms
    from tracejit.transforms.export import Function

PASS_SETTINGS = ("TRACEJIT_DUMP", "TRACEJIT_PASSES")
"""What changes or shows the compiler's passes, in the environment."""

_compiling = ProcessLock()


@api_boundary
def interpret(
    module: Module | Computation,
    *arrays: Any,
    replicas: int | None = None,
    partitions: int | None = None,
    seed: int = 0,
) -> Any:
    """The result of a module, or of one computation, worked out op by op with NumPy.

    ``replicas`` and ``partitions`` run it on as many devices at once, in this process; left out,
    they are the module's own. Where they are given, or the module's are not 1, every result has one
    more dimension in front: the devices, partition p of replica r at ``r * partitions + p``. An
    argument of the parameter's shape goes to every device; one with that dimension in front (a
    list, too) or with ``[replicas, partitions]`` in front has an array for each.

    What RngUniform and RngNormal draw depends on ``seed`` alone.

    Raises `ArgumentError` for arguments that do not fit, `MemoryLimitError` for a value that this
    machine has no memory for, `DeadlockError` where devices wait for
    each other for ever.

    >>> tj.interpret(tj.jit(np.square).lower(2.0).module, 3.0)
    array(9.)
    """
    devices = load("tracejit.runtime.per_device")
    given = _program("interpret", module)
    if given.num_partitions > 1 and replicas is None and partitions is None:
        partitioner = load("tracejit.passes.partition")
        if partitioner.is_annotated(given):
            return _interpreted_in_parts(partitioner.partition(given), given, arrays, seed)
    with _stream(seed).running():
        written = replace(given, entry=inlined(given.entry, one_branch=True))
        for computation in called_computations(written):
            require_memory("interpret", instructions(computation))
        try:
            return devices.interpret(written, arrays, replicas, partitions)
        except MemoryLimitError:
            raise
        except MemoryError as error:  # NumPy's, of an array that an op works in
            raise MemoryLimitError(f"interpret: {error}") from error


class Compiled(CompiledProgram):
    """A compiled module; called with arrays it returns the array, or a tuple of them.

    It is pickled as its graph, and compiled again, or found in the disk cache, where it is read.
    """

    def __init__(
        self,
        module: Module,
        target: Target,
        stream: Stream,
        donate: bool,
        has_lost_derivatives: bool = False,
    ) -> None:
        entry = module.entry
        self._has_lost_derivatives = has_lost_derivatives
        self._stream = stream
        self._donate = donate
        self._orders = [order_of(p.shape) for p in entry.parameters]
        wanted = [order_of(shape) for shape in entry.root.element_shapes]
        self._results = [
            order and inverse(order)
            for shape, order in zip(entry.root.element_shapes, wanted, strict=True)
            for _ in range(_leaf_count(shape))
        ]
        given = module if donate else replace(module, input_output_alias=())
        given = _kept_aliases(in_memory_order(given, self._orders, wanted))
        super().__init__(module, executable(given, target), target)

    def __reduce__(self) -> tuple[object, ...]:
        """The copy's random numbers go on where these are; `TypeError` where it calls back here."""
        if calls_back(self.module):
            raise TypeError(
                f"{self.module.name} calls functions of this process and cannot be pickled; "
                f"compile it in the process that is to run it"
            )
        lost = self._has_lost_derivatives or has_own_derivatives(self.module)
        return Compiled, (self.module, self._target, self._stream, self._donate, lost)

    def __call__(self, *arrays: Any) -> Any:
        """The results, new arrays. Raises `ArgumentError` for arguments of another shape or type.

        An array that lies as its parameter's layout says is not copied; results lie as theirs
        say. A parameter that is a tuple takes a tuple; anything goes for a token.
        """
        if self.device_count > 1:
            return self._on_devices(arrays)
        given = self._arrays(*arrays)
        if self.program.donated:
            require_donatable(given, self.program.donated, "argument {}".format)
        with self._stream.running():
            values = self.program(given)
        return self._result(values)

    def _result(self, values: Sequence[Any]) -> Any:
        if any(self._results):
            orders = zip(values, self._results, strict=True)
            values = [value.transpose(order) if order else value for value, order in orders]
        return assembled(self.module.entry.root.shape, iter(values))

    @property
    def device_count(self) -> int:
        return self.module.replica_count * self.module.num_partitions

    def _on_devices(self, arrays: Sequence[Any]) -> Any:
        """Each rank's own result of its own arguments; of threads, all results in one array."""
        program: Any = self.program
        if program.is_on_ranks:
            given = self._arrays(*arrays)
            made = program.run(given)
            return self._result(program.run_each([given])[0] if made is None else made)
        devices = load("tracejit.runtime.per_device")
        module = self.module
        shapes = [parameter.shape for parameter in module.entry.parameters]
        grid = module.replica_count, module.num_partitions
        each = devices.for_each_device(shapes, arrays, *grid)
        results = program.run_each([self._arrays(*given) for given in each])
        return devices.stacked([self._result(values) for values in results])

    def explain(self, *arrays: Any, measure: bool = False, **kwargs: Any) -> Report:
        """The kernels, the ops fused into each, its bytes and flops, and its bottleneck; print it.

        With ``measure`` every kernel is timed on ``arrays``. Raises what a call raises, and
        `UnsupportedError` to measure where there is no linker.
        """
        with self._stream.running():
            return super().explain(*arrays, measure=measure, **kwargs)

    def _function(self) -> Function:
        function: Function = load("tracejit.transforms.export").of_module(self.module)
        return replace(function, has_lost_derivatives=self._has_lost_derivatives)

    def _arrays(self, *arrays: Any) -> list[Any]:
        parameters = self.module.entry.parameters
        if len(arrays) != len(parameters):
            raise ArgumentError(
                f"compiled for {len(parameters)} arguments, called with {len(arrays)}"
            )
        given: list[Any] = []
        for number, (p, order, array) in enumerate(
            zip(parameters, self._orders, arrays, strict=True)
        ):
            value = value_of(p.shape, array, f"argument {number}")
            if order and value.ndim == len(order):
                value = value.transpose(order)
            given += flattened(p.shape, value)
        return given


class CompiledPartitions(Compiled):
    """A compiled module whose ``sharding=`` annotations say how partitions share its arrays out.

    A call takes and returns whole arrays, on every rank too.
    """

    def __init__(self, module: Module, parts: Partitioned, target: Target, stream: Stream) -> None:
        self._parts = parts
        self._annotated = module
        super().__init__(parts.module, target, stream, False)

    def __reduce__(self) -> tuple[object, ...]:
        super().__reduce__()
        return CompiledPartitions, (self._annotated, self._parts, self._target, self._stream)

    def _on_devices(self, arrays: Sequence[Any]) -> Any:
        program: Any = self.program
        each = [self._arrays(*part) for part in self._parts.spread(arrays)]
        made = program.on_all(each)
        leaves = [
            [
                value.transpose(order) if order else value
                for value, order in zip(part, self._results, strict=True)
            ]
            for part in made
        ]
        return assembled(self._annotated.entry.root.shape, iter(self._parts.assembled(leaves)))


def _interpreted_in_parts(
    parts: Partitioned, module: Module, arrays: Sequence[Any], seed: int
) -> Any:
    """What `interpret` makes of whole arrays that partitions share out."""
    columns = [list(column) for column in zip(*parts.spread(arrays), strict=True)]
    made = interpret(parts.module, *columns, seed=seed)
    leaves = made if isinstance(made, tuple) else (made,)
    each = [list(part) for part in zip(*leaves, strict=True)]
    return assembled(module.entry.root.shape, iter(parts.assembled(each)))


@api_boundary
def compile(
    module: Module | Computation,
    target: str = "cpu",
    *,
    seed: int = 0,
    donate: bool = False,
    fast_math: bool = False,
) -> Compiled:
    """Machine code for a module or a computation, to be called with one array per parameter.

    What RngUniform and RngNormal draw begins at ``seed`` and goes on from call to call. With
    ``donate`` the module's ``input_output_alias`` is followed: the arguments that it names are
    written over and become results; otherwise arguments are never written. ``target`` names the
    processor, and ``fast_math`` is what `jit` says: see `jit`.

    Raises `AttributeValueError` for an unknown target, `CompilationError` for an op that cannot be
    compiled.

    >>> tj.compile(tj.jit(np.square).lower(2.0).module)(3.0)
    array(9.)
    """
    made = Target(target, fast_math).resolved()
    program = _program("compile", module)
    require_memory("compile", [program.entry.root])
    if program.num_partitions > 1:
        partitioner = load("tracejit.passes.partition")
        if partitioner.is_annotated(program):
            parts = partitioner.partition(program)
            return CompiledPartitions(program, parts, made, _stream(seed))
    return Compiled(program, made, _stream(seed), donate)


def _stream(seed: int) -> Stream:
    """The random numbers that begin at ``seed``."""
    made: Stream = load("tracejit.backends.numpy.streams").Stream(seed)
    return made


def _kept_aliases(module: Module) -> Module:
    if not module.input_output_alias:
        return module
    made: Module = load("tracejit.passes.donation").kept_aliases(module)
    return made


def _leaf_count(shape: AnyShape) -> int:
    """How many results a value of this shape is handed out as."""
    return sum(map(_leaf_count, shape.elements)) if isinstance(shape, TupleShape) else 1


def _program(function: str, given: Module | Computation) -> Module:
    if isinstance(given, Computation):
        return Module(given.name, given)
    if not isinstance(given, Module):
        hint = "; hlo.parse reads text" if isinstance(given, str) else "; jit takes functions"
        raise ArgumentError(
            f"{function}: a module or a computation is needed, not {type(given).__name__}{hint}"
        )
    return given


class CacheEntry(NamedTuple):
    """The cache entry of a module's machine code: ``key`` names the entry of ``cache``.

    ``target`` is the one asked for, with its processor named. ``kernels`` is the text of users'
    kernels in it, which only this process knows.
    """

    kernels: str
    cache: DiskCache
    key: str
    target: Target


def place_of(module: Module, target: Target = CPU) -> CacheEntry:
    """Where the code of a module is found once it is compiled.

    Raises `AttributeValueError` for an unknown target, `UnsupportedError` for what needs devices.
    """
    target = target.resolved()
    if (module.replica_count, module.num_partitions) != (1, 1):
        module = _of_one_device(module, target)
    kernels = kernel_texts(called_computations(module), target.device)
    text = fingerprint(module) + kernels + "".join(native_calls.texts_of(module))
    # What is verified is compiled with checks of its accesses to memory.
    text += os.environ.get("TRACEJIT_VERIFY", "").replace("0", "")
    if target.is_cuda:
        text += load("tracejit.cuda.settings").settings_text()
    # What names a function of this process is of no use to another one, and a program that was
    # compiled to look at its passes, or without some of them, is of no use afterwards.
    is_own = CALLBACK in text or any(map(os.environ.get, PASS_SETTINGS))
    cache = DiskCache(None) if is_own else DiskCache.default()
    return CacheEntry(kernels, cache, cache_key(text, repr(target)), target)


def executable(module: Module, target: Target = CPU) -> Executable:
    """Machine code for a module, from the disk cache if it was compiled before, else by TVM."""
    if (module.replica_count, module.num_partitions) != (1, 1):
        single = _of_one_device(module, target)
        made: Executable = load("tracejit.runtime.devices.execution").DevicesExecutable(
            executable(single, target),
            module.replica_count,
            module.num_partitions,
            load("tracejit.passes.host_collectives").sources_of(single),
        )
        return made
    place = place_of(module, target)
    made = place.cache.find(place.key) or _compiled(module, place)
    if made.artifact.is_long:
        made.run = noted(made.run, module.name)
    return made


def _of_one_device(module: Module, target: Target) -> Module:
    """What one of several devices runs, which calls the others; no argument is given away.

    Raises `UnsupportedError` for CUDA devices, between which nothing is sent.
    """
    if target.is_cuda:
        devices = module.replica_count * module.num_partitions
        raise UnsupportedError(
            f"target {target.name}: {module.name} runs on {devices} devices, and CUDA devices "
            f"exchange nothing; compile it for 'cpu'"
        )
    made: Module = load("tracejit.passes.host_collectives").with_host_collectives(
        replace(module, entry=inlined(module.entry), input_output_alias=())
    )
    return made


def _compiled(module: Module, place: CacheEntry) -> Executable:
    # One compilation uses all threads; two at once would only wait for each other.
    with _compiling, collecting_garbage_later(), reported(module.name) as progress:
        built = generate(
            "compile.compile_for",
            module,
            place.target,
            place.cache,
            title=module.name,
            save=partial(place.cache.save_graph, place.key, module),
            progress=progress,
            is_new=bool(place.kernels),
            here=_shows_passes(),
        )
        return place.cache.add(place.key, built)


def code_generator() -> ModuleType:
    """`tracejit.backends.tvm.compile`, and TVM with it, which takes most of a second."""
    with importing_tvm():
        return importlib.import_module("tracejit.backends.tvm.compile")


def _compiler(module: Module, target: Target, check: bool) -> hooks.Executable:
    if not check:
        return executable(module, target)
    _require_one_device(module, "check=True")
    name = "CheckedOnDevice" if target.is_cuda else "Checked"
    checked: hooks.Executable = getattr(load("tracejit.transforms.checked"), name)(module)
    return checked


def _require_one_device(module: Module, option: str) -> None:
    """Raises `UnsupportedError` for a program for several devices."""
    if (module.replica_count, module.num_partitions) != (1, 1):
        raise UnsupportedError(f"jit: {option} does not go with programs for several devices")


def _beginner(module: Module, target: Target) -> hooks.Pending:
    _require_one_device(module, "tiered=True")
    place = place_of(module, target)
    begun: hooks.Pending = load("tracejit.runtime.compile_future").Pending(
        module.name,
        None if place.kernels else to_text(module),
        place.target,
        place.key,
        place.cache,
        partial(_compiled, module, place),
    )
    return begun


class _Tuner:
    """What `jit(f, tune=seconds)` asks."""

    def find(self, module: Module, target: Target, seconds: float) -> Executable | None:
        place = place_of(module, target)
        untuned = partial(executable, module, target)
        found: Executable | None = self._programs(place).find(seconds, untuned)
        return found

    def tune(
        self,
        untuned: Executable,
        module: Module,
        target: Target,
        seconds: float,
        arguments: Sequence[object],
    ) -> Executable:
        place = place_of(module, target)
        # Nothing else is compiled meanwhile, which would disturb what is measured.
        with _compiling, reported(module.name, tuning=seconds) as progress:
            generated = load("tracejit.runtime.generated_candidates")
            candidates = generated.GeneratedCandidates(module, place.target, place.key)
            made: Executable = self._programs(place).tune(
                untuned, candidates, arguments, seconds, progress
            )
        return made

    def _programs(self, place: CacheEntry) -> TunedPrograms:
        made: TunedPrograms = load("tracejit.runtime.tuned").TunedPrograms(
            place.cache, place.key, repr(place.target)
        )
        return made


def _shows_passes() -> bool:
    """Whether graphs are written to a folder, which may be relative to this process's."""
    return bool(os.environ.get("TRACEJIT_DUMP"))


def _told(function: str, module: Module, target: Target) -> Any:
    """What a function of the code generator says of a module."""
    with _compiling:
        return generate(
            function,
            module,
            target,
            title=module.name,
            graph=module,
            is_new=has_own_kernels(module, target),
            here=_shows_passes(),
        )


def _planner(module: Module, target: Target) -> int:
    planned: int = _told("memory_estimate.planned_bytes", module, target)
    return planned


def _optimizer(module: Module, target: Target) -> str:
    text: str = _told("compile.optimized_text", module, target)
    return text


def pass_changes(module: Module, target: Target = CPU) -> list[tuple[str, str]]:
    """The optional passes that change a graph of the module, each with that graph's name."""
    changes: list[tuple[str, str]] = _told("compile.changes_of", module, target)
    return changes


def _evaluator(instruction: Instruction, operands: Sequence[Any]) -> Any:
    return load("tracejit.backends.numpy").evaluate_instruction(instruction, operands)


def _preparer(instruction: Instruction) -> Callable[..., Any]:
    made: Callable[..., Any] = load("tracejit.backends.numpy").prepared(instruction)
    return made


use_evaluator(_evaluator, _preparer)
hooks.use_compiler(_compiler)
hooks.use_beginner(_beginner)
hooks.use_planner(_planner)
hooks.use_optimizer(_optimizer)
hooks.use_tuner(_Tuner())
