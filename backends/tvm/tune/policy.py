"""Tuning policies: the cost model decides every knob, or measurements do.

lower(entry, machine)                                  # the cost model
lower(entry, machine, decisions=Measurements(find))    # `find` looks up measurements by kernel
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from tracejit.backends.tunable import Find
from tracejit.backends.tvm.program.thunks import KernelStep
from tracejit.backends.tvm.tune.knobs import MODEL, Knobs, RecordedKnobs

Write = Callable[[Knobs], KernelStep]
"""Builds one kernel with the given knobs."""


class TuningPolicy:
    """The cost model decides."""

    def settle(self, write: Write, text: Callable[[], str]) -> KernelStep:
        """The kernel that ``write`` builds; ``text`` describes its computation."""
        return write(MODEL)


MODELLED = TuningPolicy()


@dataclass(frozen=True)
class TunedKernel:
    """A kernel, its knobs, and the function that builds its variants."""

    text: str
    step: KernelStep
    answers: RecordedKnobs
    write: Write


class Measurements(TuningPolicy):
    """Measured choices decide, where there are any; ``written`` has the kernels by name."""

    def __init__(self, find: Find) -> None:
        self._find = find
        self.written: dict[str, TunedKernel] = {}

    def settle(self, write: Write, text: Callable[[], str]) -> KernelStep:
        described = text()
        known = self._find(described)
        answers = RecordedKnobs(known.taken if known is not None else None)
        step = write(answers)
        changes = tuple(
            (question, answers.asked[question][0], name)
            for question, name in answers.taken.items()
            if name != answers.asked[question][0]
        )
        if changes and known is not None:
            facts = replace(step.stats, changes=changes, gain=(known.before, known.after))
            step = replace(step, stats=facts)
        self.written[step.name] = TunedKernel(described, step, answers, write)
        return step
