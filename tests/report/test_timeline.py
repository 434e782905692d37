"""The timeline of calls on the page: bars of a bounded number, zoom, keys, without a script, on paper."""

import random
import re

import pytest
from support.report_data import file_of, html, profile_of, shown
from support.trace_files import block, call, signed
from support.trace_files import file_of as trace_of

from forebay.profiles.trace import Span
from forebay.report.charts import timeline as chart
from forebay.report.sections import timeline
from forebay.report.sections.context import SectionContext

VIEW = "document.querySelector('.bars').getAttribute('viewBox').split(' ').map(Number)"
STATUS = "document.querySelector('.zoom [role=status]').textContent"
TICKS = "[...document.querySelectorAll('svg[data-timeline] .tick')].map(tick => tick.textContent)"
PRESS = "key => document.querySelector('svg[data-timeline]').dispatchEvent(new KeyboardEvent('keydown', {key}))"


def traced(folder, ranks=2, calls=(call(0x27, 0, 400), call(0x28, 200, 400, signed(0))), **parts):
    """A profile whose program has a trace: by itself 1 s of writing, some ms without calls, and metadata."""
    for rank in range(ranks):
        (folder / f"rank-{rank:06}.trace").write_bytes(trace_of(b"\x01\x02/f", *calls, **parts))
    profile = profile_of(file_of("/f", written=1, calls=1, seconds=1.0), ranks=ranks)
    profile.programs[0].trace = str(folder)
    return profile


def section_of(profile):
    return timeline.section(SectionContext(profile, profile.programs[0]))


@pytest.fixture
def traces(tmp_path):
    folder = tmp_path / "trace-1-2"
    folder.mkdir()
    return folder


def test_each_rank_has_a_row_and_the_table_has_its_sums(traces):
    section = section_of(traced(traces))
    assert section.title == "2 ranks made 4 calls in 100 µs; rank 0 spent most time in them: 80 µs."
    (table,) = section.tables
    assert [[cell.text for cell in row] for row in table.rows] == [
        ["rank 0", "2", "40 µs", "40 µs"],
        ["rank 1", "2", "40 µs", "40 µs"],
    ]
    assert [column.name for column in table.columns] == ["rank", "calls", "writing", "metadata, locks"]
    paper = section.charts[0].on_paper()
    assert paper.count("<path fill=") == 2 and "var(" not in paper and "vector-effect" in paper


def test_program_without_trace_has_no_timeline():
    assert section_of(profile_of(file_of("/f", written=1))) is None


@pytest.mark.parametrize("is_there", [True, False])
def test_trace_that_cannot_be_read_is_said(traces, is_there):
    profile = traced(traces)
    for path in traces.iterdir():
        path.write_bytes(b"FBTRACE\n") if is_there else path.unlink()
    assert section_of(profile).title.startswith("The trace cannot be read: ")


def test_trace_of_a_killed_program_is_shown_and_said(traces):
    notes = section_of(traced(traces, trailer=b"")).notes
    assert any(note.startswith("The traces of 2 ranks have no end (0, 1)") for note in notes)


def test_whole_run_joins_what_is_closer_than_a_pixel():
    spans = [Span(at * 1e-4, at * 1e-4 + 5e-5, ("waiting", "write", "write")[at % 3]) for at in range(1000)]
    spans.append(Span(50.0, 50.1, "metadata"))
    spans.append(Span(99.0, 100.0, "read"))
    bars, _ = chart.merged(spans, 2000, 100.0)
    assert len(bars) > 600 and len(bars) == len(chart.merged(spans, 2000, 100.0)[0])
    assert [(bar.activity, round(bar.begin_s), round(bar.end_s)) for bar in chart.far(bars, 100.0)] == [
        ("write", 0, 0), ("metadata", 50, 50), ("read", 99, 100),
    ]  # fmt: skip
    assert len(bars) > 600, "the bars themselves are as before"


@pytest.mark.parametrize("seed", range(5))
def test_bars_are_bounded_and_keep_the_time_of_each_ink(seed):
    random_ = random.Random(seed)
    spans, at = [], 0.0
    for _ in range(20_000):
        at += random_.choice((0.0, 0.0, 1e-7, 1e-4, 1e-2))
        end = at + random_.choice((1e-7, 1e-5, 1e-3))
        spans.append(Span(at, end, random_.choice(("write", "waiting", "metadata"))))
        at = end
    bars, gap_s = chart.merged(spans, 300, at)
    assert 100 < len(bars) <= 300 and gap_s < 2.5 * at / 300
    assert all(bar.begin_s < bar.end_s for bar in bars)
    assert all(left.end_s <= right.begin_s + 1e-9 for left, right in zip(bars, bars[1:], strict=False))
    for activity in ("write", "waiting", "metadata"):
        whole = sum(span.end_s - span.begin_s for span in spans if span.activity == activity)
        assert sum(bar.by_activity.get(activity, 0.0) for bar in bars) == pytest.approx(whole)


