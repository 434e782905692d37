"""The report as one JSON object."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from forebay.profiles import metrics
from forebay.profiles.machine import Machine
from forebay.report.assembly import Advised
from forebay.report.comparison import Comparison

#: Version of this format.
FOREBAY_REPORT = 1


def as_json(jobs: list[Advised], comparison: Comparison | None, machine: Machine | None, advice: bool) -> str:
    """`forebay_report`, `jobs`, and `differences` between two or more; docs/start/report.md has the members.

    Bytes of names that are no UTF-8 come out as lone surrogates, as Python's `os.fsdecode` gives them.
    """
    report: dict[str, Any] = {
        "forebay_report": FOREBAY_REPORT,
        "jobs": [_job(one, machine, advice) for one in jobs],
    }
    if comparison:
        report["verdict"] = comparison.verdict
        report["differences"] = [
            {"name": one.name, "kind": one.kind, "values": one.values, "ratios": one.ratios}
            for one in comparison.differences
        ]
    return json.dumps(report)


def _job(one: Advised, machine: Machine | None, advice: bool) -> dict[str, Any]:
    profile = one.profile
    told: dict[str, Any] = {"verdict": one.verdict}
    if advice:
        told |= {"paragraph": one.paragraph, "findings": msgspec.to_builtins(one.findings)}
    layers = metrics.layers_present(profile)
    return told | {
        "io_share": msgspec.to_builtins(metrics.io_share(profile)),
        "totals": {layer: msgspec.to_builtins(metrics.totals(profile, layer)) for layer in layers},
        "programs": [
            {
                "performance": {
                    layer: msgspec.to_builtins(metrics.performance(program, layer)) for layer in layers
                },
                "time_split": msgspec.to_builtins(metrics.time_split(program)),
            }
            for program in profile.programs
        ],
        "efficiency": msgspec.to_builtins(metrics.efficiency(profile, machine)) if machine else None,
        "profile": msgspec.to_builtins(profile),
    }
