"""A prediction next to the run that followed it."""

from __future__ import annotations

import msgspec

from forebay.plan.saved import Saved
from forebay.profiles import metrics
from forebay.profiles.model import Profile
from forebay.quantities import duration, ratio
from forebay.report.document import Cell, Column, Section, Table


class PredictedStorage(msgspec.Struct, kw_only=True):
    """What was predicted for one storage."""

    storage: str  # name in the machine file
    io_s: float  # with the recommended settings
    low_s: float  # lower end of the band
    high_s: float  # upper end of the band
    default_s: float  # without hints
    ratio: float | None  # measured over io_s


class PredictedRun(msgspec.Struct, kw_only=True):
    """The last plan of the job script that was made before the run."""

    machine: str  # that the plan is for
    made_unix_s: float  # when it was made
    measured_io_s: float | None  # of the slowest rank of the run, in I/O
    storages: list[PredictedStorage]  # fastest first


def predicted_run(saved: Saved, profile: Profile) -> PredictedRun:
    """The plan, and how the run compares."""
    measured = max(
        (seconds for program in profile.programs if (seconds := _io_s(program)) is not None), default=None
    )
    return PredictedRun(
        machine=saved.plan.machine,
        made_unix_s=saved.made_unix_s,
        measured_io_s=measured,
        storages=[
            PredictedStorage(
                storage=one.storage,
                io_s=one.recommended.io_s,
                low_s=one.recommended.low_s,
                high_s=one.recommended.high_s,
                default_s=one.default.io_s,
                ratio=None if measured is None else measured / one.recommended.io_s,
            )
            for one in saved.plan.storages
            if one.recommended and one.default
        ],
    )


def _io_s(program) -> float | None:
    slowest = metrics.io_slowest_s(program)
    return slowest if slowest is not None else metrics.io_s(program)


def sentence(one: PredictedRun) -> str:
    """The prediction and the measurement on one line."""
    found = [
        f"{each.storage} {duration(each.io_s)} ({duration(each.low_s)} to {duration(each.high_s)})"
        for each in one.storages
    ]
    return f"predicted for {one.machine}: {', '.join(found)}; measured here: {duration(one.measured_io_s)}"


def section(one: PredictedRun) -> Section:
    """The same as a section of the page."""
    columns = [
        Column("storage", "text"), Column("predicted"), Column("from"), Column("to"), Column("without hints"),
        Column("measured here"), Column("measured / predicted"),
    ]  # fmt: skip
    rows = [
        [
            Cell(each.storage),
            Cell(duration(each.io_s), each.io_s),
            Cell(duration(each.low_s), each.low_s),
            Cell(duration(each.high_s), each.high_s),
            Cell(duration(each.default_s), each.default_s),
            Cell(duration(one.measured_io_s), one.measured_io_s),
            Cell(ratio(each.ratio), each.ratio),
        ]
        for each in one.storages
    ]
    return Section(
        key="prediction",
        name="Prediction",
        title=f"forebay plan predicted this job for {one.machine}.",
        tables=[Table("I/O time, predicted and measured", columns, rows)],
        notes=["The measured time is that of the slowest rank in I/O."],
    )
