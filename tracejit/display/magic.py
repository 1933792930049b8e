"""``%%tracejit``: what a cell of a notebook records, computes and costs.

%load_ext tracejit

%%tracejit
y = np.tanh(x @ w)
np.sum(y**2)

The arrays and numbers that the cell reads are its arguments, its last expression, or else the
names that it binds, the result. The cell runs as it would without the magic.
"""

from __future__ import annotations

import ast
import builtins
import linecache
import timeit
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from types import FunctionType
from typing import Any

import numpy as np

from tracejit.backends.explanation import Explanation
from tracejit.display.graphs import seconds_of
from tracejit.display.page import Page, bars, folded, framed, paragraph, table
from tracejit.display.programs import graph_html, headline, kernels_html, module_text
from tracejit.errors import ArgumentError, TracejitError
from tracejit.graph import Module
from tracejit.passes.cost_analysis import size_in_bytes
from tracejit.runtime.executable import Executable
from tracejit.runtime.units import bytes_text
from tracejit.shapes import Shape
from tracejit.sources import Source
from tracejit.transforms.gradient import grad
from tracejit.transforms.jit.jit import jit
from tracejit.traversal import called_computations, instructions

SECONDS = 0.2
"""How long each of NumPy's and the compiled calls are measured."""


def load_ipython_extension(shell: Any) -> None:
    """Adds the magic to a shell of IPython's: what ``%load_ext tracejit`` calls."""

    def run(line: str, cell: str) -> Page:
        if line.strip():
            raise ArgumentError(f"%%tracejit takes no arguments, and got {line.strip()!r}")
        return traced_cell(cell, shell.user_ns, _file_of(shell, cell))

    shell.register_magic_function(run, magic_kind="cell", magic_name="tracejit")


def _file_of(shell: Any, cell: str) -> str:
    """The name by which IPython calls this cell, with lines as the user counts them."""
    name: str = shell.compile.cache(f"%%tracejit\n{cell}", shell.execution_count)
    return name


def traced_cell(cell: str, names: dict[str, Any], file: str = "<cell>") -> Page:
    """The display of a cell, which is run among the ``names``.

    Raises `ArgumentError` for a cell that reads no arrays or has no result, and what tracing and
    running raise.
    """
    tree = ast.increment_lineno(ast.parse(cell, file), 1)
    function = _function(tree, names, file)
    values = [names[name] for name in function.__code__.co_varnames[: _count(function)]]
    compiled = jit(function).lower(*values).compile()
    gradient = _gradient(function, values)
    times = _times(function, compiled, values)
    exec(compile(tree, file, "exec"), names)
    return _page(compiled, gradient, times)


def _count(function: FunctionType) -> int:
    return function.__code__.co_argcount


def _function(tree: ast.Module, names: Mapping[str, Any], file: str) -> FunctionType:
    """The cell as a function of the arrays and numbers that it reads."""
    read, bound = _names(tree)
    given = [name for name in read if _is_traced(names.get(name))]
    unknown = [n for n in read if n not in names and n not in bound and not hasattr(builtins, n)]
    if unknown:
        raise ArgumentError(f"%%tracejit: the cell reads {unknown[0]}, which is not defined")
    if not given:
        raise ArgumentError("%%tracejit: the cell reads no arrays or numbers that are defined")
    body = [*tree.body]
    last = body[-1]
    if isinstance(last, ast.Expr):
        result: ast.expr = last.value
        body = body[:-1]
    elif bound:
        result = ast.Tuple([ast.Name(name, ast.Load()) for name in bound], ast.Load())
        result = result.elts[0] if len(bound) == 1 else result
    else:
        raise ArgumentError("%%tracejit: the cell neither ends with an expression nor binds a name")
    arguments = ast.arguments([], [ast.arg(name) for name in given], None, [], [], None, [])
    returned = ast.copy_location(ast.Return(result), last)
    made = ast.parse("def cell(): pass")
    (defined,) = made.body
    assert isinstance(defined, ast.FunctionDef)
    defined.args, defined.body = arguments, [*body, returned]
    code = compile(ast.fix_missing_locations(made), file, "exec")
    inner = next(each for each in code.co_consts if isinstance(each, type(code)))
    return FunctionType(inner, names, "cell")  # type: ignore[arg-type]


