"""The page on custom operations: attributes, lists of inputs, and what may change later."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracejit as tj
from tracejit import targets
from tracejit.custom_ops import (
    Op,
    compatibility,
    define_op,
    kernel,
    merged_shape,
    register_op,
    scalar_shape,
)
from tracejit.errors import (
    ArgumentError,
    AttributeValueError,
    ElementTypeError,
    UnsupportedError,
)

pytestmark = pytest.mark.usefixtures("own_targets")


def attributes_only(name: str, *texts: str) -> Op:
    """An op without inputs and outputs, as the page has them for attributes."""
    op = register_op(name)
    for text in texts:
        op.attr(text)
    kernel(op)(lambda **attrs: None)
    return op


def test_choice_of_strings() -> None:
    op = attributes_only("EnumExample", "e: {'apple', 'orange'}")
    op(e="apple")
    with pytest.raises(
        AttributeValueError, match=r"EnumExample: attribute 'e' .*'apple', 'orange', not 'pear'"
    ):
        op(e="pear")


def test_choice_of_types() -> None:
    op = attributes_only("RestrictedTypeExample", "t: {int32, float, bool}")
    for good in (np.int32, np.float32, bool, "float", "DT_INT32"):
        op(t=good)
    with pytest.raises(AttributeValueError, match=r"'t' must be one of int32, .*, not float64"):
        op(t=np.float64)


def test_number_types() -> None:
    op = attributes_only("NumberType", "t: numbertype")
    op(t=np.int32)
    with pytest.raises(AttributeValueError, match=r"NumberType: attribute 't' .*, not bool"):
        op(t=bool)
    both = attributes_only("NumberOrBooleanType", "t: {numbertype, bool}")
    both(t=np.int32)
    both(t=bool)
    with pytest.raises(AttributeValueError, match=r"NumberOrBooleanType: .* not string"):
        both(t="string")
    real = attributes_only("RealNumber", "t: realnumbertype")
    real(t=np.float64)
    with pytest.raises(AttributeValueError, match="not complex64"):
        real(t=np.complex64)
    with pytest.raises(AttributeValueError, match="quantizedtype: no element type is quantised"):
        register_op("Quantised").attr("t: quantizedtype")


def test_least_integers_and_lengths() -> None:
    op = attributes_only("MinIntExample", "a: int >= 2")
    op(a=2)
    with pytest.raises(AttributeValueError, match=r"MinIntExample: .* 'a' .* at least 2, not 1"):
        op(a=1)
    listed = attributes_only("TypeListExample", "a: list({int32, float}) >= 3")
    listed(a=[np.int32, np.float32, np.int32])
    with pytest.raises(
        AttributeValueError, match=r"TypeListExample: .* 'a' .* at least 3 .* not 2"
    ):
        listed(a=[np.int32, np.float32])
    with pytest.raises(AttributeValueError, match=r"'a' must be one of .*, not bool"):
        listed(a=[np.int32, np.float32, np.bool_])


def seen(name: str, *texts: str, **given: Any) -> dict[str, Any]:
    """The attributes that a kernel is given."""
    op = register_op(name)
    for text in texts:
        op.attr(text)
    found: dict[str, Any] = {}
    kernel(op)(lambda **attrs: found.update(attrs))
    op(**given)
    return found


def test_defaults() -> None:
    assert seen("AttrDefaultExample", "i: int = 0") == {"i": 0}
    assert seen("AttrConstraintAndDefaultExample", "i: int >= 1 = 1") == {"i": 1}
    with pytest.raises(AttributeValueError, match="'i' must be at least 1, not 0"):
        register_op("Wrong").attr("i: int >= 1 = 0")


def test_defaults_of_all_types() -> None:
    found = seen(
        "AttrDefaultExampleForAllTypes",
        "s: string = 'foo'",
        "i: int = 0",
        "f: float = 1.0",
        "b: bool = true",
        "ty: type = DT_INT32",
        "sh: shape = { dim { size: 1 } dim { size: 2 } }",
        "te: tensor = { dtype: DT_INT32 int_val: 5 }",
        "l_empty: list(int) = []",
        "l_int: list(int) = [2, 3, 5, 7]",
    )
    tensor = found.pop("te")
    assert tensor.dtype == np.int32
    assert tensor.tolist() == 5
    assert found == {
        "s": "foo",
        "i": 0,
        "f": 1.0,
        "b": True,
        "ty": np.dtype(np.int32),
        "sh": (1, 2),
        "l_empty": (),
        "l_int": (2, 3, 5, 7),
    }


def string_to_number() -> Op:
    op = (
        register_op("StringToNumber")
        .input("string_tensor: string")
        .output("output: out_type")
        .attr("out_type: {float, int32} = DT_FLOAT")
        .doc("Converts each string in the input Tensor to the specified numeric type.")
    )
    kernel(op)(lambda strings, out_type: strings.astype(out_type))
    return op


def test_string_to_number() -> None:
    op = string_to_number()
    assert op(["1.5", "2"]).tolist() == [1.5, 2]
    assert op(["1", "2"], np.int32).dtype == np.int32
    assert tj.jit(lambda x: x + op(["1", "2"]))(np.float32(1)).tolist() == [2, 3]
    with pytest.raises(AttributeValueError, match="'out_type' must be one of float32, int32"):
        op(["1"], out_type=np.float64)
    assert op.__doc__ == (
        "Converts each string in the input Tensor to the specified numeric type.\n\n"
        "Args:\n"
        "    string_tensor: An array of type `string`.\n"
        "    out_type: An optional `{float32, int32}`. Defaults to `float32`.\n"
        "    name: A name for the operation (optional).\n\n"
        "Returns:\n"
        "    An array of type `out_type`.\n"
    )


def test_lists_of_any_types() -> None:
    op = register_op("PolymorphicListExample").attr("T: list(type)").input("in: T").output("out: T")
    op.set_shape_fn(lambda c: c.inputs("in"))
    kernel(op)(lambda arrays: arrays)
    given: list[np.ndarray] = [np.arange(3), np.ones((2, 2), np.float32), np.array(True)]
    for way in (op, tj.jit(op)):
        made = way(given)
        assert [m.dtype for m in made] == [g.dtype for g in given]
        for one, wanted in zip(made, given, strict=True):
            np.testing.assert_array_equal(one, wanted)
    with pytest.raises(AttributeValueError, match="'T' must have at least 1 elements"):
        op([])
    with pytest.raises(ArgumentError, match="input 'in' must be a list of arrays, not ndarray"):
        op(np.arange(3))


def test_lists_of_some_types() -> None:
    for name, types in (
        ("ListTypeRestrictionExample", "float, double"),
        ("RestrictedTensorSequenceExample", "int32, int64"),
    ):
        op = register_op(name).attr(f"T: list({{{types}}})").input("in: T").output("out: T")
        op.set_shape_fn(lambda c: c.inputs("in"))
        kernel(op)(lambda arrays: arrays)
    of_floats = targets.find_target("ListTypeRestrictionExample").op
    assert isinstance(of_floats, Op)
    f, d = np.ones(2, np.float32), np.ones(2)
    assert [m.dtype for m in of_floats([f, d, f])] == [f.dtype, d.dtype, f.dtype]
    with pytest.raises(ElementTypeError, match=r"number 1, .* one of float32, float64, not int32"):
        of_floats([f, np.ones(2, np.int32)])


def test_lists_of_one_type() -> None:
    ints = register_op("IntListInputExample").attr("N: int").input("in: N * int32")
    ints.output("out: int32").set_shape_fn(merged_shape)
    same = register_op("SameListInputExample").attr("N: int").attr("T: type")
    same.input("in: N * T").output("out: T").set_shape_fn(merged_shape)
    for op in (ints, same):
        kernel(op)(lambda arrays: np.sum(arrays, 0, dtype=arrays[0].dtype))
    x = np.array([1, 2], np.int32)
    for way in (ints, same, tj.jit(ints), tj.jit(same)):
        assert way([x, x, x]).tolist() == [3, 6]
    assert same([np.ones(2), np.ones(2)]).dtype == np.float64
    with pytest.raises(AttributeValueError, match=r"IntListInputExample: attribute 'N' .* least 1"):
        ints([])
    with pytest.raises(ElementTypeError, match="number 1, must have the type of attribute 'T'"):
        same([x, np.ones(2)])


def test_lists_of_a_least_length() -> None:
    ints = register_op("MinLengthIntListExample").attr("N: int >= 2").input("in: N * int32")
    ints.output("out: int32").set_shape_fn(merged_shape)
    kernel(ints)(lambda arrays: arrays[0])
    with pytest.raises(AttributeValueError, match="'N' must be at least 2, not 1"):
        ints([1])
    assert ints([1, 2]) == 1
    several = register_op("MinimumLengthPolymorphicListExample").attr("T: list(type) >= 3")
    several.input("in: T").output("out: T").set_shape_fn(lambda c: c.inputs("in"))
    kernel(several)(lambda arrays: arrays)
    with pytest.raises(AttributeValueError, match="'T' must have at least 3 elements, not 2"):
        several([1, 2])
    assert several([1, 2, 3]) == [1, 2, 3]


def test_several_inputs_and_outputs() -> None:
    op = register_op("MultipleInsAndOuts").input("y: int32").input("z: float")
    op.output("a: string").output("b: int32").set_shape_fn(scalar_shape)
    kernel(op)(lambda y, z: (np.array(f"{z}"), y + 1))
    made = op(1, 2.5)
    assert (str(made.a), int(made.b)) == ("2.5", 2)
    with pytest.raises(UnsupportedError, match=r"MultipleInsAndOuts: .* string"):
        tj.jit(lambda y: op(y, 2.5))(np.int32(1))


def test_types_of_inputs() -> None:
    fixed = register_op("BuiltInTypesExample").input("integers: int32")
    fixed.input("complex_numbers: complex64")
    kernel(fixed)(lambda integers, complex_numbers: None)
    assert fixed([1], [2j]) is None
    with pytest.raises(ElementTypeError, match="'complex_numbers' must have type complex64"):
        fixed([1], np.array([2j]))
    any_type = register_op("PolymorphicSingleInput").attr("T: type").input("in: T")
    kernel(any_type)(lambda given: None)
    any_type(np.ones(2))
    any_type(["text"])
    some = register_op("RestrictedPolymorphicSingleInput").attr("T: {int32, int64}").input("in: T")
    kernel(some)(lambda given: None)
    some(np.arange(2))
    with pytest.raises(ElementTypeError, match=r"'in' .*'T', one of int32, int64, not float64"):
        some(np.ones(2))


def test_sequences() -> None:
    sequence = register_op("ArbitraryTensorSequenceExample").attr("T: list(type)").input("in: T")
    sequence.output("out: T").set_shape_fn(lambda c: c.inputs("in"))
    ints = register_op("Int32SequenceExample").attr("NumTensors: int")
    ints.input("in: NumTensors * int32")
    same = register_op("SameTypeSequenceExample").attr("NumTensors: int").attr("T: type")
    same.input("in: NumTensors * T")
    counts: list[int] = []
    kernel(sequence)(lambda arrays: arrays)
    kernel(ints)(lambda arrays, NumTensors: counts.append(NumTensors))
    kernel(same)(lambda arrays, NumTensors: counts.append(NumTensors))
    assert sequence([1, 2.5]) == [1, 2.5]
    ints([1, 2, 3])
    same([1.5, 2.5])
    assert counts == [3, 2]
    with pytest.raises(UnsupportedError, match="there are no references"):
        register_op("Refers").input("x: Ref(float)")


def test_compatible_changes() -> None:
    old = define_op("MyGeneralUnaryOp").input("in: float").output("out: float")
    new = define_op("MyGeneralUnaryOp").input("in: T").output("out: T")
    assert compatibility(old, new.attr("T: numerictype = DT_FLOAT"))
    without = define_op("MyGeneralUnaryOp").input("in: T").output("out: T").attr("T: numbertype")
    found = compatibility(old, without)
    assert not found
    assert "attribute 'T' is new and has no default" in str(found)
    for before, after in (
        ("{int32, int64}", "{int32, int64, float}"),
        ("{int32, int64}", "type"),
        ("{'apple', 'orange'}", "{'apple', 'banana', 'orange'}"),
        ("{'apple', 'orange'}", "string"),
        ("int >= 2", "int"),
        ("int >= 2", "int >= 1"),
        ("list(int) >= 3", "list(int) >= 2"),
        ("list({float, double})", "list(type)"),
    ):
        a, b = (define_op("Op").attr(f"a: {text}") for text in (before, after))
        assert compatibility(a, b), str(compatibility(a, b))
        assert not compatibility(b, a)


def test_single_inputs_become_lists() -> None:
    old = define_op("Op").input("x: float").output("y: float")
    new = define_op("Op").attr("N: int = 1").input("x: N * float").output("y: float")
    assert compatibility(old, new)
    types = define_op("Op").attr("T: list(type) = [DT_FLOAT]").input("x: T").output("y: float")
    assert compatibility(old, types)
    two = define_op("Op").attr("N: int = 2").input("x: N * float").output("y: float")
    assert "the inputs were (float32), and" in str(compatibility(old, two))
    added = define_op("Op").attr("T: list(type) >= 0 = []").input("x: float").input("more: T")
    assert compatibility(old, added.output("y: float"))
    single = define_op("Op").attr("N: int").attr("T: type").input("x: N * T")
    several = define_op("Op").attr("N: int").attr("T: list(type)").input("x: T")
    assert "'T' changes its type from type to list(type)" in str(compatibility(single, several))


def test_type_attribute_with_a_default() -> None:
    old = define_op("ZeroOut").input("to_zero: int32").output("zeroed: int32")
    new = define_op("ZeroOut").attr("T: {float, int32} = DT_INT32")
    assert compatibility(old, new.input("to_zero: T").output("zeroed: T"))
