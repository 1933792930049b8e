"""Texts of definitions, values of attributes, and what refuses them."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tracejit.custom_ops import DefinitionBuilder, compatibility, define_op, kernel, register_op
from tracejit.custom_ops.values import decode, encode
from tracejit.errors import ArgumentError, AttributeValueError, UnsupportedError

pytestmark = pytest.mark.usefixtures("own_targets")

# An attribute's type, a value that it takes and what kernels see, values that it refuses.
KINDS: list[tuple[str, Any, Any, list[Any]]] = [
    ("string", "any", "any", [1, None, ["a"]]),
    ("string", b"\xff\x00", b"\xff\x00", [1.5]),
    ("{'a', 'b'}", "a", "a", ["c", 1, b"a"]),
    ("int", np.int8(3), 3, [1.5, "1", True, 2**63, None]),
    ("int >= 2", 2, 2, [1, -5, "2"]),
    ("float", 2, 2.0, ["2", True, 1j, None]),
    ("float", float("-inf"), float("-inf"), [[1.0]]),
    ("bool", np.True_, True, [1, "true", None]),
    ("type", np.float32, np.dtype(np.float32), [3, "floaty", None]),
    ("type", ml_dtypes.bfloat16, np.dtype(ml_dtypes.bfloat16), [object()]),
    ("type", "string", np.dtype(np.str_), [np.datetime64]),
    ("{int32, bool}", bool, np.dtype(bool), [np.float32, "int64"]),
    ("numbertype", "c64", np.dtype(np.complex64), [bool, "string"]),
    ("realnumbertype", "DT_HALF", np.dtype(np.float16), [complex]),
    ("shape", [2, -1, None], (2, None, None), [3, "2", [-2], [1.5]]),
    ("list(int)", range(3), (0, 1, 2), [3, "12", [1, 2.5]]),
    ("list(int) >= 2", [1, 2], (1, 2), [[1], []]),
    ("list({'a', 'b'})", ["a", "a"], ("a", "a"), [["a", "c"], "ab"]),
    ("list(shape)", [[1], None], ((1,), None), [[1]]),
    ("list(bool)", (True, False), (True, False), [[1]]),
    ("list(float)", [float("inf"), 1], (float("inf"), 1.0), [["1"]]),
    ("list(type)", [np.int8, "f32"], (np.dtype(np.int8), np.dtype(np.float32)), [[None]]),
    ("list({float, double}) >= 1", ["float"], (np.dtype(np.float32),), [[], ["int32"]]),
    ("list(string)", ["a", b"\xfe"], ("a", b"\xfe"), [[1]]),
]


@pytest.mark.parametrize(("text", "given", "seen", "wrong"), KINDS)
def test_values_of_every_type(text: str, given: Any, seen: Any, wrong: list[Any]) -> None:
    op = register_op("Attributes").attr(f"of_it: {text}")
    found: list[Any] = []
    kernel(op)(lambda of_it: found.append(of_it))
    op(given)
    assert found == [seen]
    assert type(found[0]) is type(seen)
    written = encode(op.definition, {"of_it": seen})
    assert decode(op.definition, written) == {"of_it": seen}
    for value in wrong:
        with pytest.raises(AttributeValueError, match="Attributes: attribute 'of_it'") as caught:
            op(value)
        shown = [repr(value), str(value), *map(repr, value if isinstance(value, list) else ())]
        shown += ["not int64", "not float32", "not bool", "not string", "not complex128"]
        shown += ["not float64", "not int32"]
        assert any(word in caught.value.message for word in shown)


def test_tensors() -> None:
    op = register_op("Tensor").attr("t: tensor", default=np.array([[1, 2]], np.int16))
    found: list[np.ndarray] = []
    kernel(op)(lambda t: found.append(t))
    op()
    op(np.float32(2.5))
    op([1j])
    assert [f.tolist() for f in found] == [[[1, 2]], 2.5, [1j]]
    assert [str(f.dtype) for f in found] == ["int16", "float32", "complex128"]
    for one in found:
        again = decode(op.definition, encode(op.definition, {"t": one}))["t"]
        np.testing.assert_array_equal(again, one)
        assert again.dtype == one.dtype
    for wrong in ("text", [[1], [2, 3]], object()):
        with pytest.raises(AttributeValueError, match="Tensor: attribute 't' must have type"):
            op(wrong)


def test_nan_is_kept() -> None:
    definition = define_op("F").attr("f: float").definition
    assert np.isnan(decode(definition, encode(definition, {"f": float("nan")}))["f"])


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('s: string = "it\'s"', "it's"),
        ("s: {'a', 'b'} = 'b'", "b"),
        ("f: float = -1e-3", -1e-3),
        ("f: float = inf", float("inf")),
        ("i: int = -7", -7),
        ("b: bool = False", False),
        ("t: {float, half} = DT_HALF", np.dtype(np.float16)),
        ("l: list(string) = ['a', \"b\"]", ("a", "b")),
        ("l: list(type) = [DT_INT32, bool]", (np.dtype(np.int32), np.dtype(bool))),
        ("l: list({float, int32}) >= 1 = [float]", (np.dtype(np.float32),)),
        ("l: list(bool) = [true, false]", (True, False)),
        ("l: list(shape) = [{ dim { size: 3 } }, [4, -1]]", ((3,), (4, None))),
        ("sh: shape = { unknown_rank: true }", None),
        ("sh: shape = { dim { size: -1 name: 'n' } }", (None,)),
        ("sh: shape = {}", ()),
    ],
)
def test_defaults(text: str, value: Any) -> None:
    (attr,) = define_op("Op").attr(text).definition.attrs
    assert attr.default == value


def test_default_tensors() -> None:
    text = "{ dtype: DT_FLOAT tensor_shape { dim { size: 2 } dim { size: 2 } } float_val: [1, 2] }"
    (attr,) = define_op("Op").attr(f"t: tensor = {text}").definition.attrs
    assert attr.default.tolist() == [[1, 2], [2, 2]]
    assert attr.default.dtype == np.float32


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("noname", "must be '<name>: <type>'"),
        ("1st: int", "must be '<name>: <type>'"),
        ("a: integer", "'integer' is no type of an attribute"),
        ("a: list(list(int))", "a list of lists"),
        ("a: list(int", r"expected '\)'"),
        ("a: {}", "a choice is between strings or between types"),
        ("a: {int32, 'a'}", "a choice is between strings or between types"),
        ("a: {int32, floaty}", "'floaty' is no type of arrays"),
        ("a: float >= 1", "'>=' is for integers and lists"),
        ("a: int >= x", "expected an integer, found 'x'"),
        ("a: int >= 1.5", r"expected an integer, found '1\.5'"),
        ("a: list(int) >= -1", "a list has no -1 elements"),
        ("a: int = 'a'", "expected an integer"),
        ("a: bool = 1", "'1' is no value of type bool"),
        ("a: string = a", "'a' is no value of type string"),
        ("a: int = 1 2", "'2' is too much"),
        ("a: int = 1 ?", r"'\?' is not understood"),
        ("a: int >= 3 = 2", "must be at least 3, not 2"),
        ("a: {'a'} = 'b'", "must be one of 'a', not 'b'"),
        ("a: list(int) >= 2 = [1]", "must have at least 2 elements, not 1"),
        ("a: tensor = { int_val: 5 }", "a tensor needs a dtype"),
        ("a: tensor = { dtype: DT_INT32 int_val: [1, 2] }", "2 values are too many"),
        ("a: resource", "a graph holds arrays, no resources"),
    ],
)
def test_texts_of_attributes_are_refused(text: str, sentence: str) -> None:
    with pytest.raises(AttributeValueError, match=f"Op: attribute .*{sentence}"):
        define_op("Op").attr(text)


@pytest.mark.parametrize(
    ("builder", "sentence"),
    [
        (define_op("Op").input("x: T"), "'x' has the type 'T', which is neither a type nor an"),
        (define_op("Op").attr("T: int").input("x: T"), "an attribute of type int, not type"),
        (define_op("Op").input("x: N * float"), "'x' has 'N' arrays, which is no attribute"),
        (define_op("Op").attr("N: float").input("x: N * float"), "no attribute of type int"),
        (
            define_op("Op").attr("N: int").attr("T: list(type)").input("x: N * T"),
            "'x' cannot be 'N' lists of 'T'",
        ),
        (define_op("Op").input("x: float").output("x: float"), "the name 'x' is given twice"),
    ],
)
def test_definitions_are_refused(builder: DefinitionBuilder, sentence: str) -> None:
    with pytest.raises(AttributeValueError, match=f"Op: .*{sentence}"):
        _ = builder.definition


def test_names_are_refused() -> None:
    for name in ("", "2nd", "a b", "tracejit.infeed"):
        with pytest.raises(AttributeValueError, match="is no name for an op"):
            register_op(name)
    register_op("Twice")
    with pytest.raises(ArgumentError, match="'Twice' is registered already; replace=True"):
        register_op("Twice")
    with pytest.raises(AttributeValueError, match="Op: input 'x: 3': expected a type"):
        define_op("Op").input("x: 3")
    with pytest.raises(UnsupportedError, match=r"Op: output 'x: Ref\(float\)': .* no references"):
        define_op("Op").output("x: Ref(float)")


def test_a_definition_in_use_is_finished() -> None:
    op = register_op("Done").input("x: float").output("y: float")
    kernel(op)(lambda x: x)
    with pytest.raises(ArgumentError, match="Done: is in use already"):
        op.attr("i: int = 0")
    with pytest.raises(ArgumentError, match="'t' has two defaults"):
        define_op("Op").attr("t: int = 1", default=2)


def test_texts_of_calls_are_refused() -> None:
    definition = define_op("Op").attr("i: int").attr("s: string = 'a'").definition
    assert decode(definition, '{"i":2}') == {"i": 2, "s": "a"}
    for text, sentence in (
        ("{", "holds no attributes"),
        ("[1]", "holds no attributes"),
        ("", "attribute 'i' is missing"),
        ('{"i":1,"j":2}', "has no attribute 'j'"),
        ('{"i":1.5}', "attribute 'i' must have type int, not 1.5"),
    ):
        with pytest.raises(AttributeValueError, match=f"Op: .*{sentence}"):
            decode(definition, text)


def test_what_breaks_graphs() -> None:
    base = define_op("Op").attr("T: {float, double}").attr("n: int = 1").input("x: T")
    base.output("y: T")

    def changed(*attrs: str, inputs: str = "x: T", outputs: str = "y: T") -> str:
        new = define_op("Op")
        for attr in attrs:
            new.attr(attr)
        return str(compatibility(base, new.input(inputs).output(outputs)))

    kept = "T: {float, double}"
    assert changed(kept, "n: int = 1") == "compatible"
    assert "attribute 'n' is removed" in changed(kept)
    assert "'n' changes its type from int to list(int)" in changed(kept, "n: list(int) = [1]")
    assert "'n' changes its default from 1 to 2" in changed(kept, "n: int = 2")
    assert "'n' loses its default" in changed(kept, "n: int")
    assert "'n' has the minimum 1, which was no minimum" in changed(kept, "n: int >= 1 = 1")
    assert "'T' no longer allows float64" in changed("T: {float}", "n: int = 1")
    assert "the outputs were (T), and of an old graph are (float32)" in changed(
        kept, "n: int = 1", outputs="y: float"
    )
    other = define_op("Other").attr(kept).attr("n: int = 1").input("x: T").output("y: T")
    assert "Op: the op is renamed to 'Other'" in str(compatibility(base, other))
    stateful = define_op("Op").set_is_stateful()
    assert "no longer stateful" in str(compatibility(stateful, define_op("Op")))


def test_what_breaks_callers() -> None:
    old = define_op("Op").attr("a: int = 1").input("x: float").output("y: float")
    found = compatibility(
        old,
        define_op("Op").attr("b: int = 2").attr("a: int = 1").input("x: float").output("y: float"),
    )
    assert found.is_compatible
    assert found.calls == ("Op: the parameter 'a' is number 2, it was 1",)
    renamed = define_op("Op").attr("a: int = 1").input("z: float").output("y: float")
    assert "the parameter 'x' is gone" in str(compatibility(old, renamed))
    later = (
        define_op("Op").attr("a: int = 1").attr("b: int = 2").input("x: float").output("y: float")
    )
    assert compatibility(old, later).calls == ()
