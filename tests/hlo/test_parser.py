"""What XLA prints is read."""

from __future__ import annotations

import re

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from tests.judge import parse_xla, run_xla
from tests.samples.cases import all_samples, joint_module
from tests.samples.values import element_types
from tracejit.backends.numpy import evaluate
from tracejit.equality import same_graph
from tracejit.errors import HloParseError
from tracejit.graph import Module
from tracejit.hlo import parse, to_text
from tracejit.shapes import TOKEN, ElementType, Shape, TupleShape
from tracejit.sources import Source
from tracejit.verifier import verify

F32 = ElementType.F32


def entry(*lines: str, before: str = "", header: str = "HloModule m") -> str:
    body = "\n".join(f"  {line}" for line in lines)
    return f"{header}\n\n{before}ENTRY %main {{\n{body}\n}}\n"


# As a framework dumps it: layouts, sharding, metadata, shapes of operands, comments, tables.
DUMP = r"""
HloModule jit_step, is_scheduled=true, entry_computation_layout={(f32[2,3]{1,0}, s32[])->f32[2]},
  input_output_alias={ }, buffer_donor={ (0, {}) }, frontend_attributes={a={b="c"}},
  num_partitions=2

FileNames
1 "train.py"

FunctionNames
1 "step"

FileLocations
1 {file_name_id=1 function_name_id=1 line=42 end_line=42 column=12 end_column=24}

StackFrames
1 {file_location_id=1 parent_frame_id=1}

// The sum of each row.
%region_0.1 (lhs.1: f32[], rhs.2: f32[]) -> f32[] {
  %lhs.1 = f32[] parameter(0), metadata={op_name="jit(step)/reduce_sum"}
  %rhs.2 = f32[] parameter(1)
  ROOT %add.3 = f32[] add(f32[] %lhs.1, f32[] %rhs.2), metadata={op_name="add" stack_frame_id=1}
}

ENTRY %main.5 (x.1: f32[2,3], n.2: s32[]) -> f32[2] {
  %x.1 = f32[2,3]{1,0:T(8,128)} parameter(0), sharding={devices=[2,1]<=[2]},
    metadata={op_name="x" source_file="old.py" source_line=7}
  %n.2 = s32[]{:S(5)} parameter(1), frontend_attributes={_xla="{\"quoted\"}"}
  %constant.3 = f32[] constant(-0)
  %pair = (s32[], f32[]) tuple(s32[] %n.2, f32[]{} %constant.3)
  %t = (f32[2,3]{0,1}, (s32[], f32[])) tuple(f32[2,3]{0,1} %x.1, /*index=1*/(s32[], f32[]) %pair)
  ROOT %reduce = f32[2]{0} reduce(f32[2,3]{1,0} %x.1, f32[] %constant.3), dimensions={1},
    to_apply=%region_0.1, control-predecessors={%n.2}, backend_config={"a":{"b":[1,"}"]}},
    metadata={op_name="sum" scheduling_name="r" stack_frame_id=1 profile={1,{2}}}
}, execution_thread="main"
"""


def test_a_dump_with_everything_around() -> None:
    module = verify(parse(DUMP))
    assert module.name == "jit_step"
    assert [p.shape for p in module.entry.parameters] == [
        Shape(F32, (2, 3)),
        Shape(ElementType.S32),
    ]
    root = module.entry.root
    assert root.source == Source("train.py", 42)
    assert root.operands[0].source == Source("old.py", 7)
    assert root.operands[1].source is None
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert_array_equal(evaluate(module.entry, [x, np.int32(0)]), [3, 12])


def test_names_without_percent_and_computations_in_any_order() -> None:
    text = """HloModule m
ENTRY main {
  x = f32[] parameter(0)
  ROOT y = f32[] call(x), to_apply=twice
}
twice {
  p = f32[] parameter(0)
  ROOT q = f32[] add(p, p)
}
"""
    assert evaluate(verify(parse(text)).entry, [np.float32(4)]) == 8


def test_without_root_the_last_instruction_counts() -> None:
    text = entry("x = f32[] parameter(0)", "y = f32[] negate(x)", "z = f32[] add(y, y)")
    assert parse(text).entry.root.op.name == "Add"


def test_parameters_in_any_order() -> None:
    text = entry(
        "b = s32[] parameter(1)", "a = f32[] parameter(0)", "ROOT t = (s32[], f32[]) tuple(b, a)"
    )
    module = verify(parse(text))
    assert [str(p.shape) for p in module.entry.parameters] == ["f32[]", "s32[]"]


