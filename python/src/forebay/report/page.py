"""The page: one HTML file with everything in it, and the same on paper."""

from __future__ import annotations

import re
from base64 import b64encode
from dataclasses import dataclass
from datetime import datetime
from itertools import zip_longest
from typing import Any

import jinja2
from markupsafe import Markup

from forebay import __version__, quantities
from forebay.report.charts.palette import INKS
from forebay.report.charts.svg_figure import FONTS, Chart
from forebay.report.comparison import Comparison
from forebay.report.document import JobReport, Section, Table, escape_hidden
from forebay.report.sections.time_spent import NAMES

#: Rows of a table where jobs stand side by side on paper: such a table cannot run over pages.
ROWS_ON_PAPER = 25


def html(
    title: str,
    jobs: list[JobReport],
    comparison: Comparison | None,
    advice: bool,
    paper: bool = False,
    kind: str | None = None,
) -> str:
    """The page of one job, or of several side by side. For paper: light colours, no script.

    `kind` is what the page calls itself: by itself `report` or `comparison`.
    """
    rows = _rows([job.sections for job in jobs], "job")
    chapters = list(_chapters(jobs))
    text = (
        _environment(paper)
        .get_template("page.html.j2")
        .render(
            title=title,
            jobs=jobs,
            comparison=comparison,
            advice=advice,
            paper=paper,
            kind=kind or ("comparison" if len(jobs) > 1 else "report"),
            job_rows=rows,
            chapters=chapters,
            contents=_contents(rows, chapters, advice) if len(jobs) == 1 else [],
            footer=Markup(_css_string(title)),
            made=quantities.moment(datetime.now().timestamp()),
            version=__version__,
        )
    )
    return text.strip()


def pdf(
    title: str,
    jobs: list[JobReport],
    comparison: Comparison | None,
    advice: bool,
    kind: str | None = None,
) -> bytes:
    """The same page on A4."""
    import weasyprint

    nothing_from_elsewhere = weasyprint.URLFetcher(allowed_protocols={"data"}, fail_on_errors=True)
    source = html(title, jobs, comparison, advice, paper=True, kind=kind)
    return weasyprint.HTML(string=source, url_fetcher=nothing_from_elsewhere).write_pdf()


def _environment(paper: bool) -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("forebay.report"),
        autoescape=True,
        trim_blocks=False,
        undefined=jinja2.StrictUndefined,
        finalize=_finalize,
    )
    environment.globals.update(
        inks=INKS,
        ROWS_ON_PAPER=ROWS_ON_PAPER,
        fonts=Markup(FONTS),
        time=quantities.duration,
        percent=quantities.percent,
        part_names=NAMES,
        share_of=lambda parts, inks: min(1.0, sum(parts[ink] for ink in inks)),
        plain=quantities.plain,
        together=_together,
        svg=_image if paper else _inline,
    )
    return environment


def _inline(chart: Chart) -> Markup:
    return Markup(chart.on_page())


def _image(chart: Chart) -> Markup:
    """On paper an image of its own: WeasyPrint resolves ids within an image, not within a page."""
    data = b64encode(chart.on_paper().encode()).decode()
    return Markup('<img alt="{}" src="data:image/svg+xml;base64,{}">').format(chart.about, data)


def _finalize(value: Any) -> Any:
    return escape_hidden(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _together(sentence: str) -> str:
    """With no line break between a number and its percent sign."""
    return re.sub(r"(?<=\d) (?=%)", "\N{NO-BREAK SPACE}", sentence)


def _css_string(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9 .,:()/_-]", lambda match: f"\\{ord(match[0]):x} ", escape_hidden(text))


@dataclass
class Row:
    """Sections of one key, one of each job; charts and tables by pairs. None where a job has none."""

    anchors: list[str]
    sections: list[Section | None]
    charts: list[list[Chart | None]]
    tables: list[list[Table | None]]


def _rows(of_jobs: list[list[Section]], chapter: str) -> list[Row]:
    """Sections of one key side by side, in the order of the first job that has them."""
    keys = list(dict.fromkeys(section.key for sections in of_jobs for section in sections))
    found = [{section.key: section for section in sections} for sections in of_jobs]
    return [_row(f"{chapter}-{key}", [job.get(key) for job in found]) for key in keys]


def _row(anchor: str, sections: list[Section | None]) -> Row:
    charts = [{chart.title: chart for chart in section.charts} if section else {} for section in sections]
    titles = dict.fromkeys(title for one in charts for title in one)
    return Row(
        anchors=[f"{anchor}-{at}" for at in range(len(sections))],
        sections=sections,
        charts=[[one.get(title) for one in charts] for title in titles],
        tables=[
            list(pair) for pair in zip_longest(*(section.tables if section else [] for section in sections))
        ],
    )


def _chapters(jobs: list[JobReport]):
    for number in range(max(len(job.programs) for job in jobs)):
        here = [job.programs[number] if number < len(job.programs) else ("", []) for job in jobs]
        name = " | ".join(dict.fromkeys(name for name, _ in here if name))
        yield {
            "name": f"Program {number + 1}: {name}",
            "rows": _rows([sections for _, sections in here], f"program-{number + 1}"),
        }


def _contents(rows: list[Row], chapters: list[dict], advice: bool) -> list[tuple[str, str]]:
    places = [("advice", "What to do")] if advice else []
    places += _navigation(rows)
    if len(chapters) == 1:
        return places + _navigation(chapters[0]["rows"])
    return places + [(f"program-{number}", chapter["name"]) for number, chapter in enumerate(chapters, 1)]


def _navigation(rows: list[Row]) -> list[tuple[str, str]]:
    return [(row.anchors[0], row.sections[0].name) for row in rows]
