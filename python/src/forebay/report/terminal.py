"""The summary in the terminal: at most `LINES_MAX` lines, and no meaning by colour alone."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table as Grid
from rich.text import Text

from forebay import quantities
from forebay.advice.model import Finding
from forebay.profiles import metrics
from forebay.profiles.merge import known_sum
from forebay.profiles.model import Profile, Program
from forebay.report.assembly import Advised, headline, top_performance
from forebay.report.comparison import Comparison
from forebay.report.document import Table, escape_hidden
from forebay.report.planning import later_run
from forebay.report.sections import job, sizes, time_spent

LINES_MAX = 40
FINDINGS_MAX = 3
PROGRAMS_MAX = 4
COUNTERS_MAX = 10
BAR_CELLS = 48
BAR_NAME = "slowest rank  "
LEVELS = {"problem": ("!", "red"), "suggestion": ("+", "green"), "note": ("-", "none")}
#: A letter for each part of a bar: readers need no colour.
LETTERS = {"write": "W", "read": "R", "rmw": "m", "waiting": "x", "metadata": "M", "sync": "S", "still": "."}
STYLES = {
    "write": "red",
    "read": "blue",
    "rmw": "red",
    "waiting": "yellow",
    "metadata": "magenta",
    "sync": "cyan",
    "still": "none",
}


class UnbrokenLine(str):
    """A line that is never broken: half of it would be another command."""


def print_summary(console: Console, one: Advised, advice: bool) -> None:
    """The summary of one job."""
    parts: list[RenderableType] = [
        Text(escape_hidden(headline(one.profile)), style="bold"),
        Text(escape_hidden(one.verdict), style="bold"),
    ]
    worth = [finding for finding in one.findings if finding.level != "note"]
    if advice and one.paragraph and (job.state(one.profile.job) or not worth):
        parts.append(Text(escape_hidden(one.paragraph)))
    programs = sorted(one.profile.programs, key=lambda program: metrics.io_s(program) or 0.0, reverse=True)
    groups = job.alike(programs)
    for group in groups[:PROGRAMS_MAX]:
        name = _group_text(group) if len(programs) > 1 else None
        parts.append(_program(one.profile, group[0], name, width=console.width))
    if more := sum(len(group) for group in groups[PROGRAMS_MAX:]):
        parts.append(Text(f"and {more} more programs with less I/O"))
    if advice:
        parts += _findings(one.findings)
    if one.prediction:
        parts.append(Text(escape_hidden(later_run.sentence(one.prediction))))
    parts += [
        _figures(one.profile),
        Text(escape_hidden(f"recorded: {job.recorded(one.profile)}"), style="dim"),
    ]
    parts += [Text(f"note: {escape_hidden(note)}", style="dim") for note in one.profile.notes[:2]]
    print_parts(console, parts)


def print_comparison(console: Console, jobs: list[Advised], comparison: Comparison) -> None:
    """The differences between jobs."""
    parts: list[RenderableType] = [Text(escape_hidden(comparison.verdict), style="bold")]
    parts += [Text(escape_hidden(note)) for note in comparison.notes]
    for label, one in zip("ABCDEFGHIJKLMNOPQRSTUVWXYZ", jobs, strict=False):
        parts.append(Text(escape_hidden(f"{label}  {headline(one.profile)}: {one.verdict}")))
    for table in comparison.tables:
        parts += ["", Text(table.caption, style="bold"), grid(table)]
    print_parts(console, parts)


def print_parts(console: Console, parts: list[RenderableType]) -> None:
    """Prints what goes into the lines there are, and says so if that is not all."""
    lines: list[Text] = []
    for part in parts:
        if isinstance(part, UnbrokenLine):
            lines.append(Text(f"  {part}", style="bold"))
            continue
        for line in console.render_lines(part, pad=False):
            lines.append(Text.assemble(*((piece.text, piece.style or "") for piece in line)))
            lines[-1].rstrip()
    for line in lines[: LINES_MAX - 2]:
        console.print(line, soft_wrap=True)
    if len(lines) > LINES_MAX - 2:
        console.print("... the page (--html) has the rest")


def _group_text(group: list[Program]) -> str:
    text = job.program_text(group[0])
    return f"{len(group)} processes, this one with most I/O: {text}" if len(group) > 1 else text


def _program(profile: Profile, program: Program, name: str | None, width: int) -> RenderableType:
    shares = time_spent.slowest_rank(profile, program)
    rows: list[RenderableType] = [""] if name or shares else []
    if name:
        rows.append(Text(escape_hidden(name), style="bold"))
    if shares:
        cells = min(BAR_CELLS, width - len(BAR_NAME))
        rows += [
            Text.assemble(BAR_NAME, _bar(shares, cells)),
            Padding(_parts_text(shares), (0, 0, 0, len(BAR_NAME))),
        ]
    return Group(*rows)


def _figures(profile: Profile) -> RenderableType:
    """Bytes and calls of all programs; the speed of the one that moved most."""
    layers = Grid.grid(padding=(0, 2, 0, 0))
    present = metrics.layers_present(profile)
    for layer in present:
        sums = metrics.totals(profile, layer)
        layers.add_row(
            layer,
            *(_direction_text(name, one) for name, one in (("written", sums.write), ("read", sums.read))),
        )
    found = [one for program in profile.programs if (one := top_performance(program))]
    best = max(found, key=lambda one: one[1].bytes, default=None)
    lines = [_names_text(profile)] if present else []
    if best:
        lines.append(f"{quantities.rate(best[1].bytes_per_s)} through {best[0]}, as the slowest rank saw it")
    return Group("", layers, *(Text(line) for line in lines if line)) if present else Group()


def _names_text(profile: Profile) -> str:
    sums = [metrics.totals(profile, layer) for layer in metrics.layers_present(profile)]
    opens = known_sum(one.opens for one in sums)
    others = known_sum(count for one in sums for count in (one.stats, one.name_calls))
    return (
        f"{quantities.count(opens)} opens, {quantities.count(others)} other calls on names" if others else ""
    )


def _bar(shares: dict[str, float], cells: int) -> Text:
    text = Text()
    for activity, share in shares.items():
        text.append(LETTERS[activity] * min(round(cells * share), cells - len(text)), style=STYLES[activity])
    return text


def _parts_text(shares: dict[str, float]) -> Text:
    named = [
        f"{LETTERS[activity]} {time_spent.NAMES[activity]} {quantities.percent(share)}"
        for activity, share in shares.items()
        if share >= 0.005
    ]
    return Text(", ".join(named))


def _direction_text(name: str, traffic: metrics.TrafficTotals) -> Text:
    if not traffic.calls:
        return Text(f"nothing {name}")
    calls = f"{quantities.count(traffic.calls)} call{'s' if traffic.calls > 1 else ''}"
    return Text(f"{quantities.size(traffic.bytes)} {name}, {calls}{_size_text(traffic)}")


def _size_text(traffic: metrics.TrafficTotals) -> str:
    """The size of all calls or of most of them, or their class; without a histogram the mean."""
    calls = traffic.calls or 0
    usual = sizes.usual_size(traffic)
    if usual is None:
        mean = traffic.bytes / calls if traffic.bytes is not None and calls else None
        return f" of {quantities.size(mean)}{' on average' if calls > 1 else ''}"
    is_all = bool(traffic.common_sizes) and traffic.common_sizes[0][1] >= calls
    return f" of {usual.text}" if is_all else f", most of {usual.text}"


def _findings(findings: list[Finding]) -> Iterator[RenderableType]:
    """The first with what to do, then all lines, so that a small terminal has room for them; the others."""
    lines = dict.fromkeys(line for finding in findings[:FINDINGS_MAX] for line in finding.lines)
    for at, finding in enumerate(findings[:FINDINGS_MAX]):
        mark, colour = LEVELS[finding.level]
        action = f". {finding.action}" if at == 0 and finding.level != "note" else ""
        title = escape_hidden(finding.title + action)
        yield Text.assemble("\n", (f"{mark} {finding.level}: ", f"bold {colour}"), title)
        if at == 0 and lines:
            yield Text("\nadd to the job script:")
            yield from (UnbrokenLine(escape_hidden(line)) for line in lines)
    if len(findings) > FINDINGS_MAX:
        yield Text(f"and {len(findings) - FINDINGS_MAX} more findings")


def grid(table: Table, rows_max: int = COUNTERS_MAX) -> Grid:
    """The first rows of a table."""
    return whole_grid(table, COUNTERS_MAX)


def whole_grid(table: Table, rows_max: int | None = None) -> Grid:
    """All rows of a table, or so many."""
    lines = Grid.grid(padding=(0, 2, 0, 0))
    for column in table.columns:
        lines.add_column(justify="right" if column.kind == "number" else "left")
    lines.add_row(*(Text(column.name, style="underline") for column in table.columns))
    for row in table.rows[:rows_max]:
        lines.add_row(*(Text(escape_hidden(cell.text)) for cell in row))
    return lines