@pytest.mark.soak
def test_page_of_many_calls_is_small_and_says_how_many_are_merged(traces):
    calls = [block(b"".join(call(0x28, 20 * at, 3, signed(0)) for at in range(100))) for _ in range(80)]
    profile = traced(traces, ranks=16, calls=(), trailer=b"\x28\0\0\1\0")
    for path in traces.iterdir():
        path.write_bytes(path.read_bytes() + b"".join(calls))
    section = section_of(profile)
    drawn = section.charts[0].on_page()
    assert 1000 < drawn.count("M") <= 2 * chart.BARS_MAX + 20 and len(drawn) < 300_000
    (note,) = (note for note in section.notes if "stand for" in note)
    bars, calls = (int(text.replace(",", "")) for text in re.match(r"([\d,]+) bars stand for ([\d,]+) ", note).groups())
    assert bars <= chart.BARS_MAX and calls == 16 * 8001


@pytest.mark.soak
def test_buttons_and_keys_zoom_within_the_run(browser, tmp_path, traces):
    page = shown(browser, tmp_path, html(traced(traces)))
    assert page.evaluate(VIEW) == [0, 0, 100_000, 44] and page.evaluate(STATUS) == "0 s to 100 µs"
    press = lambda key: page.evaluate(f"({PRESS})({key!r})")  # noqa: E731
    page.evaluate("[...document.querySelectorAll('.zoom button')].find(b => b.textContent == 'Zoom in').click()")
    assert page.evaluate(VIEW) == [25_000, 0, 50_000, 44]
    assert page.evaluate(TICKS)[::2] == ["25 µs", "50 µs", "75 µs"] and page.evaluate(STATUS) == "25 µs to 75 µs"
    press("ArrowRight")
    press("ArrowRight")
    press("ArrowRight")
    assert page.evaluate(VIEW) == [50_000, 0, 50_000, 44]
    shown_now = "[...document.querySelectorAll('.bars > g[display=inline]')].map(g => g.getAttribute('class')).join()"
    assert page.evaluate(shown_now) == "far"
    for _ in range(20):
        press("+")
    assert page.evaluate(shown_now) == "near"
    assert page.evaluate(VIEW)[2] == pytest.approx(100_000 / 4096)
    press("0")
    press("-")
    assert page.evaluate(VIEW) == [0, 0, 100_000, 44]
    page.evaluate("document.querySelector('svg[data-timeline]').focus()")
    assert page.evaluate("document.activeElement.hasAttribute('data-timeline')")


def test_page_with_a_timeline_fits_a_phone(browser, tmp_path, traces):
    browser.ask("Emulation.setDeviceMetricsOverride", width=360, height=700, deviceScaleFactor=1, mobile=True)
    try:
        page = shown(browser, tmp_path, html(traced(traces)))
        assert page.evaluate("document.documentElement.scrollWidth") == 360
        boxes = page.evaluate(
            "[...document.querySelectorAll('.zoom button')].map(b => b.getBoundingClientRect().right)"
        )
        assert len(boxes) == 5 and max(boxes) <= 360
    finally:
        browser.ask("Emulation.clearDeviceMetricsOverride")


def test_whole_run_is_shown_without_script(traces):
    text = html(traced(traces), paper=False)
    without = re.sub(r"<script>.*?</script>", "", text, flags=re.S)
    assert 'viewBox="0 0 100000 44"' in without and re.search(r'class="tick"[^>]*>100 µs</text>', without)
    assert "zoom" not in re.sub(r"<style>.*?</style>", "", without, flags=re.S)


@pytest.mark.soak
def test_compared_timelines_have_one_axis(traces, tmp_path):
    longer = tmp_path / "trace-2-3"
    longer.mkdir()
    profiles = traced(traces), traced(longer, calls=(call(0x28, 0, 3000, signed(0)),))
    text = html(*profiles)
    assert re.findall(r'data-timeline="([^"]+)"', text) == ["0.0003", "0.0003"]
    assert re.findall(r'<path fill="[^>]* d="M0 [^h]*h([\d.]+)v', text) == ["13333.3", "13333.3", "100000", "100000"]
