"""JAX functions as functions of ours: lowered by JAX, then recorded as a call of their graph.

step = tj.from_jax(jax_step)        tj.grad(step)(w, x)        tj.jit(step).lower(w, x).compile()
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from tracejit import ops
from tracejit.errors import ArgumentError, UnsupportedError
from tracejit.graph import Instruction, Module
from tracejit.interop.stablehlo import hlo_of, needed
from tracejit.ops.constants import elements_of
from tracejit.ops.control import call
from tracejit.ops.custom import CUSTOM_CALL
from tracejit.shapes import Shape
from tracejit.targets import find_target
from tracejit.trace.convert import as_instruction
from tracejit.trace.tracer import Tracer, lift
from tracejit.tracebacks import api_boundary
from tracejit.transforms.jit.jit import jit
from tracejit.traversal import called_computations, instructions


@api_boundary
def from_jax(
    function: Callable[..., Any],
    *,
    static_argnums: int | Iterable[int] | None = None,
    static_argnames: str | Iterable[str] | None = None,
) -> Callable[..., Any]:
    """A function of JAX's as a jitted function of ours: the same arguments, the same numbers.

    Arguments and results are the trees that JAX knows, with NumPy arrays for leaves. Each kind of
    arguments is lowered by JAX once, compiled by tracejit, and kept. The result composes with
    `grad`, `vmap`, `jit` and ``export``. Its derivative is that of the lowered graph: rules of
    ``jax.custom_vjp`` are not in it; ``from_jax(jax.grad(f))`` has them. Element types are those
    that JAX chooses: without ``jax_enable_x64``, float64 becomes float32.

        f = tj.from_jax(lambda x: jax.numpy.linalg.solve(x, x.sum(0)))
        f(np.eye(3))

    ``static_argnums`` and ``static_argnames`` are handed to JAX.

    Raises `ArgumentError` for what is no function, `UnsupportedError` where JAX is not installed,
    and for a function with callbacks into Python, naming the call.

    >>> import jax.numpy as jnp
    >>> tj.from_jax(lambda x: jnp.sum(x**2))(np.array([1.0, 2.0], np.float32))
    np.float32(5.0)
    """
    if not callable(function):
        raise ArgumentError(f"from_jax: a function is needed, not {type(function).__name__}")
    known = _Lowered(function, static_argnums, static_argnames)

    @api_boundary
    @functools.wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        form, leaves = known.taken_apart(args, kwargs)
        arrays = [leaf if isinstance(leaf, _TAKEN) else np.asarray(leaf) for leaf in leaves]
        graphs = known.of(form)
        return graphs.tree_of(graphs.recorded(*arrays), arrays)

    return called


_TAKEN = (Tracer, np.ndarray, np.generic, bool, int, float, complex)


class _Form(NamedTuple):
    """What decides a graph beside shapes and element types."""

    tree: Any
    static: tuple[tuple[int | str, Hashable], ...]


class _Lowered:
    """What JAX makes of a function, for each form of its arguments."""

    def __init__(self, function: Any, static_argnums: Any, static_argnames: Any) -> None:
        self.jax = needed("jax", "from_jax")
        self.jitted = self.jax.jit(
            function,
            static_argnums=static_argnums,
            static_argnames=static_argnames,
            keep_unused=True,
        )
        numbers = (static_argnums,) if isinstance(static_argnums, int) else static_argnums
        names = (static_argnames,) if isinstance(static_argnames, str) else static_argnames
        self._numbers, self._names = tuple(numbers or ()), frozenset(names or ())
        self._forms: dict[_Form, _Graphs] = {}

    def taken_apart(self, args: Any, kwargs: Any) -> tuple[_Form, list[Any]]:
        """The form of a call, and the arrays in it."""
        numbers = {number % len(args) for number in self._numbers if number < len(args)}
        static: list[tuple[int | str, Hashable]] = [(n, args[n]) for n in sorted(numbers)]
        static += [(name, kwargs[name]) for name in sorted(self._names & kwargs.keys())]
        passed = [None if n in numbers else argument for n, argument in enumerate(args)]
        named = {name: value for name, value in kwargs.items() if name not in self._names}
        leaves, tree = self.jax.tree_util.tree_flatten((passed, named))
        return _Form(tree, tuple(static)), leaves

    def of(self, form: _Form) -> _Graphs:
        """The graphs for all calls of one form."""
        found = self._forms.get(form)
        if found is None:
            found = self._forms[form] = _Graphs(self, form)
        return found


class _Graphs:
    """The graphs of one form of arguments, by the kinds of arrays in it."""

    def __init__(self, lowered: _Lowered, form: _Form) -> None:
        self._lowered = lowered
        self._form = form
        self._graphs: dict[tuple[_Kind, ...], tuple[Module, Any]] = {}
        self.recorded = jit(self._record)
        """From the arrays of a call to those of its result, flat."""

    def tree_of(self, results: list[Any], arrays: Sequence[Any]) -> Any:
        """The tree that the function returns, of the arrays in it."""
        trees = {tree for _, tree in self._graphs.values()}
        if len(trees) > 1:
            trees = {self._graph(tuple(map(_described, arrays)))[1]}
        return self._lowered.jax.tree_util.tree_unflatten(trees.pop(), results)

    def _record(self, *leaves: Any) -> list[Any]:
        module, _ = self._graph(tuple(map(_described, leaves)))
        operands = [
            _fitted(as_instruction(leaf), parameter.array_shape)
            for leaf, parameter in zip(leaves, module.entry.parameters, strict=True)
        ]
        return [lift(result) for result in elements_of(call(module.entry, operands))]

    def _graph(self, kinds: tuple[_Kind, ...]) -> tuple[Module, Any]:
        found = self._graphs.get(kinds)
        if found is None:
            jax = self._lowered.jax
            described = [jax.ShapeDtypeStruct(k.shape, k.dtype, weak_type=k.is_weak) for k in kinds]
            args, kwargs = jax.tree_util.tree_unflatten(self._form.tree, described)
            for which, value in self._form.static:
                if isinstance(which, int):
                    args[which] = value
                else:
                    kwargs[which] = value
            made = self._lowered.jitted.lower(*args, **kwargs)
            module = hlo_of(made.compiler_ir("hlo"))
            _require_no_order(module)
            found = self._graphs[kinds] = module, made.out_tree
        return found


def _require_no_order(module: Module) -> None:
    """Raises `UnsupportedError` where effects have an order, which tokens among parameters say."""
    if all(isinstance(each.shape, Shape) for each in module.entry.parameters):
        return
    for computation in called_computations(module):
        for each in filter(lambda i: i.op is CUSTOM_CALL, instructions(computation)):
            find_target(each.attributes["custom_call_target"], each.source)
    raise UnsupportedError("from_jax: the function has ordered effects, which no graph holds")


class _Kind(NamedTuple):
    """What is known of an array before it is there."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    is_weak: bool


def _described(leaf: Any) -> _Kind:
    if isinstance(leaf, Tracer):
        return _Kind(leaf.shape, leaf.dtype, leaf.is_weak)
    is_weak = isinstance(leaf, bool | int | float | complex) and not isinstance(leaf, np.generic)
    array = np.asarray(leaf)
    return _Kind(array.shape, array.dtype, is_weak)


def _fitted(given: Instruction, wanted: Shape) -> Instruction:
    """An argument in the element type that JAX has chosen for it."""
    if given.array_shape.element_type is wanted.element_type:
        return given
    return ops.convert_element_type(given, wanted.element_type)
