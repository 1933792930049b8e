"""TIR as C: one function of pointers for each kernel."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from tvm import tirx
from tvm.ir import Call, TensorLoad

from tests.targets.plain.functions import c_name
from tracejit.backends.tvm.ir.intrinsics import intrinsic_of
from tracejit.backends.tvm.ir.tir import (
    AllocBuffer,
    BufferStore,
    Evaluate,
    Expr,
    For,
    IfThenElse,
    SeqStmt,
    Stmt,
    While,
)
from tracejit.backends.tvm.program.program import Kernel

TYPES = {
    "bool": "bool",
    "float16": "_Float16",
    "float32": "float",
    "float64": "double",
    "handle": "void *",
    **{f"{u}int{n}": f"{u}int{n}_t" for u in ("", "u") for n in (8, 16, 32, 64)},
}

_BINARY = {
    tirx.Add: "+",
    tirx.Sub: "-",
    tirx.Mul: "*",
    tirx.Div: "/",
    tirx.Mod: "%",
    tirx.LT: "<",
    tirx.LE: "<=",
    tirx.GT: ">",
    tirx.GE: ">=",
    tirx.EQ: "==",
    tirx.NE: "!=",
    tirx.And: "&&",
    tirx.Or: "||",
    tirx.BitwiseAnd: "&",
    tirx.BitwiseOr: "|",
    tirx.BitwiseXor: "^",
    tirx.LShift: "<<",
    tirx.RShift: ">>",
}

_CALLS: dict[str, Callable[..., str]] = {
    "tirx.bitwise_and": lambda x, y: f"({x} & {y})",
    "tirx.bitwise_or": lambda x, y: f"({x} | {y})",
    "tirx.bitwise_xor": lambda x, y: f"({x} ^ {y})",
    "tirx.bitwise_not": lambda x: f"(~{x})",
    "tirx.shift_left": lambda x, y: f"({x} << {y})",
    "tirx.shift_right": lambda x, y: f"({x} >> {y})",
    "tirx.fabs": lambda x: f"__builtin_fabs({x})",
}


def function(kernel: Kernel) -> str:
    """The C function of a kernel, a pointer for each parameter."""
    parameters = ", ".join(f"{TYPES[str(b.dtype)]} *{b.name}" for b in kernel.parameters)
    return f"void {kernel.name}({parameters}) {{\n{statement(kernel.body)}}}\n"


def statement(node: Stmt) -> str:
    if isinstance(node, SeqStmt):
        return "".join(map(statement, node.seq))
    if isinstance(node, For):
        name, kind = node.loop_var.name, TYPES[str(node.loop_var.ty)]
        first, extent = expression(node.min), expression(node.extent)
        head = f"for ({kind} {name} = {first}; {name} < {first} + {extent}; ++{name})"
        return f"{head} {{\n{statement(node.body)}}}\n"
    if isinstance(node, While):
        return f"while ({expression(node.condition)}) {{\n{statement(node.body)}}}\n"
    if isinstance(node, IfThenElse):
        text = f"if ({expression(node.condition)}) {{\n{statement(node.then_case)}}}\n"
        return text + (f"else {{\n{statement(node.else_case)}}}\n" if node.else_case else "")
    if isinstance(node, AllocBuffer):
        memory = node.buffer
        size = math.prod(int(n) for n in memory.shape)
        return f"{TYPES[str(memory.dtype)]} {memory.name}[{max(size, 1)}];\n"
    if isinstance(node, BufferStore):
        (index,) = map(expression, node.indices)
        return f"{node.buffer.name}[{index}] = {expression(node.value)};\n"
    if isinstance(node, tirx.Bind):
        kind = TYPES[str(node.var.ty)]
        return f"{kind} {node.var.name} = {expression(node.value)};\n"
    if isinstance(node, Evaluate):
        return ""
    raise NotImplementedError(f"C of {type(node).__name__}")


def expression(node: Expr) -> str:
    kind = TYPES[str(node.ty)]
    if isinstance(node, tirx.IntImm):
        suffix = "ull" if kind.startswith("u") else "ll"
        value = int(node)
        text = f"(-{-value - 1}ll - 1)" if value < 0 else f"{value}{suffix}"
        return f"(({kind}){text})"
    if isinstance(node, tirx.FloatImm):
        return f"(({kind}){_float(float(node))})"
    if isinstance(node, tirx.Var):
        return str(node.name)
    if isinstance(node, tirx.Cast):
        return f"(({kind}){expression(node.value)})"
    if isinstance(node, tirx.BitwiseNot):
        return f"(({kind})~{expression(node.a)})"
    if isinstance(node, tirx.Not):
        return f"(!{expression(node.a)})"
    if isinstance(node, tirx.Select):
        parts = map(expression, (node.condition, node.true_value, node.false_value))
        return "(({}) ? ({}) : ({}))".format(*parts)
    if isinstance(node, (tirx.Min, tirx.Max)):
        a, b = expression(node.a), expression(node.b)
        return f"(({a}) {'<' if isinstance(node, tirx.Min) else '>'} ({b}) ? ({a}) : ({b}))"
    if isinstance(node, TensorLoad):
        (index,) = map(expression, node.indices)
        return f"{node.source.name}[{index}]"
    if isinstance(node, Call):
        return _call(node, kind)
    operator = _BINARY[type(node)]
    # C computes narrow integers as int.
    return f"(({kind})({expression(node.a)} {operator} {expression(node.b)}))"


def _call(node: Any, kind: str) -> str:
    arguments = [expression(a) for a in node.args]
    found = intrinsic_of(node)
    if found is not None:
        return f"{c_name(found.name, str(node.args[0].ty))}({', '.join(arguments)})"
    name = str(node.op.name)
    if name == "tirx.reinterpret":
        source = TYPES[str(node.args[0].ty)]
        return f"(((union {{{source} from; {kind} to;}}){{.from = {arguments[0]}}}).to)"
    return f"(({kind}){_CALLS[name](*arguments)})"


def _float(value: float) -> str:
    if math.isnan(value):
        return '__builtin_nan("")'
    if math.isinf(value):
        return "__builtin_inf()" if value > 0 else "(-__builtin_inf())"
    return value.hex()