def test_elided_constants_become_parameters() -> None:
    text = entry(
        "x = f32[1000] parameter(0)",
        "w = f32[1000]{0} constant({...})",
        "v = f32[2,500]{1,0} constant({...})",
        "s = f32[1000] add(x, w)",
        "r = f32[1000] reshape(v)",
        "ROOT y = f32[1000] add(s, r)",
    )
    module = verify(parse(text))
    shapes = [str(p.shape) for p in module.entry.parameters]
    assert shapes == ["f32[1000]", "f32[1000]", "f32[2,500]"]


def elided_everywhere(text: str) -> tuple[Module, list[np.ndarray]]:
    """The module without its long constants, and these."""
    literals: list[np.ndarray] = []

    def leave_out(matched: re.Match[str]) -> str:
        numbers = [float(number) for number in matched[1].split(",")]
        literals.append(np.array(numbers, np.float32))
        return "constant({...})"

    return verify(parse(re.sub(r"constant\(\{([^}]*)\}\)", leave_out, text))), literals


def test_constants_left_out_in_what_is_called() -> None:
    def body(name: str, *lines: str, parameter: str = "f32[3] parameter(0)") -> str:
        listed = "\n".join(f"  {line}" for line in (f"p = {parameter}", *lines))
        return f"{name} {{\n{listed}\n}}\n"

    state = "(s32[], f32[3])"
    before = (
        body("inner", "c = f32[3] constant({1, 2, 3})", "ROOT r = f32[3] multiply(p, c)")
        + body(
            "outer",
            "c = f32[3] constant({4, 5, 6})",
            "i = f32[3] fusion(p), kind=kLoop, calls=inner",
            "ROOT r = f32[3] add(i, c)",
        )
        + body("low", "c = f32[3] constant({-1, 0, 1})", "ROOT r = f32[3] maximum(p, c)")
        + body("high", "ROOT r = f32[3] call(p), to_apply=outer")
        + body(
            "more",
            "n = s32[] get-tuple-element(p), index=0",
            "k = s32[] constant(3)",
            "ROOT r = pred[] compare(n, k), direction=LT",
            parameter=f"{state} parameter(0)",
        )
        + body(
            "step",
            "n = s32[] get-tuple-element(p), index=0",
            "one = s32[] constant(1)",
            "m = s32[] add(n, one)",
            "x = f32[3] get-tuple-element(p), index=1",
            "c = f32[3] constant({7, 8, 9})",
            "y = f32[3] add(x, c)",
            f"ROOT r = {state} tuple(m, y)",
            parameter=f"{state} parameter(0)",
        )
    )
    text = entry(
        "x = f32[3] parameter(0)",
        "flag = pred[] parameter(1)",
        "a = f32[3] call(x), to_apply=outer",
        "b = f32[3] conditional(flag, a, x), true_computation=low, false_computation=high",
        "w = f32[3] constant({10, 20, 30})",
        "zero = s32[] constant(0)",
        f"t = {state} tuple(zero, b)",
        f"u = {state} while(t), condition=more, body=step",
        "v = f32[3] get-tuple-element(u), index=1",
        "which = s32[] convert(flag)",
        "z = f32[3] conditional(which, v, w), branch_computations={low, inner}",
        "ROOT y = (f32[3], f32[3]) tuple(z, w)",
        before=before,
    )
    module, literals = elided_everywhere(text)
    assert len(module.entry.parameters) == 2 + 5  # each once, in the order of the text
    assert [list(literal) for literal in literals][:3] == [[1, 2, 3], [4, 5, 6], [-1, 0, 1]]
    whole = parse(text)
    for flag in (True, False):
        arrays = [np.array([-3, 0.5, 2], np.float32), np.array(flag)]
        expected = evaluate(whole.entry, arrays)
        actual = evaluate(module.entry, [*arrays, *literals])
        for one, other in zip(actual, expected, strict=True):
            assert_array_equal(one, other)
        for one, other in zip(run_xla(module, *arrays, *literals), expected, strict=True):
            assert_array_equal(one, other)


def test_without_header_and_entry() -> None:
    body = "{\n  x = f32[] parameter(0)\n  ROOT y = f32[] negate(x)\n}\n"
    assert parse(f"ENTRY main {body}").name == "module_main"
    module = parse(f"f {body}\n%g (x: f32[]) -> f32[] {body}")
    assert (module.name, module.entry.name) == ("module_g", "g")


