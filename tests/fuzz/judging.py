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

from tests.fuzz import refused
from tests.fuzz.arguments import arguments
from tests.fuzz.choices import Choices
from tests.fuzz.comparing import leaves
from tests.fuzz.compile_times import Clock
from tests.fuzz.guarded_programs import twice
from tests.fuzz.noise import disagreements
from tests.fuzz.op_by_op import op_by_op
from tests.fuzz.single import single
from tests.fuzz.table import STEPS
from tests.fuzz.values import array, strided
from tests.fuzz.verdict import verdict
from tests.judge import run_xla
from tests.runtime.programs import loaded
from tests.samples.admitted import admitted
from tests.samples.base import Domain
from tracejit import ops
from tracejit.backends.numpy import evaluate
from tracejit.errors import TracejitError
from tracejit.graph import Computation, Instruction, Module
from tracejit.runtime import importing_tvm
from tracejit.shapes import ElementType
from tracejit.traversal import inline
from tracejit.verifier import verify

with importing_tvm():
    from tracejit.backends.tvm.compile import compile_for

# A process judges modules of one kind: single ops, graphs, or repetitions.
_CLOCK = Clock()

AGREED, REFUSED, CONTRADICTED = PASSED = ("agreed", "refused", "contradicted")
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

    ``kind`` is agreed, refused (by XLA, for a reason that is known, but its ops one by one agree
    where it takes these), contradicted (XLA computes the whole otherwise than its ops one by one,
    which agree), or what failed: xla, interpreter, compiler.
    """

    name: str
    element_type: str
    kind: str
    text: str = ""
    module: Module | None = None

    @property
    def failed(self) -> bool:
        return self.kind not in PASSED


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


def judge_singles(cases: Sequence[Single], seed: int, whole: bool = True) -> list[Outcome]:
    """The outcome of each case, on arguments that ``seed`` decides, wherever the case stands.

    XLA is asked about the ``whole`` first, or op by op at once, because it dies of the whole.
    """
    given = [_values(case, seed) for case in cases]
    flat = [x for arrays in given for x in arrays]
    module = _joined(cases)
    together = len(cases) > 1
    kind, text = _judged(module, flat, _any_verdict(cases, given), seed, whole, together)
    if kind != AGREED and together:
        return [outcome for case in cases for outcome in judge_singles([case], seed, whole)]
    return [Outcome(c.name, str(c.element_type), kind, text, module) for c in cases]


def judge_graph(module: Module, seed: int, whole: bool = True) -> Outcome:
    """The outcome of a graph, on arguments that ``seed`` decides; ``whole`` as above."""
    given = arguments(module.entry, seed)

    def judge(actual: list[np.ndarray], expected: list[np.ndarray], by_xla: bool) -> str:
        found = disagreements(module.entry, given, actual, expected, by_xla)
        return "; ".join(f"result {n}: {text}" for n, text in found.items())

    return Outcome(module.name, "", *_judged(module, given, judge, seed, whole), module)


def _judged(
    module: Module,
    given: list[np.ndarray],
    judge: Judge,
    seed: int,
    whole: bool,
    together: bool = False,
) -> tuple[str, str]:
    """The kind of the outcome, and what is to be said about it.

    With ``together``, the module holds several cases, which are judged one by one if any fails.
    """
    try:
        ours = leaves(evaluate(module.entry, given))
    except (TracejitError, ArithmeticError, ValueError, TypeError, IndexError) as error:
        return "interpreter", f"{type(error).__name__}: {error}"
    kind, text = _by_xla(module, given, judge, ours, whole, together)
    if kind not in PASSED:
        return kind, text
    rng = np.random.default_rng(seed)
    before = [x.tobytes() for x in given]
    try:
        with _CLOCK.timed() as timing:
            artifact = compile_for(Module("test", module.entry))
        made = loaded(artifact)([strided(rng, x) for x in given])
    except (TracejitError, RuntimeError, ValueError, TypeError, IndexError) as error:
        return "compiler", f"{type(error).__name__}: {error}"
    if [x.tobytes() for x in given] != before:
        return "compiler", "compiled code wrote to its arguments"
    if wrong := judge(made, ours, False):
        return "compiler", f"compiled code against the interpreter: {wrong}"
    if wrong := twice(artifact, given)[1] or timing.complaint:
        return "compiler", wrong
    return kind, text


def _by_xla(
    module: Module,
    given: list[np.ndarray],
    judge: Judge,
    ours: list[np.ndarray],
    whole: bool,
    together: bool,
) -> tuple[str, str]:
    """What XLA says: asked about the whole; where it differs or refuses, also op by op."""
    if refused.is_deadly(module):
        return REFUSED, refused.DEADLY
    reason = refused.LONG if refused.is_long(module) else "" if whole else refused.FATAL
    try:
        wrong = reason or judge(leaves(run_xla(module, *given)), ours, True)
    except JaxRuntimeError as error:
        wrong, reason = str(error)[:400], refused.reason(error)
        if not reason:
            return "xla", wrong
    if not wrong:
        return AGREED, ""
    if together:
        return "interpreter", wrong
    asked = op_by_op(module.entry, given)
    if asked.wrong:
        return "interpreter", f"{asked.wrong}; the whole: {wrong}"
    if apart := judge(asked.results, ours, True):
        return "interpreter", f"XLA op by op: {apart}; the whole: {wrong}"
    return (REFUSED, reason) if reason else (CONTRADICTED, wrong)


def _any_verdict(cases: Sequence[Single], given: Sequence[Sequence[np.ndarray]]) -> Judge:
    """Judges the results of the joined module, case by case."""

    def judge(actual: list[np.ndarray], expected: list[np.ndarray], by_xla: bool) -> str:
        found = []
        for case, arrays in zip(cases, given, strict=True):
            count = len(leaf_shapes(case))
            ours, actual = actual[:count], actual[count:]
            theirs, expected = expected[:count], expected[count:]
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
