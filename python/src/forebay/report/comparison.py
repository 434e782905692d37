"""How two or more jobs differ: what was changed, its effect, which counters moved."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from forebay import quantities
from forebay.profiles import metrics, time_parts
from forebay.profiles.model import LAYERS, SIZE_CLASS_NAMES, Profile
from forebay.report.assembly import LABELS, PROGRAMS_MAX
from forebay.report.charts.shares import NARROW_PX, WIDTH_PX
from forebay.report.charts.svg_figure import Chart
from forebay.report.document import Cell, Column, Table, number_cell
from forebay.report.sections import hints, job, time_spent

#: Run times nearer to each other than this count as equal: one run each proves no more.
DIFFERENCE_MIN = 0.05
COUNTERS_MAX = 24
#: Counters that differ by less are counted, not listed.
LISTED_RATIO_MIN = 1.02

#: Variables that Forebay sets for each job: a user did not change them.
OF_EACH_JOB = frozenset({"FOREBAY_PFS_STATE", "FOREBAY_PROFILE"})


@dataclass
class Comparison:
    """What stands above two or more jobs."""

    verdict: str
    tables: list[Table]
    notes: list[str]
    differences: list[Difference]
    lead: list[Chart]  # where the time of each job went, on one scale
    lead_narrow: list[Chart]  # the same for the width of a phone


@dataclass
class Difference:
    """A figure of each job. `values` are None where a source does not tell."""

    name: str
    kind: str  # setting, outcome, counter
    values: list[float | str | None]
    how: Callable[[float | None], str] = quantities.count

    @property
    def ratios(self) -> list[float | None]:
        """Each job but the first against the first."""
        first, *others = self.values
        return [_ratio(first, other) for other in others]

    @property
    def weight(self) -> float:
        """The largest logarithm of a ratio; nothing against something weighs most."""
        first, *others = [0.0 if value is None else float(value) for value in self.values]
        small = min((abs(v) for v in (first, *others) if v), default=1.0)
        return max(abs(math.log((other or small / 1024) / (first or small / 1024))) for other in others)


def _ratio(first: float | str | None, other: float | str | None) -> float | None:
    if isinstance(first, str) or isinstance(other, str) or not first or other is None:
        return None
    return other / first


def compare(profiles: list[Profile]) -> Comparison:
    """The differences between the first job and the others."""
    settings = [one for one in _settings(profiles) if len(set(one.values)) > 1]
    outcomes = list(_outcomes(profiles))
    counters = list(_counters(profiles))
    moved = _by_time([one for one in counters if _is_listed(one)], counters)
    labels = LABELS[: len(profiles)]
    tables = [
        _table("What came of it", outcomes, labels),
        _table("What was changed in the job", settings, labels),
        _table(
            f"Counters that differ, those of the largest difference of time first ({len(moved)} of "
            f"{len(counters)})",
            moved[:COUNTERS_MAX],
            labels,
        ),
    ]
    left_out = len(moved) - COUNTERS_MAX
    if left_out > 0:
        tables[-1].rest = f"and {left_out} more, which differ less; `forebay report --json` has them."
    names = {_programs(profile) for profile in profiles}
    notes = [
        f"These are different programs ({', '.join(sorted(names))}): "
        "what differs need not come from a setting."
    ]
    return Comparison(
        verdict=_verdict(profiles) if len(names) == 1 else _times(profiles),
        tables=[table for table in tables if table.rows],
        notes=notes if len(names) > 1 else [],
        differences=[*settings, *outcomes, *counters],
        lead=_lead(profiles, WIDTH_PX),
        lead_narrow=_lead(profiles, NARROW_PX),
    )


def _lead(profiles: list[Profile], width_px: int) -> list[Chart]:
    """A bar for each job; for each program of jobs with several."""
    rows = []
    for label, profile in zip(LABELS, profiles, strict=False):
        for at, program in enumerate(profile.programs[:PROGRAMS_MAX], 1):
            parts = time_parts.slowest_rank_parts(program)
            name = label if len(profile.programs) == 1 else f"{label}{at} {job.last_part(program.name) or ''}"
            if parts is not None and program.wall_s:
                rows.append((name[:20], time_spent.by_activity(parts, program.wall_s)))
    return [time_spent.chart_in_seconds(rows, width_px)] if rows else []


def _verdict(profiles: list[Profile]) -> str:
    walls_s = [_run_s(profile) for profile in profiles]
    if any(not wall_s for wall_s in walls_s):
        return "A run time is not known, so nothing can be said of which was faster."
    if len(profiles) > 2:
        best = min(range(len(walls_s)), key=walls_s.__getitem__)
        times = f"{quantities.duration(walls_s[best])}, against {quantities.duration(walls_s[0])} of A"
        return f"{LABELS[best]} was the fastest: {times}."
    first, second = walls_s
    if abs(second - first) <= DIFFERENCE_MIN * max(walls_s):
        return f"No clear difference: A took {quantities.duration(first)}, B {quantities.duration(second)}."
    quick, slow = ("B", "A") if second < first else ("A", "B")
    times = f"{quantities.duration(min(walls_s))} against {quantities.duration(max(walls_s))}"
    ratio = _digits(max(walls_s) / min(walls_s))
    return f"{quick} was {ratio} times as fast as {slow}: {times}, one run of each."


def _programs(profile: Profile) -> str:
    """What ran, whatever the job or its script is called."""
    names = dict.fromkeys(job.last_part(program.name) for program in profile.programs if program.name)
    return ", ".join(names) or job.name_of(profile)


def _times(profiles: list[Profile]) -> str:
    """Of different programs none is faster than the other."""
    times = (
        f"{label} ran for {quantities.duration(_run_s(profile))}"
        for label, profile in zip(LABELS, profiles, strict=False)
    )
    return f"Different programs: {', '.join(times)}."


def _digits(ratio: float) -> str:
    return f"{ratio:.1f}" if ratio < 10 else f"{ratio:.0f}" if ratio > 1.1 else f"{ratio:.2f}"


def _run_s(profile: Profile) -> float | None:
    share = metrics.io_share(profile)
    return share.run_s if share else None


def _settings(profiles: list[Profile]) -> Iterator[Difference]:
    def text(name: str, of: Callable[[Profile], object]) -> Difference:
        return Difference(
            name, "setting", [None if (v := of(profile)) is None else str(v) for profile in profiles]
        )

    yield text("command", lambda p: p.job.command or p.job.script)
    yield text(
        "program",
        lambda p: ", ".join(dict.fromkeys(x for one in p.programs if (x := job.last_part(one.name)))) or None,
    )
    yield text("ranks", lambda p: max((one.ranks for one in p.programs if one.ranks), default=None))
    yield text("nodes", lambda p: p.job.nodes)
    yield text("MPI", lambda p: next((one.mpi for one in p.programs if one.mpi), None))
    yield text("file system", lambda p: p.job.emulated and f"emulated: {p.job.emulated}")
    yield text("store", lambda p: p.job.store)
    yield text("recorded by", lambda p: job.SOURCES[p.source])
    names = {key for profile in profiles for key in profile.job.environment} - OF_EACH_JOB
    for key in sorted(names):
        yield text(key, lambda p, key=key: p.job.environment.get(key))
    yield from _settings_of_files(profiles)


def _settings_of_files(profiles: list[Profile]) -> Iterator[Difference]:
    found = [_by_name(profile) for profile in profiles]
    for name in dict.fromkeys(name for one in found for name in one):
        yield Difference(name, "setting", [one.get(name) for one in found])


def _by_name(profile: Profile) -> dict[str, str]:
    """Hints and striping by what they are of: the file's name without its directory, which may differ."""
    known: dict[str, str] = {}
    for program in profile.programs:
        for file in program.files:
            name = job.last_part(file.path) or file.path
            if file.hints:
                asked = {
                    **hints.asked(file.hints),
                    **{f"{k} in force": v for k, v in (file.hints.in_force or {}).items()},
                }
                known |= {f"{name}: {key}": value for key, value in asked.items()}
            if file.stripe_count is not None:
                known[f"{name}: stripes"] = f"{file.stripe_count} of {quantities.size(file.stripe_bytes)}"
    return known


