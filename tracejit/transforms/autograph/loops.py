"""Loops of a rewritten function that become one While: `run_loop`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from tracejit import tree
from tracejit.affine import Affine
from tracejit.errors import ArgumentError, ConcretizationError, dismiss
from tracejit.graph import Instruction
from tracejit.lax.control import loop
from tracejit.lax.scanning import repeated
from tracejit.ops.elementwise import POW, SELECT, and_
from tracejit.ops.elementwise_unary import (
    ACOS,
    ACOSH,
    ASIN,
    ATANH,
    CBRT,
    LOG,
    LOG1P,
    RSQRT,
    SQRT,
)
from tracejit.ops.layout import full
from tracejit.shapes import AnyShape, ElementType, Shape
from tracejit.sources import user_source, warn
from tracejit.trace.affine_bounds import (
    affine,
    are_places_free,
    counting,
    is_counted,
    least,
    take_doubts,
)
from tracejit.trace.body import Abstract, record_body
from tracejit.trace.boolean_indexing import Masked
from tracejit.trace.context import are_differentiated, current_trace
from tracejit.trace.convert import PYTHON_SCALARS
from tracejit.trace.geometric_growth import growing
from tracejit.trace.int_overflow import LARGEST
from tracejit.trace.masks import is_same_mask
from tracejit.trace.may_alias import is_written
from tracejit.trace.table import call as numpy_call
from tracejit.trace.tracer import Tracer, lift
from tracejit.transforms.autograph.capture_policy import is_inside_counted
from tracejit.transforms.autograph.hidden_writes import note_end, require_kept, require_one_holder
from tracejit.transforms.autograph.loop_carried_aliases import Rotation
from tracejit.transforms.autograph.optional import (
    MayBeMissing,
    UnboundError,
    Undefined,
    begun,
    conformed,
    is_missing,
    is_missing_from,
    is_optional,
)
from tracejit.transforms.autograph.parts import Action
from tracejit.transforms.autograph.ranges import TracedRange
from tracejit.transforms.autograph.values import (
    Detached,
    NoValue,
    fresh,
    has_detached,
    in_branch,
    is_kept,
    is_numeric,
    is_same,
    is_same_tree,
    is_unknown,
    lose_masked,
    masked_in,
    of_unknown_size,
    require_equal_keys,
    require_own_masked,
    start_of_part,
    truth,
    unchanged,
    written_back,
)
from tracejit.transforms.autograph.write_capture import require_lent
from tracejit.traversal import in_order

_STEEP = frozenset({ACOS, ACOSH, ASIN, ATANH, CBRT, LOG, LOG1P, POW, RSQRT, SQRT})
"""Functions whose derivative is infinite somewhere."""
COUNTER = "autograph_counter"
HARMLESS = 20
"""The greatest number whose factorial has 64 bits."""
FASTEST = 2**20
"""The most that a Python integer may grow in a step."""


class ShortenedError(ConcretizationError):
    """An array has a known size before a step, and one that depends on a mask after it."""

    def __init__(self, statement: str, name: str) -> None:
        super().__init__(
            f"{statement}: the variable {name} is an array of one size before a step, and of "
            f"another one after it, where one of them depends on a mask"
        )


class MasksDiffer(Exception):
    """Elements that one mask selected are selected by ``groups`` of masks after a step."""

    def __init__(self, groups: list[list[int]]) -> None:
        super().__init__()
        self.groups = groups


def _alike(found: Sequence[Masked], numbers: Sequence[int]) -> list[list[int]]:
    """The numbers in groups of one mask each."""
    groups: list[list[int]] = []
    for number in numbers:
        mask = found[number].mask
        group = next((g for g in groups if is_same_mask(found[g[0]].mask, mask)), None)
        if group is None:
            groups.append([number])
        else:
            group.append(number)
    return groups


class _Loop:
    """The state of a loop: which variables are carried, and what the others are."""

    def __init__(
        self,
        statement: str,
        steps: TracedRange | None,
        action: Action,
        get: Callable[[], tuple[Any, ...]],
        put: Callable[[Sequence[Any]], None],
        names: tuple[str, ...],
        target: str | None = None,
        is_known: bool = False,
    ) -> None:
        self.statement, self.steps, self.action, self.target = statement, steps, action, target
        self.is_known = is_known
        self.get, self.put, self.names = get, put, names
        self.owner = current_trace()
        self.before = get()
        if steps is not None and steps.known is not None and target is not None:
            # Each step assigns it first.
            named = zip(names, self.before, strict=True)
            self.before = tuple(Undefined(n) if n == target else value for n, value in named)
        self.in_place: dict[str, bool] = {}
        self.kept: dict[str, Any] = {}
        self.rotation: Rotation | None = None
        self.lost: list[tuple[Masked, str]] = []
        self.settled: set[str] = set()
        """The optional variables that each step gives a value."""
        self.growing: set[str] = set()
        """Python's integers that a step multiplies, and that no test bounds."""
        self.tested: set[str] = set()
        self.carried = [n for n, value in enumerate(self.before) if _is_carried(value)]
        found = masked_in([self.before[number] for number in self.carried])
        self.masks = _alike(found, range(len(found)))
        """Which elements that masks select are of one mask, by their numbers."""

    def enter(self, state: dict[str, Any]) -> list[Any]:
        """Gives the variables their values at the beginning of a step."""
        values = [Undefined(n) if isinstance(v, Undefined) else _again(v) for n, v in self._named()]
        for number in self.carried:
            values[number] = fresh(state[self.names[number]])
        self._share_masks([values[number] for number in self.carried])
        self.put(values)
        return values

    def _share_masks(self, values: Sequence[Any]) -> None:
        """Gives elements that one mask selects one mask again."""
        found = masked_in(values)
        for first, *others in self.masks:
            for one in others:
                found[one].become(Masked(found[one].whole, found[first].mask, 0))

    def _require_masks(self, left: Sequence[Any]) -> None:
        """Raises `ShortenedError` where a mask has shortened an array, and `MasksDiffer` where one
        mask has become two."""
        for number in self.carried:
            if len(masked_in([left[number]])) != len(masked_in([self.before[number]])):
                raise ShortenedError(self.statement, self.names[number])
        found = masked_in([left[number] for number in self.carried])
        groups = [part for group in self.masks for part in _alike(found, group)]
        if groups != self.masks:
            raise MasksDiffer(groups)

    def _named(self) -> list[tuple[str, Any]]:
        return list(zip(self.names, self.before, strict=True))

    def step(self, state: dict[str, Any]) -> dict[str, Any]:
        """One step of the loop."""
        entered = self.enter(state)
        held = [tree.map(_itself, value) for value in entered]
        rotation = self._rotation([held[number] for number in self.carried])
        begun = start_of_part(self.before)
        with in_branch(), self.counting_of(state):
            if self.steps is None:
                self.action()
            else:
                self.action(state[COUNTER])
            self._require_small(state)
            self._require_tame()
        require_kept(self.statement)
        for number in self.carried:
            starts, copies = tree.leaves(self.before[number]), tree.leaves(held[number])
            require_lent(self.owner, zip(copies, starts, strict=True))
        ends = self.get()
        note_end(self.names, ends)
        for number in self.carried:
            if is_kept(held[number]) and not is_same_tree(held[number], entered[number]):
                require_one_holder(self.statement, self.names[number])
        self.settled = {
            name
            for (name, start), value in zip(self._named(), ends, strict=True)
            if is_optional(start) and not is_missing_from(value, start.value)
        }
        left = [
            of_unknown_size(conformed(value, start), start) if number in self.carried else value
            for number, (value, start) in enumerate(zip(ends, self.before, strict=True))
        ]
        self._require_masks(left)
        carried = [[each[n] for n in self.carried] for each in (self.before, entered, left)]
        names = [self.names[n] for n in self.carried]
        self.lost = require_own_masked(
            self.statement, names, carried[0], carried[1], carried[2], begun
        )
        self._require_bound(state, [tree.leaves(value) for value in held], left)
        made = {}
        for number, (name, start) in enumerate(self._named()):
            value = left[number]
            if number in self.carried:
                if is_missing_from(value, start):
                    raise MayBeMissing(self.statement, name)
                require_equal_keys(self.statement, name, start, value)
                in_place = is_same(entered[number], value) or value is entered[number]
                self.in_place[name] = self.in_place.get(name, True) and in_place
                self.kept[name] = unchanged(held[number], value)
                made[name] = value
            elif not _is_local(start) and not _is_equal(start, value):
                if is_missing_from(value, start) and _is_carried(value):
                    raise MayBeMissing(self.statement, name)
                require_equal_keys(self.statement, name, start, value)
                raise ArgumentError(
                    f"{self.statement}: the variable {name} is {start!r} before a step and "
                    f"{value!r} after it; only arrays and numbers can change in a loop on traced "
                    f"values"
                )
        if rotation is not None:
            self._leave(rotation, [left[number] for number in self.carried])
        self._note_growth(state, made)
        if self.steps is not None:
            made[COUNTER] = state[COUNTER] + self.steps.step
        return made

    def _note_growth(self, state: dict[str, Any], made: dict[str, Any]) -> None:
        integers = {
            name: state[name].instruction
            for name, start in self._named()
            if name in made and _is_integer(start) and isinstance(made[name], Tracer)
        }
        ends = {name: made[name].instruction for name in integers}
        others = [leaf.instruction for leaf in tree.leaves(made) if isinstance(leaf, Tracer)]
        self.growing = growing(integers, ends, others) if integers else set()

    def note_test(self, state: dict[str, Any], going: Any) -> None:
        """Notes which variables the test of a ``while`` looks at."""
        if isinstance(going, Tracer):
            read = set(in_order([going.instruction]))
            known = [name for name in state if isinstance(state[name], Tracer)]
            self.tested |= {name for name in known if state[name].instruction in read}

    def warn_of_growth(self) -> None:
        """Warns of Python's integers that surely leave 64 bits in a loop of many steps."""
        trace = current_trace()
        if self.steps is not None and self.steps.has_at_most(HARMLESS):
            return
        for name in sorted(self.growing - self.tested):
            place = (name, user_source())
            if trace is None or place in trace.warned:
                continue
            trace.warned.add(place)
            warn(
                f"{self.statement}: the integer {name} grows by a factor in each step; once it is "
                f"traced it has 64 bits, and wraps around beyond; begin with a float (1.0), or "
                f"find where it wraps with jit(f, check=True)",
                RuntimeWarning,
            )

    def _rotation(self, entered: Sequence[Any]) -> Rotation | None:
        """The aliases of the leaves of variables; None if there are no arrays."""
        before = [self.before[number] for number in self.carried]
        pairs = list(zip(tree.leaves(before), tree.leaves(list(entered)), strict=True))
        if not any(isinstance(copy, Tracer) and copy.ndim for _, copy in pairs):
            return None
        named = [(self.names[n], value) for n, value in zip(self.carried, before, strict=True)]
        names = [path for name, v in named for path in tree.paths(tree.structure(v), name)]
        return Rotation(names, *zip(*pairs, strict=True))

    def _leave(self, rotation: Rotation, left: Sequence[Any]) -> None:
        ends = tree.leaves(list(left))
        trace = current_trace()
        if len(ends) != rotation.count or trace is None:
            return
        final = [leaf.instruction for leaf in ends if isinstance(leaf, Tracer)]
        needed = {o for one in in_order(final) if trace.owns(one) for o in (one, *one.operands)}
        rotation.leave(self.statement, ends, needed)
        self.rotation = rotation

    def _require_bound(
        self, state: dict[str, Any], held: Sequence[Any], left: Sequence[Any]
    ) -> None:
        """Raises `ConcretizationError` where a view of a lent array is read before it is bound, or
        its copy among the leaves ``held`` is written to.

        In the first step it is a view, in others what the step before has made.
        """
        trace = current_trace()
        if trace is None or not any(has_detached(self.before[n]) for n in self.carried):
            return
        lent: dict[Instruction, str] = {}
        ends: list[Instruction] = []
        for number in self.carried:
            name = self.names[number]
            values = self.before[number], state[name], left[number]
            before, starts, final = map(tree.leaves, values)
            own = {n: starts[n].instruction for n, one in enumerate(before) if _is_detached(one)}
            lent |= dict.fromkeys(own.values(), name)
            found = [(n, leaf.instruction) for n, leaf in enumerate(final) if _is_array(leaf)]
            # What stays at its place is not read.
            stays = own if len(final) == len(before) else {}
            ends += [one for n, one in found if stays.get(n) is not one]
        needed = {o for one in in_order(ends) if trace.owns(one) for o in (one, *one.operands)}
        written = [
            self.names[n]
            for n in self.carried
            for leaf, copy in zip(tree.leaves(self.before[n]), held[n], strict=True)
            if _is_detached(leaf) and is_written(copy)
        ]
        for name in [*written, *(name for start, name in lent.items() if start in needed)]:
            raise ConcretizationError(
                f"{self.statement}: {name} is, or is a view of, an array that the steps write "
                f"to, and they give it other values; copy it before: {name} = {name}.copy()"
            )

    def _require_tame(self) -> None:
        """Raises `ConcretizationError` where a step may choose what a step before has made, whose
        derivative may be infinite: reverse mode sees which was chosen in single steps alone."""
        trace = current_trace()
        if not is_inside_counted() or trace is None or not are_differentiated():
            return
        values = tree.leaves([self.get()[number] for number in self.carried])
        leaves = [leaf.instruction for leaf in values if isinstance(leaf, Tracer)]
        own = [one for one in in_order(leaves) if trace.owns(one) and _is_inexact(one.shape)]
        chosen = [one for one in own if one.op is SELECT and not is_counted(one.operands[0])]
        if chosen and any(one.op in _STEEP for one in own):
            raise ConcretizationError(
                f"{self.statement}: chooses elements, and has steep functions, whose "
                f"derivative is safe only step by step"
            )

    def counting_of(self, state: dict[str, Any]) -> AbstractContextManager[None]:
        """A context with the bounds of the counter and of Python's numbers, for loops with known
        bounds.

        A range that depends on data has numbers without bounds.
        """
        if not is_inside_counted():
            return nullcontext()
        if self.steps is None:
            known = counting(None, None, None, self._numbers(state))
            return known if self.is_known else nullcontext()
        bounds = self.steps.bounds()
        if None in bounds and self.steps.depends_on_data():
            return nullcontext()
        return counting(state[COUNTER].instruction, *bounds, self._numbers(state))

    def _numbers(self, state: dict[str, Any]) -> list[Instruction]:
        """The parameters of Python's own numbers."""
        starts = {name: tree.leaves(start) for name, start in self._named() if name in state}
        return [
            leaf.instruction
            for name, known in starts.items()
            for leaf, start in zip(tree.leaves(state[name]), known, strict=True)
            if _is_number(start)
        ]

    def require_open(self, state: dict[str, Any], going: Any) -> None:
        """Raises `ConcretizationError` for a test whose value no step changes, or is doubtful."""
        doubts = take_doubts(set(self._numbers(state)))
        if doubts or not is_unknown(going):
            message = doubts[0][1] if doubts else "the test does not depend on the loop's variables"
            raise ConcretizationError(f"{self.statement}: {message}")

    def _require_small(self, state: dict[str, Any]) -> None:
        """Raises `ConcretizationError` where Python's own integers might grow beyond s64.

        The same where something else was doubtful of a number that no array has changed.
        """
        if (self.steps is None and not self.is_known) or not is_inside_counted():
            return
        numbers = set(self._numbers(state))
        kept: set[Instruction] = set()
        for (name, start), value in zip(self._named(), self.get(), strict=True):
            if name not in state:
                continue
            leaves = tree.leaves(state[name]), tree.leaves(start), tree.leaves(value)
            for before, begin, after in zip(*leaves, strict=False):
                number = before.instruction
                if number not in numbers or not isinstance(after, Tracer):
                    continue
                if not is_counted(after.instruction):
                    continue
                kept.add(number)
                is_large = type(begin) is int and abs(begin) > LARGEST // 2
                if is_large or not _grows_slowly(number, after.instruction):
                    raise ConcretizationError(
                        f"{self.statement}: the variable {name} is an integer of Python's, which "
                        f"may become greater than an array's can"
                    )
        for carried, message in take_doubts(numbers):
            if carried & kept:
                raise ConcretizationError(message)