def test_the_older_name_of_a_configuration() -> None:
    text = entry('ROOT c = f32[2] custom-call(), custom_call_target="x", opaque="a\\"b"')
    assert parse(text).entry.root.attributes["backend_config"] == 'a"b'


@pytest.mark.parametrize(
    "literal",
    [
        "s32[] 3",
        "f32[2]{0} {0.5, nan}",
        "c64[] (1.0, -2.0)",
        "f32[2,1]{0,1} { {1.0}, {2.0} }",
        "( s32[4]{0} {4, 128, 128, 3}, pred[2]{0} {true, false}, f32[] -0.25 )",
    ],
)
def test_literals_of_custom_calls(literal: str) -> None:
    text = entry(f'ROOT c = f32[2] custom-call(), custom_call_target="x", literal={literal}')
    module = parse(text)
    assert module.entry.root.attributes["literal"] == literal
    by_xla = parse_xla(to_text(module))
    for printed in (to_text(module), by_xla):
        assert same_graph(parse(printed), module)


@pytest.mark.parametrize("literal", ["token[] 3", "s32[2]{0} {1}", "s32[] x", "s32[]", "(s32[] 1"])
def test_literals_of_custom_calls_that_are_none(literal: str) -> None:
    text = entry(f'ROOT c = f32[2] custom-call(), custom_call_target="x", literal={literal}')
    with pytest.raises(HloParseError):
        parse(text)


def test_starts_of_dynamic_slices_in_one_array() -> None:
    text = entry(
        "x = s32[4,3] parameter(0)",
        "u = s32[1,2] parameter(1)",
        "i = s64[2] parameter(2)",
        "a = s32[2,2] dynamic-slice(s32[4,3] x, s64[2] i), dynamic_slice_sizes={2,2}",
        "b = s32[4,3] dynamic-update-slice(x, u, i)",
        "ROOT t = (s32[2,2], s32[4,3]) tuple(a, b)",
    )
    module = verify(parse(text))
    assert same_graph(parse(to_text(module)), module)
    x, u = np.arange(12, dtype=np.int32).reshape(4, 3), np.array([[70, 80]], np.int32)
    found = evaluate(module.entry, [x, u, np.array([2, 9])])
    updated = x.copy()
    updated[2, 1:] = u
    assert_array_equal(found[0], x[2:, 1:])
    assert_array_equal(found[1], updated)
    with pytest.raises(HloParseError, match="one start index for each dimension"):
        parse(text.replace("s64[2]", "s64[3]"))


def test_shapes_that_follow_from_operands() -> None:
    text = entry(
        "x = f32[2,3] parameter(0)",
        "y = add(x, x)",
        "z = transpose(y), dimensions={1,0}",
        "ROOT t = tuple(z, x)",
    )
    module = verify(parse(text))
    assert str(module.entry.root.shape) == "(f32[3,2], f32[2,3])"


def test_a_constant_that_xla_elides_by_default() -> None:
    numbers = ", ".join(str(i) for i in range(40))
    text = entry(f"ROOT c = s32[40] constant({{{numbers}}})")
    assert_array_equal(evaluate(parse(text).entry, []), range(40))
    elided = text.replace(numbers, "...")
    assert len(parse(elided).entry.parameters) == 1


def test_tokens_and_tuples_as_parameters() -> None:
    text = entry("t = token[] parameter(0)", "ROOT p = (f32[2]{0}, (), token[]) parameter(1)")
    module = parse(text)
    assert module.entry.parameters[0].shape == TOKEN
    assert module.entry.root.shape == TupleShape((Shape(F32, (2,)), TupleShape(()), TOKEN))


def test_every_sample_printed_by_xla_is_read_without_its_percents_and_layouts() -> None:
    for sample in all_samples()[::7]:
        module = joint_module(sample, element_types(sample)[:3])
        printed = parse_xla(to_text(module))
        assert same_graph(parse(printed.replace("%", "")), module)


def test_a_chain_of_a_thousand_computations() -> None:
    first = "f0 {\n  ROOT p = f32[] parameter(0)\n}\n"
    rest = [
        f"f{i} {{\n  p = f32[] parameter(0)\n  ROOT q = f32[] call(p), to_apply=f{i - 1}\n}}\n"
        for i in range(1, 1000)
    ]
    text = entry(
        "x = f32[] parameter(0)",
        "ROOT y = f32[] call(x), to_apply=f999",
        before="".join(reversed([first, *rest])),
    )
    module = parse(text)
    assert same_graph(parse(to_text(module)), module)
