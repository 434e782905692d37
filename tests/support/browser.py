"""A real Chromium without network, driven over its debugging pipe (two descriptors, JSON ended by a zero byte)."""

import json
import os
import pathlib
import subprocess

CHROMIUM = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe", "--no-first-run"]
NO_NETWORK = ["--host-resolver-rules=MAP * ~NOTFOUND", "--disable-background-networking"]


class Browser:
    """`with Browser(profile) as browser:` one tab; what it asked for and complained of is kept."""

    def __init__(self, profile: pathlib.Path, *flags: str) -> None:
        self.requests: list[str] = []
        self.complaints: list[str] = []
        self._serial = 0
        self._rest = b""
        theirs_in, self._out = os.pipe()
        self._in, theirs_out = os.pipe()

        def as_three_and_four() -> None:
            low, high = os.dup(theirs_in), os.dup(theirs_out)
            os.dup2(low, 3)
            os.dup2(high, 4)

        command = [*CHROMIUM, *NO_NETWORK, f"--user-data-dir={profile}", *flags, "about:blank"]
        self._process = subprocess.Popen(
            command, preexec_fn=as_three_and_four, close_fds=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        os.close(theirs_in)
        os.close(theirs_out)
        (tab,) = [one for one in self._ask("Target.getTargets")["targetInfos"] if one["type"] == "page"][:1]
        attached = self._ask("Target.attachToTarget", targetId=tab["targetId"], flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Network", "Runtime", "Log", "Page"):
            self.ask(f"{domain}.enable")

    def __enter__(self) -> "Browser":
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._out)
        os.close(self._in)
        self._process.kill()
        self._process.wait()

    def ask(self, method: str, **parameters: object) -> dict:
        """A command to the tab."""
        return self._ask(method, session=self._session, **parameters)

    def open(self, page: pathlib.Path) -> None:
        """Loads a page, to its end."""
        self.ask("Page.navigate", url=page.as_uri())
        while self._receive().get("method") != "Page.loadEventFired":
            pass

    def evaluate(self, script: str):
        """The value of an expression in the page."""
        answer = self.ask(
            "Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True, userGesture=True
        )
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def _ask(self, method: str, session: str | None = None, **parameters: object) -> dict:
        self._serial += 1
        number = self._serial
        message = {"id": number, "method": method, "params": parameters} | ({"sessionId": session} if session else {})
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == number:
                assert "error" not in answer, answer
                return answer["result"]

    def _receive(self) -> dict:
        while b"\0" not in self._rest:
            part = os.read(self._in, 1 << 16)
            assert part, "the browser has ended"
            self._rest += part
        message, self._rest = self._rest.split(b"\0", 1)
        told = json.loads(message)
        if told.get("method") == "Network.requestWillBeSent":
            self.requests.append(told["params"]["request"]["url"])
        if told.get("method") in ("Runtime.exceptionThrown", "Log.entryAdded", "Runtime.consoleAPICalled"):
            self.complaints.append(json.dumps(told["params"]))
        return told
