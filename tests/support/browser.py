"""A headless Chromium, driven through its DevTools protocol over one web socket."""

import base64
import contextlib
import itertools
import json
import re
import shutil
import subprocess
import tempfile

import pytest

from tests.support.debian import why_not_installed

_STARTED = re.compile(r"DevTools listening on (ws://\S+)")
_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--hide-scrollbars",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--remote-allow-origins=*",
    "--remote-debugging-port=0",
)


class Browser:
    """One tab of a browser; `problems` holds what its console said of the page."""

    def __init__(self, socket):
        self.problems = []
        self._socket, self._ids, self._session = socket, itertools.count(1), None
        target = self._ask("Target.createTarget", url="about:blank")["targetId"]
        attached = self._ask("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self._ask(f"{domain}.enable")

    def open(self, path, *, width=1400, dark=False, media=""):
        """Shows a file, or an address, at a width, light or dark, and waits until it is loaded."""
        self.problems.clear()
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._ask("Emulation.setEmulatedMedia", media=media, features=[scheme])
        self._ask(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=900,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        # From one part of a page to another, nothing would be loaded.
        for url in ("about:blank", path if "://" in str(path) else f"file://{path}"):
            self._ask("Page.navigate", url=url)
            self._until("Page.loadEventFired")

    def run(self, script):
        """Returns the value of an expression in the page; of a promise that to which it comes."""
        answer = self._ask(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def reload(self):
        """Loads the page again."""
        self._ask("Page.reload")
        self._until("Page.loadEventFired")

    def press(self, key):
        """Presses one key, such as Tab or Enter."""
        text = {"Enter": "\r"}.get(key, "")
        code = {"Enter": 13, "Tab": 9}.get(key, 0)
        for kind in ("keyDown", "keyUp"):
            self._ask(
                "Input.dispatchKeyEvent", type=kind, key=key, text=text, windowsVirtualKeyCode=code
            )

    def picture(self, file):
        """Writes a PNG of the whole page."""
        taken = self._ask("Page.captureScreenshot", captureBeyondViewport=True)
        file.write_bytes(base64.b64decode(taken["data"]))

    def _ask(self, method, **parameters):
        number = next(self._ids)
        message = {"id": number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        self._socket.send(json.dumps(message))
        while True:
            said = self._hear()
            if said.get("id") == number:
                assert "error" not in said, said
                return said["result"]

    def _until(self, method):
        while self._hear().get("method") != method:
            pass

    def _hear(self):
        said = json.loads(self._socket.recv())
        method, given = said.get("method"), said.get("params", {})
        if method == "Runtime.exceptionThrown":
            self.problems.append(given["exceptionDetails"]["text"])
        elif method == "Log.entryAdded":
            self.problems.append(given["entry"]["text"])
        elif method == "Runtime.consoleAPICalled" and given["type"] in ("error", "warning"):
            self.problems.append(str(given["args"]))
        elif method == "Network.requestWillBeSent":
            address = given["request"]["url"]
            if not address.startswith(("file:", "data:", "about:")):
                self.problems.append(f"asks for {address}")
        return said


@contextlib.contextmanager
def headless():
    """Starts a browser, which ends with the block; skips the test where none can be had."""
    program = shutil.which("chromium") or shutil.which("google-chrome")
    if program is None:
        why = why_not_installed("chromium", "chromium")
        if why:
            pytest.skip(why)
        program = "chromium"
    websocket = pytest.importorskip("websocket", reason="it comes with the extra kfp")
    with tempfile.TemporaryDirectory() as profile:
        command = [program, *_FLAGS, f"--user-data-dir={profile}", "about:blank"]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
            try:
                found = next(filter(None, map(_STARTED.search, process.stderr)))
                socket = websocket.create_connection(found[1], timeout=60)
                with contextlib.closing(socket):
                    yield Browser(socket)
            finally:
                process.terminate()
                process.communicate(timeout=60)
