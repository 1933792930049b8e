"""The runtime in processes of its own: what it loads, its threads, forks, and imports of TVM."""

from __future__ import annotations

import gc
import sys
import threading
from pathlib import Path

import pytest

from tests.runtime.processes import python
from tests.runtime.programs import built, elementwise, of_one_kernel, spec
from tracejit.errors import CompilationError
from tracejit.runtime import importing_tvm, library

IMPORT = """
import os, sys
import numpy as np
from pathlib import Path
from tracejit.runtime.executable import load
"""

CALL = (
    IMPORT
    + """
run = load(Path(sys.argv[1]))
x = np.ones(100_000, np.float32)
assert run([x, x])[0][99_999] == 2
"""
)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A parallel addition, in a file."""
    array = spec("float32", 100_000)
    kernel = elementwise("add", lambda x, y: x + y, 100_000, parallel=True)
    path = tmp_path_factory.mktemp("library") / "program.so"
    path.write_bytes(built(of_one_kernel(kernel, [array] * 2, array)))
    return str(path)


def test_a_program_runs_without_the_compiler(program: str) -> None:
    loaded = python(CALL + "print(*sys.modules)", program).split()
    assert {"tvm", "tvm_ffi", "torch"}.isdisjoint(loaded)


def test_threads_are_as_many_as_the_user_wants(program: str) -> None:
    """Threads of the process beyond those it has already with NumPy's library.

    Another one, which sleeps, watches over the memory of results where that is used again.
    """
    tasks = 'len(os.listdir("/proc/self/task"))'
    code = f"{IMPORT}\nbefore = {tasks}\n{CALL}\nprint({tasks} - before)"
    for threads in (1, 2, 5):
        printed = python(code, program, TVM_NUM_THREADS=str(threads), TRACEJIT_RESULTS_LIMIT="0")
        assert printed == str(threads - 1)


def test_the_callers_affinity_is_left_alone(program: str) -> None:
    """TVM's default would let the calling thread, and its own, out onto the first cores."""
    code = "import os; os.sched_setaffinity(0, [max(os.sched_getaffinity(0))])" + CALL
    code += "print(os.sched_getaffinity(0) == {max(os.sched_getaffinity(0))})"
    assert python(code, program, TVM_NUM_THREADS="2") == "True"


def test_a_child_process_runs_programs_too(program: str) -> None:
    """Forked after the pool of threads was started, whose threads do not exist in the child."""
    code = (
        CALL
        + """
import warnings
warnings.simplefilter("ignore")  # newer Pythons warn of forks while there are threads
child = os.fork()
if child == 0:
    assert run([x, x])[0].sum() == 200_000
    sys.exit(7)
_, status = os.waitpid(child, 0)
assert run([x, x])[0].sum() == 200_000
print(os.waitstatus_to_exitcode(status))
"""
    )
    assert python(code, program, timeout=60, TVM_NUM_THREADS="2") == "7"


def test_programs_run_beside_the_compiler(program: str) -> None:
    """The same libraries, whether TVM is imported before the runtime or after."""
    importing = "\nfrom tracejit.runtime import importing_tvm\nwith importing_tvm(): import tvm\n"
    for code in (importing + CALL, CALL + importing):
        shown = (
            code
            + """
mapped = {line.split()[-1] for line in open("/proc/self/maps") if "libtvm_" in line}
print(len([m for m in mapped if m.endswith("libtvm_runtime.so")]))
"""
        )
        assert python(shown, program) == "1"


def test_a_package_that_is_missing_is_named() -> None:
    with pytest.raises(CompilationError, match="is no_such_package installed"):
        library._library_path("no_such_package", "libtvm_runtime")
    with pytest.raises(CompilationError, match=r"libnothing\.\w+ was not found"):
        library._library_path("tvm", "libnothing")


def test_a_failure_inside_tvm_tells_its_reason(tmp_path: Path) -> None:
    runtime = library.runtime()
    assert runtime is library.runtime()
    runtime.ffi.TVMFFIErrorSetRaisedFromCStr(b"ValueError", "zu groß".encode())
    with pytest.raises(CompilationError, match="ValueError: zu groß"):
        runtime.check(-1)
    assert runtime.message() == "no reason given"
    with pytest.raises(OSError, match="nothing"):
        runtime.load(tmp_path / "nothing.so")


class TestImportingTvm:
    """PyTorch is hidden from the thread that imports TVM, and from nobody else."""

    @pytest.fixture
    def torch(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """A package of that name, to be found first."""
        (tmp_path / "torch.py").write_text("found = True\n")
        monkeypatch.syspath_prepend(tmp_path)
        monkeypatch.delitem(sys.modules, "torch", raising=False)

    @pytest.mark.usefixtures("torch")
    def test_this_thread_does_not_find_it(self) -> None:
        with importing_tvm():
            with pytest.raises(ModuleNotFoundError):
                __import__("torch")
            __import__("colorsys")
        assert __import__("torch").found
        del sys.modules["torch"]

    @pytest.mark.usefixtures("torch")
    def test_another_thread_does(self) -> None:
        found = []
        with importing_tvm():
            other = threading.Thread(target=lambda: found.append(__import__("torch").found))
            other.start()
            other.join()
        assert found == [True]
        del sys.modules["torch"]

    def test_an_exception_leaves_nothing_behind(self) -> None:
        before = list(sys.meta_path)
        with pytest.raises(ZeroDivisionError), importing_tvm():
            raise ZeroDivisionError
        assert sys.meta_path == before
        assert gc.isenabled()

    def test_the_import_leaves_nothing_behind(self) -> None:
        """TVM's own exception hook terminates the process's children."""
        code = """
        import gc, sys
        from tracejit.runtime import importing_tvm
        gc.disable()
        hook = sys.excepthook
        with importing_tvm():
            import tvm
        assert "torch" not in sys.modules
        assert sys.excepthook is hook
        assert not gc.isenabled()
        """
        assert python(code) == ""

    def test_what_a_cpu_does_not_need_waits(self) -> None:
        code = """
        import os, sys
        from tracejit.runtime import importing_tvm
        with importing_tvm():
            import tvm
        assert "TVM_DEVICE_BACKEND_AUTOLOAD" not in os.environ
        assert "tvm.relax.op" not in sys.modules
        from tvm.relax import Var
        assert "tvm.relax.op" in sys.modules
        tvm.backend.load("opencl")
        assert tvm.backend.is_loaded("opencl")
        """
        assert python(code) == ""

    def test_the_users_choice_of_backends_holds(self) -> None:
        code = """
        from tracejit.runtime import importing_tvm
        with importing_tvm():
            import tvm
        print(tvm.backend.is_loaded("opencl"))
        """
        assert python(code, TVM_DEVICE_BACKEND_AUTOLOAD="1") == "True"
