"""A pytest plugin: `autograd` and its modules, for one run, are made of tracejit's.

AUTOGRAD_PATH=... pytest -p tests.conformance.autograd_names PATH/tests

The suite's own `test_util` and `wrap_util` are loaded from its checkout, whose path the variable
names; what a test uses of autograd's internals skips that test, with the reason.
"""

from __future__ import annotations

import builtins
import importlib
import importlib.util
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import scipy.special

import tracejit as tj
import tracejit.numpy as tnp
from tests.conformance.autograd_spaces import Space
from tracejit import tree
from tracejit.trace.scalar_class import ScalarClass, scalar_class
from tracejit.trace.table import Traced

Function = Callable[..., Any]


class Names(ModuleType):
    """A module of given names; others come from ``fallback``, or skip the test that uses them."""

    def __init__(self, name: str, names: Mapping[str, Any], fallback: Any = None) -> None:
        super().__init__(name)
        self.__path__: list[str] = []
        self._fallback = fallback
        vars(self).update(names)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if self._fallback is not None:
            return getattr(self._fallback, name)
        return Absent(f"{self.__name__}.{name}")


class Absent:
    """A name of autograd's that tracejit has no equivalent of: calling it skips the test.

    While tests are being collected, what is made with it is absent as well.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Absent(f"{self._name}.{name}")

    def __getitem__(self, index: Any) -> Any:
        return self

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if "PYTEST_CURRENT_TEST" not in os.environ:
            return self
        pytest.skip(f"not applicable: {self._name}")


def make_vjp(function: Function, x: Any) -> tuple[Function, Any]:
    """(pull, value); ``pull`` takes numbers of any type for the value's."""
    value, pull = tj.vjp(function, x)

    def typed(like: Any, cotangent: Any) -> Any:
        made = tnp.asarray(cotangent, dtype=tnp.asarray(like).dtype)
        return tnp.broadcast_to(made, np.shape(like))

    return lambda g: pull(tree.map(typed, value, g))[0], value


def make_jvp(function: Function, x: Any) -> Function:
    """push: from a tangent to (value, its tangent)."""

    def typed(like: Any, tangent: Any) -> Any:
        made = tnp.asarray(tangent, dtype=tnp.asarray(like).dtype)
        return tnp.broadcast_to(made, np.shape(like))

    return lambda v: tj.jvp(function, (x,), (tree.map(typed, x, v),))


def is_box(value: Any) -> bool:
    """Whether a value is being traced."""
    return isinstance(value, Traced)


def flatten(value: Any) -> tuple[Any, Function]:
    """A tree's elements as one vector, and the way back."""
    leaves, structure = tree.flatten(value)
    shapes = [np.shape(leaf) for leaf in leaves]
    ends = np.cumsum([0, *(int(np.prod(shape)) for shape in shapes)])

    def unflatten(vector: Any) -> Any:
        parts = zip(shapes, ends, ends[1:], strict=False)
        return tree.unflatten(structure, [vector[a:b].reshape(s) for s, a, b in parts])

    empty = np.zeros(0)
    return tnp.concatenate([tnp.ravel(leaf) for leaf in leaves] or [empty]), unflatten


