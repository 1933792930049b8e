"""The cases compiled on every kind of machine: all samples, at usual and at special values."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tests.samples.base import Sample
from tests.samples.cases import all_samples, draw_joint, joint_module
from tests.samples.comparing import SINGLE, compare, special
from tests.samples.values import element_types
from tracejit.api import executable
from tracejit.backends.numpy import evaluate
from tracejit.graph import OPS


@dataclass(frozen=True)
class Case:
    """A sample for all its element types at once, at usual values or at special ones."""

    sample: Sample
    at_special_values: bool

    @property
    def name(self) -> str:
        """The op, the sample's label, and ``special`` where values are."""
        words = [self.sample.op, self.sample.label, "special" if self.at_special_values else ""]
        return " ".join(word for word in words if word)


def cases() -> list[Case]:
    """All cases; those at special values come last."""
    usual = [Case(sample, False) for sample in all_samples()]
    return usual + [Case(sample, True) for sample in all_samples() if special(sample)]


def problem(case: Case) -> str:
    """In one line what is wrong with compiled code; empty where the interpreter agrees."""
    sample = case.sample
    try:
        types = element_types(sample)
        module = joint_module(sample, types)
        arrays = draw_joint(sample, types, case.at_special_values, OPS[sample.op].family in SINGLE)
        actual = executable(module)(arrays)
        expected = _leaves(evaluate(module.entry, arrays))
        found = [compare(sample, a, e) for a, e in zip(actual, expected, strict=True)]
    except Exception as error:
        return f"{type(error).__name__}: {error}".replace("\n", " ")
    return "; ".join(filter(None, found)).replace("\n", " ")


def _leaves(value: object) -> list[np.ndarray]:
    """The arrays of a value, tuples taken apart."""
    if isinstance(value, tuple):
        return [leaf for element in value for leaf in _leaves(element)]
    return [np.asarray(value)]