def _outcomes(profiles: list[Profile]) -> Iterator[Difference]:
    def figure(
        name: str, of: Callable[[Profile], float | None], how: Callable[[float | None], str]
    ) -> Difference:
        return Difference(name, "outcome", [of(profile) for profile in profiles], how)

    shares = {id(profile): metrics.io_share(profile) for profile in profiles}
    yield figure("run time", _run_s, quantities.duration)
    yield figure(
        "in I/O, slowest rank", lambda p: shares[id(p)] and shares[id(p)].slowest_s, quantities.duration
    )
    yield figure(
        "in I/O, mean of the ranks", lambda p: shares[id(p)] and shares[id(p)].average_s, quantities.duration
    )
    for layer in LAYERS:
        one = figure(f"throughput, {layer}", lambda p, layer=layer: _throughput(p, layer), quantities.rate)
        if any(value is not None for value in one.values):
            yield one


def _throughput(profile: Profile, layer) -> float | None:
    found = [one for program in profile.programs if (one := metrics.performance(program, layer))]
    return max(found, key=lambda one: one.bytes).bytes_per_s if found else None


def _counters(profiles: list[Profile]) -> Iterator[Difference]:
    known = [dict(_counters_of(profile)) for profile in profiles]
    for name in dict.fromkeys(name for one in known for name in one):
        how = next(one[name][1] for one in known if name in one)
        values = [one[name][0] if name in one else None for one in known]
        if any(value is not None for value in values):
            yield Difference(name, "counter", values, how)


