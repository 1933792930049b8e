"""The text of a module: its look, names, layouts, called computations, metadata."""

from __future__ import annotations

from tests.judge import parse_xla
from tracejit import ops
from tracejit.attributes import ResultAccuracy
from tracejit.graph import Computation, Instruction, Module
from tracejit.hlo import parse, to_text
from tracejit.shapes import AnyShape, ElementType, Shape

F32 = ElementType.F32
X = Shape(F32, (2, 3))


def module(root: Instruction, *parameters: Instruction, name: str = "example") -> Module:
    return Module(name, Computation("main", parameters, root))


def parameters(*shapes: AnyShape) -> list[Instruction]:
    return [ops.parameter(i, shape) for i, shape in enumerate(shapes)]


def test_a_whole_module() -> None:
    x, unused = parameters(X, Shape(ElementType.S32))
    shifted = ops.add(x, ops.full_like(x, 1.5))
    total = ops.reduce_sum(shifted, (1,))
    assert str(module(ops.tuple_([total, shifted]), x, unused)) == (
        "HloModule example, entry_computation_layout="
        "{(f32[2,3]{1,0}, s32[])->(f32[2]{0}, f32[2,3]{1,0})}\n"
        "\n"
        "%add_f32 (parameter.0: f32[], parameter.1: f32[]) -> f32[] {\n"
        "  %parameter.0 = f32[] parameter(0)\n"
        "  %parameter.1 = f32[] parameter(1)\n"
        "  ROOT %add.2 = f32[] add(%parameter.0, %parameter.1)\n"
        "}\n"
        "\n"
        "ENTRY %main (parameter.3: f32[2,3], parameter.4: s32[]) -> (f32[2], f32[2,3]) {\n"
        "  %parameter.3 = f32[2,3]{1,0} parameter(0)\n"
        "  %parameter.4 = s32[] parameter(1)\n"
        "  %constant.5 = f32[] constant(1.5)\n"
        "  %broadcast.6 = f32[2,3]{1,0} broadcast(%constant.5), dimensions={}\n"
        "  %add.7 = f32[2,3]{1,0} add(%parameter.3, %broadcast.6)\n"
        "  %constant.8 = f32[] constant(0.0)\n"
        "  %reduce.9 = f32[2]{0} reduce(%add.7, %constant.8), dimensions={1}, to_apply=%add_f32\n"
        "  ROOT %tuple.10 = (f32[2]{0}, f32[2,3]{1,0}) tuple(%reduce.9, %add.7)\n"
        "}\n"
    )


def test_computation_called_twice_is_written_once_and_names_are_told_apart() -> None:
    (x,) = parameters(X)

    def named_alike(function: object) -> Computation:
        inner = ops.parameter(0, X)
        assert callable(function)
        return Computation("f", (inner,), function(inner))

    double = named_alike(lambda v: ops.add(v, v))
    square = named_alike(lambda v: ops.mul(v, v))
    twice = ops.call(double, [ops.call(double, [x])])
    text = str(module(ops.call(square, [twice]), x))
    assert text.count("%f (") == 1
    assert text.count("%f.1 (") == 1
    assert text.count("to_apply=%f\n") == 2
    parse_xla(text)


def test_callees_stand_before_callers() -> None:
    (x,) = parameters(X)
    inner_parameter, outer_parameter = ops.parameter(0, X), ops.parameter(0, X)
    inner = Computation("inner", (inner_parameter,), ops.neg(inner_parameter))
    outer = Computation("outer", (outer_parameter,), ops.call(inner, [outer_parameter]))
    text = str(module(ops.call(outer, [x]), x))
    assert text.index("%inner (") < text.index("%outer (") < text.index("ENTRY %main (")
    parse_xla(text)


def test_names_that_text_does_not_allow_are_changed() -> None:
    (x,) = parameters(X)
    inner = ops.parameter(0, X)
    odd = Computation("2 λ→<f>", (inner,), ops.neg(inner))
    text = str(module(ops.call(odd, [x]), x, name="my module!"))
    assert text.startswith("HloModule my_module_,")
    assert "%_2____f_ (" in text
    parse_xla(text)


def test_attributes_left_at_their_defaults_are_not_written() -> None:
    x, i = parameters(X, Shape(ElementType.S64, (4, 1)))
    numbers = ops.GatherDimensionNumbers((1,), (0,), (0,), 1)
    line = str(module(ops.gather(x, i, numbers, (1, 3)), x, i)).splitlines()[-2]
    assert line.endswith(
        "offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, "
        "slice_sizes={1,3}"
    )
    line = str(module(ops.gather(x, i, numbers, (1, 3), True), x, i)).splitlines()[-2]
    assert line.endswith(", indices_are_sorted=true")


def test_result_accuracy() -> None:
    (x,) = parameters(X)
    for accuracy, written in (
        (ResultAccuracy("highest"), "{mode=highest}"),
        (ResultAccuracy(atol=0.5, ulps=2), "{tolerance={atol=0.5,rtol=0.0,ulps=2}}"),
    ):
        text = str(module(ops.exp(x, accuracy), x))
        assert f"result_accuracy={written}" in text
        assert parse(text).entry.root.attributes["result_accuracy"] == accuracy
        assert parse(parse_xla(text)).entry.root.attributes["result_accuracy"] == accuracy


def test_metadata_on_request() -> None:
    (x,) = parameters(X)
    made = module(ops.neg(x), x)
    assert "metadata" not in str(made)
    text = to_text(made, metadata=True)
    source = made.entry.root.source
    assert source is not None
    assert source.file == __file__
    assert f'op_name="neg" source_file="{__file__}" source_line={source.line}' in text
    assert parse(text).entry.root.source == source
    parse_xla(text)


def test_twenty_thousand_instructions_in_a_row() -> None:
    (x,) = parameters(Shape(F32))
    last = x
    for _ in range(20_000):
        last = ops.neg(last)
    made = module(last, x)
    assert str(parse(str(made))) == str(made)