def _is_integer(start: Any) -> bool:
    """Whether a variable begins as an integer of Python's, traced or not."""
    if isinstance(start, Tracer):
        return start.is_weak and start.element_type is ElementType.S64
    return type(start) is int


def _is_number(start: Any) -> bool:
    """Whether a variable begins as a number of Python's that no array has changed."""
    if isinstance(start, Tracer):
        return start.is_weak and is_counted(start.instruction)
    return type(start) in PYTHON_SCALARS


def _grows_slowly(before: Instruction, after: Instruction) -> bool:
    """Whether a number that no array has changed is the last one plus a small one."""
    if not after.array_shape.element_type.is_integral:
        return True
    made = affine(after)
    if made is None:
        return False
    if are_places_free() and [*map(abs, made.terms.values())] == [1]:
        # One number of a place, and a small one.
        return abs(made.constant) <= FASTEST
    by = made - Affine.of(before) if made.coefficient(before) else made
    low, below = least(by), least(-by)
    return low is not None and below is not None and -FASTEST <= low <= -below <= FASTEST


def _is_inexact(shape: AnyShape) -> bool:
    return isinstance(shape, Shape) and shape.element_type.is_inexact


def _is_carried(value: Any) -> bool:
    leaves = tree.leaves(value)
    return bool(leaves) and all(is_numeric(leaf) for leaf in leaves)


