"""DotGeneral and Conv."""

from __future__ import annotations

from tests.fuzz.graph import Graph
from tracejit import ops
from tracejit.attributes import ConvDimensionNumbers
from tracejit.graph import Instruction
from tracejit.ops.base import ALL, INEXACT
from tracejit.shapes import ElementType, Shape


def dot_general(graph: Graph) -> Instruction | None:
    choices = graph.choices
    lhs = graph.value(ALL)
    shape = lhs.array_shape
    kinds = [choices.pick(("sum", "free", "batch")) for _ in range(shape.rank)]
    summed = [d for d, kind in enumerate(kinds) if kind == "sum"]
    batch = [d for d, kind in enumerate(kinds) if kind == "batch"]
    others = [choices.pick((3, 2, 1, 5, 16, 0)) for _ in range(choices.integer(0, 2))]
    sizes = [*(shape.dimensions[d] for d in (*batch, *summed)), *others]
    order = choices.permutation(len(sizes))
    dimensions = [sizes[d] for d in order]
    if not graph.whole(dimensions):
        return None
    rhs = graph.like(shape.with_dimensions(dimensions))
    where = [order.index(i) for i in range(len(batch) + len(summed))]
    numbers = ops.DotDimensionNumbers(
        tuple(summed), tuple(where[len(batch) :]), tuple(batch), tuple(where[: len(batch)])
    )
    preferred = _preferred(graph, shape.element_type)
    free = [size for d, size in enumerate(shape.dimensions) if d not in summed]
    if not graph.whole([*free, *others]):
        return None
    return ops.dot_general(lhs, rhs, numbers, _precision(graph), preferred)


def _preferred(graph: Graph, element_type: ElementType) -> ElementType | None:
    """A wider type for the result, now and then."""
    wider = {
        ElementType.BF16: ElementType.F32,
        ElementType.F16: ElementType.F32,
        ElementType.F8E5M2: ElementType.F32,
        ElementType.F8E4M3FN: ElementType.BF16,
        ElementType.S8: ElementType.S32,
        ElementType.U8: ElementType.U32,
        ElementType.S4: ElementType.S8,
        ElementType.F32: ElementType.F64,
    }
    return wider.get(element_type) if graph.choices.chance(2) else None


def _precision(graph: Graph) -> str | None:
    return graph.choices.pick((None, None, "high", "highest", "default"))


def conv(graph: Graph) -> Instruction | None:
    """A convolution with labels in any order, groups, dilations and padding."""
    choices = graph.choices
    letters = choices.pick(("HW", "W", "DHW", ""))
    groups = choices.pick((1, 1, 2, 3))
    by_batch = choices.chance(5)
    inputs, outputs, batch = (choices.pick((1, 2, 3)) for _ in range(3))
    base = {"N": batch * (groups if by_batch else 1), "C": inputs * (1 if by_batch else groups)}
    kernel = {"O": outputs * groups, "I": inputs}
    for letter in letters:
        base[letter], kernel[letter] = choices.pick((4, 1, 5, 7)), choices.pick((1, 2, 3))
    lhs, rhs, out = (_shuffled(graph, axes + letters) for axes in ("NC", "OI", "NC"))
    element_type = graph.element_type(ALL if graph.is_single else INEXACT)
    operands = [
        Shape(element_type, tuple(sizes[label] for label in labels))
        for sizes, labels in ((base, lhs), (kernel, rhs))
    ]
    if not all(graph.whole(shape.dimensions) for shape in operands):
        return None
    dilations = [choices.pick((1, 1, 2)) for _ in letters]
    spatial = [base[label] for label in lhs if label in letters]
    extents = [(size - 1) * d + 1 for size, d in zip(spatial, dilations, strict=True)]
    made = ops.conv_general_dilated(
        graph.like(operands[0]),
        graph.like(operands[1]),
        [choices.pick((1, 2)) for _ in letters],
        [graph.padding(extent) for extent in extents],
        dilations,
        [choices.pick((1, 1, 2)) for _ in letters],
        ConvDimensionNumbers.from_labels(lhs, rhs, out),
        feature_group_count=1 if by_batch else groups,
        batch_group_count=groups if by_batch else 1,
        precision_config=_precision(graph),
        preferred_element_type=_preferred(graph, element_type),
        window_reversal=[choices.chance(4) for _ in letters],
    )
    return made if graph.whole(made.array_shape.dimensions) else None


def _shuffled(graph: Graph, labels: str) -> str:
    return "".join(labels[d] for d in graph.choices.permutation(len(labels)))


STEPS = {"DotGeneral": (dot_general,), "ConvGeneralDilated": (conv,)}
