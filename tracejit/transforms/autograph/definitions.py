"""The definition of a function in its source, and the function that it makes when rewritten.

rewritten(function, rewrite, known, namespace)
definition(function.__code__)
"""

from __future__ import annotations

import ast
import functools
import linecache
import pickle
from collections.abc import Callable
from types import CellType, CodeType, FunctionType, ModuleType
from typing import Any, NamedTuple

from tracejit.transforms.autograph.exits import RUNTIME
from tracejit.transforms.autograph.names import is_generator

_INSIDE = "autograph_factory"
_MADE = "autograph_function"


class Converted(NamedTuple):
    """Rewritten code; ``free`` are the names of its closure."""

    code: CodeType
    free: tuple[str, ...]


Known = dict[tuple[str, CodeType], Converted]
Rewrite = Callable[[ast.FunctionDef, str | None], ast.FunctionDef]
converted: Known = {}
origins: dict[tuple[str, CodeType], CodeType] = {}
"""All rewritten code, and that of the functions inside, with the user's own originals."""
_before: dict[tuple[str, CodeType], CodeType] = {}
"""The originals of other code than `converted`."""


def rewritten(
    function: FunctionType, rewrite: Rewrite, known_code: Known, namespace: ModuleType
) -> Any:
    """The function that ``rewrite`` makes of a definition and of the name of its class.

    ``namespace`` is what it calls for statements and calls. ``known_code`` keeps what was made
    before. None when the source is not to be had.
    """
    code = function.__code__
    if known_code is converted:
        # Code that was rewritten for another purpose is replaced by its original.
        code = _before.get((code.co_filename, code), code)
    key = (code.co_filename, code)
    if key in origins:
        return function
    known = known_code.get(key)
    if known is None:
        found = _rewritten(code, function.__qualname__, rewrite)
        if found is None:
            return None
        known = known_code[key] = found
        if known_code is not converted:
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


def _rewritten(code: CodeType, qualname: str, rewrite: Rewrite) -> Converted | None:
    node = definition(code)
    if node is None:
        return None
    if isinstance(node, ast.Lambda):
        body: list[ast.stmt] = [ast.copy_location(ast.Return(node.body), node.body)]
        made = ast.copy_location(ast.FunctionDef(_MADE, node.args, body, []), node)
    else:
        made = node
    if is_generator(made):
        return Converted(code, code.co_freevars)
    made.decorator_list, made.returns = [], None
    for argument in ast.walk(made.args):
        if isinstance(argument, ast.arg):
            argument.annotation = None
    made.args.defaults = [ast.Constant(None) for _ in made.args.defaults]
    made.args.kw_defaults = [d and ast.Constant(None) for d in made.args.kw_defaults]
    owner, _, _ = qualname.rpartition(".")
    owner = owner.rpartition(".")[2]
    new = rewrite(made, None if owner == "<locals>" or not owner else owner)
    # Under its own name it would be a local of the surrounding code, and hide that name's value.
    new.name = _MADE
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
    origins[made.co_filename, made] = origin
    for constant in made.co_consts:
        if isinstance(constant, CodeType):
            _remember(constant, origin)


def definition(code: CodeType) -> ast.FunctionDef | ast.Lambda | None:
    """The definition in the source, a new tree; None when it is not there for certain."""
    # A third of the time that copy.deepcopy takes.
    node: ast.FunctionDef | ast.Lambda | None = pickle.loads(pickle.dumps(kept_definition(code)))
    return node


def kept_definition(code: CodeType) -> ast.FunctionDef | ast.Lambda | None:
    """The definition, as it is kept for all who ask."""
    linecache.checkcache(code.co_filename)
    lines = linecache.getlines(code.co_filename)
    for first, text in ((code.co_firstlineno, _block(code, lines)), (1, "".join(lines))):
        nodes = [node for node in _definitions(text, first) if _may_be(node, code)]
        if nodes:
            return nodes[0] if len(nodes) == 1 else None
    return None


def _block(code: CodeType, lines: list[str]) -> str:
    """The lines of a function, which take less time to read than those of the whole file.

    Its last instruction is no farther than its end; what follows is its own as far as it is
    indented. Lines that end elsewhere after all, within a string, are no text that can be read.
    """
    first, last = code.co_firstlineno, _last_line(code)
    if code.co_name == "<lambda>" or last > len(lines):
        return ""
    indentation = _indentation(lines[first - 1])
    while last < len(lines):
        line = lines[last].strip()
        if line and not line.startswith("#") and _indentation(lines[last]) <= indentation:
            break
        last += 1
    return "".join(lines[first - 1 : last])


def _indentation(line: str) -> int:
    return len(line) - len(line.lstrip())


def _last_line(code: CodeType) -> int:
    inside = (_last_line(one) for one in code.co_consts if isinstance(one, CodeType))
    own = (line for _, _, line in code.co_lines() if line is not None)
    return max((code.co_firstlineno, *own, *inside))


@functools.lru_cache(maxsize=64)
def _definitions(text: str, first: int) -> list[ast.FunctionDef | ast.Lambda]:
    """All functions of a text that begins at a line of its file; none if it is not Python."""
    # Lines and columns are those of the file.
    above = "\n" * (first - 2) + "if True:\n" if _indentation(text) else "\n" * (first - 1)
    try:
        tree = ast.parse(above + text)
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
