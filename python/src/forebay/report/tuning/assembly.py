"""From a study to the contents of its report: verdicts, tiles, sections."""

from __future__ import annotations

import dataclasses
import re
import shlex
from collections.abc import Iterator

from forebay import quantities
from forebay.report.comparison import compare
from forebay.report.document import JobReport, Listing, Section, Tile
from forebay.report.tuning import pictures, sentences, tables
from forebay.report.tuning.figures import DEFAULT, PlaceFigures, StudyFigures, middle
from forebay.report.tuning.records import Pair, added_lines, pair
from forebay.report.tuning.sentences import PLACE_NAMES
from forebay.tune.model import Configuration

FORMULA = (
    "Cost: run time of each run times nodes, failed runs included, staging left out. Saved by each run of "
    "the job: (median default run time - median tuned run time) × nodes. Paid for itself after: cost of the "
    "whole study / saved by each run."
)


def comparison_name(place: PlaceFigures) -> str:
    """The page in the study's directory that compares default and tuned side by side."""
    return f"comparison-{place.place}.html"


def study_report(study: StudyFigures, linked: bool) -> JobReport:
    """The report of a study. `linked`: the pages that compare default and tuned are in the same directory."""
    return JobReport(
        label="",
        name=headline(study),
        verdicts=[_unbroken(one) for one in sentences.verdicts(study)],
        paragraph=_paragraph(study),
        tiles=list(_tiles(study)),
        lead=[],
        lead_narrow=[],
        findings=[],
        sections=list(_sections(study, linked)),
        programs=[],
    )


def _unbroken(sentence: str) -> str:
    """A number is not parted from its unit."""
    return re.sub(r"(?<=\d) (?=(?:s|ms|µs|ns|min|h|%)\b|%)", "\xa0", sentence)


def headline(study: StudyFigures) -> str:
    """What was tuned, where and when."""
    head = study.study.head
    return " · ".join([study.name, f"tuned on {head.host}", quantities.moment(head.started_unix_s)])


def _paragraph(study: StudyFigures) -> str:
    parts = [sentences.ending(study)]
    if study.study.head.emulated:
        parts.append(
            f"The file system was emulated ({study.study.head.emulated}): times are those of the model."
        )
    if study.study.head.replay:
        parts.append("The search ran on the recorded I/O; default and winner were run as the real job.")
    return " ".join(parts)


def _tiles(study: StudyFigures) -> Iterator[Tile]:
    """Six numbers, or three where nothing was run."""
    for place in study.places:
        name = f"Default, {PLACE_NAMES[place.place]}"
        best_s = _median_s(place, place.best)
        against = (
            f"{_kind(place)}: {quantities.duration(best_s)}" if best_s is not None else "nothing else counts"
        )
        yield Tile(name, quantities.duration(_median_s(place, DEFAULT)), against)
    if len(study.places) == 1:
        place = study.places[0]
        yield Tile(_kind(place).capitalize(), quantities.duration(_median_s(place, place.best)))
    if study.places:
        yield _gain(study)
    failed = sum(1 for run in study.study.runs if run.status == "failed")
    yield Tile("Runs", quantities.count(len(study.study.runs)), f"{failed} failed")
    yield Tile("Cost", sentences.node_hours(study.cost_node_hours), "node-hours")
    paid = [runs for place in study.places if (runs := study.paid_after_runs(place)) is not None]
    note = "runs of the job" if paid else "nothing gained"
    yield Tile("Paid back after", quantities.count(min(paid, default=None)), note)


def _kind(place: PlaceFigures) -> str:
    return "tuned" if place.recommended else "best tried"


def _median_s(place: PlaceFigures, configuration: Configuration | None) -> float | None:
    return None if configuration is None else middle(place.sample(configuration).job_s)


def _gain(study: StudyFigures) -> Tile:
    """The largest that is proven."""
    proven = [(proof.ratio, place.place, proof) for place in study.places if (proof := place.job_proof)]
    if not proven:
        return Tile("Times as fast", quantities.UNKNOWN, "nothing is proven")
    _, place, pairing = max(proven, key=lambda one: one[0])
    rests_on = f"{pairing.interval or '1 pair'}, {PLACE_NAMES[place]}"
    return Tile("Times as fast", f"{pairing.ratio:.2f}", rests_on)


def _sections(study: StudyFigures, linked: bool) -> Iterator[Section]:
    yield _outcome(study)
    yield from _lines(study)
    for place in study.places:
        yield from _search(study, place)
    yield _cost(study)
    for place in study.places:
        yield from _compared(study, place, linked)
    yield _rejected(study)
    yield from _space(study)
    yield _runs(study)
    yield _study(study)


def _outcome(study: StudyFigures) -> Section:
    table = tables.outcome(study)
    title = "What the job takes as it is, and with other settings." if table.rows else "Nothing has been run."
    notes = [
        "Medians are those of the final round, where default and tuned ran in turn; without one, of all runs "
        "that count."
    ]
    return Section("outcome", "Result", title, tables=[table] if table.rows else [], notes=notes)


