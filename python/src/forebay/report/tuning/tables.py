"""The tables of a study. Each caption says whether the file system was real or emulated."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from forebay import quantities
from forebay.report.document import Cell, Column, Table, number_cell
from forebay.report.tuning.figures import DEFAULT, PlaceFigures, Sample, StudyFigures, middle
from forebay.report.tuning.sentences import PLACE_NAMES, configuration_text, node_hours, payback
from forebay.tune.model import Parameter, Run

STATES = {
    "failed": "failed",
    "ineffective": "without effect",
    "contaminated": "disturbed",
}


def _captioned(study: StudyFigures, text: str) -> str:
    return f"{text} ({study.label})"


def _columns(*names: str) -> list[Column]:
    """Columns by `name: kind`; those of numbers have no kind."""
    parts = [name.partition(": ") for name in names]
    return [Column(name, kind or "number") for name, _, kind in parts]


def outcome(study: StudyFigures) -> Table:
    """Default and tuned in each place: at most four rows."""
    names = _columns("files on: word", "settings: word", "job", "range", "in I/O", "runs", _ratio_name(study))
    rows = [row for place in study.places for row in _outcome_rows(place)]
    is_moving = any(place.best is not None and not place.is_paired for place in study.places)
    told_ratio = "; ratios to the default at that time" if is_moving else ""
    return Table(_captioned(study, f"Default and tuned, medians{told_ratio}"), names, rows)


def _outcome_rows(place: PlaceFigures) -> Iterator[list[Cell]]:
    yield _outcome_row(place, "default", place.sample(DEFAULT))
    if place.best is None:
        tried = sum(1 for run in place.runs if run.configuration)
        what = f"none of {tried} tried counts" if tried else "nothing else"
        yield [Cell(PLACE_NAMES[place.place]), Cell(what), *[number_cell(None)] * 5]
        return
    yield _outcome_row(place, "tuned" if place.recommended else "best tried", place.sample(place.best))


def _outcome_row(place: PlaceFigures, name: str, sample: Sample) -> list[Cell]:
    ratio = 1.0 if sample.configuration == DEFAULT and sample.runs else place.ratio(sample)
    return [
        Cell(PLACE_NAMES[place.place]),
        Cell(name),
        number_cell(middle(sample.job_s), quantities.duration),
        Cell(_range(sample.job_s)),
        number_cell(middle(sample.io_s), quantities.duration),
        number_cell(len(sample.runs)),
        Cell(_ratio(ratio), ratio),
    ]


def _ratio_name(study: StudyFigures) -> str:
    return f"{'I/O' if study.study.head.objective == 'io' else 'job'} / default"


def _ratio(ratio: float | None) -> str:
    return quantities.UNKNOWN if ratio is None else f"{ratio:.2f}"


def _range(values_s: Sequence[float]) -> str:
    """From the least to the largest, with the unit once if it is the same."""
    if not values_s:
        return quantities.UNKNOWN
    least, largest = quantities.duration(min(values_s)), quantities.duration(max(values_s))
    if least == largest:
        return least
    if least.count(" ") == largest.count(" ") == 1 and least.split()[1] == largest.split()[1]:
        least = least.split()[0]
    return f"{least} to {largest}"


def cost(study: StudyFigures) -> Table:
    """Node-hours of all runs, and what they gain."""
    names = _columns(
        "place: word", "runs", "node-hours", "saved by each run of the job", "has paid for itself: word"
    )
    rows = [
        [
            Cell(PLACE_NAMES[place.place]),
            number_cell(len(place.runs)),
            number_cell(study.node_hours(place.runs), node_hours),
            Cell(_saved(study, place)),
            Cell(payback(study, place)),
        ]
        for place in study.places
    ]
    if len(rows) > 1:
        whole = [
            number_cell(len(study.study.runs)),
            number_cell(study.cost_node_hours, node_hours),
            Cell(""),
            Cell(""),
        ]
        rows.append([Cell("the whole study"), *whole])
    return Table(_captioned(study, "What the search cost"), names, rows)


def _saved(study: StudyFigures, place: PlaceFigures) -> str:
    gain = study.gain_node_hours(place)
    return quantities.UNKNOWN if gain is None else f"{node_hours(gain)} node-hours"


def parameters(study: StudyFigures) -> Iterator[Table]:
    """What was searched, with the reason: one table, if it is the same in both places."""
    found: dict[tuple[Parameter, ...], list[str]] = {}
    for place in study.places:
        if place.plan and place.plan.parameters:
            found.setdefault(place.plan.parameters, []).append(PLACE_NAMES[place.place])
    for searched, places in found.items():
        yield _parameters(study, searched, " and ".join(places))


def _parameters(study: StudyFigures, searched: Sequence[Parameter], places: str) -> Table:
    names = _columns("parameter: path", "values: word", "default: word", "why it may matter: text")
    rows = [
        [
            Cell(one.name),
            Cell(", ".join(one.values)),
            Cell(one.default or quantities.UNKNOWN),
            Cell(f"{one.reason}. Source: {one.source}"),
        ]
        for one in searched
    ]
    return Table(_captioned(study, f"Searched, {places}"), names, rows)


def refusals(study: StudyFigures) -> Table:
    """What was not tried, and why: once, if it is the same in both places."""
    found: dict[tuple[str, str | None, str], list[str]] = {}
    for place in study.places:
        for one in place.plan.refusals if place.plan else ():
            found.setdefault((one.setting, one.pattern, one.reason), []).append(PLACE_NAMES[place.place])
    names = _columns("setting: word", "files: text", "why not: text", "place: word")
    rows = [
        [Cell(setting), Cell(pattern or "the whole job"), Cell(reason), Cell(", ".join(places))]
        for (setting, pattern, reason), places in found.items()
    ]
    return Table(_captioned(study, "Not tried"), names, rows)


def idle(study: StudyFigures) -> Table:
    """Parameters whose value the counters did not show."""
    names = _columns("parameter: path", "place: word", "runs that set it", "without effect in")
    rows = [
        [Cell(name), Cell(PLACE_NAMES[place.place]), number_cell(tried), number_cell(without)]
        for place in study.places
        for name, without, tried in place.idle_parameters
    ]
    return Table(_captioned(study, "Without effect, by the counters of the runs"), names, rows)


def not_counted(study: StudyFigures) -> Table:
    """Runs that failed, that did nothing, or that something disturbed."""
    names = _columns("run", "place: word", "what: word", "why: text", "set: path")
    rows = [
        [
            number_cell(run.number),
            Cell(PLACE_NAMES[run.place]),
            Cell(STATES[run.status]),
            Cell(run.reason or quantities.UNKNOWN),
            Cell(configuration_text(run.configuration)),
        ]
        for run in study.study.runs
        if run.status != "ok"
    ]
    return Table(_captioned(study, "Runs that do not count"), names, rows)


def runs(study: StudyFigures, place: PlaceFigures) -> Table:
    """All runs, the best first; those that do not count last."""
    names = _columns("run", "for: word", _ratio_name(study), "job", "in I/O", "set: path", "remark: text")
    found = sorted(zip(place.runs, place.drawn_ratios, strict=True), key=_rank)
    caption = f"All {len(found)} runs, {PLACE_NAMES[place.place]}, the best first"
    return Table(
        _captioned(study, caption),
        names,
        [_run(run, ratio) for run, ratio in found],
        sortable=True,
        folded=True,
    )


def _rank(one: tuple[Run, float | None]) -> tuple[bool, float, int]:
    run, ratio = one
    return (run.status != "ok", float("inf") if ratio is None else ratio, run.number)


def _run(run: Run, ratio: float | None) -> list[Cell]:
    return [
        number_cell(run.number),
        Cell(run.phase + (", replay" if run.replay else "")),
        Cell(_ratio(ratio), ratio),
        number_cell(run.job_s, quantities.duration),
        number_cell(run.io_s, quantities.duration),
        Cell(configuration_text(run.configuration)),
        Cell("; ".join(_remarks(run))),
    ]


def _remarks(run: Run) -> Sequence[str]:
    state = None if run.status == "ok" else STATES[run.status]
    without = f"without effect: {', '.join(run.without_effect)}" if run.without_effect else None
    return [remark for remark in (state, run.reason, without) if remark]
