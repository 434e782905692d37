"""The page as a browser sees it."""

import os

import pytest
from support.report_data import LOG_NAMES, file_of, html, html_of_log, log, profile_of, rich_profile, shown
from support.strace import few

from forebay.profiles import metrics
from forebay import quantities

SECTIONS = [
    "Where the time went", "Throughput per layer", "Ranks over time", "Access sizes", "Operation counts",
    "Order and alignment", "Files", "Aggregators and writers", "Hints",
]  # fmt: skip
HEADINGS = "[...document.querySelectorAll('h3')].map(h => h.textContent)"
#: Charts whose picture has no extent, and elements wider than the window that do not scroll by themselves.
UNSEEN_CHARTS = (
    "[...document.querySelectorAll('figure:not(.phone) svg')].filter(s => s.getBoundingClientRect().height < 40).length"
)
TOO_WIDE = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


@pytest.mark.parametrize("name", few(*LOG_NAMES, kept=2))
def test_page_has_every_section(name, browser, tmp_path):
    headings = shown(browser, tmp_path, html_of_log(name)).evaluate(HEADINGS)
    assert [heading for heading in headings if heading in SECTIONS] == SECTIONS
    assert "Job" in headings
    assert browser.evaluate(UNSEEN_CHARTS) == 0


def test_page_calls_a_setting_to_try_a_suggestion(browser, tmp_path):
    shown(browser, tmp_path, html_of_log("mpiio_shared_default"))
    levels = browser.evaluate("[...document.querySelectorAll('.finding .level')].map(l => l.firstChild.textContent)")
    assert levels == ["● Suggestion"]
    ink = "getComputedStyle(document.querySelector('.finding .level')).color"
    body = "getComputedStyle(document.body).color"
    assert browser.evaluate(ink) != browser.evaluate(body)


@pytest.mark.parametrize("name", few(*LOG_NAMES, kept=2))
def test_page_figures_equal_the_metrics(name, browser, tmp_path):
    profile = log(name)
    shown(browser, tmp_path, html_of_log(name))
    tiles = browser.evaluate("[...document.querySelectorAll('.tiles dd')].map(d => d.firstChild.textContent)")
    share = metrics.io_share(profile)
    written = sum(top[1].write.bytes for file in profile.programs[0].files if (top := metrics.top_layer(file)))
    assert tiles[0] == quantities.duration(profile.job.wall_s)
    assert tiles[1] == quantities.percent(share.average if share.slowest is None else share.slowest)
    assert tiles[2] == quantities.size(written)
    rows = browser.evaluate(
        "[...document.querySelectorAll('caption')].find(c => c.textContent == 'Bytes and calls of each layer')"
        ".closest('table').tBodies[0].rows.length"
    )
    assert rows == len(metrics.layers_present(profile))
    calls = [
        cell for layer in metrics.layers_present(profile) for cell in (metrics.totals(profile, layer).write.calls,)
    ]
    told = browser.evaluate(
        "[...document.querySelectorAll('[id$=throughput-0] ~ .scroll tbody tr')].map(r => r.cells[5].textContent)"
    )
    assert told == [quantities.count(number) for number in calls]


@pytest.mark.soak
def test_page_shows_all_known_values(browser, tmp_path, rich_page):
    text = shown(browser, tmp_path, rich_page).evaluate("document.body.textContent")
    for told in (
        "1 of 2 hints asked for had no effect", "1 rank wrote", "1 GiB staged out in 2 s", "/nvme/ada",
        "No space left on device", "The loss of rank 5", "2 of 1,024 ranks wrote", "0, 0, 0, 2", "4 of 1 MiB", "*:cb_nodes=2",
    ):  # fmt: skip
        assert told in text
    # Of the slowest rank's 5 s 40 s / 1024 are data, 10 s / 1024 locks; another has 51.2 s / 1024 in metadata.
    assert "Exchange between ranks and waiting for them took 38\N{NO-BREAK SPACE}% of the run time" in text


@pytest.mark.soak
def test_charts_have_text_alternatives(browser, tmp_path, rich_page):
    shown(browser, tmp_path, rich_page)
    assert browser.evaluate(
        "[...document.querySelectorAll('svg')].every(s => s.querySelector('title').textContent && "
        "s.querySelector('desc').textContent && s.getAttribute('role') == 'img')"
    )
    names = browser.evaluate("[...document.querySelectorAll('[id]')].map(e => e.id)")
    assert len(names) == len(set(names))
    assert browser.evaluate("[...document.querySelectorAll('svg')].length") >= 8


