"""The disk cache: a second process, damage, folders that cannot be used, limits, rivals."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.runtime.processes import finished, python, start
from tests.runtime.programs import addition, built, elementwise, of_one_kernel, spec
from tracejit import errors, system
from tracejit.backends import abi, machine, scratch
from tracejit.backends.artifact import InProcess, pack, unpack
from tracejit.errors import CompilationError
from tracejit.runtime import DiskCache, Executable, cache_key, importing_tvm
from tracejit.runtime import cache as caching

with importing_tvm():
    from tracejit.backends.tvm.cpu.objects import in_process
    from tracejit.backends.tvm.cpu.objects.build import build
    from tracejit.backends.tvm.cpu.processor import processor_of

X = np.ones(10, np.float32)
F32 = spec("float32", 10)


@pytest.fixture(scope="module")
def program() -> bytes:
    return built(addition())


@pytest.fixture
def cache(tmp_path: Path) -> DiskCache:
    return DiskCache(tmp_path / "cache")


@pytest.fixture(autouse=True)
def forget_warnings() -> Iterator[None]:
    caching._warn_once.cache_clear()
    yield
    caching._warn_once.cache_clear()


def folder(cache: DiskCache) -> Path:
    assert cache.folder is not None
    return cache.folder


def works(executable: Executable | None) -> bool:
    return executable is not None and executable([X, X])[0].tolist() == [2.0] * 10


# Keeping and finding.


def test_what_is_added_is_found(cache: DiskCache, program: bytes) -> None:
    assert cache.find("a") is None
    assert works(cache.add("a", program))
    assert works(cache.find("a"))
    assert works(DiskCache(cache.folder).find("a"))
    assert cache.find("b") is None
    assert [path.name for path in folder(cache).iterdir()] == ["a.so"]
    assert folder(cache).stat().st_mode & 0o777 == 0o700


SECOND = """
import sys, time
import numpy as np
from pathlib import Path
import tracejit
from tracejit.runtime import DiskCache, cache_key
start = time.process_time()
key = cache_key(sys.argv[2])
run = DiskCache(Path(sys.argv[1])).find(key)
x = np.ones(10, np.float32)
assert run([x, x])[0].tolist() == [2.0] * 10
print(time.process_time() - start, key)
print(*sys.modules)
"""


def test_a_second_process_needs_no_compiler(cache: DiskCache, program: bytes) -> None:
    """Neither TVM nor PyTorch, and under 50 ms of processor time, the best of three."""
    key = cache_key("graph")
    cache.add(key, program)
    seconds = []
    for _ in range(3):
        first, modules = python(SECOND, str(cache.folder), "graph").splitlines()
        assert first.split()[1] == key
        assert {"tvm", "tvm_ffi", "torch"}.isdisjoint(modules.split())
        seconds.append(float(first.split()[0]))
    assert min(seconds) < 0.05


def test_keys_differ_with_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = {cache_key("a"), cache_key("b"), cache_key("a", "x"), cache_key("a", "y")}
    keys |= {cache_key("ax"), cache_key("", "a"), cache_key("")}
    monkeypatch.setattr(caching, "thread_count", lambda: 77)
    keys.add(cache_key("a"))
    for module, name, value in (
        (caching, "host", lambda: machine.HostMachine("x86_64", "another", ("sse2",))),
        (caching, "host", lambda: machine.HostMachine("x86_64", "another", ("sse2",), 1 << 20)),
        (abi, "LAYOUT", abi.Layout(type=24)),
        (np, "__version__", "3.0"),
        (caching, "_stamp", lambda path: (1, 2)),
    ):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(module, name, value)
            caching._surroundings.cache_clear()
            keys.add(cache_key("a"))
    caching._surroundings.cache_clear()
    assert len(keys) == 13
    assert all(len(key) == 64 and key.isalnum() for key in keys)


# Damage.


def entry(cache: DiskCache, program: bytes) -> Path:
    """An entry on disk that this process has not loaded."""
    folder(cache).mkdir(mode=0o700)
    path = folder(cache) / "a.so"
    path.write_bytes(program)
    return path


@pytest.mark.parametrize("keep", [0, 1, 100, 1024, -1, -100])
def test_a_truncated_entry_is_removed(cache: DiskCache, program: bytes, keep: int) -> None:
    path = entry(cache, program[:keep])
    assert cache.find("a") is None
    assert not path.exists()
    assert works(cache.add("a", program))


@pytest.mark.parametrize("position", [0, 24, 500, 1000, -200, -50, -40, -1])
def test_a_damaged_entry_is_removed(cache: DiskCache, program: bytes, position: int) -> None:
    damaged = bytearray(program)
    damaged[position] ^= 0x10
    path = entry(cache, bytes(damaged))
    assert cache.find("a") is None
    assert not path.exists()
    assert works(cache.add("a", program))
    assert works(cache.find("a"))


def in_the_way(path: Path, kind: str) -> None:
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    else:
        path.symlink_to(path.parent / "nothing")


@pytest.mark.filterwarnings("error")
@pytest.mark.skipif(sys.platform == "win32", reason="needs pipes and links in folders")
@pytest.mark.parametrize("kind", ["pipe", "device", "nowhere"])
def test_what_is_no_file_is_replaced(cache: DiskCache, program: bytes, kind: str) -> None:
    """A pipe would be waited for, for ever."""
    folder(cache).mkdir(mode=0o700)
    for name in ("a.so", "a.json"):
        in_the_way(folder(cache) / name, kind)
    assert cache.find("a") is None
    assert cache.recall("a") is None
    assert works(cache.add("a", program))
    cache.remember("a", {"x": 1.5})
    assert works(DiskCache(cache.folder).find("a"))
    assert cache.recall("a") == {"x": 1.5}
    assert all(path.is_file() and not path.is_symlink() for path in folder(cache).iterdir())


@pytest.mark.parametrize("damage", [b"", b"{", b"[" * 100_000, b'{"noted": 1}', b"\xff\xfe", b"3"])
def test_a_note_that_is_none_is_removed(cache: DiskCache, damage: bytes) -> None:
    cache.remember("a", {"x": 1.5})
    path = folder(cache) / "a.json"
    path.write_bytes(damage)
    assert cache.recall("a") is None
    assert not path.exists()


def test_every_bit_of_a_note_counts(cache: DiskCache) -> None:
    facts = {"taken": {"tile": "6x2"}, "before": 1.5, "complete": True}
    cache.remember("a", facts)
    path = folder(cache) / "a.json"
    whole = path.read_bytes()
    for position in range(len(whole)):
        path.write_bytes(whole[:position] + bytes([whole[position] ^ 4]) + whole[position + 1 :])
        assert cache.recall("a") in (None, facts)  # a letter of the checksum, in capitals


def test_objects_are_kept_for_other_programs(cache: DiskCache) -> None:
    assert cache.find_object("text") is None
    assert cache.keep_object("text", b"machine code")
    assert DiskCache(cache.folder).find_object("text") == b"machine code"
    assert cache.find_object("another text") is None
    assert not DiskCache(None).keep_object("text", b"machine code")
    assert DiskCache(None).find_object("text") is None


@pytest.mark.parametrize("bit", [0, 7, 100, 300])
def test_an_object_that_is_damaged_is_removed(cache: DiskCache, bit: int) -> None:
    assert cache.keep_object("text", b"machine code")
    (path,) = folder(cache).iterdir()
    data = bytearray(path.read_bytes())
    data[bit // 8] ^= 1 << bit % 8
    path.write_bytes(data)
    assert cache.find_object("text") is None
    assert [*folder(cache).iterdir()] == []


def test_objects_where_nothing_can_be_kept(tmp_path: Path) -> None:
    """Without a warning of their own: the program's says it."""
    (tmp_path / "file").write_text("")
    cache = DiskCache(tmp_path / "file")
    assert not cache.keep_object("text", b"machine code")
    assert cache.find_object("text") is None
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    assert not DiskCache(shared).keep_object("text", b"machine code")
    assert [*shared.iterdir()] == []