def _names(tree: ast.Module) -> tuple[list[str], list[str]]:
    """Names that the cell reads, and those that it binds at its top level, in order."""
    found = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    read = dict.fromkeys(n.id for n in found if isinstance(n.ctx, ast.Load))
    read.update(
        (node.target.id, None)
        for node in ast.walk(tree)
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name)
    )
    bound = dict.fromkeys(
        node.id
        for statement in tree.body
        if isinstance(statement, (ast.Assign, ast.AugAssign, ast.AnnAssign))
        for target in getattr(statement, "targets", [getattr(statement, "target", None)])
        for node in ast.walk(target)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    )
    return [*read], [*bound]


def _is_traced(value: Any) -> bool:
    if isinstance(value, (np.ndarray, np.generic)):
        return value.dtype.kind in "biufc"
    return isinstance(value, (float, complex)) and not isinstance(value, bool)


def _gradient(function: Callable[..., Any], values: Sequence[Any]) -> Module | str:
    """The graph of the derivative, or why there is none."""
    real = tuple(n for n, value in enumerate(values) if np.asarray(value).dtype.kind == "f")
    try:
        return jit(grad(function, argnums=real)).lower(*values).module
    except TracejitError as error:
        return error.message


def _times(
    function: Callable[..., Any], compiled: Callable[..., Any], values: Sequence[Any]
) -> dict[str, float]:
    """Seconds of a call, the least of five rows, or of one where calls are long."""
    times = {}
    for name, called in {"NumPy": function, "compiled": compiled}.items():
        called(*values)
        timer = timeit.Timer(lambda called=called: called(*values))  # type: ignore[misc]
        first = timer.timeit(1)
        calls = max(int(SECONDS / 5 / max(first, 1e-9)), 1)
        repeat = 5 if first < SECONDS else 1
        times[name] = min(timer.repeat(repeat, calls)) / calls
    return times


def _page(compiled: Any, gradient: Module | str, times: Mapping[str, float]) -> Page:
    module = compiled.module
    heads = ["line", "what it says", "operations", "result bytes", "time, estimated"]
    lines = _lines(module)
    spent = bars([line[4] for line in lines], [f"{line[4] * 1e6:.3g} us" for line in lines])
    rows = [
        (where, code, ops, bytes_text(moved), bar)
        for (where, code, ops, moved, _), bar in zip(lines, spent, strict=True)
    ]
    speed = bars([*times.values()], [_seconds_text(each) for each in times.values()])
    ratio = times["NumPy"] / times["compiled"]
    parts = [
        paragraph(*headline(module), f"{ratio:.2g} times as fast as NumPy"),
        table(["a call", "time"], [*zip(times, speed, strict=True)]),
        folded("what each line recorded", table(heads, rows), True),
        folded("graph", graph_html(module), True),
    ]
    if isinstance(gradient, Module):
        parts.append(folded("graph of the derivative", graph_html(gradient)))
    else:
        parts.append(folded("no derivative", paragraph(gradient)))
    program = compiled.program
    if isinstance(program, Executable) and program.artifact.explanation:
        told = Explanation.from_json(program.artifact.explanation)
        parts.append(folded(f"kernels: {len(told.kernels)}", kernels_html(told)))
    text = [f"{name}: {_seconds_text(each)} a call" for name, each in times.items()]
    text += [f"{where}: {ops}   {code}" for where, code, ops, *_ in lines]
    return Page("cell", "\n".join([*text, "", module_text(module)]), framed("".join(parts)))


def _lines(module: Module) -> list[tuple[str, str, str, int, float]]:
    """For each line where it stands, what it says, its operations, bytes of results and time."""
    found: dict[Source, list[Any]] = {}
    for computation in called_computations(module):
        for instruction in instructions(computation):
            if instruction.source is not None and instruction.op.family != "constants":
                found.setdefault(instruction.source, []).append(instruction)
    lines = []
    for source, inside in sorted(found.items()):
        counts = Counter(i.op.opcode for i in inside)
        ops = ", ".join(f"{n} {op}" if n > 1 else op for op, n in counts.items())
        moved = sum(size_in_bytes(i.shape) for i in inside if isinstance(i.shape, Shape))
        code = linecache.getline(source.file, source.line).strip()
        lines.append((str(source), code, ops, moved, sum(map(seconds_of, inside))))
    return lines


def _seconds_text(seconds: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"
