"""The emulated device as a fixture; without g++ its tests are skipped."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.cuda import emulation
from tracejit.cuda import cublas, device, driver, memory, nvrtc, streams
from tracejit.errors import CompilationError


def _forget() -> None:
    """The libraries and devices that were found are looked for anew."""
    driver.driver.cache_clear()
    nvrtc.compiler.cache_clear()
    cublas.cublas.cache_clear()
    device._devices.cache_clear()
    streams._streams.clear()
    memory._stagings.clear()


@pytest.fixture
def emulated(monkeypatch: pytest.MonkeyPatch) -> Iterator[emulation.Emulator]:
    """Two emulated devices; a test fails where something was reported of its kernels.

    Other tests of the process see no device.
    """
    if emulation.LACKING:
        pytest.skip(emulation.LACKING)
    for name, value in emulation.environment().items():
        monkeypatch.setenv(name, value)
    _forget()
    emulator = emulation.Emulator()
    emulator.order = 0
    emulator.reports()
    yield emulator
    found = emulator.reports()
    for each in device.devices():
        each.reset()
    _forget()
    assert not found, "\n".join(found)


@pytest.fixture(scope="session")
def nvrtc_of_the_wheel() -> nvrtc.Compiler:
    """The real compiler, which needs no device; tests are skipped where it is not installed."""
    chosen = os.environ.pop(nvrtc.VARIABLE, None)
    try:
        return nvrtc.compiler.__wrapped__()
    except CompilationError as error:
        pytest.skip(str(error))
    finally:
        if chosen is not None:
            os.environ[nvrtc.VARIABLE] = chosen
