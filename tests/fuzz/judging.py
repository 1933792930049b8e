"""XLA, the interpreter and compiled code on the same random modules.

Many single ops share a module, since compiling one costs tens of milliseconds, whatever is in it.
A module on which something fails is taken apart, and its ops are judged one by one.

judge_singles(drawn_singles(choices, 12), seed)       an outcome for each of twelve single ops
judge_graph(module, seed)                             the outcome of a random graph
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from jax.errors import JaxRuntimeError

from tests.backends_tvm.compiled import compiled
from tests.fuzz import known
from tests.fuzz.arguments import arguments
from tests.fuzz.choices import Choices
from tests.fuzz.noise import disagreements, leaves
from tests.fuzz.single import single
from tests.fuzz.table import NESTING, STEPS
from tests.fuzz.values import array, strided
from tests.fuzz.verdict import verdict
from tests.judge import run_xla
from tests.samples.admitted import admitted
from tests.samples.base import Domain
from tracejit import ops
from tracejit.backends.numpy import evaluate
from tracejit.errors import TracejitError
from tracejit.graph import Computation, Instruction, Module
from tracejit.shapes import ElementType
from tracejit.traversal import inline, instructions
from tracejit.verifier import verify

Judge = Callable[[list[np.ndarray], list[np.ndarray], bool], str]
"""What differs between results, by XLA or by compiled code, and the interpreter's."""


@dataclass(frozen=True)
class Single:
    """One op on operands of its own, for the element type that was wanted."""

    name: str
    element_type: ElementType
    entry: Computation
    domains: Sequence[Domain | None]
    """What draws the values of each parameter, where not any will do."""


@dataclass(frozen=True)
class Outcome:
    """What became of a module.

    ``kind`` is agreed, refused (by XLA, for a reason that is known), or what failed: xla,
    interpreter, compiler.
    """

    name: str
    element_type: str
    kind: str
    text: str = ""
    module: Module | None = None

    @property
    def failed(self) -> bool:
        return self.kind not in ("agreed", "refused")


def drawn_singles(
    choices: Choices, count: int, names: Sequence[str] = tuple(STEPS)
) -> list[Single]:
    """Up to ``count`` random single ops, each of some element type that it admits."""
    made = []
    for _ in range(count):
        name = choices.pick(names)
        element_type = choices.pick(admitted(name))
        found = single(choices, name, element_type)
        if found is not None:
            root, graph = found
            entry = Computation(name, tuple(graph.parameters), root)
            domains = [graph.domains.get(p) for p in graph.parameters]
            made.append(Single(name, element_type, entry, domains))
    return made


def judge_singles(cases: Sequence[Single], seed: int) -> list[Outcome]:
    """The outcome of each case, on arguments that ``seed`` decides, wherever the case stands."""
    given = [_values(case, seed) for case in cases]
    flat = [x for arrays in given for x in arrays]
    failed = _failure(_joined(cases), flat, _any_verdict(cases, given), seed)
    if failed is None:
        return [Outcome(case.name, str(case.element_type), "agreed") for case in cases]
    if len(cases) > 1:
        return [outcome for case in cases for outcome in judge_singles([case], seed)]
    kind, text = failed
    module = Module(cases[0].name, _alone(cases[0]))
    return [Outcome(cases[0].name, str(cases[0].element_type), kind, text, module)]


def judge_graph(module: Module, seed: int) -> Outcome:
    """The outcome of a whole graph, on arguments that ``seed`` decides."""
    given = arguments(module.entry, seed)

    def judge(actual: list[np.ndarray], expected: list[np.ndarray], by_xla: bool) -> str:
        found = disagreements(module.entry, given, actual, expected, by_xla)
        return "; ".join(f"result {n}: {text}" for n, text in found.items())

    failed = _failure(module, given, judge, seed)
    if failed is None:
        return Outcome(module.name, "", "agreed")
    return Outcome(module.name, "", *failed, module)


def _failure(
    module: Module, given: list[np.ndarray], judge: Judge, seed: int
) -> tuple[str, str] | None:
    """What failed, and how; None where XLA, the interpreter and compiled code agree.

    XLA is not asked about graphs longer than `known.MOST_FOR_XLA`.
    """
    if known.is_deadly(module):
        return "refused", known.DEADLY
    theirs = None
    if len(instructions(module.entry)) <= known.MOST_FOR_XLA:
        try:
            theirs = leaves(run_xla(module, *given))
        except JaxRuntimeError as error:
            reasons = [why for what, why in known.REFUSED.items() if what in str(error)]
            return ("refused", reasons[0]) if reasons else ("xla", str(error)[:400])
    try:
        ours = leaves(evaluate(module.entry, given))
    except (TracejitError, ArithmeticError, ValueError, TypeError, IndexError) as error:
        return "interpreter", f"{type(error).__name__}: {error}"
    wrong = judge(theirs, ours, True) if theirs is not None else ""
    if wrong:
        return "interpreter", f"XLA against the interpreter: {wrong}"
    rng = np.random.default_rng(seed)
    before = [x.tobytes() for x in given]
    try:
        made = compiled(module.entry)([strided(rng, x) for x in given])
    except (TracejitError, RuntimeError, ValueError, TypeError, IndexError) as error:
        return "compiler", f"{type(error).__name__}: {error}"
    if [x.tobytes() for x in given] != before:
        return "compiler", "compiled code wrote to its arguments"
    wrong = judge(made, ours, False)
    return ("compiler", f"compiled code against the interpreter: {wrong}") if wrong else None


def _any_verdict(cases: Sequence[Single], given: Sequence[Sequence[np.ndarray]]) -> Judge:
    """Judges the results of the joined module, case by case."""

    def judge(actual: list[np.ndarray], expected: list[np.ndarray], by_xla: bool) -> str:
        found = []
        for case, arrays in zip(cases, given, strict=True):
            count = len(leaf_shapes(case))
            ours, actual = actual[:count], actual[count:]
            theirs, expected = expected[:count], expected[count:]
            if case.name in NESTING:
                wrong = disagreements(_alone(case), arrays, ours, theirs, by_xla)
                text = "; ".join(wrong.values())
            else:
                text = verdict(case.entry, case.name, arrays, ours, theirs, by_xla)
            found += [text] if text else []
        return "; ".join(found)

    return judge


def leaf_shapes(case: Single) -> Sequence[object]:
    """The shapes of the arrays that the case makes."""
    return case.entry.root.element_shapes


def _values(case: Single, seed: int) -> list[np.ndarray]:
    made = []
    for i, (parameter, domain) in enumerate(zip(case.entry.parameters, case.domains, strict=True)):
        rng, shape = np.random.default_rng([seed, i]), parameter.array_shape
        made.append(domain(rng, shape.dimensions, shape.dtype) if domain else array(rng, shape))
    return made


def _joined(cases: Sequence[Single]) -> Module:
    """The cases side by side; the root is a tuple of all their results."""
    parameters: list[Instruction] = []
    results: list[Instruction] = []
    for case in cases:
        own = [
            ops.parameter(len(parameters) + i, p.array_shape)
            for i, p in enumerate(case.entry.parameters)
        ]
        parameters += own
        results += ops.elements_of(inline(case.entry, own))
    return verify(Module("singles", Computation("entry", tuple(parameters), ops.tuple_(results))))


def _alone(case: Single) -> Computation:
    """The case with a tuple of arrays for its root."""
    entry = case.entry
    return Computation(entry.name, entry.parameters, ops.tuple_(ops.elements_of(entry.root)))