def test_objects_are_evicted_too(cache: DiskCache, program: bytes) -> None:
    assert cache.keep_object("text", bytes(1000))
    (path,) = folder(cache).iterdir()
    os.utime(path, (0, 0))
    smaller = DiskCache(cache.folder, len(program) + 100)
    assert works(smaller.add("a", program))
    assert smaller.find_object("text") is None


def test_an_interrupted_write_leaves_nothing(
    cache: DiskCache, program: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        cache.add("a", program)
    assert list(folder(cache).iterdir()) == []


def test_an_entry_that_no_system_loads(cache: DiskCache, program: bytes) -> None:
    """A right checksum, but the library is for another system: a warning, and built anew."""
    entry(cache, pack(b"\x7fELF" + bytes(1000), unpack(program)))
    with pytest.warns(RuntimeWarning, match="cannot be read"):
        assert cache.find("a") is None
    assert works(cache.add("a", program))


# Folders that cannot be used: one warning, and the program runs.


def test_a_folder_that_cannot_be_made(tmp_path: Path, program: bytes) -> None:
    (tmp_path / "file").write_text("in the way")
    cache = DiskCache(tmp_path / "file" / "cache")
    with pytest.warns(RuntimeWarning, match="cannot be read") as caught:
        assert cache.find("a") is None
    with pytest.warns(RuntimeWarning, match="cannot be kept"):
        assert works(cache.add("a", program))
    assert len(caught) == 1
    assert cache.find("b") is None  # not again
    assert works(cache.add("b", program))


def test_a_disk_that_is_full(
    cache: DiskCache, program: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "replace", full)
    with pytest.warns(RuntimeWarning, match="No space left"):
        assert works(cache.add("a", program))
    assert list(folder(cache).iterdir()) == []
    assert works(cache.add("b", program))


def test_a_temporary_folder_that_is_full(
    cache: DiskCache, program: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A code generator that cannot write its file would end the process."""
    in_process.warn_of_missing_room.cache_clear()
    monkeypatch.setattr(scratch, "ROOM_BYTES", 1 << 60)
    with pytest.warns(RuntimeWarning, match="TMPDIR"):
        made = build(addition(), processor_of())
    assert isinstance(made, InProcess)
    assert works(cache.add("a", made))
    with monkeypatch.context() as patch:
        assert works(DiskCache(None).add("a", program))  # from memory
        patch.setattr(system, "OPEN_FILES", Path("/nowhere"))
        with pytest.raises(CompilationError, match="no temporary folder"):
            DiskCache(None).add("a", program)
    assert works(cache.add("a", program))  # an entry needs no other file
    in_process.warn_of_missing_room.cache_clear()


FILES_OF_4_KIB = """
import resource, warnings
import numpy as np
import tracejit as tj
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    for number in (1.0, 2.0):
        assert tj.jit(lambda x: x + number)(np.ones(3)).tolist() == [1 + number] * 3
print(*sorted({str(each.message).partition(":")[0] for each in caught}))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs limits on files")
def test_a_process_that_may_write_no_files(tmp_path: Path) -> None:
    """It compiles for itself, and says why."""
    said = python(FILES_OF_4_KIB, TRACEJIT_CACHE_DIR=str(tmp_path / "cache"))
    assert said == "no folder for temporary files has 64 MiB of room"
    assert not (tmp_path / "cache").exists()


def test_room_is_looked_for_in_memory_too(monkeypatch: pytest.MonkeyPatch) -> None:
    rooms = {Path(tempfile.gettempdir()): 0.0, system.MEMORY_FOLDER: 1e12}
    monkeypatch.setattr(system, "room", rooms.__getitem__)
    monkeypatch.setattr(os, "access", lambda path, mode: True)
    assert [*scratch.roomy_folders()] == [system.MEMORY_FOLDER]


def test_many_failures_one_warning(tmp_path: Path, program: bytes) -> None:
    """Messages name the folder and the reason, not the file that differs each time."""
    (tmp_path / "file").write_text("in the way")
    cache = DiskCache(tmp_path / "file" / "cache")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for name in "abc":
            assert works(cache.add(name, program))
    assert len(caught) == 1


def test_an_entry_that_cannot_be_read_is_made_anew(cache: DiskCache, program: bytes) -> None:
    """A folder in its place, where nothing can be done; permissions would not stop root."""
    (folder(cache) / "a.so").mkdir(parents=True)
    folder(cache).chmod(0o700)
    with pytest.warns(RuntimeWarning, match="cannot be read"):
        assert cache.find("a") is None
    with pytest.warns(RuntimeWarning, match="cannot be kept"):
        assert works(cache.add("a", program))
    assert [path.name for path in folder(cache).iterdir()] == ["a.so"]


@pytest.mark.filterwarnings("error")
def test_a_folder_that_may_only_be_read(
    cache: DiskCache, program: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one that came with a container's image: entries are found, damaged ones are not."""

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(errno.EROFS, os.strerror(errno.EROFS))

    path = entry(cache, program)
    monkeypatch.setattr(os, "utime", refuse)
    monkeypatch.setattr(Path, "unlink", refuse)
    assert works(cache.find("a"))
    path.write_bytes(b"torn")
    assert cache.find("a") is None


@pytest.mark.filterwarnings("error")
def test_an_entry_removed_after_it_was_read(
    cache: DiskCache, program: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process makes room just before this one loads the file."""
    path = entry(cache, program)

    def gone(descriptor: int, path: Path, artifact: object) -> None:
        path.unlink()
        raise OSError("cannot open shared object file")

    monkeypatch.setattr(caching, "load_open", gone)
    assert cache.find("a") is None
    assert not path.exists()


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o702])
def test_a_folder_that_others_can_write_is_not_trusted(
    cache: DiskCache, program: bytes, mode: int
) -> None:
    """Whoever can put a file there can run code as us."""
    entry(cache, program)
    folder(cache).chmod(mode)
    with pytest.warns(RuntimeWarning, match="other users"):
        assert cache.find("a") is None
    assert cache.recall("a") is None
    with pytest.warns(RuntimeWarning, match="other users"):
        assert works(cache.add("b", program))
    assert [path.name for path in folder(cache).iterdir()] == ["a.so"]


@pytest.mark.filterwarnings("error")
def test_entries_of_other_users_are_made_anew(
    cache: DiskCache, program: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By their owner, and by who may write to them; notes as well."""
    path = entry(cache, program)
    cache.remember("a", 1)
    path.chmod(0o664)
    assert cache.find("a") is None
    assert not path.exists()
    path.write_bytes(program)
    folder_status, real = folder(cache).stat(), os.fstat

    def of_another(descriptor: int) -> os.stat_result:
        status = real(descriptor)
        return os.stat_result((*status[:4], folder_status.st_uid + 1, *status[5:]))

    monkeypatch.setattr(os, "fstat", of_another)
    assert cache.find("a") is None
    assert cache.recall("a") is None
    monkeypatch.undo()
    assert list(folder(cache).iterdir()) == []
    assert works(cache.add("a", program))


@pytest.mark.parametrize("moment", ["unpack", "load_open", "_contents"])
def test_a_folder_replaced_between_check_and_load(
    cache: DiskCache, program: bytes, moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was checked is what is loaded: another's code under the same name is not."""
    entry(cache, program)
    real = getattr(caching, moment)
    planted = bytearray(program)
    planted[: len(b"\x7fELF")] = b"evil"

    def replaced(*arguments: Any) -> Any:
        folder(cache).rename(folder(cache).with_name("moved"))
        entry(cache, bytes(planted))
        monkeypatch.undo()
        return real(*arguments)

    monkeypatch.setattr(caching, moment, replaced)
    assert works(cache.find("a"))
    assert cache.find("a") is None  # what lies there now


def test_programs_kept_while_the_folder_is_replaced(
    cache: DiskCache, program: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither written to, nor emptied, is a folder that was not checked."""
    folder(cache).mkdir(mode=0o700)
    real = system.belongs_to_others

    def replaced(status: os.stat_result) -> bool:
        if not folder(cache).with_name("moved").exists():
            folder(cache).rename(folder(cache).with_name("moved"))
            folder(cache).mkdir(mode=0o700)
            (folder(cache) / "precious.so").write_bytes(program)
        return real(status)

    monkeypatch.setattr("tracejit.runtime.cache.belongs_to_others", replaced)
    cache.limit = len(program)
    assert works(cache.add("a", program))
    assert [path.name for path in folder(cache).iterdir()] == ["precious.so"]
    assert [path.name for path in folder(cache).with_name("moved").iterdir()] == ["a.so"]


def test_the_loader_takes_no_program_for_another(tmp_path: Path, program: bytes) -> None:
    """Descriptors are used again, and the loader knows libraries by their paths."""
    other = built(of_one_kernel(elementwise("times", lambda x, y: x * y, 10), [F32] * 2, F32))
    cache = DiskCache(tmp_path / "cache")
    kept = [cache.add(name, data) for name, data in (("a", program), ("b", other)) * 3]
    two = np.full(10, 3, np.float32)
    assert [run([two, two])[0][0] for run in kept] == [6, 9] * 3
    assert len({system.loadable_path(0) for _ in range(40)} - {None}) in (0, 40)


@pytest.mark.parametrize("missing", ["open files", "files in memory", "folders"])
def test_systems_that_can_do_less(
    cache: DiskCache, program: bytes, missing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Paths are loaded, temporary files are written, and files are reached by their paths."""
    if missing == "open files":
        monkeypatch.setattr(system, "OPEN_FILES", Path("/nowhere"))
    elif missing == "files in memory":
        monkeypatch.delattr(os, "memfd_create", raising=False)
    else:
        monkeypatch.setattr(os, "supports_dir_fd", set())
    assert works(cache.add("a", program))
    assert works(cache.find("a"))
    cache.remember("a", 1)
    assert cache.recall("a") == 1
    cache.limit = len(program)
    assert works(cache.add("b", program))
    assert [path.name for path in folder(cache).iterdir()] == ["b.so"]
    assert works(DiskCache(None).add("a", program))


STRANGE: list[Any] = [
    [],
    3,
    None,
    {},
    {"inputs": [["object", [2]]]},
    {"inputs": [["float32", [-2]]]},
    {"inputs": [["float32", 3]]},
    {"inputs": [["no type", [2]]]},
    {"inputs": [["S0", [2]]]},
    {"workspace_bytes": "many"},
    {"workspace_bytes": -1},
    {"workspace_bytes": 1e300},
    {"callbacks": [3]},
    {"callbacks": 3},
    {"aliases": [[0, 99]]},
    {"aliases": [[0]]},
    {"constants": [["float32", [1 << 40], 0]]},
    {"constants": [["float32", [2], 1 << 60]]},
    {"constants": [["float32", [2], -8]]},
    {"explanation": [0, -1]},
    {"explanation": None},
]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("strange", STRANGE)
def test_an_entry_of_a_strange_description_is_removed(
    cache: DiskCache, program: bytes, strange: Any
) -> None:
    """The checksum is right, and what is described is no program."""
    size = int.from_bytes(program[-48:-40], "little")
    described = json.loads(program[-48 - size : -48])
    text = json.dumps({**described, **strange} if strange and strange != 3 else strange).encode()
    body = program[: -48 - size] + text + len(text).to_bytes(8, "little") + b"tracejit"
    path = entry(cache, body + hashlib.sha256(body).digest())
    assert cache.find("a") is None
    assert not path.exists()
    assert works(cache.add("a", program))


def test_an_entry_that_calls_what_nobody_knows_is_removed(cache: DiskCache, program: bytes) -> None:
    path = entry(cache, pack(program, replace(unpack(program), callbacks=["tests.unknown"])))
    assert cache.find("a") is None
    assert not path.exists()


def test_no_folder_no_cache(program: bytes) -> None:
    cache = DiskCache(None)
    assert works(cache.add("a", program))
    assert cache.find("a") is None


def test_nothing_is_left_in_the_temporary_folder(
    program: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert works(DiskCache(None).add("a", program))
    built(addition(11))
    assert list(tmp_path.iterdir()) == []


# Limits.


def test_what_was_used_longest_ago_goes_first(tmp_path: Path, program: bytes) -> None:
    cache = DiskCache(tmp_path / "cache", limit=3 * len(program) + 10)
    for number, name in enumerate("abc"):
        cache.add(name, program)
        os.utime(folder(cache) / f"{name}.so", (1000 + number, 1000 + number))
    assert works(cache.find("a"))  # used: now the youngest
    cache.add("d", program)
    assert sorted(path.stem for path in folder(cache).iterdir()) == ["a", "c", "d"]
    assert works(cache.find("c"))
    assert cache.find("b") is None


def test_folders_named_like_entries_do_not_stop_eviction(cache: DiskCache, program: bytes) -> None:
    (folder(cache) / "old.so").mkdir(parents=True)
    os.utime(folder(cache) / "old.so", (1000, 1000))
    folder(cache).chmod(0o700)
    cache.limit = len(program) + 10
    for name in "ab":
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert works(cache.add(name, program))
    assert sorted(path.name for path in folder(cache).iterdir()) == ["b.so", "old.so"]


def test_a_program_above_the_limit_is_not_kept(tmp_path: Path, program: bytes) -> None:
    for limit in (0, len(program) - 1):
        cache = DiskCache(tmp_path / "cache", limit)
        assert works(cache.add("a", program))
        assert not cache.keep("a", program)
        cache.remember("a", list(range(limit)))
        assert not folder(cache).exists()


def test_notes_are_bounded_too(cache: DiskCache) -> None:
    cache.limit = 500
    for name in "abc":
        cache.remember(name, "x" * 150)
        if name < "c":
            os.utime(folder(cache) / f"{name}.json", (1000, 1000 + ord(name)))
    assert sorted(path.stem for path in folder(cache).iterdir()) == ["b", "c"]


def test_what_a_wrong_clock_dated_goes_first(tmp_path: Path, program: bytes) -> None:
    cache = DiskCache(tmp_path / "cache", limit=2 * len(program) + 10)
    for name, ago in (("future", -1e6), ("now", 0.0)):
        cache.add(name, program)
        os.utime(folder(cache) / f"{name}.so", (time.time() - ago, time.time() - ago))
    ahead = folder(cache) / "ahead.tmp"
    ahead.write_bytes(b"half")
    os.utime(ahead, (time.time() + 1e6, time.time() + 1e6))
    cache.add("new", program)
    assert sorted(path.stem for path in folder(cache).iterdir()) == ["new", "now"]


def test_what_a_crash_left_behind_is_removed(cache: DiskCache, program: bytes) -> None:
    folder(cache).mkdir(mode=0o700)
    old, new, strange = (folder(cache) / name for name in ("old.tmp", "new.tmp", "notes.txt"))
    for path in (old, new, strange):
        path.write_bytes(b"half")
    os.utime(old, (time.time() - 7200, time.time() - 7200))
    cache.add("a", program)
    assert sorted(p.name for p in folder(cache).iterdir()) == ["a.so", "new.tmp", "notes.txt"]


# Rivals.

RIVAL = """
import sys
import numpy as np
from pathlib import Path
from tracejit.runtime import DiskCache
cache = DiskCache(Path(sys.argv[1]), limit=int(sys.argv[3]))
program = Path(sys.argv[2]).read_bytes()
x = np.ones(10, np.float32)
print("ready", flush=True)
sys.stdin.readline()
for round in range(40):
    for name in "abcd":
        run = cache.find(name) or cache.add(name, program)
        assert run([x, x])[0].tolist() == [2.0] * 10
"""


@pytest.mark.parametrize("fitting", [100, 2])
def test_processes_share_a_folder(tmp_path: Path, program: bytes, fitting: int) -> None:
    """Adding, finding and removing the same entries at once, warnings being failures."""
    (tmp_path / "program").write_bytes(program)
    limit = str(fitting * len(program))
    arguments = [str(tmp_path / "cache"), str(tmp_path / "program"), limit]
    rivals = [start(RIVAL, *arguments, PYTHONWARNINGS="error") for _ in range(3)]
    for rival in rivals:
        assert rival.stdout is not None
        assert rival.stdout.readline() == "ready\n"
    for rival in rivals:
        finished(rival, given="go\n")
    assert not [path for path in (tmp_path / "cache").iterdir() if path.suffix != ".so"]


# Settings.


def test_the_environment_decides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TRACEJIT_CACHE", "TRACEJIT_CACHE_DIR", "TRACEJIT_CACHE_LIMIT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    cache = DiskCache.default()
    assert (cache.folder, cache.limit) == (tmp_path / "tracejit", caching.LIMIT_BYTES)
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert DiskCache.default().folder in (
        tmp_path / ".cache" / "tracejit",
        tmp_path / "Library" / "Caches" / "tracejit",
    )
    monkeypatch.setenv("TRACEJIT_CACHE_DIR", "~/elsewhere")
    monkeypatch.setenv("TRACEJIT_CACHE_LIMIT", "1000")
    cache = DiskCache.default()
    assert (cache.folder, cache.limit) == (tmp_path / "elsewhere", 1000)
    for off in ("0", "off", "False", " no "):
        monkeypatch.setenv("TRACEJIT_CACHE", off)
        assert DiskCache.default().folder is None
    monkeypatch.setenv("TRACEJIT_CACHE", "1")
    assert DiskCache.default().folder == tmp_path / "elsewhere"


def test_a_limit_that_is_no_number_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRACEJIT_CACHE_DIR", str(tmp_path))
    for limit in ("2GB", "2²"):
        monkeypatch.setenv("TRACEJIT_CACHE_LIMIT", limit)
        with pytest.warns(RuntimeWarning, match=f"must be a number of bytes, not '{limit}'"):
            assert DiskCache.default().limit == caching.LIMIT_BYTES


def test_a_user_without_a_home(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a container that runs under a number that no user has."""
    for name in ("TRACEJIT_CACHE", "TRACEJIT_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    assert DiskCache.default().folder is None


def test_every_source_of_the_package_counts() -> None:
    names = {Path(path).name for path in caching._sources(str(Path(errors.__file__).parent))}
    known = {"cache.py", "tir_pipeline.py", "elementwise.py", "interpreter.py", "__init__.py"}
    assert known <= names


def test_folders_of_the_current_one(
    tmp_path: Path, program: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file's name alone would be looked for among the system's libraries."""
    (tmp_path / "here").mkdir(mode=0o700)
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setenv("TRACEJIT_CACHE_DIR", ".")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cache = DiskCache.default()
        monkeypatch.chdir(tmp_path)
        assert works(cache.add("a", program))
        assert works(cache.find("a"))
    assert cache.folder == tmp_path / "here"
    monkeypatch.delenv("TRACEJIT_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", "elsewhere")  # which has to be ignored
    monkeypatch.setenv("HOME", str(tmp_path))
    assert DiskCache.default().folder in (
        tmp_path / ".cache" / "tracejit",
        tmp_path / "Library" / "Caches" / "tracejit",
    )


def test_a_name_that_no_folder_has(
    tmp_path: Path, program: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRACEJIT_CACHE_DIR", str(tmp_path / ("x" * 300)))
    cache = DiskCache.default()
    with pytest.warns(RuntimeWarning, match="cannot be read"):
        assert cache.find("a") is None
    assert "a" not in cache
    with pytest.warns(RuntimeWarning, match="cannot be kept"):
        assert works(cache.add("a", program))


def test_warnings_name_the_user_s_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.warns(RuntimeWarning, match="cannot be read") as caught:
        DiskCache(tmp_path / "file").find("a")
    assert caught[0].filename == __file__


def test_warnings_come_once(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    cache = DiskCache(tmp_path / "file" / "cache")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for key in "abc":
            assert cache.find(key) is None
    assert len(caught) == 1
