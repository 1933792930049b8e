"""Ops on one operand, element by element.

The dialect lacks the inverse and the hyperbolic functions, which are composed, and Erf, which goes
as the custom call that XLA reads as its own op.
"""

from __future__ import annotations

from tracejit.graph import Instruction
from tracejit.hlo.stablehlo.text import integer, string
from tracejit.hlo.stablehlo.writer import Names, Writer, stablehlo
from tracejit.ops.elementwise_unary import (
    ABS,
    CBRT,
    CEIL,
    CLZ,
    COS,
    ERF,
    EXP,
    EXPM1,
    FLOOR,
    IMAG,
    IS_FINITE,
    LOG,
    LOG1P,
    LOGISTIC,
    NEG,
    NOT,
    POPULATION_COUNT,
    REAL,
    ROUND_NEAREST_AFZ,
    ROUND_NEAREST_EVEN,
    RSQRT,
    SIGN,
    SIN,
    SQRT,
    TAN,
    TANH,
)
from tracejit.ops.expansions import EXPANSIONS, expanded

_NAMES = {
    ABS: "abs",
    CBRT: "cbrt",
    CEIL: "ceil",
    CLZ: "count_leading_zeros",
    COS: "cosine",
    EXP: "exponential",
    EXPM1: "exponential_minus_one",
    FLOOR: "floor",
    IMAG: "imag",
    IS_FINITE: "is_finite",
    LOG: "log",
    LOG1P: "log_plus_one",
    LOGISTIC: "logistic",
    NEG: "negate",
    NOT: "not",
    POPULATION_COUNT: "popcnt",
    REAL: "real",
    ROUND_NEAREST_AFZ: "round_nearest_afz",
    ROUND_NEAREST_EVEN: "round_nearest_even",
    RSQRT: "rsqrt",
    SIGN: "sign",
    SIN: "sine",
    SQRT: "sqrt",
    TAN: "tan",
    TANH: "tanh",
}


@stablehlo.attach(*_NAMES)
def elementwise(writer: Writer, instruction: Instruction, operands: list[Names]) -> Names:
    name = f"stablehlo.{_NAMES[instruction.op]}"
    accuracy = instruction.attributes.get("result_accuracy")
    if accuracy is None:
        return writer.elementwise(instruction, name, operands)
    mode = f"#stablehlo.result_accuracy_mode<{accuracy.mode.upper()}>"
    fields = (
        f"atol = {accuracy.atol:.16e}, rtol = {accuracy.rtol:.16e}, "
        f"ulps = {accuracy.ulps}, mode = {mode}"
    )
    attributes = {"result_accuracy": f"#stablehlo.result_accuracy<{fields}>"}
    return writer.operation(instruction, name, operands, attributes)


@stablehlo.attach(*EXPANSIONS)
def composed(writer: Writer, instruction: Instruction, operands: list[Names]) -> Names:
    op, shapes = instruction.op, [instruction.operands[0].shape]
    return writer.compose(operands, shapes, lambda operand: expanded(op, operand))


@stablehlo.attach(ERF)
def erf(writer: Writer, instruction: Instruction, operands: list[Names]) -> Names:
    attributes = {"call_target_name": string("mhlo.erf")}
    extra = {"mhlo.attributes": "{}", "mhlo.version": integer(1)}
    return writer.operation(instruction, "stablehlo.custom_call", operands, attributes, extra=extra)
