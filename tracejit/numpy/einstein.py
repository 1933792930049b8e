"""`np.einsum`: sums of products written with one letter for each dimension."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tracejit.errors import AttributeValueError, ShapeError
from tracejit.graph import Instruction
from tracejit.numpy.diagonals import diagonal
from tracejit.numpy.products import contract
from tracejit.numpy.reducing import combined
from tracejit.numpy.storing import finish
from tracejit.ops import layout
from tracejit.ops.contraction import DotDimensionNumbers
from tracejit.shapes import element_type_of
from tracejit.trace.convert import operand
from tracejit.trace.promotion import result_dtype
from tracejit.trace.public import implements
from tracejit.trace.result_layouts import unknown
from tracejit.trace.tracer import Tracer, lift

LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


@implements(np.einsum, layout=unknown)
def einsum(
    *operands: Any,
    out: Any = None,
    dtype: Any = None,
    order: str = "K",
    casting: str = "safe",
    optimize: Any = "greedy",
) -> Any:
    """``einsum("bij,bjk->bik", x, y)``: letters that the result lacks are summed over.

    Takes an ellipsis, letters that repeat within an operand (a diagonal), operands followed by
    lists of numbers, and any number of operands, contracted in pairs in a greedy order.

    Raises `ArgumentError` for what is no array of numbers and `AttributeValueError` for an
    option or a size out of range.

    >>> tnp.einsum("ij,jk->ik", [[1.0, 2.0]], [[3.0], [4.0]])
    array([[11.]])
    """
    subscripts, arrays = _spelled(operands)
    values = [operand(a) for a in arrays]
    common = result_dtype(v.element_type.dtype for v in values) if dtype is None else dtype
    terms = [v.to(element_type_of(common)) for v in values]
    inputs, result = _parsed(subscripts, [len(v.dimensions) for v in values])
    _require_sizes(subscripts, inputs, terms)
    pairs = [_single(labels, term) for labels, term in zip(inputs, terms, strict=True)]
    for step in _steps(pairs, result, optimize):
        chosen = [pairs[i] for i in step]
        pairs = [pair for i, pair in enumerate(pairs) if i not in step]
        while len(chosen) > 1:
            x, y, *chosen = chosen
            needed = set(result).union(*(labels for labels, _ in (*pairs, *chosen)))
            chosen = [_contracted(x, y, needed), *chosen]
        pairs.append(chosen[0])
    labels, made = pairs[0]
    summed = tuple(d for d, label in enumerate(labels) if label not in result)
    if summed:
        made = combined("add", made, summed)
        labels = "".join(label for label in labels if label in result)
    made = layout.transpose(made, [labels.index(label) for label in result])
    return finish("einsum", made, out)


def _spelled(operands: Sequence[Any]) -> tuple[str, list[Any]]:
    """The subscripts as text, and the arrays, also for the form with lists of numbers."""
    if isinstance(operands[0], str):
        return operands[0].replace(" ", ""), list(operands[1:])
    arrays, lists = list(operands[0:-1:2]), list(operands[1::2])
    result = operands[-1] if len(operands) % 2 else None
    everything = {n for one in (*lists, result or ()) for n in one if n is not Ellipsis}
    letters = dict(zip(sorted(everything), LETTERS, strict=False))

    def spelled(numbers: Sequence[Any]) -> str:
        return "".join("..." if n is Ellipsis else letters[n] for n in numbers)

    text = ",".join(spelled(numbers) for numbers in lists[: len(arrays)])
    return (text if result is None else f"{text}->{spelled(result)}"), arrays


def _parsed(subscripts: str, ranks: Sequence[int]) -> tuple[list[str], str]:
    """One label per dimension for each operand and for the result, ellipses written out."""
    left, arrow, right = subscripts.partition("->")
    terms = left.split(",")
    if len(terms) != len(ranks):
        raise AttributeValueError(
            f"einsum: {subscripts!r} is for {len(terms)} operands, not {len(ranks)}"
        )
    spare = [letter for letter in LETTERS if letter not in subscripts]
    hidden_ranks = [
        rank - len(term.replace("...", ""))
        for term, rank in zip(terms, ranks, strict=True)
        if "..." in term
    ]
    widest = max(hidden_ranks, default=0)
    wide = "".join(spare[:widest])
    inputs = []
    for term, rank in zip(terms, ranks, strict=True):
        hidden = rank - len(term.replace("...", ""))
        if hidden < 0 or (hidden and "..." not in term):
            raise AttributeValueError(
                f"einsum: {term!r} in {subscripts!r} does not name {rank} dimensions"
            )
        inputs.append(term.replace("...", wide[widest - hidden :]))
    if arrow:
        result = right.replace("...", wide)
    else:
        everything = "".join(inputs)
        once = sorted(c for c in set(left) - set(",.") if everything.count(c) == 1)
        result = wide + "".join(once)
    if len(set(result)) != len(result) or not set(result) <= set("".join(inputs)):
        raise AttributeValueError(
            f"einsum: the result of {subscripts!r} repeats or invents a letter"
        )
    return inputs, result


def _require_sizes(subscripts: str, inputs: Sequence[str], terms: Sequence[Instruction]) -> None:
    sizes: dict[str, int] = {}
    for labels, term in zip(inputs, terms, strict=True):
        for label, size in zip(labels, term.array_shape.dimensions, strict=True):
            if sizes.setdefault(label, size) == 1:
                sizes[label] = size
            if size not in (1, sizes[label]):
                raise ShapeError(
                    f"einsum: {label} in {subscripts!r} is {sizes[label]} and {size} long"
                )


Labelled = tuple[str, Instruction]


def _single(labels: str, term: Instruction) -> Labelled:
    """An operand in which every label stands once: repeated ones become a diagonal."""
    for label in labels:
        while labels.count(label) > 1:
            first = labels.index(label)
            second = labels.index(label, first + 1)
            term = diagonal(lift(term, False), 0, first, second).instruction
            labels = labels[:first] + labels[first + 1 : second] + labels[second + 1 :] + label
    return labels, term


def _steps(pairs: Sequence[Labelled], result: str, optimize: Any) -> list[tuple[int, ...]]:
    """Which operands to contract, step by step, by number; what comes out goes to the end."""
    if len(pairs) < 3:
        return [tuple(range(len(pairs)))]
    text = ",".join(labels for labels, _ in pairs) + "->" + result
    dummies = [np.broadcast_to(0.0, term.array_shape.dimensions) for _, term in pairs]
    path: list[Any] = np.einsum_path(text, *dummies, optimize=optimize or "greedy")[0]
    return [tuple(sorted(step)) for step in path[1:]]


def _contracted(x: Labelled, y: Labelled, needed: set[str]) -> Labelled:
    """The product of two operands, summed over the labels that are not needed any more."""
    x, y = _summed(x, set(y[0]) | needed), _summed(y, set(x[0]) | needed)
    x, y = _dropped(x, y), _dropped(y, x)
    shared = [label for label in x[0] if label in y[0]]
    batch = [label for label in shared if label in needed]
    inner = [label for label in shared if label not in needed]
    rest = [label for label in x[0] + y[0] if label not in shared]
    labels = "".join([*batch, *rest])
    numbers = DotDimensionNumbers(
        tuple(x[0].index(c) for c in inner),
        tuple(y[0].index(c) for c in inner),
        tuple(x[0].index(c) for c in batch),
        tuple(y[0].index(c) for c in batch),
    )
    return labels, contract(x[1], y[1], numbers)


def _summed(term: Labelled, kept: set[str]) -> Labelled:
    """Without the labels that only this operand has and nobody needs."""
    labels, value = term
    axes = tuple(d for d, label in enumerate(labels) if label not in kept)
    if not axes:
        return term
    return "".join(c for c in labels if c in kept), combined("add", value, axes)


def _dropped(term: Labelled, other: Labelled) -> Labelled:
    """Without dimensions of size 1 that the other operand has in full."""
    labels, value = term
    sizes = dict(zip(other[0], other[1].array_shape.dimensions, strict=True))
    dimensions = value.array_shape.dimensions
    kept = [d for d, c in enumerate(labels) if not (dimensions[d] == 1 and sizes.get(c, 1) != 1)]
    if len(kept) == len(labels):
        return term
    return "".join(labels[d] for d in kept), layout.reshape(value, [dimensions[d] for d in kept])


@implements(np.einsum_path)
def einsum_path(*operands: Any, optimize: Any = "greedy") -> Any:
    """The order in which `einsum` would contract, and NumPy's report on it.

    Raises `ArgumentError` for arguments that it does not take.

    >>> tnp.einsum_path("ij,jk->ik", np.ones((2, 3)), np.ones((3, 4)))[0]
    ['einsum_path', (0, 1)]
    """
    shapes: list[Any] = [
        np.broadcast_to(np.zeros((), item.dtype), item.shape) if isinstance(item, Tracer) else item
        for item in operands
    ]
    return np.einsum_path(*shapes, optimize=optimize)
