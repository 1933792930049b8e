"""`XlaBuilder`; the package says what it is for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeVar, overload

from tracejit import ops
from tracejit.builder.method import Method, require_op
from tracejit.errors import ArgumentError, AttributeValueError, ShapeError
from tracejit.graph import Computation, Instruction, Module
from tracejit.ops.base import function_name
from tracejit.shapes import AnyShape, Shape
from tracejit.traversal import in_order, unreached

R = TypeVar("R")


# Names that the page of operations prints, of methods that are called otherwise here.
_PAGE_NAMES = {
    "build_partition_id": "partition_id",
    "recv_to_host": "recv_from_host",
    "recv_with_tokens": "recv_with_token",
    "send_with_tokens": "send_with_token",
}


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
        made = self.remember(ops.parameter(parameter_number, shape))
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
        require_op("build", "root", root)
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
        """The shape of an op's result (XLA: GetShape)."""
        return operand.shape

    def remember(self, made: R) -> R:
        """``made``, noted as what was made last; its side effects are kept."""
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
            method = _PAGE_NAMES.get(method, method)
            if name in _PAGE_NAMES:
                return getattr(self, method)
            for spelling in (method, f"{method}_") if name[:1].isupper() else ():
                if hasattr(type(self), spelling):
                    return getattr(self, spelling)
            raise AttributeError(f"XlaBuilder has no method {name}")

    # Elementwise, one operand.
    abs = Method(ops.abs)
    acos = Method(ops.acos)
    acosh = Method(ops.acosh)
    asin = Method(ops.asin)
    asinh = Method(ops.asinh)
    atan = Method(ops.atan)
    atanh = Method(ops.atanh)
    cbrt = Method(ops.cbrt)
    ceil = Method(ops.ceil)
    clz = Method(ops.clz)
    conj = Method(ops.conj)
    cos = Method(ops.cos)
    cosh = Method(ops.cosh)
    erf = Method(ops.erf)
    exp = Method(ops.exp)
    expm1 = Method(ops.expm1)
    floor = Method(ops.floor)
    imag = Method(ops.imag)
    is_finite = Method(ops.is_finite)
    log = Method(ops.log)
    log1p = Method(ops.log1p)
    logistic = Method(ops.logistic)
    neg = Method(ops.neg)
    not_ = Method(ops.not_)
    population_count = Method(ops.population_count)
    real = Method(ops.real)
    round = Method(ops.round)
    round_nearest_afz = Method(ops.round_nearest_afz)
    round_nearest_even = Method(ops.round_nearest_even)
    rsqrt = Method(ops.rsqrt)
    sign = Method(ops.sign)
    sin = Method(ops.sin)
    sinh = Method(ops.sinh)
    sqrt = Method(ops.sqrt)
    tan = Method(ops.tan)
    tanh = Method(ops.tanh)

    # Elementwise, two and three operands.
    add = Method(ops.add)
    and_ = Method(ops.and_)
    atan2 = Method(ops.atan2)
    complex = Method(ops.complex)
    div = Method(ops.div)
    max = Method(ops.max)
    min = Method(ops.min)
    mul = Method(ops.mul)
    or_ = Method(ops.or_)
    pow = Method(ops.pow)
    rem = Method(ops.rem)
    shift_left = Method(ops.shift_left)
    shift_right_arithmetic = Method(ops.shift_right_arithmetic)
    shift_right_logical = Method(ops.shift_right_logical)
    sub = Method(ops.sub)
    xor = Method(ops.xor)
    clamp = Method(ops.clamp)
    select = Method(ops.select)

    # Comparisons.
    compare = Method(ops.compare)
    eq = Method(ops.eq)
    eq_total_order = Method(ops.eq_total_order)
    ge = Method(ops.ge)
    ge_total_order = Method(ops.ge_total_order)
    gt = Method(ops.gt)
    gt_total_order = Method(ops.gt_total_order)
    le = Method(ops.le)
    le_total_order = Method(ops.le_total_order)
    lt = Method(ops.lt)
    lt_total_order = Method(ops.lt_total_order)
    ne = Method(ops.ne)
    ne_total_order = Method(ops.ne_total_order)

    # Element types.
    bitcast_convert_type = Method(ops.bitcast_convert_type)
    convert_element_type = Method(ops.convert_element_type)
    reduce_precision = Method(ops.reduce_precision)

    # Shape.
    broadcast = Method(ops.broadcast)
    broadcast_in_dim = Method(ops.broadcast_in_dim)
    collapse = Method(ops.collapse)
    concat_in_dim = Method(ops.concat_in_dim)
    concatenate = Method(ops.concatenate)
    dynamic_slice = Method(ops.dynamic_slice)
    dynamic_update_slice = Method(ops.dynamic_update_slice)
    dynamic_reshape = Method(ops.dynamic_reshape)
    get_dimension_size = Method(ops.get_dimension_size)
    pad = Method(ops.pad)
    pad_in_dim = Method(ops.pad_in_dim)
    rev = Method(ops.rev)
    set_dimension_size = Method(ops.set_dimension_size)
    slice = Method(ops.slice_)
    slice_in_dim = Method(ops.slice_in_dim)
    transpose = Method(ops.transpose)

    @overload
    def reshape(self, operand: Instruction, dimensions: Sequence[int]) -> Instruction: ...

    @overload
    def reshape(self, operand: Shape, dimensions: Instruction) -> Instruction: ...

    @overload
    def reshape(self, *, operand: Instruction, shape: Shape) -> Instruction: ...

    def reshape(self, operand: Any, dimensions: Any = None, *, shape: Any = None) -> Instruction:
        """The same elements in row-major order under other dimensions (XLA: Reshape).

        Also ``reshape(shape, operand)``, XLA's form with an explicit target shape. Raises
        `ShapeError` when the number of elements differs.
        """
        if isinstance(operand, Shape):
            operand, dimensions = dimensions, operand
        if dimensions is None:
            dimensions = shape
        if dimensions is None:
            raise ArgumentError("reshape: needs dimensions, or a shape")
        return self._reshape(operand, dimensions)

    _reshape = Method(ops.reshape)

    # Constants and structure.
    after_all = Method(ops.after_all)
    constant = Method(ops.constant, literal="value")
    constant_literal = Method(ops.constant, literal="value")
    get_tuple_element = Method(ops.get_tuple_element)
    iota = Method(ops.iota)
    optimization_barrier = Method(ops.optimization_barrier)
    tuple = Method(ops.tuple_)

    # Indexing.
    gather = Method(ops.gather)
    scatter = Method(ops.scatter)

    # Contraction.
    conv = Method(ops.conv)
    conv_general = Method(ops.conv_general)
    conv_general_dilated = Method(ops.conv_general_dilated)
    conv_with_general_dimensions = Method(ops.conv_with_general_dimensions)
    conv_with_general_padding = Method(ops.conv_with_general_padding)
    dot = Method(ops.dot)
    dot_general = Method(ops.dot_general)
    ragged_dot = Method(ops.ragged_dot)
    scaled_dot = Method(ops.scaled_dot, dimension_number="dimension_numbers")

    # Reduction and windows.
    _map = Method(ops.map_)
    reduce = Method(ops.reduce)
    reduce_window = Method(ops.reduce_window)
    scan = Method(ops.scan)
    select_and_scatter = Method(ops.select_and_scatter)
    sort = Method(ops.sort)
    top_k = Method(ops.top_k)

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
    batch_norm_grad = Method(ops.batch_norm_grad)
    batch_norm_inference = Method(ops.batch_norm_inference)
    batch_norm_training = Method(ops.batch_norm_training)

    # Linear algebra, spectra.
    cholesky = Method(ops.cholesky)
    fft = Method(ops.fft)
    triangular_solve = Method(ops.triangular_solve)

    # Random numbers.
    rng_bit_generator = Method(ops.rng_bit_generator)
    rng_normal = Method(ops.rng_normal)
    rng_uniform = Method(ops.rng_uniform)

    # Control.
    call = Method(ops.call)
    composite_call = Method(ops.composite_call)
    custom_call = Method(ops.custom_call)
    while_ = Method(ops.while_)

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

    _conditional = Method(ops.conditional)
    conditional_indexed = Method(ops.conditional_indexed)

    # Queues of the host.
    infeed_with_token = Method(ops.infeed)
    outfeed_with_token = Method(ops.outfeed)

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

    # Across replicas and partitions.
    all_gather = Method(ops.all_gather)
    all_reduce = Method(ops.all_reduce)
    all_to_all = Method(ops.all_to_all)
    all_to_all_tuple = Method(ops.all_to_all_tuple)
    collective_broadcast = Method(ops.collective_broadcast)
    collective_permute = Method(ops.collective_permute)
    collective_permute_slices = Method(ops.collective_permute_slices)
    cross_replica_sum = Method(ops.cross_replica_sum)
    _partition_id = Method(ops.partition_id)

    def partition_id(self, shape: Shape | None = None) -> Instruction:
        """The number of the partition, u32[], from 0 on (XLA: PartitionID).

        ``shape`` may say so. Raises `ShapeError` for another one.
        """
        made = self._partition_id()
        if shape is not None and shape != made.shape:
            raise ShapeError(f"partition_id: the shape is {made.shape}, not {shape}")
        return made

    ragged_all_to_all = Method(ops.ragged_all_to_all)
    recv = Method(ops.recv)
    recv_from_host = Method(ops.recv_from_host)
    recv_with_token = Method(ops.recv_with_token)
    reduce_scatter = Method(ops.reduce_scatter)
    replica_id = Method(ops.replica_id)
    send = Method(ops.send)
    send_to_host = Method(ops.send_to_host)
    send_with_token = Method(ops.send_with_token)
