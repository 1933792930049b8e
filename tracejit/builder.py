"""XLA's builder: a computation op by op, under XLA's names and with XLA's strict broadcasting.

builder = XlaBuilder("scaled")
x = builder.parameter(0, Shape(ElementType.F32, (2, 3)), "x")
v = builder.parameter(1, Shape(ElementType.F32, (3,)), "v")
computation = builder.build(builder.mul(x, v, broadcast_dimensions=(1,)))

A computation is what `reduce`, `while_` and the like call, and what `tracejit.compile` and
`tracejit.interpret` run. Each op of XLA's page "Operation semantics" is a method, and each method
is the function of that name in `tracejit.ops`, which documents it. Method names are XLA's in snake
case, with an underscore where Python has a keyword; XLA's own spelling works as well, so
``builder.BatchNormGrad`` is ``builder.batch_norm_grad``.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar, overload

from tracejit import ops
from tracejit.errors import ArgumentError, AttributeValueError, ShapeError
from tracejit.graph import Computation, Instruction, Module
from tracejit.ops.base import function_name
from tracejit.shapes import AnyShape, Shape
from tracejit.traversal import in_order, unreached

P = ParamSpec("P")
R = TypeVar("R")

_OPERANDS = {
    "Instruction",
    "Sequence[Instruction]",
    "Instruction | Sequence[Instruction]",
    "Sequence[Instruction] | Instruction",
}


class _Method(Generic[P, R]):
    """A builder function as a method: checks that operands are ops, and remembers the result."""

    def __init__(self, function: Callable[P, R]) -> None:
        self.function = function
        self.name = function.__name__.rstrip("_")
        self.parameters = [
            (p.name, "Sequence" in p.annotation, p.annotation != "Sequence[Instruction]")
            if p.annotation in _OPERANDS
            else None
            for p in inspect.signature(function).parameters.values()
        ]

    @overload
    def __get__(self, builder: None, owner: type) -> Callable[P, R]: ...

    @overload
    def __get__(self, builder: XlaBuilder, owner: type) -> Callable[P, R]: ...

    def __get__(self, builder: XlaBuilder | None, owner: type) -> Callable[P, R]:
        if builder is None:
            return self.function

        @functools.wraps(self.function)
        def method(*args: P.args, **kwargs: P.kwargs) -> R:
            self._require_ops(args, kwargs)
            return builder._remember(self.function(*args, **kwargs))

        return method

    def _require_ops(self, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
        for number, parameter in enumerate(self.parameters):
            if parameter is None:
                continue
            name, many, one = parameter
            if number < len(args):
                value = args[number]
            elif name in kwargs:
                value = kwargs[name]
            else:
                continue
            if one and isinstance(value, Instruction):
                continue
            if not many:
                _require_op(self.name, name, value)
            if not isinstance(value, list | tuple):
                kind = "an op or several" if one else "a sequence of ops"
                raise ArgumentError(f"{self.name}: {name} must be {kind}, not {_described(value)}")
            for i, item in enumerate(value):
                _require_op(self.name, f"{name}[{i}]", item)


def _require_op(function: str, argument: str, value: object) -> None:
    if not isinstance(value, Instruction):
        raise ArgumentError(
            f"{function}: {argument} must be an op of this builder, not {_described(value)}"
        )


def _described(value: Any) -> str:
    shape = getattr(value, "shape", None)
    kind = type(value).__name__
    text = f"{kind} {value.dtype}{list(shape)}" if isinstance(shape, tuple) else kind
    return f"{text}; make one with constant"


class XlaBuilder:
    """Builds one computation; its methods are the ops.

    Errors are raised where an op is called: they name the op, the argument, the shapes, the rule
    that does not hold, and the caller's line.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._parameters: dict[int, Instruction] = {}
        self._names: dict[Instruction, str] = {}
        self._last: Instruction | None = None
        self._with_effects: list[Instruction] = []

    def __repr__(self) -> str:
        return f"<XlaBuilder {self.name} with {len(self._parameters)} parameters>"

    def parameter(self, parameter_number: int, shape: AnyShape, name: str = "") -> Instruction:
        """The argument number ``parameter_number`` of the computation (XLA: Parameter).

        ``name`` is for error messages. Raises `AttributeValueError` for a number that is taken.
        """
        if parameter_number in self._parameters:
            raise AttributeValueError(
                f"parameter: number {parameter_number} is taken by "
                f"{self._titled(self._parameters[parameter_number])}, in {self.name}"
            )
        made = self._remember(ops.parameter(parameter_number, shape))
        self._parameters[parameter_number] = made
        self._names[made] = name
        return made

    def build(self, root: Instruction | None = None) -> Computation:
        """The computation that returns ``root``, by default what was made last.

        Ops with side effects run whether the root needs them or not. Raises `AttributeValueError`
        when parameters are not numbered from 0 without gaps, `ArgumentError` when the root needs a
        parameter of another builder.
        """
        root = self._last if root is None else root
        if root is None:
            raise ArgumentError(f"build: {self.name} has no op to return")
        _require_op("build", "root", root)
        numbers = sorted(self._parameters)
        if numbers != list(range(len(numbers))):
            raise AttributeValueError(
                f"build: parameters of {self.name} must be numbered from 0 without gaps, "
                f"not {numbers}"
            )
        body = in_order([*self._with_effects, root])
        own = set(self._parameters.values())
        for instruction in body:
            if instruction.op.name == "Parameter" and instruction not in own:
                raise ArgumentError(
                    f"build: {self.name} uses {self._titled(instruction)} of another builder"
                )
        effects = unreached(root, [i for i in body if i.has_effect])
        parameters = tuple(self._parameters[number] for number in numbers)
        return Computation(self.name, parameters, root, effects)

    def build_module(self, root: Instruction | None = None) -> Module:
        """The computation that returns ``root`` as a whole program; see `build`."""
        return Module(self.name, self.build(root))

    def get_shape(self, operand: Instruction) -> AnyShape:
        """The shape of what an op makes (XLA: GetShape)."""
        return operand.shape

    def _remember(self, made: R) -> R:
        if isinstance(made, Instruction):
            self._last = made
            if made.reaches_effect:
                self._with_effects.append(made)
        return made

    def _titled(self, parameter: Instruction) -> str:
        number = parameter.attributes["parameter_number"]
        name = self._names.get(parameter)
        return f"parameter {number} {f'({name}) ' if name else ''}{parameter.shape}"

    if not TYPE_CHECKING:  # a misspelt method stays an error for type checkers

        def __getattr__(self, name: str) -> Any:
            method = function_name(name)
            for spelling in (method, f"{method}_") if name[:1].isupper() else ():
                if hasattr(type(self), spelling):
                    return getattr(self, spelling)
            raise AttributeError(f"XlaBuilder has no method {name}")

    # Elementwise, one operand.
    abs = _Method(ops.abs)
    acos = _Method(ops.acos)
    acosh = _Method(ops.acosh)
    asin = _Method(ops.asin)
    asinh = _Method(ops.asinh)
    atan = _Method(ops.atan)
    atanh = _Method(ops.atanh)
    cbrt = _Method(ops.cbrt)
    ceil = _Method(ops.ceil)
    clz = _Method(ops.clz)
    conj = _Method(ops.conj)
    cos = _Method(ops.cos)
    cosh = _Method(ops.cosh)
    erf = _Method(ops.erf)
    exp = _Method(ops.exp)
    expm1 = _Method(ops.expm1)
    floor = _Method(ops.floor)
    imag = _Method(ops.imag)
    is_finite = _Method(ops.is_finite)
    log = _Method(ops.log)
    log1p = _Method(ops.log1p)
    logistic = _Method(ops.logistic)
    neg = _Method(ops.neg)
    not_ = _Method(ops.not_)
    population_count = _Method(ops.population_count)
    real = _Method(ops.real)
    round = _Method(ops.round)
    round_nearest_afz = _Method(ops.round_nearest_afz)
    round_nearest_even = _Method(ops.round_nearest_even)
    rsqrt = _Method(ops.rsqrt)
    sign = _Method(ops.sign)
    sin = _Method(ops.sin)
    sinh = _Method(ops.sinh)
    sqrt = _Method(ops.sqrt)
    tan = _Method(ops.tan)
    tanh = _Method(ops.tanh)

    # Elementwise, two and three operands.
    add = _Method(ops.add)
    and_ = _Method(ops.and_)
    atan2 = _Method(ops.atan2)
    complex = _Method(ops.complex)
    div = _Method(ops.div)
    max = _Method(ops.max)
    min = _Method(ops.min)
    mul = _Method(ops.mul)
    or_ = _Method(ops.or_)
    pow = _Method(ops.pow)
    rem = _Method(ops.rem)
    shift_left = _Method(ops.shift_left)
    shift_right_arithmetic = _Method(ops.shift_right_arithmetic)
    shift_right_logical = _Method(ops.shift_right_logical)
    sub = _Method(ops.sub)
    xor = _Method(ops.xor)
    clamp = _Method(ops.clamp)
    select = _Method(ops.select)

    # Comparisons.
    compare = _Method(ops.compare)
    eq = _Method(ops.eq)
    eq_total_order = _Method(ops.eq_total_order)
    ge = _Method(ops.ge)
    ge_total_order = _Method(ops.ge_total_order)
    gt = _Method(ops.gt)
    gt_total_order = _Method(ops.gt_total_order)
    le = _Method(ops.le)
    le_total_order = _Method(ops.le_total_order)
    lt = _Method(ops.lt)
    lt_total_order = _Method(ops.lt_total_order)
    ne = _Method(ops.ne)
    ne_total_order = _Method(ops.ne_total_order)

    # Element types.
    bitcast_convert_type = _Method(ops.bitcast_convert_type)
    convert_element_type = _Method(ops.convert_element_type)
    reduce_precision = _Method(ops.reduce_precision)

    # Shape.
    broadcast = _Method(ops.broadcast)
    broadcast_in_dim = _Method(ops.broadcast_in_dim)
    collapse = _Method(ops.collapse)
    concat_in_dim = _Method(ops.concat_in_dim)
    concatenate = _Method(ops.concatenate)
    dynamic_slice = _Method(ops.dynamic_slice)
    dynamic_update_slice = _Method(ops.dynamic_update_slice)
    pad = _Method(ops.pad)
    pad_in_dim = _Method(ops.pad_in_dim)
    rev = _Method(ops.rev)
    slice = _Method(ops.slice_)
    slice_in_dim = _Method(ops.slice_in_dim)
    transpose = _Method(ops.transpose)

    @overload
    def reshape(self, operand: Instruction, dimensions: Sequence[int]) -> Instruction: ...

    @overload
    def reshape(self, operand: Shape, dimensions: Instruction) -> Instruction: ...

    def reshape(self, operand: Any, dimensions: Any) -> Instruction:
        """The same elements in row-major order under other dimensions (XLA: Reshape).

        Also ``reshape(shape, operand)``, XLA's form with an explicit target shape. Raises
        `ShapeError` when the number of elements differs.
        """
        if isinstance(operand, Shape):
            operand, dimensions = dimensions, operand
        return self._reshape(operand, dimensions)

    _reshape = _Method(ops.reshape)

    # Constants and structure.
    after_all = _Method(ops.after_all)
    constant = _Method(ops.constant)
    constant_literal = _Method(ops.constant)
    get_tuple_element = _Method(ops.get_tuple_element)
    iota = _Method(ops.iota)
    optimization_barrier = _Method(ops.optimization_barrier)
    tuple = _Method(ops.tuple_)

    # Indexing.
    gather = _Method(ops.gather)
    scatter = _Method(ops.scatter)

    # Contraction.
    conv = _Method(ops.conv)
    conv_general = _Method(ops.conv_general)
    conv_general_dilated = _Method(ops.conv_general_dilated)
    conv_with_general_dimensions = _Method(ops.conv_with_general_dimensions)
    conv_with_general_padding = _Method(ops.conv_with_general_padding)
    dot = _Method(ops.dot)
    dot_general = _Method(ops.dot_general)

    # Reduction and windows.
    _map = _Method(ops.map_)
    reduce = _Method(ops.reduce)
    reduce_window = _Method(ops.reduce_window)
    scan = _Method(ops.scan)
    select_and_scatter = _Method(ops.select_and_scatter)
    sort = _Method(ops.sort)
    top_k = _Method(ops.top_k)

    def map(
        self,
        operands: Instruction | Sequence[Instruction],
        computation: Computation,
        dimensions: Sequence[int] | None = None,
        static_operands: Sequence[Instruction] = (),
    ) -> Instruction:
        """``computation``, from scalars to a scalar, applied element by element (XLA: Map).

        It takes an element of each operand, then the ``static_operands``, scalars that are the
        same for all elements. Raises `ShapeError` when something does not fit.
        """
        given = [operands] if isinstance(operands, Instruction) else [*operands]
        spread = []
        for i, scalar in enumerate(static_operands):
            if not isinstance(scalar.shape, Shape) or scalar.shape.rank:
                raise ShapeError(f"map: static operand {i} {scalar.shape} must be a scalar")
            sizes = given[0].array_shape.dimensions if given else ()
            spread.append(ops.broadcast_in_dim(scalar, sizes, ()))
        return self._map([*given, *spread], computation, dimensions)

    # Normalisation.
    batch_norm_grad = _Method(ops.batch_norm_grad)
    batch_norm_inference = _Method(ops.batch_norm_inference)
    batch_norm_training = _Method(ops.batch_norm_training)

    # Linear algebra, spectra.
    cholesky = _Method(ops.cholesky)
    fft = _Method(ops.fft)
    triangular_solve = _Method(ops.triangular_solve)

    # Random numbers.
    rng_bit_generator = _Method(ops.rng_bit_generator)
    rng_normal = _Method(ops.rng_normal)
    rng_uniform = _Method(ops.rng_uniform)

    # Control.
    call = _Method(ops.call)
    composite_call = _Method(ops.composite_call)
    custom_call = _Method(ops.custom_call)
    while_ = _Method(ops.while_)

    @overload
    def conditional(
        self,
        predicate: Instruction,
        true_operand: Instruction,
        true_computation: Computation,
        false_operand: Instruction,
        false_computation: Computation,
    ) -> Instruction: ...

    @overload
    def conditional(
        self,
        branch_index: Instruction,
        branch_computations: Sequence[Computation],
        branch_operands: Sequence[Instruction],
    ) -> Instruction: ...

    def conditional(self, *args: Any, **kwargs: Any) -> Instruction:
        """One of several computations, by a predicate or an index (XLA: Conditional).

        ``conditional(predicate, true_operand, true_computation, false_operand,
        false_computation)`` runs one of two,
        ``conditional(branch_index, branch_computations, branch_operands)`` one of N, the last for
        an index out of range. Raises `ShapeError` when something does not fit.
        """
        if len(args) + len(kwargs) == 3:
            return self.conditional_indexed(*args, **kwargs)
        return self._conditional(*args, **kwargs)

    _conditional = _Method(ops.conditional)
    conditional_indexed = _Method(ops.conditional_indexed)

    # Queues of the host.
    infeed_with_token = _Method(ops.infeed)
    outfeed_with_token = _Method(ops.outfeed)

    def infeed(self, shape: AnyShape, config: str = "") -> Instruction:
        """The next datum of the infeed queue, of ``shape`` (XLA: Infeed).

        Several are read in the order of these calls. Raises `ShapeError` for a shape that is
        neither an array's nor a tuple of arrays'.
        """
        return self.get_tuple_element(self.infeed_with_token(self.after_all([]), shape, config), 0)

    def outfeed(
        self,
        operand: Instruction,
        shape_with_layout: AnyShape | None = None,
        outfeed_config: str = "",
    ) -> Instruction:
        """Puts ``operand`` into the outfeed queue, and returns a token (XLA: Outfeed).

        ``shape_with_layout`` is the operand's shape with the layout of the data in the queue.
        Raises `ShapeError` for another shape.
        """
        return self.outfeed_with_token(
            operand, self.after_all([]), shape_with_layout, outfeed_config
        )