def _is_array(value: Any) -> bool:
    return isinstance(value, Tracer)


def _is_detached(value: Any) -> bool:
    return isinstance(value, Detached)


def _again(value: Any) -> Any:
    """The value; in containers of their own, which a step may change, where there are some."""
    return tree.map(_itself, value) if isinstance(value, list | dict) else value


def _itself(leaf: Any) -> Any:
    return leaf


def _is_local(value: Any) -> bool:
    return isinstance(value, Undefined | NoValue)


def _is_equal(before: Any, after: Any) -> bool:
    first, structure = tree.flatten(before)
    second, other = tree.flatten(after)
    return structure == other and all(
        x is y or (type(x) is type(y) and type(x) in (str, bytes, *PYTHON_SCALARS) and x == y)
        for x, y in zip(first, second, strict=True)
    )


class _Function:
    """A function of the loop's state, left as it is by the recording of plain NumPy calls."""

    def __init__(self, function: Action) -> None:
        self._function = function

    def __call__(self, *args: Any) -> Any:
        return self._function(*args)


def run_loop(
    statement: str,
    steps: TracedRange | None,
    test: Action | None,
    action: Action,
    get: Callable[[], tuple[Any, ...]],
    put: Callable[[Sequence[Any]], None],
    names: tuple[str, ...],
    target: str | None = None,
    wanted: Sequence[str] = (),
    first: Any = True,
    is_known: bool = False,
) -> None:
    """``while test(): action()``, or ``for i in steps: action(i)`` as long as ``test()``.

    Variables that are trees of arrays and numbers are carried; one that has no value before the
    loop has none after it, but for those ``wanted`` after steps that do take place, and for the
    ``target`` of a known range, which is its last number then. Where it ``is_known`` how often a
    ``while`` runs, its numbers are looked at as those of a known range. Raises `ArgumentError`,
    `ShapeError` or `ElementTypeError` where a carried variable changes its tree, shape or dtype.
    """
    before = get()
    missing = [name for name, value in zip(names, before, strict=True) if is_missing(value)]
    asked = [name for name in missing if name in wanted and name != target]
    masks: list[list[int]] | None = None
    while True:
        made = _Loop(statement, steps, action, get, put, names, target, is_known)
        made.masks = made.masks if masks is None else masks
        try:
            _run(made, asked, test, first)
            return
        except MasksDiffer as error:
            masks = error.groups
            put(before)
        except (MayBeMissing, UnboundError) as error:
            if error.variable not in names or error.variable in asked:
                raise
            asked.append(error.variable)
            put(before)
            dismiss(error)


