"""The summary in the terminal: at most `LINES_MAX` lines, and nothing told by colour alone."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table as Grid
from rich.text import Text

from forebay.advice.model import Finding
from forebay.profiles import derived
from forebay.profiles.model import Program
from forebay.report import quantities
from forebay.report.assembly import Advised, headline, top_performance
from forebay.report.comparison import Comparison
from forebay.report.document import Table, shown
from forebay.report.sections import time_spent
from forebay.report.sections._base import Scene

LINES_MAX = 40
FINDINGS_MAX = 3
PROGRAMS_MAX = 4
COUNTERS_MAX = 10
BAR_CELLS = 48
LEVELS = {"problem": ("!", "red"), "chance": ("+", "green"), "note": ("-", "none")}
#: A letter for each part of a bar: it is told apart without colour.
LETTERS = {"write": "W", "read": "R", "waiting": "x", "metadata": "M", "sync": "S", "still": "."}
STYLES = {
    "write": "red",
    "read": "blue",
    "waiting": "yellow",
    "metadata": "magenta",
    "sync": "cyan",
    "still": "none",
}


def print_summary(console: Console, one: Advised, advice: bool) -> None:
    """The summary of one job."""
    parts: list[RenderableType] = [
        Text(shown(headline(one.profile)), style="bold"),
        Text(shown(one.verdict), style="bold"),
    ]
    if advice and one.paragraph:
        parts.append(Text(shown(one.paragraph)))
    programs = sorted(one.profile.programs, key=lambda program: derived.io_s(program) or 0.0, reverse=True)
    for program in programs[:PROGRAMS_MAX]:
        parts.append(_program(Scene(one.profile, program), several=len(programs) > 1))
    if len(programs) > PROGRAMS_MAX:
        parts.append(Text(f"and {len(programs) - PROGRAMS_MAX} more programs with less I/O"))
    if advice:
        parts += _findings(one.findings)
    parts += [Text(f"note: {shown(note)}", style="dim") for note in one.profile.notes[:2]]
    _print(console, parts)


def print_comparison(console: Console, jobs: list[Advised], comparison: Comparison) -> None:
    """The differences between jobs."""
    parts: list[RenderableType] = [Text(shown(comparison.verdict), style="bold")]
    parts += [Text(shown(note)) for note in comparison.notes]
    for label, one in zip("ABCDEFGHIJKLMNOPQRSTUVWXYZ", jobs, strict=False):
        parts.append(Text(shown(f"{label}  {headline(one.profile)}: {one.verdict}")))
    for table in comparison.tables:
        parts += ["", Text(table.caption, style="bold"), _grid(table)]
    _print(console, parts)


def _print(console: Console, parts: list[RenderableType]) -> None:
    """Prints what goes into the lines there are, and says so if that is not all."""
    lines = console.render_lines(Group(*parts), pad=False)
    for line in lines[: LINES_MAX - 2]:
        console.print(Text.assemble(*((part.text, part.style or "") for part in line)), soft_wrap=True)
    if len(lines) > LINES_MAX - 2:
        console.print("... the page (--html) has the rest")


def _program(scene: Scene, several: bool) -> RenderableType:
    rows: list[RenderableType] = [""]
    if several:
        rows.append(Text(shown(scene.program.name or "a program"), style="bold"))
    for layer, parts in time_spent.split_of_layers(scene)[:1]:
        bar = Text.assemble(f"{layer}  ", _bar(parts, scene.program))
        rows += [bar, Padding(_told_parts(parts, scene.program), (0, 0, 0, len(layer) + 2))]
    layers = Grid.grid(padding=(0, 2, 0, 0))
    for layer in scene.layers[:2]:
        sums = scene.totals(layer)
        layers.add_row(
            layer, *(_way(name, one) for name, one in (("written", sums.write), ("read", sums.read)))
        )
    best = top_performance(scene.program)
    speed = (
        [Text(f"{quantities.rate(best[1].bytes_per_s)} through {best[0]}, as the slowest rank saw it")]
        if best
        else []
    )
    return Group(*rows, layers, *speed)


def _bar(parts: dict[str, float], program: Program) -> Text:
    text = Text()
    for ink, seconds in parts.items():
        cells = round(BAR_CELLS * seconds / program.wall_s)
        text.append(LETTERS[ink] * min(cells, BAR_CELLS - len(text)), style=STYLES[ink])
    return text


def _told_parts(parts: dict[str, float], program: Program) -> Text:
    shares = {ink: seconds / program.wall_s for ink, seconds in parts.items()}
    named = [
        f"{LETTERS[ink]} {time_spent.NAMES[ink]} {quantities.share(share)}"
        for ink, share in shares.items()
        if share >= 0.005
    ]
    return Text(", ".join(named))


def _way(name: str, traffic: derived.TrafficTotals) -> Text:
    if not traffic.calls:
        return Text(f"nothing {name}")
    mean = traffic.bytes / traffic.calls if traffic.bytes is not None else None
    calls = f"{quantities.count(traffic.calls)} call{'s' if traffic.calls > 1 else ''}"
    return Text(f"{quantities.size(traffic.bytes)} {name}, {calls} of {quantities.size(mean)}")


def _findings(findings: list[Finding]) -> Iterator[RenderableType]:
    lines = dict.fromkeys(line for finding in findings[:FINDINGS_MAX] for line in finding.lines)
    for finding in findings[:FINDINGS_MAX]:
        mark, colour = LEVELS[finding.level]
        yield Text.assemble("\n", (f"{mark} {finding.level}: ", f"bold {colour}"), shown(finding.title))
    if len(findings) > FINDINGS_MAX:
        yield Text(f"and {len(findings) - FINDINGS_MAX} more findings")
    if lines:
        yield Text("\nadd to the job script:")
        yield from (Padding(Text(shown(line), style="bold"), (0, 0, 0, 2)) for line in lines)


def _grid(table: Table) -> Grid:
    grid = Grid.grid(padding=(0, 2, 0, 0))
    for column in table.columns:
        grid.add_column(justify="right" if column.kind == "number" else "left")
    grid.add_row(*(Text(column.name, style="underline") for column in table.columns))
    for row in table.rows[:COUNTERS_MAX]:
        grid.add_row(*(Text(shown(cell.text)) for cell in row))
    return grid
