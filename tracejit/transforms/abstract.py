"""What a function returns and records for shapes alone, without values and without compiling.

eval_shape(f, ShapeDtypeStruct((3,), np.float32))
print(make_graph(f)(x))
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tracejit import tree
from tracejit.graph import Module
from tracejit.shapes import Shape, element_type_of
from tracejit.transforms.jit.jit import jit
from tracejit.transforms.jit.signature import Numbers
from tracejit.transforms.shape_structs import ShapeDtypeStruct


def _abstract(leaf: Any) -> Any:
    """A leaf of the arguments as `lower` takes it: what has a shape and a dtype is its shape."""
    if isinstance(leaf, ShapeDtypeStruct | Shape):
        return leaf
    is_array = hasattr(leaf, "shape") and hasattr(leaf, "dtype")
    return Shape(element_type_of(leaf.dtype), tuple(leaf.shape)) if is_array else leaf


def eval_shape(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """The tree of `ShapeDtypeStruct` that ``fun`` returns for arguments like these.

    Arguments are trees of arrays, numbers, `ShapeDtypeStruct` and other objects with a ``shape``
    and a ``dtype``. The function is traced; nothing is computed or compiled. Raises what tracing
    the function raises.

    >>> tj.eval_shape(np.matmul, np.ones((2, 3)), np.ones((3, 4)))
    ShapeDtypeStruct(shape=(2, 4), dtype=float64)
    """
    given, named = tree.map(_abstract, (args, kwargs))
    return jit(fun).lower(*given, **named).out_info


def make_graph(fun: Callable[..., Any], static_argnums: Numbers = None) -> Callable[..., Module]:
    """A function of the same arguments that returns the graph which ``fun`` records for them.

    The place of `jax.make_jaxpr`. Arguments are as those of `eval_shape`; ``str`` of the result is
    HLO text. Raises what tracing the function raises.

    >>> print(tj.make_graph(np.sin)(0.0).entry.name)
    sin
    """

    def graph(*args: Any, **kwargs: Any) -> Module:
        given, named = tree.map(_abstract, (args, kwargs))
        return jit(fun, static_argnums=static_argnums).lower(*given, **named).module

    return graph


def make_jaxpr(fun: Callable[..., Any], static_argnums: Numbers = None) -> Callable[..., Module]:
    """`make_graph` by JAX's name: its result is a graph, and prints as HLO text.

    Raises what tracing the function raises.

    >>> print(tj.make_jaxpr(np.sin)(0.0).entry.name)
    sin
    """
    return make_graph(fun, static_argnums)
