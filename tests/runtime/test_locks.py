"""Locks that a fork leaves open."""

from __future__ import annotations

import os
import threading

import pytest

from tests.runtime.processes import python
from tracejit.runtime.locks import ProcessLock


def test_one_thread_at_a_time_may_enter_again() -> None:
    lock = ProcessLock()
    entered = threading.Event()
    seen: list[bool] = []

    def enter() -> None:
        with lock:
            seen.append(entered.is_set())

    with lock:
        thread = threading.Thread(target=enter)
        thread.start()
        with lock:
            pass
        entered.set()
    thread.join()
    assert seen == [True]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_child_goes_on_where_a_thread_of_its_parent_compiles() -> None:
    code = """
    import os, threading
    import numpy as np
    import tracejit as tj
    from tracejit import api
    from tracejit.transforms.jit.hooks import use_compiler
    from tracejit.transforms.interpreted import Interpreted

    def compile(module, target, check):
        with api._compiling:
            began.set()
            if threading.current_thread() is not threading.main_thread():
                assert may.wait(60)
        return Interpreted(module)

    use_compiler(compile)
    began, may = threading.Event(), threading.Event()
    f = tj.jit(lambda x: x + 1)
    thread = threading.Thread(target=f, args=(np.ones(3),))
    thread.start()
    assert began.wait(60)
    child = os.fork()
    if child == 0:
        print(f(np.ones(2)), flush=True)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    may.set()
    thread.join()
    print(f(np.ones(2)))
    """
    assert python(code).splitlines() == ["[2. 2.]", "[2. 2.]"]
