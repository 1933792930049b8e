"""Groups LLVM functions into modules that are compiled in parallel.

texts = kernel_texts(kernels, translated, target, 2)    # after `tir_to_llvm.translate_kernels`
text = module_of(functions, target, True)               # any functions
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from tracejit.backends.tvm.cpu.llvm.builder import module_text
from tracejit.backends.tvm.cpu.llvm.procedures import declaration, group_of
from tracejit.backends.tvm.cpu.llvm.tir_to_llvm import DECLARED, TranslatedKernels
from tracejit.backends.tvm.cpu.processor import Processor
from tracejit.backends.tvm.ir.routine_call import RoutineCall
from tracejit.backends.tvm.program.program import Kernel

# The least number of characters that is worth another module, which costs 2 ms itself.
_LEAST = 20_000


def kernel_texts(
    kernels: Sequence[Kernel],
    written: TranslatedKernels,
    target: Processor,
    most: int,
    callers: Sequence[str] = (),
    declared: Sequence[str] = (),
) -> list[str]:
    """Modules of the translated kernels, except procedures shared by programs, and of routine
    calls.

    Hot code is divided into up to ``most`` modules of about equal length; the first one contains
    the ``callers`` of kernels as well, which also call the ``declared`` functions.
    """
    functions = [*written.glue.values(), *callers]
    named = [*declared]
    for kernel in kernels:
        name, count = kernel.name, len(kernel.parameters)
        if kernel.direct is not None:
            functions.append(_direct(kernel, kernel.direct))
            name, count = kernel.direct.routine.name, len(kernel.direct.pointers) + 1
        if kernel.name not in written.kernels:
            named.append(f"declare i32 @{name}({', '.join(['ptr'] * count)})")
    code = [*written.code.values()]
    pieces = _pieces([text for text in code if group_of(text) is None], most)
    if not pieces:
        known = [*_declarations(code), *dict.fromkeys(named)]
        return [module_of([*known, *functions], target, False)] if functions else []
    modules = []
    for number, piece in enumerate(pieces):
        known = _declarations(text for text in code if text not in piece)
        if number == 0:
            known += dict.fromkeys(named)
            piece = [*piece, *map(_unoptimised, functions)]
        modules.append(module_of([module_text([*known, *piece])], target, True))
    return modules


def module_of(texts: Sequence[str], target: Processor, is_hot: bool) -> str:
    """A module of functions, optimised for speed if ``is_hot``."""
    described: Any = target.tvm_quick if is_hot else target.tvm_unoptimised
    description = str(described).replace('"', "\\22")
    return "\n".join(
        [
            f'target triple = "{target.triple}"',
            *texts,
            "!llvm.module.flags = !{!1}",
            f'!1 = !{{i32 2, !"tvm_target", !"{description}"}}',
            "",
        ]
    )


def _pieces(texts: Sequence[str], most: int) -> list[list[str]]:
    """Texts divided into at most ``most`` groups of about equal length, short texts first."""
    count = min(most, sum(map(len, texts)) // _LEAST + 1, len(texts))
    pieces: list[list[str]] = [[] for _ in range(count)]
    for text in sorted(texts, key=len, reverse=True):
        min(pieces, key=lambda piece: sum(map(len, piece))).append(text)
    return sorted(pieces, key=lambda piece: sum(map(len, piece)))


def _unoptimised(function: str) -> str:
    """A function with attributes that skip optimisation, in a module of optimised ones."""
    head, brace, body = function.partition(") {\n")
    return f"{head}) noinline optnone {{\n{body}" if brace else function


def _direct(kernel: Kernel, direct: RoutineCall) -> str:
    """The kernel that calls a routine with its numbers, which are a constant array."""
    words = ", ".join(f"i64 {number}" for number in direct.numbers)
    numbers = f"@{kernel.name}_numbers"
    count = len(kernel.parameters)
    places = direct.places(kernel.parameters)
    pointers = ["ptr null" if place is None else f"ptr %p{place}" for place in places]
    call = f"call i32 @{direct.routine.name}({', '.join([*pointers, f'ptr {numbers}'])})"
    return "\n".join(
        [
            f"{numbers} = private constant [{len(direct.numbers)} x i64] [{words}]",
            f"define i32 @{kernel.name}({', '.join(f'ptr %p{n}' for n in range(count))}) {{",
            f"  %status = {call}",
            "  ret i32 %status",
            "}",
        ]
    )


def _declarations(functions: Iterable[str]) -> list[str]:
    """Declarations of the functions, and of TVM's runtime functions."""
    return [DECLARED, *map(declaration, functions)]
