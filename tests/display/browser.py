"""A real browser for tests: Debian's Chromium, driven by chromedriver's own protocol.

with opened(path) as page:
    page.run("return document.title")
    page.click(".node"); page.press(Keys.ENTER); page.picture()      # PNG
"""

from __future__ import annotations

import base64
import json
import re
import shutil
import subprocess
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

DRIVER, BROWSER = shutil.which("chromedriver"), shutil.which("chromium")
needs_browser = pytest.mark.skipif(
    DRIVER is None or BROWSER is None,
    reason="needs Debian's packages chromium and chromium-driver: pages are not looked at",
)
ARGUMENTS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--window-size=1100,900",
)
TAB, ENTER, RIGHT = "\ue004", "\ue007", "\ue014"
_ELEMENT = "element-6066-11e4-a52e-4f735466cecf"


class Browser:
    """A page that a browser shows."""

    def __init__(self, address: str) -> None:
        self._address = address

    def ask(self, method: str, path: str, **given: Any) -> Any:
        data = json.dumps(given).encode() if method == "POST" else None
        request = urllib.request.Request(self._address + path, data, method=method)
        request.add_header("Content-Type", "application/json")
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise AssertionError(error.read().decode()[:1000]) from None

    def run(self, script: str, *arguments: Any) -> Any:
        """What a script returns."""
        return self.ask("POST", "/execute/sync", script=script, args=[*arguments])

    def click(self, selector: str) -> None:
        found = self.ask("POST", "/element", using="css selector", value=selector)
        self.ask("POST", f"/element/{found[_ELEMENT]}/click")

    def press(self, *keys: str) -> None:
        """Keys, to what has the focus."""
        strokes = [{"type": kind, "value": key} for key in keys for kind in ("keyDown", "keyUp")]
        self.ask("POST", "/actions", actions=[{"type": "key", "id": "keys", "actions": strokes}])

    def picture(self) -> bytes:
        return base64.b64decode(self.ask("GET", "/screenshot"))

    def complaints(self) -> list[str]:
        """Errors and warnings of the console."""
        said = self.ask("POST", "/se/log", type="browser")
        return [entry["message"] for entry in said if entry["level"] in ("SEVERE", "WARNING")]


@contextmanager
def opened(path: Path, *, dark: bool = False) -> Iterator[Browser]:
    """A page in a fresh browser, which ends with the block."""
    assert DRIVER is not None
    with tempfile.TemporaryDirectory() as folder:
        driver = subprocess.Popen(
            [DRIVER, "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        try:
            assert driver.stdout is not None
            ports = (re.search(r"successfully on port (\d+)", line) for line in driver.stdout)
            port = next(found[1] for found in ports if found)
            address = f"http://127.0.0.1:{port}/session"
            arguments = [*ARGUMENTS, f"--user-data-dir={folder}"]
            options = {"binary": BROWSER, "args": arguments}
            wanted = {
                "browserName": "chrome",
                "goog:chromeOptions": options,
                "goog:loggingPrefs": {"browser": "ALL"},
            }
            made = Browser(address).ask("POST", "", capabilities={"alwaysMatch": wanted})
            page = Browser(f"{address}/{made['sessionId']}")
            try:
                if dark:
                    features = [{"name": "prefers-color-scheme", "value": "dark"}]
                    page.ask(
                        "POST",
                        "/goog/cdp/execute",
                        cmd="Emulation.setEmulatedMedia",
                        params={"features": features},
                    )
                page.ask("POST", "/url", url=path.as_uri())
                yield page
            finally:
                page.ask("DELETE", "")
        finally:
            driver.terminate()
            driver.wait(30)
            driver.stdout.close()  # type: ignore[union-attr]
