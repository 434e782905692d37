"""From profiles to the contents of a report: verdict, tiles, findings, sections."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest

from forebay import quantities
from forebay.advice.model import Finding
from forebay.profiles import metrics, time_parts
from forebay.profiles.machine import Machine
from forebay.profiles.model import OTHER_FILES, LayerName, Profile, Program
from forebay.report.charts.shares import NARROW_PX, WIDTH_PX
from forebay.report.charts.svg_figure import Chart
from forebay.report.document import Cell, Column, JobReport, Section, Table, Tile, number_cell
from forebay.report.planning import later_run
from forebay.report.planning.later_run import PredictedRun
from forebay.report.sections import OF_PROGRAM, job, time_spent
from forebay.report.sections.context import SectionContext

#: Programs of a job with sections of their own: those with most time in I/O. The table of programs has all.
PROGRAMS_MAX = 8
LABELS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


@dataclass
class Advised:
    """A profile and what the advice says of it."""

    profile: Profile
    verdict: str
    paragraph: str
    findings: list[Finding]
    prediction: PredictedRun | None = None


def job_reports(jobs: Sequence[Advised], machine: Machine | None) -> list[JobReport]:
    """The report of each job; charts of programs that are shown side by side share their axes."""
    contexts = [
        [SectionContext(one.profile, program, machine) for program in _programs_with_most_io(one.profile)]
        for one in jobs
    ]
    for side_by_side in zip_longest(*contexts):
        peers = [context for context in side_by_side if context]
        for context in peers:
            context.peers = peers
    labels = LABELS[: len(jobs)] if len(jobs) > 1 else [""]
    return [_job_report(*one) for one in zip(jobs, contexts, labels, strict=True)]


def _programs_with_most_io(profile: Profile) -> list[Program]:
    """The programs with most time in I/O, in the order in which they ran; of like processes one."""
    by_io = sorted(profile.programs, key=lambda one: metrics.io_s(one) or 0.0, reverse=True)
    chosen = [group[0] for group in job.alike(by_io)][:PROGRAMS_MAX]
    return [one for one in profile.programs if any(one is other for other in chosen)]


def _job_report(one: Advised, contexts: list[SectionContext], label: str) -> JobReport:
    programs = [(_program_name(context.program), _sections(context)) for context in contexts]
    sections = job.sections(one.profile)
    if len(one.profile.programs) > 1:
        sections.insert(1, _programs(one.profile, len(contexts)))
    if one.prediction:
        sections.append(later_run.section(one.prediction))
    return JobReport(
        label=label,
        name=headline(one.profile),
        verdicts=[one.verdict],
        paragraph=one.paragraph,
        tiles=tiles(one.profile),
        # Of several jobs the comparison has the bars, on one scale.
        lead=[] if label else _lead(contexts, WIDTH_PX),
        lead_narrow=[] if label else _lead(contexts, NARROW_PX),
        findings=one.findings,
        parts=time_spent.of_job(one.profile),
        sections=sections,
        programs=programs,
    )


def _sections(context: SectionContext) -> list[Section]:
    return [section for make in OF_PROGRAM if (section := make(context)) is not None]


def _lead(contexts: list[SectionContext], width_px: int) -> list[Chart]:
    """The chart to be seen first: the slowest rank, of each program; of an only one each layer's mean too."""
    rows = []
    for at, context in enumerate(contexts, 1):
        parts = time_spent.slowest_rank(context.profile, context.program)
        name = f"{at} {job.last_part(context.program.name) or 'program'}"[:20]
        rows += [("slowest rank" if len(contexts) == 1 else name, parts)] if parts else []
    if len(contexts) == 1 and (share := metrics.io_share(contexts[0].profile)):
        for time in time_parts.time_split(contexts[0].program):
            parts = time_spent.by_activity(time.parts, share.run_s)
            rows.append(
                (
                    f"{time.layer}, mean",
                    {activity: spent_s / share.run_s for activity, spent_s in parts.items()},
                )
            )
    return [time_spent.chart(rows, width_px)] if rows else []


def _program_name(program: Program) -> str:
    name = job.program_text(program)
    ranks = f", {quantities.count(program.ranks)} ranks" if (program.ranks or 0) > 1 else ""
    return f"{name}{ranks}, {quantities.duration(program.wall_s)}"


def headline(profile: Profile) -> str:
    """What the job is called: name, id, nodes and ranks."""
    parts = [job.name_of(profile), f"job {profile.job.id}" if profile.job.id else None, job.extent(profile)]
    return " · ".join(part for part in parts if part)


def tiles(profile: Profile) -> list[Tile]:
    """The numbers to be seen first."""
    share = metrics.io_share(profile)
    written, read = (
        metrics.known_sum(metrics.moved_bytes(program, direction) for program in profile.programs)
        for direction in ("write", "read")
    )
    files = {file.path for program in profile.programs for file in program.files} - {OTHER_FILES}
    run_s = profile.job.wall_s if profile.job.wall_s is not None else share and share.run_s
    slowest = share.slowest if share and share.slowest is not None else None
    average = share.average if share else None
    return [
        Tile("Run time", quantities.duration(run_s), job.extent(profile) or ""),
        Tile(
            "Slowest rank in I/O" if slowest is not None else "In I/O",
            quantities.percent(slowest if slowest is not None else average),
            f"mean rank: {quantities.percent(average)}" if slowest is not None else "mean of the ranks",
        ),
        Tile("Written", quantities.size(written)),
        Tile("Read", quantities.size(read)),
        _speed(profile),
        Tile("Files", quantities.count(len(files))),
    ]


def _speed(profile: Profile) -> Tile:
    found = [one for program in profile.programs if (one := top_performance(program))]
    if not found:
        return Tile("Throughput", quantities.UNKNOWN)
    layer, speed = max(found, key=lambda one: one[1].bytes)
    return Tile("Throughput", quantities.rate(speed.bytes_per_s), f"{layer}, slowest rank")


def top_performance(program: Program) -> tuple[LayerName, metrics.Performance] | None:
    """Throughput at the layer through which the application moved most bytes; none if it is not known."""
    layers = metrics.layers_by_bytes(program)
    return next(((layer, one) for layer in layers if (one := metrics.performance(program, layer))), None)


def _programs(profile: Profile, shown: int) -> Section:
    names = [
        Column("#"),
        Column("program", "path"),
        *map(Column, ("ranks", "run time", "in I/O, mean", "written", "read", "files")),
    ]
    rows = [_program_row(at, program) for at, program in enumerate(profile.programs, 1)]
    rest = f"The {shown} with most time in I/O have sections of their own; of like processes one."
    rest = None if shown == len(rows) else rest
    unfinished = 0 if profile.job.running else len(metrics.not_ended_properly(profile))
    title = f"The job ran {len(rows)} programs" + (
        f"; {unfinished} did not end properly." if unfinished else "."
    )
    return Section(
        "programs",
        "Programs",
        title,
        tables=[Table("Programs in the order of their begin", names, rows, rest)],
    )


def _program_row(number: int, program: Program) -> list[Cell]:
    spent_s, ranks = metrics.io_s(program), program.ranks or 1
    return [
        number_cell(number),
        Cell(program.name or quantities.UNKNOWN),
        number_cell(program.ranks),
        number_cell(program.wall_s, quantities.duration),
        number_cell(None if spent_s is None else spent_s / ranks, quantities.duration),
        number_cell(metrics.moved_bytes(program, "write"), quantities.size),
        number_cell(metrics.moved_bytes(program, "read"), quantities.size),
        number_cell(len(program.files)),
    ]
