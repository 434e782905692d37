"""A study as one JSON object."""

from __future__ import annotations

import json

import msgspec

from forebay.report.tuning import sentences
from forebay.report.tuning.figures import DEFAULT, PlaceFigures, Sample, StudyFigures, figures, middle
from forebay.tune.model import Configuration, Pairing, Place, Plan, Run, Verdict
from forebay.tune.study import End, Head, Study

#: Version of this format.
FOREBAY_TUNING_REPORT = 1


class RatedRun(Run, kw_only=True):
    """One run, and what it was against the default."""

    ratio: float | None  # its time over the default's at that time


class ReportedSample(msgspec.Struct, kw_only=True):
    """Runs of the real job with one configuration that count."""

    configuration: Configuration
    job_median_s: float | None
    job_s: list[float]  # run times of the job
    io_median_s: float | None
    io_s: list[float]  # times of the slowest rank in I/O calls


class ReportedPlace(msgspec.Struct, kw_only=True):
    """The search in one place."""

    place: Place
    sentence: str  # how it ended
    verdict: Verdict | None
    job_pairing: Pairing | None  # the job's run time, in the pairs of the final round
    default: ReportedSample
    best: ReportedSample | None
    gain_node_hours: float | None  # of one run of the job
    paid_after_runs: int | None  # runs after which the study has paid for itself; None: never, or not known
    plan: Plan | None
    runs: list[RatedRun]


class TuningReport(msgspec.Struct, kw_only=True):
    """The report on a study."""

    forebay_tuning_report: int = FOREBAY_TUNING_REPORT  # version of this format
    directory: str  # of the study
    study: Head
    ends: list[End]
    nodes: int
    cost_node_hours: float
    places: list[ReportedPlace]


def as_json(of: Study) -> str:
    """The `TuningReport`; docs/start/report.md has the members."""
    study = figures(of)
    report = TuningReport(
        directory=str(study.study.directory),
        study=study.study.head,
        ends=study.study.ends,
        nodes=study.nodes,
        cost_node_hours=study.cost_node_hours,
        places=[_place(study, place) for place in study.places],
    )
    return json.dumps(msgspec.to_builtins(report))


def _place(study: StudyFigures, place: PlaceFigures) -> ReportedPlace:
    return ReportedPlace(
        place=place.place,
        sentence=sentences.sentence(place),
        verdict=place.verdict,
        job_pairing=place.job_proof,
        default=_sample(place.sample(DEFAULT)),
        best=_sample(place.sample(place.best)) if place.best is not None else None,
        gain_node_hours=study.gain_node_hours(place),
        paid_after_runs=study.paid_after_runs(place),
        plan=place.plan,
        runs=[
            RatedRun(**msgspec.structs.asdict(run), ratio=ratio)
            for run, ratio in zip(place.runs, place.ratios, strict=True)
        ],
    )


def _sample(sample: Sample) -> ReportedSample:
    return ReportedSample(
        configuration=sample.configuration,
        job_median_s=middle(sample.job_s),
        job_s=sample.job_s,
        io_median_s=middle(sample.io_s),
        io_s=sample.io_s,
    )
