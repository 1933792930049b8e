"""Tuning policies: the cost model picks every knob, or measurements do.

lower(entry, machine)                                  # the cost model
lower(entry, machine, decisions=Measurements(find))    # what `find` knows of each kernel
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from tracejit.backends.tunable import Find
from tracejit.backends.tvm.program.thunks import KernelStep
from tracejit.backends.tvm.tune.knobs import MODEL, Knobs, RecordedKnobs

Write = Callable[[Knobs], KernelStep]
"""Writes one kernel."""


class TuningPolicy:
    """The cost model decides."""

    def settle(self, write: Write, text: Callable[[], str]) -> KernelStep:
        """The kernel that ``write`` writes; ``text`` says what it computes."""
        return write(MODEL)


MODELLED = TuningPolicy()


@dataclass(frozen=True)
class Written:
    """A kernel, how it was written, and what writes it otherwise."""

    text: str
    step: KernelStep
    answers: RecordedKnobs
    write: Write


class Measurements(TuningPolicy):
    """What was measured decides, where something was; ``written`` has the kernels by name."""

    def __init__(self, find: Find) -> None:
        self._find = find
        self.written: dict[str, Written] = {}

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
            facts = replace(step.counted, changes=changes, gain=(known.before, known.after))
            step = replace(step, counted=facts)
        self.written[step.name] = Written(described, step, answers, write)
        return step
