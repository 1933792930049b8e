"""The abstract tensor: an array while a function is traced.

It has an array's shape and dtype, operators, methods and in-place writes; operations on it are
recorded. A write replaces the instruction that is its value. A view remembers its base and the
path to it, so that a write to either is seen through both.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple
from weakref import ref

import numpy as np

from tracejit.errors import (
    ArgumentError,
    ConcretizationError,
    MissingAttributeError,
    TracerLeakError,
    UnsupportedError,
)
from tracejit.graph import Instruction
from tracejit.loading import supplied
from tracejit.ops.layout import full
from tracejit.shapes import ElementType, element_type_of
from tracejit.sources import user_source
from tracejit.trace.boolean_indexing import Masked
from tracejit.trace.concrete import concrete, differentiated_argument
from tracejit.trace.context import Trace, ask_order, current_trace, note_permuted
from tracejit.trace.convert import Operand, as_instruction, converted
from tracejit.trace.evaluation import known_value
from tracejit.trace.index_parse import parse_index
from tracejit.trace.indexing import Indexing
from tracejit.trace.may_alias import (
    Share,
    Shares,
    Way,
    are_dense,
    foreign,
    note_read,
    refreshed,
    share_parts,
    tick,
)
from tracejit.trace.memory_order import (
    UNKNOWN,
    Layout,
    column_major,
    copied_order,
    dense_strides,
    is_dense,
    is_row_by_row,
    is_vector,
    leaves_gaps,
    row_major,
)
from tracejit.trace.methods import Methods
from tracejit.trace.operators import Operators
from tracejit.trace.promotion import weak_type
from tracejit.trace.settled import NotPlainError, Unrecorded, literal_of, plain, settled_trace
from tracejit.trace.table import call, find, implementation
from tracejit.trace.views import (
    Bits,
    ComplexPart,
    Path,
    Permute,
    Reshape,
    Strides,
    require_whole,
    row_major_strides,
)
from tracejit.tree import flatten, register_node, unflatten


class ForeignWriteError(UnsupportedError):
    """``array``, of an enclosing trace, was written to.

    ``is_lent``: it is lent to the trace that writes, but a view of it that shares more is not.
    """

    def __init__(self, message: str, array: Tracer, is_lent: bool = False) -> None:
        super().__init__(message)
        self.array, self.is_lent = array, is_lent


class State(NamedTuple):
    """The value of an array, its trace, when it was written to, and what it shares memory with."""

    instruction: Instruction
    owner: Trace
    version: int
    times: tuple[int, int] | None
    entries: tuple[Share, ...]


class Tracer(Operators, Indexing, Methods):
    """An array of known shape and dtype and, in general, unknown elements.

    ``is_weak``: represents a Python number, which yields to arrays in promotion. ``is_scalar``: of
    rank 0 and, like NumPy's scalars, never written to. ``shares``: the arrays that may be this
    one.
    """

    __slots__ = (
        "__weakref__",
        "_base",
        "_home",
        "_instruction",
        "_layout",
        "_path",
        "_seen",
        "_trace",
        "_version",
        "_view",
        "is_scalar",
        "is_weak",
        "shares",
    )

    def __init__(
        self,
        instruction: Instruction | Unrecorded,
        trace: Trace,
        *,
        is_weak: bool = False,
        is_scalar: bool | None = None,
    ) -> None:
        if instruction.serial > trace.end:
            trace.reach_end()
        if instruction.serial > trace.settles:
            trace.settle()
        self._instruction: Instruction | Unrecorded = instruction
        self._trace = self._home = trace
        self._base: Tracer | None = None
        self._path: Path | None = None
        self._version = 0
        self._seen = 0
        self._view: ref[Tracer] | bool = False
        self._layout: Layout | None = None
        self.shares: Shares | None = None
        self.is_weak = is_weak
        self.is_scalar = not instruction.array_shape.dimensions if is_scalar is None else is_scalar

    # Value

    @property
    def instruction(self) -> Instruction:
        """What computes the array's present value. Raises `TracerLeakError` after its trace."""
        if not self._trace.alive:
            raise TracerLeakError(
                f"a value traced in {self._trace.name} (made at {self._instruction.source}) is "
                f"used after the trace has ended; return it from the function instead of storing it"
            )
        base, held = self._base, self._instruction
        is_held = isinstance(held, Instruction)
        if base is not None and not (is_held and self._seen == base.version):
            assert self._path is not None
            self._ask_order_of(self._path)
            self._instruction = held = self._path.read(base.instruction)
            self._seen = base.version
        elif base is not None:
            note_read(self.root.shares)
        elif self.shares is not None:
            return refreshed(self, self.shares)
        elif not isinstance(held, Instruction):
            self._instruction = held = held.recorded()
        assert isinstance(held, Instruction), "recorded"
        return held

    @property
    def last(self) -> Instruction:
        """The value when it was last looked at."""
        held = self._instruction
        return held if isinstance(held, Instruction) else self.instruction

    @property
    def owner(self) -> Trace:
        return self._trace

    @property
    def version(self) -> int:
        """When the memory behind the array was last written to; 0 if it never was."""
        if self._base is not None:
            return self._base.version
        if self.shares is not None:
            return max(self._version, self.shares.newest())
        return self._version

    def write(self, value: Instruction) -> None:
        """Makes ``value``, of the array's own shape and dtype, the array's value.

        Raises `ArgumentError` for a number, and `ForeignWriteError` from within an inner trace
        (the body of a loop, a function being differentiated).
        """
        if self.is_scalar:
            raise ArgumentError("a number cannot be written to: it is not an array")
        running, root = current_trace(), self.root
        if running is not None and root._trace is not running:
            raise ForeignWriteError(
                f"an array of {root._trace.name} is written to inside {running.name}; return the "
                f"new value instead",
                root,
            )
        if root.shares is not None:
            self._reach(root, root.shares, running)
        target, update = self, value
        while target._base is not None:
            assert target._path is not None
            self._ask_order_of(target._path)
            update = target._path.write(target._base.instruction, update)
            target = target._base
        time = target.assign(update)
        if target.shares is not None:
            target.shares.written = target.shares.seen = time
        if target is not self:
            self._instruction = value
            self._seen = target._version

    def _reach(self, root: Tracer, shares: Shares, running: Trace | None) -> None:
        found = foreign(shares, running)
        if found is not None:
            raise ForeignWriteError(
                f"an array that may be one of {found.owner.name} is written to inside "
                f"{root.owner.name}; return the new value instead",
                found,
                is_lent=found.owner is running,
            )
        refreshed(root, shares)

    def assign(self, value: Instruction) -> int:
        """Makes ``value`` the value of an array that is no view; the version that it has then."""
        self._instruction = value
        self._version = tick()
        if self.shares is not None:
            self.shares.value = value
        return self._version

    def lend(self, value: Instruction, trace: Trace) -> None:
        """Makes an array that is no view one of ``trace``, with ``value`` for its value."""
        assert self._base is None, "a view is lent with its base"
        self._trace = trace
        is_other = value is not self._instruction
        time = self.assign(value) if is_other else self._version
        if self.shares is not None:
            self.shares.owner = trace
            if is_other:
                self.shares.written = self.shares.seen = time

    @property
    def is_lent(self) -> bool:
        """Whether an array of another trace is one of the trace that it belongs to for now."""
        root = self.root
        return root._trace is not root._home

    @property
    def state(self) -> State:
        """What `restore` takes."""
        instruction = self.instruction
        times = None if self.shares is None else (self.shares.written, self.shares.seen)
        entries = () if self.shares is None else tuple(self.shares.entries)
        return State(instruction, self._trace, self._version, times, entries)

    def share_as(self, state: State) -> None:
        """Makes a lent array share its memory with those that it shared it with before."""
        if self.shares is not None:
            self.shares.entries = list(state.entries)

    def restore(self, state: State) -> None:
        """Makes a lent array what it was before."""
        self.lend(state.instruction, state.owner)
        self._version = state.version
        self.share_as(state)
        if self.shares is not None and state.times is not None:
            self.shares.written, self.shares.seen = state.times

    @property
    def root(self) -> Tracer:
        """The array whose memory this is a view of; itself if it is none."""
        return self if self._base is None else self._base.root

    @property
    def step(self) -> tuple[Tracer, Path]:
        """What a view was cut from, and the way to it from there."""
        assert self._base is not None, "a view"
        assert self._path is not None, "a view"
        return self._base, self._path

    @property
    def path(self) -> Path | None:
        """The way to a view from its base."""
        return self._path

    def through(
        self, path: Path, is_scalar: bool | None = None, read: Instruction | None = None
    ) -> Tracer:
        """The view of this array along ``path``; a number where the result is one.

        Of a number, which has no memory, it is a copy. ``read`` is what is there, if it is known.
        """
        made = self._new(path.read(self.instruction) if read is None else read, is_scalar)
        if made.is_scalar or self.is_scalar:
            return made
        if type(path) is Reshape and path.may_copy and not self._is_dense():
            share_parts(
                made,
                (*self.way, path),
                self.root,
                (),
                self.root.last.array_shape,
                None,
                reason=f"ravel or reshape at {user_source()} gives a view of it or a copy, which "
                f"depends on the array that its name stands for and on its order in memory; "
                f"write to the array itself",
            )
            if self.has_unknown_order:
                made.lay(UNKNOWN)
        else:
            made._base, made._path, made._seen = self, path, self.version
            self._view = self._has_views() or ref(made)
        return made

    def _has_views(self) -> bool:
        """Whether somebody holds a view of this array, as far as is known."""
        return self._view if isinstance(self._view, bool) else self._view() is not None

    # Plain arrays in settled traces

    @property
    def plain(self) -> np.ndarray | None:
        """The elements where the trace has settled and they are known; not to be written to."""
        trace = settled_trace()
        if trace is None or self._trace is not trace or self.is_weak:
            return None
        held, root = self._instruction, self.root
        if root.shares is not None or root._layout is not None:
            return None
        if isinstance(held, Unrecorded) and root._instruction is held.whole:
            return held.plain
        return literal_of(self.instruction, trace)

    def record(self) -> None:
        """Has the graph hold the elements, if they are plain so far."""
        if self._trace.alive and isinstance(self._instruction, Unrecorded):
            self._instruction = self.instruction

    def _unrecorded(self) -> Unrecorded:
        """The elements of an array that is not a view, and known, as such that can be written."""
        held = self._instruction
        if isinstance(held, Unrecorded):
            return held
        known = self.plain
        if self._base is not None or known is None:
            raise NotPlainError
        self._instruction = made = Unrecorded(np.array(known, order="C"))
        self._trace.unrecorded[id(self)] = self
        return made

    def read_plainly(self, index: Any) -> Any:
        """``self[index]`` of a known array: a number of NumPy's, or an array that is not recorded.

        Raises `NotPlainError` where something is unknown, and where NumPy raises.
        """
        known, place = self.plain, plain(index)
        if known is None or self.is_scalar:
            raise NotPlainError
        try:
            found = known[place]
        except Exception as error:
            raise NotPlainError from error
        if isinstance(found, np.generic):
            return found
        if not np.may_share_memory(found, known):
            if not found.flags.c_contiguous:
                raise NotPlainError
            return unrecorded(found)
        whole = self.root._unrecorded()
        held = self._instruction
        if not isinstance(held, Unrecorded):
            raise NotPlainError
        made = Tracer(Unrecorded(held.plain[place], whole), self._trace, is_scalar=False)
        made._base, made._path = self, parse_index(place, self.shape, as_instruction)  # type: ignore[assignment]
        made._seen = self.version
        self._view = self._has_views() or ref(made)
        self._trace.unrecorded[id(made)] = made
        return made

    def write_plainly(self, index: Any, value: Any) -> None:
        """``self[index] = value`` where all of it is known. Raises `NotPlainError` elsewhere."""
        if self.is_scalar or self.plain is None:
            raise NotPlainError
        place, update = plain(index), plain(value)
        self.root._unrecorded()
        held = self._instruction
        if not isinstance(held, Unrecorded) or self.plain is not held.plain:
            raise NotPlainError
        if np.iscomplexobj(update) and held.plain.dtype.kind != "c":
            raise NotPlainError
        try:
            with np.errstate(all="ignore"):
                held.plain[place] = update
        except Exception as error:
            raise NotPlainError from error
        self._seen = self.root._version = tick()

    # Order in memory

    @property
    def layout(self) -> Layout | None:
        """How the array behind this one lies in memory; None if row by row, as arguments must."""
        return self.root._layout

    def lay(self, layout: Layout | None) -> None:
        """Says how an array that is no view lies in memory."""
        assert self._base is None, "a view lies in its base"
        if layout is None or (is_vector(self.shape) and not layout.has_gaps):
            return
        self._layout = layout
        if layout.order != tuple(range(self.ndim)):
            note_permuted()

    def lay_like(self, array: Tracer) -> None:
        """Says that an array that is no view lies in memory as ``array`` does."""
        self.lay(array.own_layout)

    @property
    def own_layout(self) -> Layout | None:
        """The layout of an array of its own whose elements lie in the same order."""
        if self._base is None:
            return self._layout
        if not self.is_permuted and not self.has_gaps:
            return None
        return self.copied_layout("K")._replace(has_gaps=self.has_gaps)

    def lay_unknown(self) -> None:
        """Says that an array, of another trace's, may lie in memory as any array there does."""
        trace = current_trace()
        if trace is not None and (trace.has_permuted or trace.has_gaps):
            is_known = not trace.has_permuted or is_vector(self.shape)
            self.lay(Layout(tuple(range(self.ndim)) if is_known else None, False, trace.has_gaps))

    @property
    def has_gaps(self) -> bool:
        """Whether this is, or may be, a view whose elements do not lie one behind the other."""
        if self.is_scalar or self.size < 2:
            return False
        layout, strides = self.layout, self.strides_in_elements()
        if layout is not None and layout.has_gaps:
            return True
        return self._base is not None and (strides is None or leaves_gaps(self.shape, strides))

    @property
    def is_permuted(self) -> bool:
        """Whether the dimensions lie in memory in another order than their own, or may do so."""
        if self._base is None and self._layout is None:
            return False
        if is_vector(self.shape):
            return False
        strides = self.strides_in_elements()
        return strides is None or not is_row_by_row(self.shape, strides)

    @property
    def has_unknown_order(self) -> bool:
        """Whether the order in memory is not known, and elements may lie in more than one."""
        return self.strides_in_elements() is None and not is_vector(self.shape)

    def copied_layout(self, order: str) -> Layout:
        """How a copy in an order K, A, C or F lies in memory."""
        rank = self.ndim
        if order in ("C", "F"):
            return row_major(rank) if order == "C" else column_major(rank)
        strides = self.strides_in_elements()
        if strides is None:
            return UNKNOWN
        kept = copied_order(strides)
        if order == "A" and not is_dense(self.shape[::-1], strides[::-1]):
            kept = tuple(range(rank))
        layout = self.layout
        return Layout(kept, layout is not None and layout.is_certain)

    def ask_order(self, function: str = "") -> Strides:
        """The strides, in elements; marks the recorded graph as dependent on them.

        Raises `UnsupportedError`, which names the ``function``, where they are not known.
        """
        root = self.root
        if root.shares is not None or root._layout is None or not root._layout.is_certain:
            ask_order()
        strides = self.strides_in_elements()
        if strides is None and not is_vector(self.shape):
            raise UnsupportedError(
                f"{function}: the order in memory of this array {self.instruction.shape} is not "
                f"known while tracing; write order='C' or order='F', or copy the array before, "
                f"x.copy()"
            )
        return strides or row_major_strides(self.shape)

    def _ask_order_of(self, path: Path) -> None:
        """Says that a view, or a write to one, is right where the memory lies as it is known to."""
        if type(path) is Reshape and path.may_copy:
            self.ask_order("reshape")

    def _is_dense(self) -> bool:
        """Whether the order in memory is known, whichever array this is."""
        layout = self.layout
        if self.has_unknown_order or (layout is not None and layout.has_gaps):
            return False
        shares = self.root.shares
        return shares is None or all(map(are_dense, shares.entries))

    @property
    def way(self) -> Way:
        """The paths from the array whose memory this is a view of."""
        if self._base is None or self._path is None:
            return ()
        return (*self._base.way, self._path)

    def is_view(self, base: Any, path: object) -> bool:
        """Whether this is the view of ``base`` along an equal path."""
        return self._base is base and self._path == path

    def is_same_view(self, other: Tracer) -> bool:
        """Whether both are one array, or views of one array along equal paths."""
        return self is other or (self._base is not None and other.is_view(self._base, self._path))

    def _new(self, instruction: Instruction, is_scalar: bool | None = None) -> Tracer:
        return Tracer(instruction, current_trace() or self._trace, is_scalar=is_scalar)

    def weakened(self) -> Tracer:
        """The same value, counted as a Python number in promotion."""
        return Tracer(self.instruction, self._trace, is_weak=True)

    def operand(self) -> Operand:
        """The value as promotion sees it."""
        instruction = self.instruction
        shape = instruction.array_shape
        kind = weak_type(shape.dtype) if self.is_weak else shape.dtype
        return Operand(kind, instruction, shape.dimensions)

    def strides_in_elements(self) -> Strides | None:
        """How NumPy would lay the array out within its base, in elements; None when unknown."""
        if self._base is None or self._path is None:
            if self._layout is None:
                return row_major_strides(self.shape)
            order = self._layout.order
            return None if order is None else dense_strides(self.shape, order)
        strides = self._base.strides_in_elements()
        return None if strides is None else self._path.strides(self._base.shape, strides)

    # What is known of an array while tracing

    @property
    def element_type(self) -> ElementType:
        return self._instruction.array_shape.element_type

    @property
    def shape(self) -> tuple[int, ...]:
        return self._instruction.array_shape.dimensions

    @shape.setter
    def shape(self, dimensions: Any) -> None:
        """Gives the array another shape, where it is not known by other names or through views.

        Raises `UnsupportedError` elsewhere.
        """
        is_viewed, given = self._has_views(), self.strides_in_elements()
        wanted = call(np.reshape, self, dimensions).shape
        if is_viewed or self.is_scalar or self.shares is not None:
            why = "views of it were made before"
        elif given is None or not is_row_by_row(self.shape, given):
            why = "its elements do not lie row by row"
        else:
            base = self._new(self.instruction, False)
            base._base, base._path, base._seen = self._base, self._path, self._seen
            base._version, base._layout, base._trace = self._version, self._layout, self._trace
            base._view = True
            path = Reshape(wanted)
            self._base, self._path, self._seen = base, path, base.version
            self._instruction = path.read(base.instruction)
            return
        raise UnsupportedError(
            f"x.shape = {dimensions}: a traced array keeps its shape, since {why}; write "
            f"x = x.reshape({dimensions})"
        )

    @property
    def dtype(self) -> np.dtype:
        return self._instruction.array_shape.dtype

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return self._instruction.array_shape.size

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize

    @property
    def strides(self) -> tuple[int, ...]:
        """How NumPy would lay the array out, were it made as it is while tracing, in bytes."""
        return tuple(self.itemsize * step for step in self.ask_order("strides"))

    @property
    def base(self) -> Tracer | None:
        """The array that this is a view of, if it is one."""
        return None if self.root is self else self.root

    @property
    def nbytes(self) -> int:
        return self._instruction.array_shape.nbytes

    @property
    def device(self) -> str:
        return "cpu"

    def to_device(self, device: Any, /, *, stream: Any = None) -> Tracer:
        """The array itself: "cpu" is the only device. Raises `ArgumentError` for another."""
        if device != "cpu" or stream is not None:
            raise ArgumentError(f"to_device: device must be 'cpu' without a stream, not {device!r}")
        return self

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        """`tracejit.numpy`, as the array-API standard asks."""
        return supplied("array_namespace")

    def __len__(self) -> int:
        if not self.shape:
            raise ArgumentError("len: an array of rank 0 has no length")
        return self.shape[0]

    # Views and copies

    @property
    def T(self) -> Tracer:
        return self.through(Permute(tuple(range(self.ndim - 1, -1, -1))), self.is_scalar)

    @property
    def mT(self) -> Any:
        return call(np.matrix_transpose, self)

    @property
    def real(self) -> Tracer:
        if not self.element_type.is_complex:
            return self
        return self.through(ComplexPart(True), self.is_scalar)

    @real.setter
    def real(self, value: Any) -> None:
        self.real[...] = value

    @property
    def imag(self) -> Tracer:
        if not self.element_type.is_complex:
            made = self._new(full(self._instruction.array_shape, 0), self.is_scalar)
            made.lay_like(self)
            return made
        return self.through(ComplexPart(False), self.is_scalar)

    @imag.setter
    def imag(self, value: Any) -> None:
        self.imag[...] = value

    @property
    def flat(self) -> Tracer:
        """The elements, row by row, in one dimension; what is written there reaches the array."""
        return self.through(Reshape((self.size,)), False)

    @flat.setter
    def flat(self, value: Any) -> None:
        call(np.put, self, np.arange(self.size), value)

    def view(self, dtype: Any = None) -> Tracer:
        """A view of all of the array, or of its bits as another dtype.

        Raises `ShapeError` where the last dimension's bits are no whole number of its elements.
        """
        if dtype is None:
            return self.through(Reshape(self.shape), self.is_scalar)
        wanted = element_type_of(dtype)
        require_whole(self._instruction.array_shape, wanted)
        return self.through(Bits(self.element_type, wanted), self.is_scalar)

    def copy(self, order: str = "C") -> Tracer:
        """A new array with the same elements."""
        made = self._new(self.instruction, False)
        made.lay(self.copied_layout(order))
        return made

    def astype(
        self,
        dtype: Any,
        order: str = "K",
        casting: Any = "unsafe",
        subok: bool = True,
        copy: bool = True,
    ) -> Tracer:
        """The elements as another dtype; complex to real drops the imaginary part.

        Without ``copy`` an array of this dtype is itself, if it need not lie in another ``order``.
        """
        element_type = element_type_of(dtype)
        if not np.can_cast(self.dtype, element_type.dtype, casting):
            raise ArgumentError(
                f"astype: cannot cast {self.dtype} to {element_type.dtype} by the rule {casting!r}"
            )
        if not copy and order == "K" and element_type is self.element_type:
            return self
        made = self._new(converted(self.instruction, element_type), self.is_scalar)
        made.lay(self.copied_layout(order))
        return made

    def flatten(self, order: str = "C") -> Any:
        """A copy with one dimension."""
        return call(np.ravel, self, order).copy()

    def __copy__(self) -> Tracer:
        return self.copy("K")

    def __deepcopy__(self, memo: dict[int, Any]) -> Tracer:
        return self.copy("K")

    # Writes

    def fill(self, value: Any) -> None:
        """Every element becomes ``value``."""
        self[...] = value

    def sort(self, axis: int = -1, **kwargs: Any) -> None:
        """Sorts in place along ``axis``."""
        self[...] = call(np.sort, self, axis=axis, **kwargs)

    def partition(self, kth: Any, axis: int = -1, **kwargs: Any) -> None:
        """Sorts in place along ``axis``, which puts every ``kth`` element in its place."""
        self[...] = call(np.partition, self, kth, axis=axis, **kwargs)

    def put(self, indices: Any, values: Any, mode: str = "raise") -> None:
        """``x.flat[indices] = values``."""
        call(np.put, self, indices, values, mode)

    # NumPy's protocols

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        function = implementation(ufunc)
        out = kwargs.get("out")
        if isinstance(out, tuple) and len(out) == 1:
            kwargs["out"] = out[0]
        if method == "__call__":
            return function(*inputs, **kwargs)
        return getattr(function, method)(*inputs, **kwargs)

    def __array_function__(
        self, function: Any, types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        if find(function) is None:
            known = _known((args, kwargs), function in _PRINTING)
            if known is not None:
                # Nothing in the call is unknown: it is NumPy's own.
                return function(*known[0], **known[1])
        return implementation(function)(*args, **kwargs)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(concrete(self.instruction, "array"), dtype)

    # Where Python needs a value

    def __bool__(self) -> bool:
        return bool(concrete(self.instruction, "bool"))

    def __int__(self) -> int:
        return int(concrete(self.instruction, "int"))

    def __float__(self) -> float:
        return float(concrete(self.instruction, "float"))

    def __complex__(self) -> complex:
        return complex(concrete(self.instruction, "complex"))

    def __index__(self) -> int:
        return concrete(self.instruction, "index").__index__()

    def item(self, *args: Any) -> Any:
        """The one element as a Python number, if it is known while tracing."""
        return concrete(self.instruction, "item").item(*args)

    def tolist(self) -> Any:
        """The elements as nested lists, if they are known while tracing."""
        return concrete(self.instruction, "tolist").tolist()

    def __format__(self, spec: str) -> str:
        if spec:
            return format(concrete(self.instruction, "format")[()], spec)
        return f"{self!r} (tracejit.debug.print('{{}}', x) prints the value)"

    def __hash__(self) -> int:
        return hash(concrete(self.instruction, "hash")[()])

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or not hasattr(np.ndarray, name):
            raise AttributeError(f"a traced array has no attribute {name!r}")
        raise MissingAttributeError(
            f"a traced array {self._instruction.shape} has no {name}: it has no memory until the "
            f"compiled function runs; use x.{name} outside, on the result"
        )

    def __reduce__(self) -> Any:
        return concrete(self.instruction, "pickle").__reduce__()

    def __repr__(self) -> str:
        return f"Tracer<{self._instruction.shape}>"


_PRINTING = frozenset({np.array2string, np.array_repr, np.array_str})


def _known(arguments: Any, printed: bool) -> Any:
    """Arguments with values in place of the traced ones.

    None when one is unknown, or when the result, unless it is ``printed``, would lack a derivative.
    """
    leaves, structure = flatten(arguments)
    traced = [x.instruction for x in leaves if isinstance(x, Tracer)]
    if not printed and any(map(differentiated_argument, traced)):
        return None
    values = [known_value(x.instruction) if isinstance(x, Tracer) else x for x in leaves]
    if any(v is None for v in values):
        return None
    return unflatten(structure, values)


def unrecorded(array: np.ndarray) -> Tracer:
    """An array of its own, row by row, as one of the settled trace that is not recorded yet."""
    trace = current_trace()
    assert trace is not None, "nothing is being traced"
    made = Tracer(Unrecorded(array), trace, is_scalar=False)
    trace.unrecorded[id(made)] = made
    return made


def lift(instruction: Instruction, is_scalar: bool | None = None) -> Tracer:
    """An instruction as an array of the running trace; of rank 0 it is a number by default."""
    trace = current_trace()
    assert trace is not None, "nothing is being traced"
    return Tracer(instruction, trace, is_scalar=is_scalar)


def _masked_parts(value: Masked) -> tuple[list[Any], int]:
    mask = value._mask
    if isinstance(mask, Instruction):
        mask = value._mask = Tracer(mask, value.whole.owner, is_scalar=False)
    return [value.whole, mask], value.axis


def _masked(axis: int, children: Sequence[Any]) -> Masked:
    whole, mask = children
    if isinstance(whole, np.ndarray):
        raise ConcretizationError(
            "elements that a mask selects leave a traced function: how many there are depends on "
            "values; return the array and the mask"
        )
    return Masked(whole, mask, axis)


register_node(Masked, _masked_parts, _masked)
