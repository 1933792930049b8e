"""Rule tables: what a concern (interpret, differentiate, emit …) knows about each op.

interpret = RuleTable("interpret", "tracejit.backends.numpy")  # a file for each family of ops

@interpret.attach(ADD)
def add(instruction, lhs, rhs): ...

differentiate.decline(FLOOR, "is piecewise constant")     # said, never just missing
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from tracejit.graph import OPS, Op
from tracejit.loading import is_redefined, load_if_any

Rule = TypeVar("Rule", bound=Callable[..., object])


class RuleTable(Generic[Rule]):
    """At most one rule, or one reason why there is none, for each op.

    With ``packages``, the rules of a family of ops are in their modules of the family's name, which
    are imported when a rule of the family is first asked for; a family without one has no rules.
    """

    def __init__(self, concern: str, *packages: str) -> None:
        self.concern = concern
        self.packages = packages
        self._families: set[str] = set()
        self._rules: dict[Op, Rule] = {}
        self._declined: dict[Op, str] = {}

    def attach(self, *ops: Op) -> Callable[[Rule], Rule]:
        """Registers the decorated function for ``ops``; an op that has a rule already raises."""

        def register(rule: Rule) -> Rule:
            for op in ops:
                if not is_redefined(self._rules.get(op), rule):
                    self._claim(op)
                self._rules[op] = rule
            return rule

        return register

    def decline(self, op: Op, reason: str) -> None:
        """Says that ``op`` has no rule, and why."""
        if self._declined.get(op) != reason:
            self._claim(op)
        self._declined[op] = reason

    def _claim(self, op: Op) -> None:
        if op in self._rules or op in self._declined:
            raise ValueError(f"{self.concern}: {op.name} is registered twice")

    def get(self, op: Op) -> Rule | None:
        """The rule of ``op``, or None when it is declined or missing."""
        rule = self._rules.get(op)
        if rule is None and op.family not in self._families:
            self._load(op.family)
            rule = self._rules.get(op)
        return rule

    def reason(self, op: Op) -> str | None:
        """Why ``op`` has no rule, when that was said."""
        self._load(op.family)
        return self._declined.get(op)

    def missing(self) -> list[str]:
        """The ops of the op table that have neither a rule nor a reason."""
        for op in OPS.values():
            self._load(op.family)
        return [n for n, op in OPS.items() if op not in self._rules and op not in self._declined]

    def _load(self, family: str) -> None:
        if family in self._families:
            return
        for package in self.packages:
            load_if_any(f"{package}.{family}")
        self._families.add(family)
