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
    """Modules of the translated kernels, without the procedures that programs share.

    Hot code is divided into up to ``most`` modules of about equal length; the first one contains
    the ``callers`` of kernels as well, which also call the ``declared`` functions.
    """
    functions = [*written.glue.values(), *callers]
    named = [*declared]
    for kernel in kernels:
        if kernel.name not in written.kernels:
            pointers = ", ".join(["ptr"] * len(kernel.parameters))
            named.append(f"declare i32 @{kernel.name}({pointers})")
    code = [*written.code.values()]
    pieces = _pieces([text for text in code if group_of(text) is None], most)
    if not pieces:
        known = [*_declarations(code), *dict.fromkeys(named)]
        return [module_of([module_text([*known, *functions])], target, False)] if functions else []
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


def _declarations(functions: Iterable[str]) -> list[str]:
    """Declarations of the functions, and of TVM's runtime functions."""
    return [DECLARED, *map(declaration, functions)]