@pytest.mark.soak
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_contrast_is_sufficient(scheme, browser, tmp_path):
    browser.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
    shown(browser, tmp_path, html_of_log("mpiio_shared_default"))
    paper, *inks = browser.evaluate(
        "(() => { const read = (e, p) => getComputedStyle(e)[p].match(/\\d+/g).map(Number);"
        "return [read(document.documentElement, 'backgroundColor'), read(document.body, 'color'), "
        "...[...document.querySelectorAll('h3, .brand, a, svg text')].filter(e => getComputedStyle(e).fill != 'none')"
        ".map(e => read(e, e.tagName == 'text' ? 'fill' : 'color'))]; })()"
    )
    browser.ask("Emulation.setEmulatedMedia", features=[])
    assert (sum(paper) > 600) == (scheme == "light")
    assert luminance_ratio(paper, inks[0]) > 12
    # Labels within bars stand on the bar's ink and not on the paper: they have the paper's colour.
    assert min(luminance_ratio(paper, ink) for ink in inks if ink != paper) >= 4.5


def luminance_ratio(one: list[int], other: list[int]) -> float:
    """Contrast as WCAG 2.1 defines it."""

    def luminance(colour: list[int]) -> float:
        parts = [c / 255 / 12.92 if c <= 10 else ((c / 255 + 0.055) / 1.055) ** 2.4 for c in colour[:3]]
        return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]

    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.fixture(scope="module")
def rich_page():
    """The page of a job with everything that a report can tell."""
    return html(rich_profile())


@pytest.fixture(scope="module")
def wide_pages(rich_page):
    long_name = file_of("/scratch/" + "very_long_name_" * 20, written=5, calls=1, seconds=1.0)
    return html(profile_of(long_name)), rich_page, html(log("posix_fpp"), log("small_random"))


@pytest.mark.parametrize("width", [400, 1200])
def test_page_fits_the_window(width, browser, tmp_path, wide_pages):
    browser.ask("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=width < 500)
    for text in wide_pages:
        shown(browser, tmp_path, text)
        assert browser.evaluate(TOO_WIDE) <= 0
    browser.ask("Emulation.clearDeviceMetricsOverride")


NAMES = [
    "/scratch/<script>alert(1)</script>",
    '/scratch/"><img src=x onerror=alert(1)>',
    "/scratch/two words &amp; more",
    "/scratch/grün–日本",
    "/scratch/line\nbreak\ttab",
    "/scratch/$x_1$ {{ 7*7 }} [red]",
    "/scratch/turned\u202ecod.exe",
    os.fsdecode(b"/scratch/caf\xe9"),
]
SEEN = {4: "/scratch/line\\nbreak\\ttab", 6: "/scratch/turned\\u202ecod.exe", 7: "/scratch/caf\\xe9"}


def test_names_are_escaped_as_text(browser, tmp_path):
    files = [file_of(name, written=10, calls=1, seconds=1.0) for name in NAMES]
    for file in files:
        file.ranks = 4
        file.writers = rich_profile().programs[0].files[0].writers
        file.hints = rich_profile().programs[0].files[0].hints
    profile = profile_of(*files, command=NAMES[0], name=NAMES[1])
    profile.notes = list(NAMES)
    shown(browser, tmp_path, html(profile))
    cells = browser.evaluate("[...document.querySelectorAll('td.path')].map(c => c.textContent)")
    assert set(cells) == {SEEN.get(at, name) for at, name in enumerate(NAMES)}
    assert browser.evaluate("document.querySelectorAll('td img, td script, h1 img, h4 script').length") == 0
    assert browser.evaluate("document.scripts.length") == 1


def test_files_table_sorts_and_lines_can_be_copied(browser, tmp_path):
    files = [file_of(f"/scratch/f{at}", written=at * 100, calls=1, seconds=10.0 - at) for at in range(1, 9)]
    shown(browser, tmp_path, html(profile_of(*files)))
    column = "[...document.querySelectorAll('table[data-sortable] tbody tr')].map(r => r.cells[0].textContent)"
    assert browser.evaluate(column)[0] == "/scratch/f1"
    browser.evaluate("document.querySelectorAll('table[data-sortable] th button')[4].click()")
    assert browser.evaluate(column) == [f"/scratch/f{at}" for at in range(8, 0, -1)]
    shown(browser, tmp_path, html_of_log("mpiio_shared_cbdisable"))
    assert browser.evaluate("document.querySelectorAll('pre[data-lines] button').length") >= 1
    assert "MPICH_MPIIO_HINTS" in browser.evaluate("document.querySelector('pre[data-lines] code').textContent")


def test_page_is_complete_without_javascript(browser, tmp_path):
    text = html_of_log("mpiio_shared_cbdisable")
    start, end = text.index("<script>"), text.index("</script>")
    with_script = shown(browser, tmp_path, text).evaluate("document.querySelector('main').innerText")
    without = shown(browser, tmp_path, text[:start] + text[end:]).evaluate("document.querySelector('main').innerText")
    assert with_script.replace("Copy\n", "").replace("Copy", "").split() == without.split()