def _lines(study: StudyFigures) -> Iterator[Section]:
    chosen = [place for place in study.places if place.recommended]
    if not chosen:
        return
    listings = [Listing(caption, lines) for caption, lines in added_lines(study)]
    facts = [
        (f"set, {PLACE_NAMES[place.place]}", sentences.configuration_text(place.recommended))
        for place in chosen
    ]
    if study.study.written:
        facts.append(("tuned script", study.study.written[-1].path))
    title = (
        "What was changed in the script." if listings else "What was set; the scripts of the runs are gone."
    )
    yield Section("lines", "Lines added", title, facts=facts, listings=listings)


def _search(study: StudyFigures, place: PlaceFigures) -> Iterator[Section]:
    name = PLACE_NAMES[place.place]
    broad, narrow = pictures.search(study, place)
    if not broad:
        return
    counted = sum(run.status == "ok" for run in place.runs)
    title = f"{sentences.runs_text(place.runs)}, of which {counted} count{'s' if counted == 1 else ''}."
    yield Section(f"search-{place.place}", f"Search, {name}", title, broad, charts_narrow=narrow)
    strips, left_out = pictures.values(study, place)
    if strips:
        notes = ["Each dot is a run, the bar their median. The other settings of the runs differ as well."]
        if left_out:
            notes.append(f"{left_out} more parameters, whose values differ less, are not drawn.")
        title = f"{strips[0].title} went with the largest difference."
        yield Section(f"values-{place.place}", f"What mattered, {name}", title, strips, notes=notes)


def _cost(study: StudyFigures) -> Section:
    chosen = [place for place in study.places if study.paid_after_runs(place) is not None]
    cost = f"The search took {sentences.node_hours(study.cost_node_hours)} node-hours"
    paid = ". ".join(
        f"{sentences.WHERE[place.place]} it has paid for itself {sentences.payback(study, place)}"
        for place in chosen
    )
    notes = [FORMULA]
    unknown = sum(run.job_s is None for run in study.study.runs)
    if unknown:
        notes.append(f"The time of {unknown} of the runs is not known and not in it.")
    title = f"{cost}. {paid or _no_gain(study)}."
    table = tables.cost(study)
    return Section("cost", "Cost", title, tables=[table] if table.rows else [], notes=notes)


def _no_gain(study: StudyFigures) -> str:
    if any(place.recommended for place in study.places):
        return "It gains no run time of the job"
    settled = any(place.verdict for place in study.places)
    return "Nothing is recommended" if settled else "There is no verdict yet"


def _compared(study: StudyFigures, place: PlaceFigures, linked: bool) -> Iterator[Section]:
    found = pair(study, place)
    if found is None:
        return
    key, name = f"compared-{place.place}", f"Default against tuned, {PLACE_NAMES[place.place]}"
    if isinstance(found, str):
        yield Section(key, name, found)
        return
    comparison = compare(list(found.profiles))
    tables = [
        dataclasses.replace(table, caption=f"{table.caption} ({study.label})", folded=at > 1)
        for at, table in enumerate(comparison.tables)
    ]
    title = f"A is run {found.default.number}, the default; B is run {found.tuned.number}, tuned."
    links = [("Both runs side by side, with all charts", comparison_name(place))] if linked else []
    listings = [Listing("To compare them again", [_command(study, found)], to_copy=True)]
    yield Section(key, name, title, tables=tables, notes=comparison.notes, links=links, listings=listings)


def _command(study: StudyFigures, found: Pair) -> str:
    records = [str(study.study.directory.absolute() / run.record) for run in (found.default, found.tuned)]
    return shlex.join(["forebay", "report", *records])


def _rejected(study: StudyFigures) -> Section:
    found = [
        table
        for table in (tables.refusals(study), tables.idle(study), tables.not_counted(study))
        if table.rows
    ]
    title = (
        "What was not tried, what did nothing, and what failed."
        if found
        else "Nothing was refused, nothing failed."
    )
    return Section("rejected", "Rejected", title, tables=found)


def _space(study: StudyFigures) -> Iterator[Section]:
    found = list(tables.parameters(study))
    if found:
        title = "The parameters, with the counter that each rests on."
        yield Section("space", "What was searched", title, tables=found)


def _runs(study: StudyFigures) -> Section:
    found = [tables.runs(study, place) for place in study.places]
    return Section(
        "runs",
        "Runs",
        f"{sentences.runs_text(study.study.runs)}, each with its record in runs/.",
        tables=found,
    )


def _study(study: StudyFigures) -> Section:
    head = study.study.head
    facts = [
        ("script", head.script),
        ("arguments", shlex.join(head.arguments)),
        ("study", str(study.study.directory.absolute())),
        ("host", head.host),
        ("began", quantities.moment(head.started_unix_s)),
        ("file system", f"emulated: {head.emulated}" if head.emulated else "real"),
        ("compared", "time in I/O of the slowest rank" if head.objective == "io" else "run time of the job"),
        ("strategy", ", ".join(dict.fromkeys(place.plan.strategy for place in study.places if place.plan))),
        ("seed", str(head.seed)),
        ("check", head.check or ""),
        *((f"ended, {at}", end.message or end.reason) for at, end in enumerate(study.study.ends, 1)),
    ]
    return Section(
        "study", "Study", "How it was made.", facts=[(name, value) for name, value in facts if value]
    )
