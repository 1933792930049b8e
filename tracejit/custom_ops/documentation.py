"""Documentation from a definition: the docstring of the Python function, a page in Markdown."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from tracejit.custom_ops.calling import python_name, signature
from tracejit.custom_ops.definition import Argument, Attr, Definition
from tracejit.custom_ops.types import type_name

_WIDTH = 88


def docstring(definition: Definition) -> str:
    """Summary, arguments and results, as the Python function's ``__doc__``."""
    text, described = _read(definition)
    lines = [text or f"The op {definition.name}.", ""]
    arguments = [
        *((python_name(i.name), _array(definition, i, described)) for i in definition.inputs),
        *((python_name(a.name), _attribute(a, described)) for a in definition.parameters),
        ("name", "A name for the operation (optional)."),
    ]
    lines.append("Args:")
    lines += [_item(name, sentence) for name, sentence in arguments]
    lines += ["", "Returns:"]
    results = [(o.name, _array(definition, o, described)) for o in definition.outputs]
    if not results:
        lines.append("    None.")
    elif len(results) == 1:
        lines.append(_wrapped(results[0][1], "    "))
    else:
        names = ", ".join(name for name, _ in results)
        lines.append(f"    A tuple of arrays ({names}).")
        lines += [_item(name, sentence) for name, sentence in results]
    return "\n".join(lines) + "\n"


def markdown(definition: Definition, kernels: Sequence[str] = ()) -> str:
    """A page: the function, what it does, its arguments, results, attributes and kernels."""
    text, described = _read(definition)
    call = f"{definition.function_name}{_call(definition)}"
    parts = [f"# {definition.name}", f"```python\n{call}\n```"]
    if text:
        parts.append(text)
    for title, arguments in (("Inputs", definition.inputs), ("Outputs", definition.outputs)):
        rows = [(f"`{a.name}`", _array(definition, a, described)) for a in arguments]
        parts.append(f"## {title}\n\n{_table(('Name', 'Meaning'), rows)}" if rows else "")
    attrs = [
        (
            f"`{attr.name}`",
            f"`{attr.type_text}`",
            f"`{_value(attr, attr.default)}`" if attr.has_default else "",
            "told by the inputs"
            if attr.name in definition.inferred
            else described.get(attr.name, ""),
        )
        for attr in definition.attrs
    ]
    if attrs:
        parts.append(f"## Attributes\n\n{_table(('Name', 'Type', 'Default', 'Meaning'), attrs)}")
    if kernels:
        parts.append("## Kernels\n\n" + "\n".join(f"- {kernel}" for kernel in kernels))
    return "\n\n".join(part for part in parts if part) + "\n"


def _read(definition: Definition) -> tuple[str, Mapping[str, str]]:
    """The op's documentation, and the part about each argument."""
    names = definition.names
    text: list[str] = []
    described: dict[str, str] = {}
    current = None
    for line in inspect.cleandoc(definition.doc).splitlines():
        match = re.match(r"(\w+):\s+(.*)", line)
        if match is not None and match.group(1) in names:
            current = match.group(1)
            described[current] = match.group(2).strip()
        elif current is not None and line.strip():
            described[current] += " " + line.strip()
        else:
            current = None
            text.append(line)
    return "\n".join(text).strip(), described


def _array(definition: Definition, argument: Argument, described: Mapping[str, str]) -> str:
    """``An array. Must be one of the types: ...``, for an input; the type of an output."""
    sentence = _type_sentence(definition, argument)
    said = described.get(argument.name, "")
    return f"{sentence} {said}".strip()


def _type_sentence(definition: Definition, argument: Argument) -> str:
    attr = definition.attr(argument.type)
    is_list = definition.is_list(argument)
    what = "A list of arrays" if is_list else "An array"
    if argument.number is not None:
        number = definition.attr(argument.number)
        least = number.minimum if number is not None else None
        what = f"A list of at least {least} arrays" if least else "A list of arrays"
        if argument in definition.outputs:
            what = f"A list of `{argument.number}` arrays"
    elif is_list and attr is not None and attr.minimum:
        what = f"A list of at least {attr.minimum} arrays"
    if attr is None:
        return f"{what} of type `{type_name(definition.fixed_type(argument))}`."
    first = next((i for i in definition.inputs if i.type == argument.type), None)
    if first is not None and first is not argument:
        same = "types" if attr.is_list else "type"
        has = "Have" if is_list else "Has"
        return f"{what}. {has} the same {same} as `{first.name}`."
    if first is None:
        return f"{what} of type `{attr.name}`."
    if attr.allowed is None:
        return f"{what}." if attr.is_list or not is_list else f"{what}, all of the same type."
    choice = ", ".join(f"`{type_name(t)}`" for t in attr.allowed)
    one = "Each of the types" if attr.is_list else "Must be one of the following types"
    return f"{what}. {one}: {choice}."


def _attribute(attr: Attr, described: Mapping[str, str]) -> str:
    article = "An optional" if attr.has_default else "A"
    sentence = f"{article} `{attr.type_text}`."
    if attr.has_default:
        sentence += f" Defaults to `{_value(attr, attr.default)}`."
    return f"{sentence} {described.get(attr.name, '')}".strip()


def _value(attr: Attr, value: Any) -> str:
    if attr.kind == "type":
        return str([type_name(v) for v in value]) if attr.is_list else type_name(value)
    if attr.kind == "tensor" and not attr.is_list:
        return str(value.tolist())
    return repr(list(value)) if isinstance(value, tuple) else repr(value)


def _call(definition: Definition) -> str:
    shown = []
    by_name = {python_name(attr.name): attr for attr in definition.parameters}
    for parameter in signature(definition).parameters.values():
        default = ""
        if parameter.default is not parameter.empty:
            attr = by_name.get(parameter.name)
            default = f"={_value(attr, parameter.default) if attr else parameter.default}"
        shown.append(parameter.name + default)
    return f"({', '.join(shown)})"


def _item(name: str, sentence: str) -> str:
    return _wrapped(f"{name}: {sentence}", "    ", "        ")


def _wrapped(text: str, first: str, rest: str | None = None) -> str:
    return textwrap.fill(
        text,
        _WIDTH,
        initial_indent=first,
        subsequent_indent=first if rest is None else rest,
        break_long_words=False,
    )


def _table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [titles, ["---"] * len(titles), *rows]
    escaped = [[cell.replace("|", "\\|").replace("\n", " ") for cell in line] for line in lines]
    return "\n".join(f"| {' | '.join(line)} |" for line in escaped)
