"""The public names of the package, their docstrings, and the examples in these.

public_names()                          every name of every public module, with what it is
python -m tests.project.reference       writes docs/reference anew
"""

from __future__ import annotations

import doctest
import importlib
import inspect
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

import tracejit as tj
from tests.project import checkout

MODULES = {
    "tracejit": "tj",
    "tracejit.numpy": "tj.numpy",
    "tracejit.numpy.linalg": "tj.numpy.linalg",
    "tracejit.numpy.fft": "tj.numpy.fft",
    "tracejit.lax": "tj.lax",
    "tracejit.lax.linalg": "tj.lax.linalg",
    "tracejit.nn": "tj.nn",
    "tracejit.optim": "tj.optim",
    "tracejit.random": "tj.random",
    "tracejit.scipy.special": "tj.scipy.special",
}
"""The modules whose functions have an example each, and how a user writes them."""

DESCRIBED = {
    "tracejit.custom_ops": "tj.custom_ops",
    "tracejit.ffi": "tj.ffi",
    "tracejit.sharding": "tj.sharding",
    "tracejit.cuda": "tj.cuda",
}
"""Modules with a page of their functions and classes, whose examples are on other pages."""

OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


class Name(NamedTuple):
    """A public name: ``module`` as users write it, and the object."""

    module: str
    name: str
    value: Any

    def __str__(self) -> str:
        return f"{self.module}.{self.name}"

    @property
    def is_our_own(self) -> bool:
        """Whether it is a function of ours: no class, no constant, nothing of NumPy's."""
        value = self.value
        if not callable(value) or inspect.isclass(value):
            return False
        return str(getattr(type(value), "__module__", "")).startswith("tracejit") or str(
            getattr(value, "__module__", "")
        ).startswith("tracejit")

    @property
    def documentation(self) -> str:
        return inspect.getdoc(self.value) or ""


def public_names(modules: Mapping[str, str] = MODULES) -> Iterator[Name]:
    for module, written in modules.items():
        loaded = importlib.import_module(module)
        for name in sorted(loaded.__all__):
            yield Name(written, name, getattr(loaded, name))


def namespace() -> dict[str, Any]:
    """What the examples of docstrings see."""
    return {"np": np, "tj": tj, "tnp": tj.numpy}


def failures_of(name: Name) -> str:
    """What differs when the examples of a docstring are run; "" where nothing does."""
    example = doctest.DocTestParser().get_doctest(
        name.documentation, namespace(), str(name), None, 0
    )
    found: list[str] = []
    doctest.DocTestRunner(optionflags=OPTIONS).run(example, out=found.append)
    return "".join(found)


def page(module: str) -> str:
    """The page of one module: each public name with its signature and docstring."""
    names = [name for name in public_names(MODULES | DESCRIBED) if name.module == module]
    has_classes = module in DESCRIBED.values()
    ours = [n for n in names if n.is_our_own or (has_classes and inspect.isclass(n.value))]
    others = [f"`{name.name}`" for name in names if not name.is_our_own]
    lines = [f"# {module}", "", _INTRODUCTIONS[module], ""]
    for name in ours:
        lines += [f"## {name.name}", "", "```python", _signature(name), "```", ""]
        lines += [*_as_markdown(name.documentation), ""]
        if inspect.isclass(name.value):
            lines += _methods(name)
    if others:
        lines += ["## Other names", "", "Types, constants and modules: " + ", ".join(others) + "."]
    return "\n".join(lines).rstrip() + "\n"


_INTRODUCTIONS = {
    "tj": "`import tracejit as tj`: compiling, differentiating, looking inside.",
    "tj.numpy": (
        "`import tracejit.numpy as tnp`: NumPy's functions. Inside `tj.jit` and `tj.grad` calls of "
        "`numpy` itself are recorded, so that programs need not import this module."
    ),
    "tj.numpy.linalg": "NumPy's linear algebra, as `np.linalg`.",
    "tj.numpy.fft": "NumPy's Fourier transforms, as `np.fft`.",
    "tj.lax": "The operations as `jax.lax` spells them: nothing is promoted or broadcast.",
    "tj.lax.linalg": "Factorizations as `jax.lax.linalg` spells them.",
    "tj.nn": "Activations, layers and losses, as pure functions.",
    "tj.optim": "Optimisers as pairs of pure functions, as Optax has them.",
    "tj.random": "Random numbers from keys, with JAX's bits.",
    "tj.custom_ops": (
        "Operations of your own: `from tracejit.custom_ops import register_op`. The guide is "
        "[Operations of your own](../custom_operations.md)."
    ),
    "tj.ffi": (
        "Functions of compiled libraries, by XLA's FFI. The guide is "
        "[Native functions](../native_functions.md)."
    ),
    "tj.sharding": "Arrays on several devices. The guide is [Several devices](../distributed.md).",
    "tj.cuda": "NVIDIA GPUs. The guide is [NVIDIA GPUs](../gpu.md).",
    "tj.scipy.special": "SciPy's special functions. Calls of `scipy.special` itself are recorded.",
}


def _methods(name: Name) -> Iterator[str]:
    """The public methods and properties of a class that say what they are."""
    for method, value in vars(name.value).items():
        found = Name(f"{name}", method, getattr(name.value, method))
        own = isinstance(value, property) or inspect.isfunction(value)
        if method.startswith("_") or not own or not found.documentation:
            continue
        written = str(found) if isinstance(value, property) else _signature(found)
        yield from ["```python", written, "```", "", *_as_markdown(found.documentation), ""]


_ADDRESS = re.compile(r" at 0x[0-9a-f]+")


def _signature(name: Name) -> str:
    try:
        signature = inspect.signature(name.value)
    except (TypeError, ValueError):
        return f"{name}(...)"
    plain = signature.replace(
        parameters=[p.replace(annotation=p.empty) for p in signature.parameters.values()],
        return_annotation=signature.empty,
    )
    return f"{name}{_ADDRESS.sub('', str(plain))}"


def _as_markdown(documentation: str) -> Iterator[str]:
    """A docstring as Markdown: examples and indented lines are code."""
    is_code = False
    for line in documentation.split("\n"):
        starts = line.startswith((">>>", "    "))
        if starts and not is_code:
            yield "```pycon"
            is_code = True
        elif is_code and not line.strip():
            yield "```"
            is_code = False
        yield line if is_code else line.replace("``", "`").replace("<", "&lt;")
    if is_code:
        yield "```"


def main() -> None:
    for module in (MODULES | DESCRIBED).values():
        (PAGES / f"{module}.md").write_text(page(module), encoding="utf-8")


PAGES = checkout.ROOT / "docs" / "reference"

if __name__ == "__main__":
    PAGES.mkdir(exist_ok=True)
    main()
