"""While and Conditional: fragments of a program inside its loops and branches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tracejit.backends.tvm.program.program import Argument, Branch, Kernel, Loop, Node
from tracejit.backends.tvm.program.thunks import AddressOf, Fragment, KernelStep, Owner, Scratch
from tracejit.shapes import AnyShape, Shape, TupleShape


def leaf_shapes(shape: AnyShape) -> list[Shape]:
    """The arrays of a shape, tuples flattened."""
    if isinstance(shape, TupleShape):
        return [leaf for element in shape.elements for leaf in leaf_shapes(element)]
    assert isinstance(shape, Shape), f"no arrays in {shape}"
    return [shape]


@dataclass(frozen=True)
class WhileStep:
    """A loop: copies the initial state to the results, then runs condition and body until it
    fails.

    ``state`` are the results' owners, one per array, ``steps`` the trip count, if it is known. The
    body writes new values to ``fresh``, for the state arrays numbered ``changed``, and ``updates``
    copies each to the state unless it is there already. With a ``ping_pong`` every second
    iteration runs in the opposite direction, from fresh memory to the state, and only a loop that
    ends in between copies.
    """

    start: Sequence[KernelStep]
    condition: Fragment
    body: Fragment
    state: Sequence[Owner]
    changed: Sequence[int]
    fresh: Sequence[Owner]
    updates: Sequence[KernelStep]
    predicate: Scratch
    workspace: Scratch
    ping_pong: PingPong | None
    steps: int | None = None

    @property
    def owners(self) -> Sequence[Owner]:
        steps = (*self.start, *self.updates, *([self.ping_pong.select] if self.ping_pong else ()))
        used = [owner for step in steps for owner in step.owners]
        return [*used, *self.state, *self.fresh, self.predicate, self.workspace]

    def kernels(self) -> list[Kernel]:
        steps = (*self.start, *self.updates, *([self.ping_pong.select] if self.ping_pong else ()))
        own = [kernel for step in steps for kernel in step.kernels()]
        return [*own, *self.condition.all_kernels, *self.body.all_kernels]

    def nodes(self, place: AddressOf) -> list[Node]:
        state = [place(owner) for owner in self.state]
        fresh = [place(owner) for owner in self.fresh]
        workspace, predicate = place(self.workspace), place(self.predicate)
        step = self.body.at(state, fresh, workspace)
        updates = [node for update in self.updates for node in update.nodes(place)]
        steps = self.steps
        if self.ping_pong is not None:
            there = list(state)
            for number, argument in zip(self.changed, fresh, strict=True):
                there[number] = argument
            back = self.body.at(there, [state[number] for number in self.changed], workspace)
            test = self.condition.at(there, [place(self.ping_pong.predicate)], workspace)
            select = self.ping_pong.select.nodes(place)
            updates = [*test, *select, Branch(place(self.ping_pong.selector), [back, updates])]
            steps = None
        test = self.condition.at(state, [predicate], workspace)
        loop = Loop(test, predicate, [*step, *updates], steps)
        return [*(node for step in self.start for node in step.nodes(place)), loop]


@dataclass(frozen=True)
class PingPong:
    """Chooses the direction of an iteration: ``select`` converts ``predicate`` to a
    branch number.
    """

    predicate: Scratch
    selector: Scratch
    select: KernelStep


@dataclass(frozen=True)
class ConditionalStep:
    """A selector, then the branch with that number, which writes the ``results``."""

    select: KernelStep
    selector: Scratch
    branches: Sequence[BranchStep]
    results: Sequence[Owner]
    workspace: Scratch

    @property
    def owners(self) -> Sequence[Owner]:
        inside = [owner for branch in self.branches for owner in branch.owners]
        return [*self.select.owners, self.selector, *inside, *self.results, self.workspace]

    def kernels(self) -> list[Kernel]:
        inside = [kernel for branch in self.branches for kernel in branch.kernels()]
        return [*self.select.kernels(), *inside]

    def nodes(self, place: AddressOf) -> list[Node]:
        workspace = place(self.workspace)
        branches = [branch.nodes(place, workspace) for branch in self.branches]
        return [*self.select.nodes(place), Branch(place(self.selector), branches)]


@dataclass(frozen=True)
class BranchStep:
    """One branch: arguments without memory are computed first, then the branch runs.

    ``outputs`` are the owners of the fragment's outputs: a result that shares an argument's memory
    may need a temporary first, and ``updates`` copies it.
    """

    arguments: Sequence[Owner]
    prepare: Sequence[KernelStep]
    fragment: Fragment
    outputs: Sequence[Owner]
    updates: Sequence[KernelStep]

    @property
    def owners(self) -> Sequence[Owner]:
        own = [owner for step in (*self.prepare, *self.updates) for owner in step.owners]
        return [*self.arguments, *self.outputs, *own]

    def kernels(self) -> list[Kernel]:
        own = [kernel for step in (*self.prepare, *self.updates) for kernel in step.kernels()]
        return [*own, *self.fragment.all_kernels]

    def nodes(self, place: AddressOf, workspace: Argument) -> list[Node]:
        prepared = [node for step in self.prepare for node in step.nodes(place)]
        inputs = [place(owner) for owner in self.arguments]
        outputs = [place(owner) for owner in self.outputs]
        updates = [node for step in self.updates for node in step.nodes(place)]
        return [*prepared, *self.fragment.at(inputs, outputs, workspace), *updates]
