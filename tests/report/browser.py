"""A real browser: Debian's chromium without a window, spoken to over two pipes, so it takes no library."""

import base64
import json
import os
import select
import shutil
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
SECONDS = 60
"""After which a browser that says nothing is given up."""
FLAGS = [
    "--headless=new",
    "--no-sandbox",  # which a container's root cannot have
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-extensions",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-quic",
    "--disable-sync",
    "--remote-debugging-pipe",
]


class Browser:
    """One page, and all that it complained of."""

    def __init__(self, home: Path) -> None:
        assert CHROMIUM
        read_theirs, self.write_ours = os.pipe()
        self.read_ours, write_theirs = os.pipe()

        # Chromium reads what it is told from 3 and answers on 4.
        pipes = f'exec "$@" 3<&{read_theirs} 4>&{write_theirs}'
        self.process = subprocess.Popen(
            ["bash", "-c", pipes, "bash", CHROMIUM, *FLAGS, f"--user-data-dir={home}", "about:blank"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(read_theirs, write_theirs),
        )
        os.close(read_theirs)
        os.close(write_theirs)
        self.buffer = b""
        self.number = 0
        self.session: str | None = None
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.events: list[dict[str, Any]] = []
        target = self.tell("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.tell("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.tell(f"{domain}.enable")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        with suppress(OSError):
            self.session = None
            self.tell("Browser.close")
        os.close(self.write_ours)
        try:
            self.process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.read_ours)

    def open(self, path: Path, width: int = 1280, height: int = 900, dark: bool = False, phone: bool = False) -> None:
        metrics = {"width": width, "height": height, "deviceScaleFactor": 2 if phone else 1, "mobile": phone}
        self.tell("Emulation.setDeviceMetricsOverride", **metrics)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.tell("Emulation.setEmulatedMedia", features=[scheme])
        self.events.clear()
        self.tell("Page.navigate", url=path.resolve().as_uri())
        while not any(event["method"] == "Page.loadEventFired" for event in self.events):
            self._take()

    def value(self, script: str) -> Any:
        """What an expression of the page's language is worth."""
        answer = self.tell("Runtime.evaluate", expression=script, returnByValue=True, userGesture=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def press(self, key: str, code: int, text: str) -> None:
        """A key, as of a real keyboard."""
        about = {"key": key, "code": key, "windowsVirtualKeyCode": code}
        self.tell("Input.dispatchKeyEvent", type="keyDown", text=text, **about)
        self.tell("Input.dispatchKeyEvent", type="keyUp", **about)

    def keep_downloads(self, folder: Path) -> None:
        self.tell("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(folder))

    def screenshot(self, path: Path) -> None:
        """Of the whole page, for whoever wants to look."""
        content = self.tell("Page.captureScreenshot", format="png", captureBeyondViewport=True)["data"]
        path.write_bytes(base64.b64decode(content))

    def tell(self, method: str, **parameters: Any) -> dict[str, Any]:
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.write_ours, json.dumps(message).encode() + b"\0")
        while (answer := self._take()).get("id") != self.number:
            pass
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']}")
        result: dict[str, Any] = answer["result"]
        return result

    def _take(self) -> dict[str, Any]:
        while b"\0" not in self.buffer:
            ready, _, _ = select.select([self.read_ours], [], [], SECONDS)
            more = os.read(self.read_ours, 1 << 16) if ready else b""
            if not more:
                raise OSError("the browser has gone, or is silent")
            self.buffer += more
        whole, _, self.buffer = self.buffer.partition(b"\0")
        message: dict[str, Any] = json.loads(whole)
        if "method" in message:
            self.events.append(message)
            self._note(message["method"], message["params"])
        return message

    def _note(self, event: str, about: dict[str, Any]) -> None:
        if event == "Runtime.exceptionThrown":
            self.complaints.append(json.dumps(about["exceptionDetails"]))
        elif event == "Log.entryAdded" and about["entry"]["level"] in ("error", "warning"):
            self.complaints.append(about["entry"]["text"])
        elif event == "Runtime.consoleAPICalled":
            self.complaints.append(json.dumps(about["args"]))
        elif event == "Network.requestWillBeSent":
            self.requests.append(about["request"]["url"])
