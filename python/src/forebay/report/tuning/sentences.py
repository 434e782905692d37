"""What came of a study, in one sentence a place, and how it ended."""

from __future__ import annotations

from collections.abc import Sequence

from forebay import quantities
from forebay.report.tuning.figures import DEFAULT, PlaceFigures, StudyFigures, middle
from forebay.tune.model import Configuration, Pairing, Place, Run

PLACE_NAMES: dict[Place, str] = {"file-system": "file system", "burst-buffer": "burst buffer"}
WHERE: dict[Place, str] = {"file-system": "On the file system", "burst-buffer": "With its burst buffer"}
ENDS = {
    "done": "The search is finished",
    "budget": "The budget is spent",
    "interrupted": "The search was interrupted",
    "stopped": "The search was stopped",
}


def configuration_text(configuration: Configuration) -> str:
    """What is set, in one line."""
    return ", ".join(f"{name}={value}" for name, value in configuration.items()) or "default"


def verdicts(study: StudyFigures) -> list[str]:
    """A sentence for each place; one of the whole study if it has not come to a run."""
    return [sentence(place) for place in study.places] or ["Nothing has been run yet."]


def sentence(place: PlaceFigures) -> str:
    """How the place's search came out, worst news included."""
    where = WHERE[place.place]
    if place.recommended and place.verdict:
        return _recommended(place, where)
    if place.verdict:
        return f"{where}: keep the default. {_closed(place.verdict.reason)}"
    return f"{where}: {_unfinished(place)}"


def _recommended(place: PlaceFigures, where: str) -> str:
    default_s, tuned_s = (middle(place.sample(one).job_s) for one in (DEFAULT, place.recommended))
    proof = place.verdict.pairing
    if default_s is None or tuned_s is None:
        return f"{where}: {configuration_text(place.recommended)}. {_closed(place.verdict.reason)}"
    times = (
        f"{where} the job takes {quantities.duration(tuned_s)} in place of {quantities.duration(default_s)}"
    )
    if proof is None:
        return f"{times}. {_closed(place.verdict.reason)}"
    job = proof if is_job_time(place) else place.job_proof
    parts = [f"{pairing_text(job)}"] if job else []
    if not is_job_time(place):
        parts.append(f"its I/O is {pairing_text(proof)}")
    noise = "" if job and job.low > 1 else " A gain in the run time of the whole job is not proven."
    return f"{times}: {'; '.join(parts)}.{noise}"


def is_job_time(place: PlaceFigures) -> bool:
    """Are the times that were compared in the final round those of the whole job?"""
    return all(run.seconds == run.job_s for run in place.sample(place.recommended).runs)


def pairing_text(pairing: Pairing) -> str:
    """The ratio with its interval, and what it rests on."""
    pairs = f"{pairing.pairs} pair{'s' if pairing.pairs > 1 else ''}"
    if pairing.interval is None:
        return f"{pairing.ratio:.2f} times as fast ({pairs})"
    confidence = quantities.percent(pairing.confidence)
    return f"{pairing.ratio:.2f} times as fast ({pairing.interval}, {pairs}, {confidence})"


def runs_text(runs: Sequence[Run]) -> str:
    """How many."""
    return f"{quantities.count(len(runs))} run{'' if len(runs) == 1 else 's'}"


def _closed(reason: str) -> str:
    """The reason as a sentence of its own."""
    reason = reason.strip()
    return f"{reason[:1].upper()}{reason[1:]}{'' if reason.endswith(('.', '!', '?')) else '.'}"


def _unfinished(place: PlaceFigures) -> str:
    counted = [run for run in place.runs if run.status == "ok"]
    number = len(place.runs)
    if not counted:
        reason = next((run.reason for run in place.runs if run.reason), None)
        why = f" {_closed(reason)}" if reason else ""
        return f"{'the run' if number == 1 else f'each of the {number} runs'} failed.{why}"
    if place.best is None:
        default = quantities.duration(middle(place.sample(DEFAULT).job_s))
        tried = sum(1 for run in place.runs if run.configuration)
        others = f"; none of the {tried} runs with other settings counts" if tried else ""
        return f"the job takes {default} as it is{others}. Nothing is recommended."
    ratio = min(one for one in place.best_values() if one is not None)
    found = (
        "nothing was quicker than the default"
        if ratio >= 1
        else f"the best took {ratio:.2f} of the default's time, which is not proven"
    )
    return f"there is no verdict after {runs_text(place.runs)}; {found}."


def ending(study: StudyFigures) -> str:
    """Why the tuner ended, the last time it did."""
    if not study.study.ends:
        return "The tuner is still running, or was killed: the study says no end."
    end = study.study.ends[-1]
    message = f": {end.message}" if end.message else ""
    return _closed(f"{ENDS[end.reason]}{message}")


def payback(study: StudyFigures, place: PlaceFigures) -> str:
    """After how many runs of the job the study has paid for itself."""
    runs = study.paid_after_runs(place)
    if runs is not None:
        return f"after {quantities.count(runs)} run{'s' if runs > 1 else ''} of the job"
    if study.is_within_noise(place):
        return f"{quantities.UNKNOWN}: what the whole job gains is lost in its noise"
    return "never: it gains nothing" if place.verdict or not place.runs else quantities.UNKNOWN


def node_hours(value: float | None) -> str:
    """Node-hours; three digits, however few."""
    return quantities.UNKNOWN if value is None else f"{value:.3g}"