def operators(unary_to_nary: Function) -> dict[str, Any]:
    """autograd's differential operators, by name."""

    def grad(fun: Function, x: Any) -> Any:
        def number(x: Any) -> Any:
            value = fun(x)
            # autograd's results may be arrays of one element.
            return value.reshape(()) if np.ndim(value) and np.size(value) == 1 else value

        return tj.grad(number)(x)

    def value_and_grad(fun: Function, x: Any) -> Any:
        return tj.value_and_grad(fun)(x)

    def grad_and_aux(fun: Function, x: Any) -> Any:
        return tj.grad(fun, has_aux=True)(x)

    def elementwise_grad(fun: Function, x: Any) -> Any:
        pull, value = make_vjp(fun, x)
        return pull(tree.map(np.ones_like, value))

    def holomorphic_grad(fun: Function, x: Any) -> Any:
        return tj.grad(fun, holomorphic=True)(x)

    def deriv(fun: Function, x: Any) -> Any:
        return make_jvp(fun, x)(tree.map(np.ones_like, x))[1]

    def jacobian(fun: Function, x: Any) -> Any:
        return tj.jacrev(fun)(x)

    def hessian(fun: Function, x: Any) -> Any:
        return tj.hessian(fun)(x)

    def make_hvp(fun: Function, x: Any) -> Any:
        return make_vjp(tj.grad(fun), x)

    def tensor_jacobian_product(fun: Function, argnum: int = 0) -> Function:
        def product(*args: Any, **kwargs: Any) -> Any:
            *rest, vector = args

            def dotted(*inner: Any) -> Any:
                return tnp.tensordot(vector, fun(*inner, **kwargs), axes=np.ndim(vector))

            return nary["jacobian"](dotted, argnum)(*rest)

        return product

    def hessian_tensor_product(fun: Function, argnum: int = 0) -> Function:
        def product(*args: Any, **kwargs: Any) -> Any:
            *rest, vector = args

            def dotted(*inner: Any) -> Any:
                slope = nary["grad"](fun, argnum)(*inner, **kwargs)
                return tnp.tensordot(slope, vector, axes=np.ndim(vector))

            return nary["grad"](dotted, argnum)(*rest)

        return product

    def half_square(x: Any) -> Any:
        return 0.5 * tnp.sum(x**2, axis=-1)

    def make_ggnvp(fun: Function, g: Function = half_square, f_argnum: int = 0) -> Function:
        def at(f: Function, x: Any) -> Any:
            pull, value = make_vjp(f, x)
            curve, _ = make_vjp(tj.grad(g), value)
            return lambda v: pull(curve(make_jvp(f, x)(v)[1]))

        made: Function = unary_to_nary(at)(fun, f_argnum)
        return made

    unary: list[Function] = [
        grad,
        value_and_grad,
        grad_and_aux,
        elementwise_grad,
        holomorphic_grad,
        deriv,
    ]
    unary += [jacobian, hessian, make_hvp, make_vjp, make_jvp]
    nary = {one.__name__: unary_to_nary(one) for one in unary}
    return {
        **nary,
        "checkpoint": tj.checkpoint,
        "hessian_tensor_product": hessian_tensor_product,
        "hessian_vector_product": hessian_tensor_product,
        "make_ggnvp": make_ggnvp,
        "tensor_jacobian_product": tensor_jacobian_product,
        "vector_jacobian_product": tensor_jacobian_product,
    }


def install(path: Path) -> None:
    """Makes `import autograd` and its modules find tracejit's, with the helpers of ``path``."""

    def enter(module: str, names: Mapping[str, Any], fallback: Any = None) -> ModuleType:
        made = sys.modules[module] = Names(module, names, fallback)
        parent, _, name = module.rpartition(".")
        if parent:
            setattr(sys.modules[parent], name, made)
        return made

    def loaded(name: str) -> ModuleType:
        found = importlib.util.spec_from_file_location(
            f"autograd.{name}", path / "autograd" / f"{name}.py"
        )
        assert found is not None, name
        assert found.loader is not None, name
        made = importlib.util.module_from_spec(found)
        sys.modules[found.name] = made
        found.loader.exec_module(made)
        return made

    containers = {kind: getattr(builtins, kind) for kind in ("dict", "list", "tuple")}
    containers |= {"isinstance": isinstance, "type": type}
    top = enter("autograd", containers)
    enter("autograd.core", {"make_vjp": make_vjp, "make_jvp": make_jvp, "vspace": Space})
    enter("autograd.tracer", {"isbox": is_box})
    enter("autograd.extend", {"vspace": Space})
    enter("autograd.builtins", containers)
    enter("autograd.misc", {"flatten": flatten})
    # np.int64(x) records, as it does where NumPy's own name stands in a traced function.
    classes = {name: scalar_class(own) for name, own in vars(np).items() if isinstance(own, type)}
    records = {name: made for name, made in classes.items() if isinstance(made, ScalarClass)}
    names = {name: getattr(tnp, name) for name in dir(tnp)}
    enter("autograd.numpy", {**names, **records, "__version__": np.__version__}, np)
    enter("autograd.numpy.linalg", vars(importlib.import_module("tracejit.numpy.linalg")))
    enter("autograd.numpy.fft", vars(importlib.import_module("tracejit.numpy.fft")))
    enter("autograd.numpy.random", {}, np.random)
    enter("autograd.scipy", {})
    special = importlib.import_module("tracejit.scipy.special")
    enter("autograd.scipy.special", vars(special), scipy.special)
    for name in ("linalg", "signal", "integrate", "stats", "stats.multivariate_normal"):
        enter(f"autograd.scipy.{name}", {})
    loaded("util")
    vars(top).update(operators(loaded("wrap_util").unary_to_nary))
    loaded("test_util")


if "AUTOGRAD_PATH" in os.environ:
    install(Path(os.environ["AUTOGRAD_PATH"]))
