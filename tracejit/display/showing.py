"""`show`: the display of anything that has one, and of a function traced for arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from scipy.sparse import sparray

from tracejit.api import Compiled as CompiledModule
from tracejit.backends.explanation import Explanation
from tracejit.display.matrices import matrix_html, matrix_text
from tracejit.display.page import Page, folded, framed, paragraph
from tracejit.display.programs import (
    graph_html,
    headline,
    kernels_html,
    module_html,
    module_text,
)
from tracejit.display.reports import (
    cache_html,
    memory_html,
    report_html,
    sizes_html,
    text_html,
    why_zero_html,
)
from tracejit.errors import ArgumentError
from tracejit.graph import Module
from tracejit.passes.memory_report import MemoryReport
from tracejit.runtime.executable import Executable
from tracejit.runtime.explaining import Report
from tracejit.runtime.memory_analysis import MemoryAnalysis
from tracejit.runtime.units import count_text
from tracejit.tracebacks import api_boundary
from tracejit.transforms.jit.cache_report import CacheReport
from tracejit.transforms.jit.compiled import CompiledProgram
from tracejit.transforms.jit.jit import jit
from tracejit.transforms.jit.jitted import JitFunction
from tracejit.transforms.jit.lowered import CompiledFunction, Lowered
from tracejit.transforms.jit.mutation import MutatingFunction
from tracejit.transforms.why_zero import WhyZero

Jitted = (JitFunction, MutatingFunction)


@api_boundary
def show(value: Any, /, *args: Any, **kwargs: Any) -> Page:
    """The display of ``value``: in a notebook, as text elsewhere, and as a file by ``save``.

    ``show(f, *args)`` traces a function, jitted or not, for arguments like these and shows its
    graph; `ShapeDtypeStruct` will do for arrays. Without arguments ``value`` is a jitted function,
    a module, what `lower` and `compile` return, a report, or a sparse Jacobian. Raises
    `ArgumentError` for anything else, and what tracing raises.

    >>> print(tj.show(tj.jit(lambda x: x + 1)))
    <jit of <lambda>(x): not compiled yet>
    """
    is_function = callable(value) and not isinstance(value, CompiledProgram)
    if args or kwargs:
        if not is_function:
            raise ArgumentError(f"show: {type(value).__name__} is shown without arguments")
        value = (value if isinstance(value, Jitted) else jit(value)).lower(*args, **kwargs)
    elif is_function and not isinstance(value, Jitted):
        value = jit(value).lower()
    return page_of(value)


def page_of(value: Any) -> Page:
    """The page of a value. Raises `ArgumentError` for one that has no display."""
    title, text, _ = _FACES[_class_of(value)]
    return Page(title(value), text(value), html_of(value))


def html_of(value: Any) -> str:
    """What ``value`` looks like in a notebook. Raises `ArgumentError` likewise."""
    return framed(_FACES[_class_of(value)][2](value))


def _class_of(value: Any) -> type:
    found = next((kind for kind in _FACES if isinstance(value, kind)), None)
    if found is None:
        raise ArgumentError(
            f"show: {type(value).__name__} has no display; a function, a module, what lower and "
            "compile return, reports and sparse arrays have one"
        )
    return found


def _lowered(lowered: Lowered) -> str:
    costs = lowered.cost_analysis()
    said = [f"{count_text(costs['flops'])} flops"]
    if costs["transcendentals"]:
        said.append(f"{count_text(costs['transcendentals'])} transcendental functions")
    memory = memory_html(lowered.memory_report())
    return (
        paragraph(*headline(lowered.module), *said)
        + graph_html(lowered.module)
        + folded("memory, step by step", memory)
    )


def _compiled(compiled: CompiledProgram) -> str:
    program = compiled.program
    kernels = ""
    if isinstance(program, Executable) and program.artifact.explanation:
        told = Explanation.from_json(program.artifact.explanation)
        count = len(told.kernels)
        kernels = folded(f"{count} kernel{'s' * (count != 1)}", kernels_html(told), True)
    graph = folded("the graph as it was traced", graph_html(compiled.module))
    return paragraph(*headline(compiled.module)) + kernels + graph


def _jitted(function: Any) -> str:
    return text_html(repr(function)) + cache_html(function.cache_report())


Face = tuple[Callable[[Any], str], Callable[[Any], str], Callable[[Any], str]]
"""From a value to its title, its text and its HTML."""


def _name_of_module(value: Any) -> str:
    module: Module = value.module
    return module.name


_FACES: dict[type, Face] = {
    Module: (lambda module: module.name, module_text, module_html),
    Lowered: (_name_of_module, lambda lowered: module_text(lowered.module), _lowered),
    CompiledFunction: (_name_of_module, repr, _compiled),
    CompiledModule: (_name_of_module, repr, _compiled),
    Report: (lambda report: "kernels", str, report_html),
    MemoryReport: (lambda report: "memory", str, memory_html),
    MemoryAnalysis: (lambda analysis: "memory", repr, sizes_html),
    CacheReport: (lambda report: report.title, str, cache_html),
    sparray: (lambda matrix: "sparse matrix", matrix_text, matrix_html),
    WhyZero: (lambda answer: f"the gradient in {answer.argument}", str, why_zero_html),
    JitFunction: (lambda function: function.cache_report().title, repr, _jitted),
    MutatingFunction: (lambda function: function.cache_report().title, repr, _jitted),
}
