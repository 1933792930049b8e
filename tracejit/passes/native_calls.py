"""Custom calls of functions of compiled libraries become calls on arrays in their memory order.

    with_native_calls(module)

    r = custom-call(x), target="f", operand_layout_constraints={f64[2,3]{0,1}}
 ->
    t = transpose(x), dimensions={1,0}
    r = custom-call(t), target="tracejit.native", backend_config="HloModule f …"

The pass runs before a module is compiled, where targets are registered: compilers in other
processes do not know them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from tracejit import hlo
from tracejit.errors import UnsupportedError
from tracejit.graph import Computation, Instruction, Module
from tracejit.native_calls import Symbols
from tracejit.ops.base import make
from tracejit.ops.constants import elements_of, parameter, tuple_
from tracejit.ops.custom import CUSTOM_CALL, NATIVE_TARGET, is_native_call
from tracejit.ops.layout import transpose
from tracejit.passes.input_layouts import inverse, order_of
from tracejit.shapes import AnyShape, Shape, TupleShape
from tracejit.targets import expansion_for, kernel_for, native_function
from tracejit.traversal import called_computations, inline, instructions, rebuild, transform


def with_native_calls(module: Module) -> Module:
    """The module itself, if it calls no function of a compiled library.

    Raises `UnsupportedError` for a call with a tuple among its operands.
    """
    computations = called_computations(module)
    if not any(_calls_natively(i) for c in computations for i in instructions(c)):
        return module
    made: dict[int, Computation] = {}
    for computation in computations:
        made[id(computation)] = _rewritten(computation, made)
    return replace(module, entry=made[id(module.entry)])


def is_native(instruction: Instruction) -> bool:
    """Whether an instruction calls a function of a compiled library."""
    if instruction.op is not CUSTOM_CALL:
        return False
    return native_function(instruction.attributes["custom_call_target"]) is not None


def _expanded(instruction: Instruction) -> Computation | None:
    """What a custom op means, if that calls a function of a compiled library."""
    if instruction.op is not CUSTOM_CALL or kernel_for(instruction) is not None:
        return None
    expansion = expansion_for(instruction)
    called = called_computations(Module("expansion", expansion)) if expansion else ()
    if any(_calls_natively(i) for computation in called for i in instructions(computation)):
        return expansion
    return None


def _calls_natively(instruction: Instruction) -> bool:
    return is_native(instruction) or _expanded(instruction) is not None


def _rewritten(computation: Computation, made: dict[int, Computation]) -> Computation:
    def called(value: object) -> object:
        if isinstance(value, Computation):
            return made[id(value)]
        if isinstance(value, tuple) and value and isinstance(value[0], Computation):
            return tuple(made[id(each)] for each in value)
        return value

    def visit(instruction: Instruction, operands: tuple[Instruction, ...]) -> Instruction | None:
        if is_native(instruction):
            return _native(instruction, operands)
        expansion = _expanded(instruction)
        if expansion is not None:
            return inline(with_native_calls(Module("op", expansion)).entry, operands)
        callees = instruction.computations
        if all(made[id(callee)] is callee for callee in callees):
            return None
        attributes = {name: called(value) for name, value in instruction.attributes.items()}
        return Instruction(
            instruction.op, operands, instruction.shape, attributes, instruction.source
        )

    parameters = {p: p for p in computation.parameters}
    roots = [computation.root, *computation.effects]
    root, *effects = transform(roots, visit, parameters)
    if all(a is b for a, b in zip(roots, [root, *effects], strict=True)):
        return computation
    return replace(computation, root=root, effects=tuple(effects))


def _native(call: Instruction, operands: Sequence[Instruction]) -> Instruction:
    """The call on arrays that are row-major where the function's arrays lie otherwise."""
    for operand in call.operands:
        if isinstance(operand.shape, TupleShape):
            target = call.attributes["custom_call_target"]
            raise UnsupportedError(
                f"custom_call: {target!r} is a function of a compiled library, which takes arrays; "
                f"an operand is {operand.shape}",
                call.source,
            )
    constraints = call.attributes["operand_layout_constraints"] or [o.shape for o in call.operands]
    orders = [order_of(shape) for shape in constraints]
    results = [order_of(shape) for shape in call.element_shapes]
    given = [
        operand if order is None else transpose(operand, order)
        for operand, order in zip(operands, orders, strict=True)
    ]
    shapes = zip(call.element_shapes, results, strict=True)
    turned = [_turned(shape, order) for shape, order in shapes]
    is_tuple = isinstance(call.shape, TupleShape)
    attributes = {
        **call.attributes,
        "custom_call_target": NATIVE_TARGET,
        "operand_layout_constraints": None,
        "backend_config": text_of(call),
        "shape": TupleShape(tuple(turned)) if is_tuple else turned[0],
    }
    made = make(CUSTOM_CALL, *given, **attributes)
    made = Instruction(made.op, made.operands, made.shape, made.attributes, call.source)
    if not any(results):
        return made
    elements = [
        element if order is None else transpose(element, inverse(order))
        for element, order in zip(elements_of(made), results, strict=True)
    ]
    return tuple_(elements) if is_tuple else elements[0]


def _turned(shape: AnyShape, order: Sequence[int] | None) -> AnyShape:
    if order is None or not isinstance(shape, Shape):
        return shape
    return Shape(shape.element_type, tuple(shape.dimensions[d] for d in order))


def text_of(call: Instruction) -> str:
    """A call of arrays as a module, which says all that the function's caller must know."""
    given = [parameter(number, o.shape) for number, o in enumerate(call.operands)]
    attributes = {**call.attributes, "called_computations": ()}
    alone = Instruction(call.op, call.operands, call.shape, attributes, call.source)
    module = Module("call", Computation("call", tuple(given), rebuild(alone, given)))
    return hlo.to_text(module, metadata=True)


def texts_of(module: Module) -> list[str]:
    """The texts of a module's calls of compiled libraries' functions, with the users' lines."""
    computations = called_computations(module)
    return [text_of(i) for c in computations for i in instructions(c) if is_native(i)]


def symbols_of(modules: Iterable[Module]) -> dict[str, Symbols]:
    """The names in C of the functions that modules with native calls call, by target.

    Raises `UnsupportedError` for one that has no name.
    """
    symbols = {}
    for module in modules:
        for computation in called_computations(module):
            for instruction in filter(is_native_call, instructions(computation)):
                call = hlo.parse(instruction.attributes["backend_config"]).entry.root
                target: str = call.attributes["custom_call_target"]
                native = native_function(target)
                assert native is not None, f"{target} was native when the module was rewritten"
                symbols[target] = native.symbols()
    return symbols
