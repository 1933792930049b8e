"""From a function to the function that its rewritten source makes: `autograph`."""

from __future__ import annotations

import ast
import functools
import inspect
import linecache
import pickle
import random
from collections.abc import Callable
from contextlib import suppress
from types import CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple, ParamSpec, TypeVar

import numpy as np

from tracejit.errors import ArgumentError, ConcretizationError, UnsupportedError
from tracejit.statements import objects, runtime
from tracejit.statements.counting import is_inside_counted
from tracejit.statements.exits import RUNTIME
from tracejit.statements.quiet import is_quiet_function, writes_to_its_own
from tracejit.statements.rewriting import Rewriter, is_generator
from tracejit.trace.context import current_trace
from tracejit.trace.recording import copied, is_users
from tracejit.trace.table import find

P = ParamSpec("P")
R = TypeVar("R")

GENERATORS = (np.random.Generator, np.random.RandomState, random.Random)
_INSIDE = "autograph_factory"


class Converted(NamedTuple):
    """Rewritten code; ``free`` are the names of its closure."""

    code: CodeType
    free: tuple[str, ...]


Known = dict[tuple[str, CodeType], Converted]
Rewrite = Callable[[ast.FunctionDef, str | None], ast.FunctionDef]
_converted: Known = {}
_origins: dict[tuple[str, CodeType], CodeType] = {}
"""All rewritten code, and that of the functions inside, with the user's own that it was made of."""
_before: dict[tuple[str, CodeType], CodeType] = {}
"""What other code than `_converted` was made of."""


def autograph(function: Callable[P, R]) -> Callable[P, R]:
    """``function`` with its ``if``, ``while``, ``for``, ``and``, ``or``, ``not``, chained
    comparisons, conditional expressions and ``assert`` deciding on traced values, too.

    The user's functions that it calls are rewritten as well. A traced ``if`` records both
    branches as one Conditional, a traced ``while`` and a ``for`` over a range of traced length one
    While; a loop over a known range with a traced ``break`` becomes one when it is long. What is
    known while tracing runs as Python runs it.

    Raises `ArgumentError` for what is no Python function, `UnsupportedError` when its source is
    not to be had.
    """
    if isinstance(function, functools.partial):
        inner = autograph(function.func)
        return functools.partial(inner, *function.args, **function.keywords)
    if isinstance(function, MethodType):
        return MethodType(autograph(function.__func__), function.__self__)
    if not isinstance(function, FunctionType):
        method = inspect.getattr_static(type(function), "__call__", None)
        if isinstance(method, FunctionType):
            return MethodType(autograph(method), function)
        raise ArgumentError(f"autograph: takes a Python function, not a {type(function).__name__}")
    made: Callable[P, R] | None = convert(function)
    if made is None:
        raise UnsupportedError(
            f"autograph: the source of {function.__qualname__} cannot be read; define it in a "
            f"file, one lambda to a line"
        )
    return made


def keeps_to_itself(function: Callable[..., Any]) -> bool:
    """Whether running a function again is not noticed, as far as its own text tells.

    It writes to its own variables, and sees no generator of random numbers from outside.
    """
    while isinstance(function, functools.partial | MethodType):
        function = function.func if isinstance(function, functools.partial) else function.__func__
    function = inspect.unwrap(function)
    if not isinstance(function, FunctionType):
        method = inspect.getattr_static(type(function), "__call__", None)
        return isinstance(method, FunctionType) and keeps_to_itself(method)
    node = _definition(function.__code__)
    if node is None or not writes_to_its_own(node):
        return False
    seen = [function.__globals__.get(name) for name in function.__code__.co_names]
    for cell in function.__closure__ or ():
        with suppress(ValueError):  # not assigned yet
            seen.append(cell.cell_contents)
    return not any(isinstance(value, GENERATORS) for value in seen)


def convert(function: FunctionType) -> Any:
    """The rewritten function; None when its source is not to be had."""
    return rewritten(function, _with_control_flow, _converted, runtime)


def _with_control_flow(node: ast.FunctionDef, owner: str | None) -> ast.FunctionDef:
    return Rewriter(owner).function(node)


def rewritten(
    function: FunctionType, rewrite: Rewrite, known_code: Known, namespace: ModuleType
) -> Any:
    """The function that ``rewrite`` makes of a definition and of the name of its class.

    ``namespace`` is what it calls for statements and calls. ``known_code`` keeps what was made
    before. None when the source is not to be had.
    """
    code = function.__code__
    if known_code is _converted:
        # What was rewritten for another end is, here, what it was before.
        code = _before.get((code.co_filename, code), code)
    key = (code.co_filename, code)
    if key in _origins:
        return function
    known = known_code.get(key)
    if known is None:
        found = _rewritten(code, function.__qualname__, rewrite)
        if found is None:
            return None
        known = known_code[key] = found
        if known_code is not _converted:
            _before[code.co_filename, found.code] = code
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    cells[RUNTIME] = CellType(namespace)
    made = FunctionType(
        known.code,
        function.__globals__,
        function.__name__,
        function.__defaults__,
        tuple(cells[name] for name in known.free),
    )
    made.__kwdefaults__ = function.__kwdefaults__
    return functools.update_wrapper(made, function)