def _counters_of(profile: Profile) -> Iterator[tuple[str, tuple[float | None, Callable]]]:
    for layer in metrics.layers_present(profile):
        sums = metrics.totals(profile, layer)
        yield f"{layer}: files", (sums.files, quantities.count)
        for name in ("opens", "stats", "seeks", "syncs", "not_aligned"):
            yield f"{layer}: {name.replace('_', ' ')}", (getattr(sums, name), quantities.count)
        for direction, traffic in (("writes", sums.write), ("reads", sums.read)):
            yield from _traffic(f"{layer} {direction}", traffic)
    files = [file for program in profile.programs for file in program.files if file.collective]
    for name in ("aggregators_write", "aggregators_read", "rmw_calls", "rmw_bytes"):
        how = quantities.size if name.endswith("bytes") else quantities.count
        label = {"rmw_calls": "reads in order to write", "rmw_bytes": "reads in order to write, bytes"}
        largest = metrics.known_sum(getattr(file.collective, name) for file in files)
        yield label.get(name, name.replace("_", ", ")), (largest, how)


def _traffic(
    name: str, traffic: metrics.TrafficTotals
) -> Iterator[tuple[str, tuple[float | None, Callable]]]:
    mean = traffic.bytes / traffic.calls if traffic.calls and traffic.bytes is not None else None
    yield f"{name}: calls", (traffic.calls, quantities.count)
    yield f"{name}: bytes", (traffic.bytes, quantities.size)
    yield f"{name}: mean size", (mean, quantities.size)
    yield f"{name}: seconds, all ranks", (traffic.seconds, quantities.duration)
    for kind in (
        "independent",
        "collective",
        "nonblocking",
        "sequential",
        "consecutive",
        "gaps",
        "stripe_sized",
    ):
        yield f"{name}: {kind.replace('_', '-')}", (getattr(traffic, kind), quantities.count)
    for size, calls in zip(SIZE_CLASS_NAMES, traffic.sizes or [], strict=False):
        yield f"{name}: of {size} bytes", (calls, quantities.count)


def _by_time(moved: list[Difference], counters: list[Difference]) -> list[Difference]:
    """Counters of what took most of the difference first: of one layer and direction its seconds lead."""
    apart_s = {_group(one): _apart(one) for one in counters if one.how is quantities.duration}
    return sorted(
        moved,
        key=lambda one: (-apart_s.get(_group(one), 0.0), one.how is not quantities.duration, -one.weight),
    )


def _group(one: Difference) -> str:
    """Layer and direction."""
    return one.name.partition(":")[0]


def _apart(one: Difference) -> float:
    known = [float(value) for value in one.values if value is not None]
    return max(known, default=0.0) - min(known, default=0.0)


def _is_listed(one: Difference) -> bool:
    known = [value for value in one.values if value is not None]
    return len(known) > 1 and any(known) and one.weight >= math.log(LISTED_RATIO_MIN)


def _table(caption: str, differences: list[Difference], labels: str) -> Table:
    is_text = bool(differences) and differences[0].kind == "setting"
    kind = "text" if is_text else "number"
    columns = [Column("", "text"), *(Column(label, kind) for label in labels)]
    if not is_text:
        columns += [Column(f"{label} : A") for label in labels[1:]]
    return Table(caption, columns, [_row(one, is_text) for one in differences])


def _row(one: Difference, is_text: bool) -> list[Cell]:
    if is_text:
        return [
            Cell(one.name),
            *(Cell(quantities.UNKNOWN if value is None else str(value)) for value in one.values),
        ]
    return [
        Cell(one.name),
        *(number_cell(value, one.how) for value in one.values),
        *(number_cell(r, quantities.ratio) for r in one.ratios),
    ]
