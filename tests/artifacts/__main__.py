"""Hashes of what the compiler makes of a corpus: proof that a change of its code changes nothing.

    python -m tests.artifacts --write before.json          # then change the code
    python -m tests.artifacts --against before.json        # prints what differs; 1 if anything does

Each module has a hash of its program (the kernels' bodies and the calls in order, at AVX2 and at
AVX-512; kernels are numbered, so that their names do not count). One module in ``--artifacts N``
is compiled, and has a hash of the bytes that are stored on disk, explanations left out. ``--whole``
takes the whole corpus and compiles all of it. ``--only`` takes the modules whose names contain
this, ``--show`` prints their programs. The files compare only on one machine.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sys
import tempfile
import time
import warnings
import zlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

# Set before tracejit is imported: kernels are divided among threads, and so are their builds.
if __name__ == "__main__":
    os.environ["TVM_NUM_THREADS"] = "1"
    os.environ["TRACEJIT_CACHE_DIR"] = tempfile.mkdtemp(prefix="tracejit-artifacts-")

from tests.artifacts.corpus import modules
from tests.lowered import lower
from tracejit.backends.artifact import InProcess, unpack
from tracejit.backends.tvm.buffers.donation import aliases_of
from tracejit.backends.tvm.cpu.objects.build import build
from tracejit.backends.tvm.cpu.processor import Processor, processor_of
from tracejit.backends.tvm.program.program import Branch, Call, Loop, Node, Program
from tracejit.errors import TracejitError
from tracejit.graph import Module

# One module in so many is compiled to machine code.
ARTIFACTS = 24
WIDTHS = (64, 32)
"""Bytes of a vector register: AVX-512, AVX2."""

Record = dict[str, str]
"""What was made of a module, by "program" and width, or "artifact": a hash, or an error's text."""


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m tests.artifacts",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--write", type=Path, help="the file to write")
    action.add_argument("--against", type=Path, help="the file to compare with")
    action.add_argument("--show", action="store_true", help="print programs instead")
    parser.add_argument("--whole", action="store_true", help="take everything")
    parser.add_argument("--only", default="", help="take modules whose names contain this")
    parser.add_argument("--artifacts", type=int, default=ARTIFACTS, metavar="N")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.show:
        for name, make in modules(options.whole):
            if options.only in name:
                print(f"== {name}\n{text_of(_program(make(), processor_of(), WIDTHS[0]))}")
        return
    every = 1 if options.whole else options.artifacts
    start = time.process_time()
    records = _records(options.whole, options.only, every)
    print(f"{len(records)} modules, {time.process_time() - start:.0f} s of processor time")
    if options.write:
        options.write.write_text(json.dumps(records, indent=0), encoding="utf-8")
        return
    before = json.loads(options.against.read_text(encoding="utf-8"))
    changes = differences(before, records, options.only)
    for line in changes:
        print(line)
    print(f"{len(changes)} differences" if changes else "equal")
    sys.exit(bool(changes))


def _records(whole: bool, only: str, every: int) -> dict[str, Record]:
    target = processor_of()
    records = {}
    for name, make in modules(whole):
        if only not in name:
            continue
        try:
            module = make()
        except TracejitError as error:
            records[name] = {"module": f"{type(error).__name__}: {error.message}"}
            continue
        records[name] = {f"program {width}": _hash(module, target, width) for width in WIDTHS}
        if every and zlib.crc32(name.encode()) % every == 0:
            records[name]["artifact"] = _artifact(module, target)
    return records


def differences(before: dict[str, Record], now: dict[str, Record], only: str = "") -> list[str]:
    """A line for each hash that is another one, and for modules that only one side has."""
    lines = []
    for name in [*before, *(name for name in now if name not in before)]:
        if only not in name:
            continue
        if name not in before or name not in now:
            lines.append(f"{name}: {'is new' if name in now else 'is gone'}")
            continue
        old, new = before[name], now[name]
        lines += [
            f"{name}: {what}: {old[what]} became {new[what]}"
            for what in old
            if what in new and old[what] != new[what]
        ]
    return lines


def _program(module: Module, target: Processor, width: int) -> Program:
    machine = replace(target.machine, vector_bytes=width)
    return lower(module.entry, machine, aliases_of(module))


def _hash(module: Module, target: Processor, width: int) -> str:
    try:
        return _short(text_of(_program(module, target, width)).encode())
    except TracejitError as error:
        return f"{type(error).__name__}: {error.message}"


def _artifact(module: Module, target: Processor) -> str:
    """The hash of the library and of the constants: names of kernels are in the explanation."""
    try:
        made = build(_program(module, target, target.vector_bytes), target)
    except TracejitError as error:
        return f"{type(error).__name__}: {error.message}"
    if isinstance(made, InProcess):
        return "no linker"
    offset = made.index(unpack(made).explanation) if unpack(made).explanation else len(made)
    return _short(made[:offset])


def text_of(program: Program) -> str:
    """All of a program but for the names of its kernels."""
    numbers = {kernel.name: n for n, kernel in enumerate(program.kernels)}

    def steps(nodes: Sequence[Node], depth: int) -> list[str]:
        lines = []
        for node in nodes:
            margin = "  " * depth
            if isinstance(node, Call):
                places = ", ".join(map(str, node.arguments))
                lines.append(f"{margin}kernel {numbers[node.kernel]}: {places}")
            elif isinstance(node, Loop):
                lines.append(f"{margin}loop while {node.predicate}, {node.steps} steps")
                lines += steps(node.condition, depth + 2)
                lines += steps(node.body, depth + 1)
            else:
                assert isinstance(node, Branch)
                lines.append(f"{margin}branch {node.selector}")
                for branch in node.branches:
                    lines += [f"{margin} case", *steps(branch, depth + 1)]
        return lines

    kernels = [
        f"kernel {n}: {[(str(b), b.dtype, b.shape) for b in kernel.parameters]} reads "
        f"{kernel.reads} thorough {kernel.is_thorough}\n"
        f"{kernel.body}"
        for n, kernel in enumerate(program.kernels)
    ]
    constants = [f"{c.dtype}{c.shape} {_short(c.tobytes())}" for c in program.constants]
    ends = [*map(str, program.inputs), *map(str, program.outputs), str(dict(program.aliases))]
    calls = steps(program.calls, 0)
    return "\n".join([*ends, *constants, f"{program.workspace_bytes} bytes", *calls, *kernels])


def _short(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]


if __name__ == "__main__":
    main()
