"""Python in processes of their own, for what can be seen or broken only once in a process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap

from tests.project import checkout


def python(code: str, *arguments: str, timeout: float = 120, **environment: str) -> str:
    """What ``code`` prints. Raises if it fails, warns or hangs."""
    return finished(start(code, *arguments, **environment), timeout)


def finished(process: subprocess.Popen[str], timeout: float = 120, given: str = "") -> str:
    """What a started process prints from now to its end, ``given`` that input."""
    try:
        out, error = process.communicate(given, timeout=timeout)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)  # its children too
        out, error = process.communicate()
        raise AssertionError(f"it has not ended, and said {out!r} and {error!r}") from None
    assert process.returncode == 0, error
    assert not error, error
    return out.strip()


def start(code: str, *arguments: str, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code), *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=checkout.ROOT,
        start_new_session=True,
        env={**os.environ, **environment},
    )