def called(function: Any) -> Any:
    """What a rewritten function calls for ``function``: the user's own are rewritten, too."""
    kind = type(function)
    if kind is FunctionType:
        if is_users(function.__code__) and find(function) is None:
            made = convert(function) or function
            code = made.__code__
            if is_inside_counted() and not _is_quiet(_origins.get((code.co_filename, code))):
                raise ConcretizationError(
                    f"{function.__qualname__}: may do more than compute a value"
                )
            trace = current_trace()
            return copied(made) if trace is not None and trace.record_numpy else made
        if function.__module__.partition(".")[0] == "tracejit":
            return functools.partial(_with_functions, function)
        return function
    if kind is MethodType and type(function.__func__) is FunctionType:
        return MethodType(called(function.__func__), function.__self__)
    if kind is functools.partial:
        return functools.partial(called(function.func), *function.args, **function.keywords)
    return function


def _with_functions(function: Any, *args: Any, **kwargs: Any) -> Any:
    """A call of a transformation or of control flow: functions given to it are rewritten."""
    return function(
        *(_given(value) for value in args), **{name: _given(v) for name, v in kwargs.items()}
    )


def _given(value: Any) -> Any:
    return called(value) if type(value) in (FunctionType, MethodType) else value


def _rewritten(code: CodeType, qualname: str, rewrite: Rewrite) -> Converted | None:
    node = _definition(code)
    if node is None:
        return None
    if isinstance(node, ast.Lambda):
        body: list[ast.stmt] = [ast.copy_location(ast.Return(node.body), node.body)]
        definition = ast.copy_location(ast.FunctionDef("lambda_", node.args, body, []), node)
    else:
        definition = node
    if is_generator(definition):
        return Converted(code, code.co_freevars)
    definition.decorator_list, definition.returns = [], None
    for argument in ast.walk(definition.args):
        if isinstance(argument, ast.arg):
            argument.annotation = None
    definition.args.defaults = [ast.Constant(None) for _ in definition.args.defaults]
    definition.args.kw_defaults = [d and ast.Constant(None) for d in definition.args.kw_defaults]
    owner, _, _ = qualname.rpartition(".")
    owner = owner.rpartition(".")[2]
    new = rewrite(definition, None if owner == "<locals>" or not owner else owner)
    parameters = [ast.arg(name) for name in (*code.co_freevars, RUNTIME)]
    outer = ast.FunctionDef(
        _INSIDE, ast.arguments([], parameters, None, [], [], None, []), [new], []
    )
    ast.copy_location(outer, new)
    module = ast.fix_missing_locations(ast.Module([outer], []))
    flags = code.co_flags & _FUTURE
    compiled = compile(module, code.co_filename, "exec", flags, dont_inherit=True)
    inner = _code_inside(_code_inside(compiled, _INSIDE), new.name)
    inner = inner.replace(co_name=code.co_name)
    _remember(inner, code)
    return Converted(inner, inner.co_freevars)


_FUTURE = 0x1000000  # annotations stay text: CO_FUTURE_ANNOTATIONS


def _code_inside(code: CodeType, name: str) -> CodeType:
    (found,) = (c for c in code.co_consts if isinstance(c, CodeType) and c.co_name == name)
    return found


def _remember(made: CodeType, origin: CodeType) -> None:
    _origins[made.co_filename, made] = origin
    for constant in made.co_consts:
        if isinstance(constant, CodeType):
            _remember(constant, origin)


@functools.cache
def _is_quiet(code: CodeType | None) -> bool:
    """Whether the function of this code does nothing but compute, as far as its text tells."""
    node = None if code is None else _found(code)
    return node is not None and is_quiet_function(node)


def _definition(code: CodeType) -> ast.FunctionDef | ast.Lambda | None:
    """The definition in the source, a new tree; None when it is not there for certain."""
    # A third of the time that copy.deepcopy takes.
    node: ast.FunctionDef | ast.Lambda | None = pickle.loads(pickle.dumps(_found(code)))
    return node


def _found(code: CodeType) -> ast.FunctionDef | ast.Lambda | None:
    """The definition, as it is kept for all who ask."""
    linecache.checkcache(code.co_filename)
    text = "".join(linecache.getlines(code.co_filename))
    found = [node for node in _definitions(text) if _may_be(node, code)]
    return found[0] if len(found) == 1 else None


@functools.lru_cache(maxsize=16)
def _definitions(text: str) -> list[ast.FunctionDef | ast.Lambda]:
    """All functions of a file; none of what is no Python."""
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return []
    return [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.Lambda)]


def _may_be(node: ast.FunctionDef | ast.Lambda, code: CodeType) -> bool:
    name, first = "<lambda>", node.lineno
    if isinstance(node, ast.FunctionDef):
        name = node.name
        first = min([first, *(decorator.lineno for decorator in node.decorator_list)])
    if name != code.co_name or first != code.co_firstlineno:
        return False
    arguments = node.args
    named = [a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
    count = code.co_argcount + code.co_kwonlyargcount
    return tuple(named) == code.co_varnames[:count]


runtime.use_conversion(called)
objects.use_reader(keeps_to_itself)
