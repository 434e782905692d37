"""The pages of the documentation in a browser: each in light, in dark, and on a phone."""

import pathlib
import random
from urllib.parse import unquote, urlsplit

import pytest
from support import browser as chromium
from support.strace import EVERY_POINT

PROJECT = pathlib.Path(__file__).resolve().parents[2]
WIDE, PHONE = 1280, 360
#: Width in CSS pixels, and the colour scheme.
SCREENS = {"light": (WIDE, "light"), "dark": (WIDE, "dark"), "phone": (PHONE, "light")}
#: How far the page is wider than its window.
EXCESS = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
#: Pictures without pixels, and the addresses of others, whose absence Chromium does not report.
BROKEN = "[...document.images].filter(i => i.complete && i.naturalWidth == 0).map(i => i.getAttribute('src'))"
OBJECTS = "[...document.querySelectorAll('object')].map(o => o.data)"
#: The page itself obeys the colour scheme.
BACKGROUND = "getComputedStyle(document.body).backgroundColor"


@pytest.fixture(scope="module")
def site(build) -> pathlib.Path:
    """The documentation, which `make docs` built before the tests."""
    return build / "docs"


@pytest.fixture(scope="module")
def browser():
    with chromium.started() as browser:
        yield browser


def show(browser, screen: str) -> None:
    width, scheme = SCREENS[screen]
    browser.ask(
        "Emulation.setDeviceMetricsOverride", width=width, height=800, deviceScaleFactor=1, mobile=width == PHONE
    )
    browser.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])


def faults(browser, page: pathlib.Path) -> list[str]:
    """What is wrong with a page, which is loaded once and shown on each screen."""
    browser.complaints.clear()
    browser.requests.clear()
    browser.open(page)
    # Pictures that are loaded only when they are seen.
    browser.evaluate("document.images.length && [...document.images].forEach(i => i.loading = 'eager')")
    found = []
    for screen in SCREENS:
        show(browser, screen)
        found += [f"{screen}: broken picture {source}" for source in browser.evaluate(BROKEN)]
        objects = [pathlib.Path(unquote(urlsplit(url).path)) for url in browser.evaluate(OBJECTS)]
        found += [f"{screen}: no file {path.name}" for path in objects if not path.is_file()]
        if (excess := browser.evaluate(EXCESS)) > 0:
            found.append(f"{screen}: {excess} px too wide")
    outside = {url for url in browser.requests if not url.startswith(("file:", "data:", "about:"))}
    return [*found, *browser.complaints, *(f"request of {url}" for url in sorted(outside))]


@pytest.mark.long
def test_each_page_fits_each_screen_without_errors(site, browser):
    """A sixth of the pages, chosen by the seed of the tests; `make soak` looks at all."""
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 50
    if not EVERY_POINT:
        pages = random.sample(pages, len(pages) // 6)
    wrong = {f"{page.relative_to(site)}": found for page in pages if (found := faults(browser, page))}
    assert wrong == {}


def test_page_obeys_the_dark_colour_scheme(site, browser):
    seen = []
    for screen in ("light", "dark"):
        show(browser, screen)
        browser.open(site / "index.html")
        seen.append(browser.evaluate(BACKGROUND))
    assert seen[0] == "rgb(255, 255, 255)" and seen[1] != seen[0]


def test_faults_of_a_page_are_found(tmp_path, browser):
    page = tmp_path / "page.html"
    page.write_text(
        "<!doctype html><meta name=viewport content='width=device-width'><img src=none.png>"
        "<object data=none.svg></object><div style='width: 500px'>x</div>"
        "<script>console.error('wrong'); nowhere()</script><script src='https://forebay.invalid/a.js'></script>"
    )
    found = "\n".join(faults(browser, page))
    for fault in (
        "broken picture none.png", "no file none.svg", "px too wide", "wrong", "nowhere is not defined", "request of https://forebay.invalid",
    ):  # fmt: skip
        assert fault in found
