"""What `jit(f).lower(*args)` returns: the graph, its text, and compilation by hand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tracejit import hlo, tree
from tracejit.backends.target import Target
from tracejit.errors import ArgumentError
from tracejit.graph import Module
from tracejit.loading import load
from tracejit.runtime.devices.execution import DevicesExecutable
from tracejit.runtime.donation import require_donatable
from tracejit.tracebacks import api_boundary
from tracejit.transforms.jit.compiled import CompiledProgram, HasCosts
from tracejit.transforms.jit.hooks import Executable, compile_module, optimized_text
from tracejit.transforms.jit.staging import Staged
from tracejit.transforms.shape_structs import ShapeDtypeStruct

if TYPE_CHECKING:
    from tracejit.passes.memory_report import MemoryReport
    from tracejit.transforms.export import Function
    from tracejit.transforms.jit.tuned import Tune

Flatten = Callable[..., list[np.ndarray]]


class CompiledFunction(CompiledProgram):
    """A compiled function, for arguments like those it was lowered for.

    It is pickled as its graph, and compiled again, or found in the disk cache, where it is read.
    """

    def __init__(
        self,
        staged: Staged,
        executable: Executable,
        flatten: Flatten,
        names: Sequence[str],
        target: Target,
        again: Callable[[], CompiledFunction],
    ) -> None:
        super().__init__(staged.module, executable, target)
        self._staged = staged  # what it calls back lives as long as the graph
        self._finish = staged.finisher()
        self._flatten = flatten
        self._names = names
        self._again = again

    def __copy__(self) -> CompiledFunction:
        return self

    def __deepcopy__(self, memory: dict[int, object]) -> CompiledFunction:
        return self

    def __reduce__(self) -> tuple[object, ...]:
        """Raises `TypeError` for a function that calls back into this process."""
        return self._again, ()

    @api_boundary
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The function's result. Raises `ArgumentError` for other shapes or types.

        Donated arrays are written over, as by a call of the jitted function.
        """
        arrays = self._arrays(*args, **kwargs)
        if self.program.donated:
            require_donatable(arrays, self.program.donated, "argument {}".format)
        return self._finish(self.program(arrays))

    def on_devices(self, calls: Sequence[tuple[Any, ...]]) -> list[Any]:
        """The results on each of this process's devices, each called with arguments of its own."""
        if not isinstance(self.program, DevicesExecutable):
            return [self(*args) for args in calls]
        results = self.program.run_each([self._arrays(*args) for args in calls])
        return [self._finish(values) for values in results]

    def _arrays(self, *args: Any, **kwargs: Any) -> list[np.ndarray]:
        return self._flatten(*args, **kwargs)

    def _function(self) -> Function:
        function: Function = load("tracejit.transforms.export").Function(
            self.module, self._names, self._staged.paths, self._staged.has_lost_derivatives
        )
        return function


class Lowered(HasCosts):
    """A traced function that is not compiled yet.

    It can be pickled, unless it calls back into Python: then `pickle` raises `TypeError`.
    """

    def __init__(
        self,
        staged: Staged,
        target: Target,
        check: bool,
        flatten: Flatten,
        names: Sequence[str],
        tune: Tune | None = None,
        arguments: Sequence[np.ndarray] = (),
    ) -> None:
        self._staged = staged
        self._target = target
        self._check = check
        self._flatten = flatten
        self._names = names
        self._tune = tune
        self._arguments = arguments

    @property
    def module(self) -> Module:
        """The graph."""
        return self._staged.module

    def __repr__(self) -> str:
        return f"<lowered {self.module.summary}>"

    @property
    def out_info(self) -> Any:
        """The tree of results, a `ShapeDtypeStruct` in place of each."""
        shapes = [output.instruction.array_shape for output in self._staged.outputs]
        made = [ShapeDtypeStruct(shape.dimensions, shape.dtype) for shape in shapes]
        return tree.unflatten(self._staged.structure, made)

    @api_boundary
    def as_text(self, dialect: str = "hlo", *, stage: str = "traced") -> str:
        """The graph as text that XLA accepts: "hlo" or "stablehlo".

        With ``stage="optimized"`` it is the graph after the compiler's passes, which has ops that
        only the compiler knows. Raises `ArgumentError` for another dialect or stage, and for
        StableHLO of the optimised graph; `UnsupportedError` for an op that StableHLO cannot
        express.
        """
        if stage not in ("traced", "optimized"):
            raise ArgumentError(
                f"as_text: the stage must be 'traced' or 'optimized', not {stage!r}"
            )
        writers = {"hlo": hlo.to_text, "stablehlo": hlo.to_stablehlo}
        if dialect not in [*writers]:  # a list: what is compared may have no hash
            raise ArgumentError(
                f"as_text: the dialect must be 'hlo' or 'stablehlo', not {dialect!r}"
            )
        if stage == "traced":
            return writers[dialect](self.module)
        if dialect != "hlo":
            raise ArgumentError("as_text: the optimised graph is printed as HLO text only")
        return optimized_text(self.module, self._target)

    def memory_report(self) -> MemoryReport:
        """How much memory each step needs, and what lives when it is most; print it."""
        report: MemoryReport = load("tracejit.passes.memory_report").memory_report(
            self.module.entry
        )
        return report

    def __copy__(self) -> Lowered:
        return self

    def __deepcopy__(self, memory: dict[int, object]) -> Lowered:
        return self

    @api_boundary
    def compile(self, target: str | None = None) -> CompiledFunction:
        """The compiled function, tuned if `jit` was told to.

        ``target`` is another processor than `jit` was told; the function is not tuned for it.
        Raises `AttributeValueError` for one that LLVM does not know.
        """
        if target is not None:
            return self._for(target)._compiled_again()
        if self._tune is None:
            return self._compiled_again()
        untuned = self._tune.compiled(self.module, self._target)
        return self._compiled(
            self._tune.improved(untuned, self.module, self._target, self._arguments)
        )

    def _compiled_again(self) -> CompiledFunction:
        """The compiled function, as well tuned as it was before, if it was."""
        if self._tune is not None:
            return self._compiled(self._tune.compiled(self.module, self._target))
        return self._compiled(compile_module(self.module, self._target, self._check))

    def _compiled(self, executable: Executable) -> CompiledFunction:
        lowered = self._without_arguments()
        return CompiledFunction(
            self._staged,
            executable,
            self._flatten,
            self._names,
            self._target,
            lowered._compiled_again,
        )

    def _for(self, name: str) -> Lowered:
        """The same for another processor, untuned."""
        target = replace(self._target, name=name)
        return Lowered(self._staged, target, self._check, self._flatten, self._names)

    def _without_arguments(self) -> Lowered:
        """Itself, without what tuning measures on."""
        if self._tune is None:
            return self
        return Lowered(
            self._staged, self._target, self._check, self._flatten, self._names, self._tune
        )