def _run(made: _Loop, wanted: Sequence[str], test: Action | None, first: Any) -> None:
    """Records the loop. The variables ``wanted`` get a value, or a flag that says whether they do.

    Raises `MayBeMissing` or `UnboundError` for another that needs one.
    """
    statement, steps, names, is_known = made.statement, made.steps, made.names, made.is_known
    target = made.target
    _give_value(made, wanted)
    init = {names[number]: made.before[number] for number in made.carried}
    if steps is not None:
        init[COUNTER] = steps.start

    def goes_on(state: dict[str, Any]) -> Any:
        made.enter(state)
        with in_branch(), made.counting_of(state) if is_known else nullcontext():
            going: Any = True if test is None else test()
            require_kept(statement)
            if is_known:
                made.require_open(state, going)
        made.note_test(state, going)
        if steps is None:
            return going
        inside = steps.goes_on(state[COUNTER])
        return inside if test is None else numpy_call(np.logical_and, inside, going)

    title = f"the body of {statement}"
    if steps is not None and steps.known is not None and test is None and are_differentiated():
        # Its derivative keeps what every step has made; that of a While makes it again.
        final = repeated(_Function(made.step), init, len(steps.known), title)
    else:
        condition = f"the test of {statement}"
        final = loop(_Function(goes_on), _Function(made.step), init, condition, title)
    made.warn_of_growth()
    made._share_masks([final[names[number]] for number in made.carried])
    after: list[Any] = []
    for number, (name, start) in enumerate(zip(names, made.before, strict=True)):
        if number in made.carried:
            in_place = made.in_place.get(name, False)
            value = written_back(start, final[name], in_place, made.kept.get(name))
            after.append(value)
        elif name == target and steps is not None and steps.known is not None:
            after.append(steps.known[-1])
        elif isinstance(start, Undefined):
            reason = f"it is assigned only inside a {statement} on traced values"
            after.append(Undefined(name, f"{reason}; assign it before"))
        else:
            after.append(start)
    does_run = steps is not None and steps.known and test is None
    settled = [does_run and name in made.settled for name in names]
    pairs = zip(after, settled, strict=True)
    made.put([value.value if is_there else value for value, is_there in pairs])
    lose_masked(made.lost)
    if made.rotation is not None:
        leaves = tree.leaves([after[number] for number in made.carried])
        made.rotation.note(leaves, _ran(steps, first))


