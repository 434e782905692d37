"""One page of the installed Chromium, without network."""

import contextlib
import pathlib
import shutil
from collections.abc import Iterator

from playwright.sync_api import Page, sync_playwright

NO_NETWORK = ["--host-resolver-rules=MAP * ~NOTFOUND", "--disable-background-networking", "--disable-gpu"]
LIMIT_MS = 300_000  # a hang, not a slow machine


class Browser:
    """A page; it records requests, console messages and uncaught errors."""

    def __init__(self, page: Page) -> None:
        self.requests: list[str] = []
        self.complaints: list[str] = []
        self._page = page
        page.set_default_timeout(LIMIT_MS)
        self._session = page.context.new_cdp_session(page)
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("console", lambda message: self.complaints.append(message.text))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))

    def open(self, page: pathlib.Path) -> None:
        """Loads a page completely."""
        self._page.goto(page.as_uri())

    def evaluate(self, script: str):
        """The value of an expression in the page."""
        return self._page.evaluate(script)

    def ask(self, method: str, **parameters: object) -> None:
        """Sends a command of the DevTools protocol, for example to emulate a phone."""
        self._session.send(method, parameters)


@contextlib.contextmanager
def started() -> Iterator[Browser]:
    """Starts Chromium with one empty page."""
    program = shutil.which("chromium")
    with (
        sync_playwright() as playwright,
        playwright.chromium.launch(executable_path=program, args=NO_NETWORK, timeout=LIMIT_MS) as chromium,
    ):
        yield Browser(chromium.new_page())
