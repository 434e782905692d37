"""A study as one JSON object."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from forebay.report.tuning import sentences
from forebay.report.tuning.figures import DEFAULT, PlaceFigures, Sample, StudyFigures, figures, middle
from forebay.tune.study import Study

#: Version of this format.
FOREBAY_TUNING_REPORT = 1


def as_json(of: Study) -> str:
    """`forebay_tuning_report`, `study`, `cost_node_hours`, `places`; docs/start/report.md has the members."""
    study = figures(of)
    return json.dumps(
        {
            "forebay_tuning_report": FOREBAY_TUNING_REPORT,
            "directory": str(study.study.directory),
            "study": msgspec.to_builtins(study.study.head),
            "ends": msgspec.to_builtins(study.study.ends),
            "nodes": study.nodes,
            "cost_node_hours": study.cost_node_hours,
            "places": [_place(study, place) for place in study.places],
        }
    )


def _place(study: StudyFigures, place: PlaceFigures) -> dict[str, Any]:
    return {
        "place": place.place,
        "sentence": sentences.sentence(place),
        "verdict": msgspec.to_builtins(place.verdict),
        "job_pairing": msgspec.to_builtins(place.job_proof),
        "default": _sample(place.sample(DEFAULT)),
        "best": _sample(place.sample(place.best)) if place.best is not None else None,
        "gain_node_hours": study.gain_node_hours(place),
        "paid_after_runs": study.paid_after_runs(place),
        "plan": msgspec.to_builtins(place.plan),
        "runs": [
            {**msgspec.to_builtins(run), "ratio": ratio}
            for run, ratio in zip(place.runs, place.ratios, strict=True)
        ],
    }


def _sample(sample: Sample) -> dict[str, Any]:
    return {
        "configuration": sample.configuration,
        "job_median_s": middle(sample.job_s),
        "job_s": sample.job_s,
        "io_median_s": middle(sample.io_s),
        "io_s": sample.io_s,
    }