def _ran(steps: TracedRange | None, first: Any) -> Instruction | None:
    """Whether there is a step; None if there surely is."""
    tests = [first]
    if steps is not None and steps.known is None:
        tests.append(steps.goes_on(steps.start))
    made: Instruction | None = None
    for test in tests:
        if is_unknown(test):
            holds = truth(test, "loop")
            made = holds if made is None else and_(made, holds)
    return made


def _give_value(made: _Loop, wanted: Sequence[str]) -> None:
    """Gives variables that have no value before the loop one of the kind that a step makes.

    One recording finds the kinds. A ``return`` inside the loop has zeros; variables that are
    ``wanted`` are optional.
    """
    waiting = [
        n
        for n, value in enumerate(made.before)
        if isinstance(value, NoValue) or made.names[n] in wanted
    ]
    if not waiting:
        return
    found: list[Any] = []

    init = {made.names[n]: made.before[n] for n in made.carried}
    if made.steps is not None:
        init[COUNTER] = made.steps.start
    leaves, structure = tree.flatten(init)

    def once(*values: Any) -> list[Any]:
        state = tree.unflatten(structure, values)
        made.enter(state)
        with in_branch(), made.counting_of(state):
            made.action(*([] if made.steps is None else [state[COUNTER]]))
        require_kept(made.statement)
        left = made.get()
        found.extend(left[n] for n in waiting)
        return [leaf for value in found if _is_carried(value) for leaf in tree.leaves(value)]

    body = record_body(_Function(once), "a step", [Abstract.of(leaf) for leaf in leaves])
    kinds = iter(body.abstract)
    before = list(made.before)
    for number, value in zip(waiting, found, strict=True):
        if _is_carried(value):
            zero = tree.map(lambda _: _zero(next(kinds)), value)
            is_return = isinstance(before[number], NoValue)
            name = made.names[number]
            before[number] = zero if is_return else begun(name, before[number], zero)
            made.carried = sorted({*made.carried, number})
        elif made.names[number] in wanted and _is_carried(before[number]):
            before[number] = begun(made.names[number], before[number], value)
    made.before = tuple(before)
    made.put(before)


def _zero(kind: Abstract) -> Any:
    zero: Instruction = full(kind.shape, 0)
    made = lift(zero, kind.is_scalar)
    made.is_weak = kind.is_weak
    made.lay_unknown()
    return made
