"""Calls of handlers of XLA's FFI, as LLVM text: no Python runs, and no array is copied.

    name, text = native_call(2, 1, {})      # int32 name(ptr record, ptr x, ptr y, ptr result)

The function copies the frame that the runtime prepared (see `native_abi`) to the stack, so that
threads may call at once, sets the pointers to the arrays, and calls the stages in order. It returns
0, or -1 where a handler failed; the runtime has kept the error by then.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from tracejit.backends.native_abi import (
    RUN_WORDS,
    WORD,
    CallFrame,
    FrameLayout,
    Record,
    Run,
    Stage,
)

_COPY = "llvm.memcpy.p0.p0.i64"
_FILL = "llvm.memset.p0.i64"


def native_call(
    arguments: int, results: int, copied: Mapping[int, tuple[int, int]]
) -> tuple[str, str]:
    """The name and the text of a call with these numbers of arrays.

    ``copied`` maps arguments to the results that begin as their copies, and to their bytes.
    """
    layout = FrameLayout(arguments, results)
    writer = _Writer()
    writer.begin(layout)
    for number in range(layout.count):
        pointer = f"%p{number}"
        if number in copied:
            result, size = copied[number]
            pointer = f"%p{arguments + result}"
            writer.line(f"call void @{_COPY}(ptr {pointer}, ptr %p{number}, i64 {size}, i1 false)")
        writer.store(f"ptr {pointer}", "%frame", layout.data(number))
    for stage, field in (
        (Stage.PREPARE, Record.prepare),
        (Stage.INITIALIZE, Record.initialize),
        (Stage.EXECUTE, Record.execute),
    ):
        writer.stage(stage, int(field.offset))
    writer.finish()
    body = "\n".join(writer.lines)
    name = f"tracejit_native_{hashlib.sha256(body.encode()).hexdigest()[:16]}"
    parameters = ", ".join(["ptr %record", *(f"ptr %p{n}" for n in range(layout.count))])
    text = "\n".join(
        [
            f"declare void @{_COPY}(ptr, ptr, i64, i1)",
            f"declare void @{_FILL}(ptr, i8, i64, i1)",
            f"define linkonce_odr hidden i32 @{name}({parameters}) {{",
            body,
            "}",
            "",
        ]
    )
    return name, text


class _Writer:
    """The lines of the function; values are numbered as they are made."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._count = 0

    def line(self, text: str) -> None:
        self.lines.append(f"  {text}")

    def made(self, text: str) -> str:
        self._count += 1
        self.line(f"%v{self._count} = {text}")
        return f"%v{self._count}"

    def at(self, memory: str, offset: int) -> str:
        return self.made(f"getelementptr i8, ptr {memory}, i64 {offset}")

    def load(self, kind: str, memory: str, offset: int) -> str:
        return self.made(f"load {kind}, ptr {self.at(memory, offset)}")

    def store(self, value: str, memory: str, offset: int) -> None:
        at = self.at(memory, offset)
        self.line(f"store {value}, ptr {at}")

    def begin(self, layout: FrameLayout) -> None:
        """The frame's copy, and the context of this run; fails where the record is empty."""
        self.lines.append("entry:")
        self.line(f"%frame = alloca [{layout.size} x i8], align 16")
        self.line(f"%run = alloca [{RUN_WORDS} x i64], align 16")
        given = self.load("ptr", "%record", int(Record.frame.offset))
        unset = self.made(f"icmp eq ptr {given}, null")
        self.line(f"br i1 {unset}, label %failed, label %prepared")
        self.lines.append("prepared:")
        self.line(f"call void @{_COPY}(ptr %frame, ptr {given}, i64 {layout.size}, i1 false)")
        self.line(f"call void @{_FILL}(ptr %run, i8 0, i64 {RUN_WORDS * WORD}, i1 false)")
        runs = self.at("%record", int(Record.runs.offset))
        before = self.made(f"atomicrmw add ptr {runs}, i64 1 monotonic")
        number = self.made(f"add i64 {before}, 1")
        self.store("ptr %record", "%run", int(Run.record.offset))
        self.store(f"i64 {number}", "%run", int(Run.number.offset))
        self.store("ptr %run", "%frame", int(CallFrame.context.offset))
        for place, own in layout.own_pointers().items():
            self.store(f"ptr {self.at('%frame', own)}", "%frame", place)

    def stage(self, stage: Stage, offset: int) -> None:
        """The handler of a stage, if there is one; ends the run where it fails."""
        name = stage.name.lower()
        handler = self.load("ptr", "%record", offset)
        missing = self.made(f"icmp eq ptr {handler}, null")
        self.line(f"br i1 {missing}, label %after_{name}, label %{name}")
        self.lines.append(f"{name}:")
        self.store(f"i32 {stage.value}", "%frame", int(CallFrame.stage.offset))
        self.store("ptr null", "%frame", int(CallFrame.future.offset))
        error = self.made(f"call ptr {handler}(ptr %frame)")
        future = self.load("ptr", "%frame", int(CallFrame.future.offset))
        either = [self.made(f"ptrtoint ptr {each} to i64") for each in (error, future)]
        seen = self.made(f"or i64 {either[0]}, {either[1]}")
        done = self.made(f"icmp eq i64 {seen}, 0")
        self.line(f"br i1 {done}, label %after_{name}, label %settle_{name}")
        self.lines.append(f"settle_{name}:")
        settle = self.load("ptr", "%record", int(Record.settle.offset))
        status = self.made(f"call i32 {settle}(ptr %run, ptr {error}, ptr {future})")
        settled = self.made(f"icmp eq i32 {status}, 1")
        self.line(f"br i1 {settled}, label %after_{name}, label %end")
        self.lines.append(f"after_{name}:")

    def finish(self) -> None:
        """Deletes the states of this run, if there are any."""
        self.line("br label %end")
        self.lines.append("end:")
        self.line(
            f"%status = phi i32 [ 0, %after_{Stage.EXECUTE.name.lower()} ]"
            + "".join(f", [ -1, %settle_{stage.name.lower()} ]" for stage in list(Stage)[1:])
        )
        types = [
            self.load("i64", "%run", int(field.offset))
            for field in (Run.prepared_type, Run.initialized_type)
        ]
        some = self.made(f"or i64 {types[0]}, {types[1]}")
        none = self.made(f"icmp eq i64 {some}, 0")
        self.line(f"br i1 {none}, label %return, label %delete")
        self.lines.append("delete:")
        end = self.load("ptr", "%record", int(Record.end.offset))
        self.line(f"call void {end}(ptr %run)")
        self.line("br label %return")
        self.lines += ["return:", "  ret i32 %status", "failed:", "  ret i32 -1"]
