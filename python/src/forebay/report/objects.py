"""The report as one JSON object."""

from __future__ import annotations

import json

import msgspec
from msgspec import UNSET, UnsetType

from forebay.advice.model import Finding
from forebay.profiles import metrics, time_parts
from forebay.profiles.machine import Machine
from forebay.profiles.model import LayerName, Profile, Program
from forebay.report.assembly import Advised
from forebay.report.comparison import Comparison
from forebay.report.planning.later_run import PredictedRun

#: Version of this format.
FOREBAY_REPORT = 2


class ReportedProgram(msgspec.Struct, kw_only=True):
    """Figures of one program, in the order of the profile."""

    performance: dict[LayerName, metrics.Performance | None]
    time_split: list[time_parts.LayerTime]


class ReportedJob(msgspec.Struct, kw_only=True):
    """One job."""

    verdict: str  # one sentence
    paragraph: str | UnsetType = UNSET  # absent with --no-advice
    findings: list[Finding] | UnsetType = UNSET  # absent with --no-advice
    io_share: metrics.IoShare | None
    totals: dict[LayerName, metrics.LayerTotals]
    programs: list[ReportedProgram]
    efficiency: metrics.Efficiency | None  # None: no machine file was given
    prediction: PredictedRun | None  # None: no plan of the script was made before the run
    profile: Profile


class ReportedDifference(msgspec.Struct, kw_only=True):
    """A figure of each job."""

    name: str
    kind: str  # setting, outcome or counter
    values: list[float | str | None]
    ratios: list[float | None]  # each job but the first against the first


class Report(msgspec.Struct, kw_only=True):
    """The report on jobs."""

    forebay_report: int = FOREBAY_REPORT  # version of this format
    jobs: list[ReportedJob]
    verdict: str | UnsetType = UNSET  # of the comparison; absent for one job
    differences: list[ReportedDifference] | UnsetType = UNSET  # absent for one job


def as_json(jobs: list[Advised], comparison: Comparison | None, machine: Machine | None, advice: bool) -> str:
    """The `Report`; docs/start/report.md has the members.

    Bytes of names that are no UTF-8 come out as lone surrogates, as Python's `os.fsdecode` gives them.
    """
    report = Report(jobs=[_job(one, machine, advice) for one in jobs])
    if comparison:
        report.verdict = comparison.verdict
        report.differences = [
            ReportedDifference(name=one.name, kind=one.kind, values=one.values, ratios=one.ratios)
            for one in comparison.differences
        ]
    return json.dumps(msgspec.to_builtins(report))


def _job(one: Advised, machine: Machine | None, advice: bool) -> ReportedJob:
    profile = one.profile
    layers = metrics.layers_present(profile)
    return ReportedJob(
        verdict=one.verdict,
        paragraph=one.paragraph if advice else UNSET,
        findings=one.findings if advice else UNSET,
        io_share=metrics.io_share(profile),
        totals={layer: metrics.totals(profile, layer) for layer in layers},
        programs=[_program(program, layers) for program in profile.programs],
        efficiency=metrics.efficiency(profile, machine) if machine else None,
        prediction=one.prediction,
        profile=profile,
    )


def _program(program: Program, layers: list[LayerName]) -> ReportedProgram:
    return ReportedProgram(
        performance={layer: metrics.performance(program, layer) for layer in layers},
        time_split=time_parts.time_split(program),
    )
