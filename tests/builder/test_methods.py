"""Every name of the page "Operation semantics" is a method of the builder."""

from __future__ import annotations

import inspect

import pytest

from tracejit import ops
from tracejit.builder import XlaBuilder
from tracejit.graph import OPS
from tracejit.ops.base import function_name

PAGE = """
Abs Cbrt Ceil Clz Conj Cos Cosh Erf Exp Expm1 Floor Imag IsFinite Log Log1p Logistic Neg Not
PopulationCount Real Round RoundNearestAfz RoundNearestEven Rsqrt Sign Sin Sinh Sqrt Tan Tanh
Acos Acosh Asin Asinh Atan Atanh
Add And Atan2 Complex Div Max Min Mul Or Pow Rem ShiftLeft ShiftRightArithmetic ShiftRightLogical
Sub Xor Compare Eq Ne Ge Gt Le Lt
EqTotalOrder NeTotalOrder GeTotalOrder GtTotalOrder LeTotalOrder LtTotalOrder
Clamp Select ConvertElementType BitcastConvertType ReducePrecision
Broadcast BroadcastInDim Collapse Reshape DynamicReshape Transpose Rev Pad Concatenate ConcatInDim
Slice DynamicSlice DynamicUpdateSlice GetDimensionSize SetDimensionSize
Parameter Constant ConstantLiteral Iota Tuple GetTupleElement OptimizationBarrier AfterAll
Gather Scatter
Dot DotGeneral ScaledDot RaggedDot
Conv ConvWithGeneralPadding ConvWithGeneralDimensions ConvGeneral ConvGeneralDilated
Reduce ReduceWindow SelectAndScatter Scan Map Sort TopK
BatchNormTraining BatchNormInference BatchNormGrad
Cholesky TriangularSolve Fft
Call CompositeCall Conditional While CustomCall
RngUniform RngNormal RngBitGenerator
AllGather AllReduce CrossReplicaSum AllToAll RaggedAllToAll CollectiveBroadcast CollectivePermute
ReduceScatter ReplicaId PartitionId Send Recv Infeed Outfeed
""".split()

ONLY_IN_DUMPS = """
AddDependency AsyncStart AsyncUpdate AsyncDone Bitcast Copy CopyStart CopyDone Domain Fusion
RngGetAndUpdateState AllGatherStart AllGatherDone AllReduceStart AllReduceDone
CollectivePermuteStart CollectivePermuteDone SendDone RecvDone
""".split()


@pytest.mark.parametrize("name", PAGE)
def test_has_every_op_of_the_page(name: str) -> None:
    method = getattr(XlaBuilder("test"), name)
    assert callable(method)
    assert method.__doc__, f"{name} has no docstring"


@pytest.mark.parametrize("name", ONLY_IN_DUMPS)
def test_offers_nothing_that_only_compilers_make(name: str) -> None:
    with pytest.raises(AttributeError, match=f"XlaBuilder has no method {name}"):
        getattr(XlaBuilder("test"), name)


def test_every_op_of_the_table_is_a_method_or_only_in_dumps() -> None:
    builder = XlaBuilder("test")
    # XlaBuilder has these as two methods each, or under another name.
    shared = {"Rng"}
    missing = [
        name
        for name in OPS
        if name not in ONLY_IN_DUMPS and name not in shared and not hasattr(builder, name)
    ]
    assert not missing


def test_methods_take_the_arguments_of_the_functions_they_are() -> None:
    for name in ("batch_norm_grad", "conv_general_dilated", "gather", "slice", "top_k"):
        function = getattr(ops, name, None) or getattr(ops, f"{name}_")
        method = getattr(XlaBuilder("test"), name)
        assert inspect.signature(method) == inspect.signature(function)
        assert getattr(XlaBuilder, name) is function


def test_xlas_own_names_work() -> None:
    builder = XlaBuilder("test")
    for name in ("BatchNormGrad", "And", "While", "Expm1", "EqTotalOrder"):
        snake = function_name(name)
        spelling = snake if hasattr(XlaBuilder, snake) else f"{snake}_"
        assert getattr(builder, name).__doc__ == getattr(builder, spelling).__doc__


@pytest.mark.parametrize("name", ["Foo", "foo", "_hidden", "Slice_"])
def test_other_names_are_errors(name: str) -> None:
    with pytest.raises(AttributeError, match=f"XlaBuilder has no method {name}"):
        getattr(XlaBuilder("test"), name)
