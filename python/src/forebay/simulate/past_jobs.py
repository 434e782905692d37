"""Jobs from a list of past ones: CSV with columns of our own, or what Slurm's `sacct` prints.

A list comes from another program or user. A row that cannot be read is left out and counted.
"""

from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from forebay import quantities
from forebay.simulate.errors import SimulationError
from forebay.simulate.jobs import Jobs, make_jobs
from forebay.simulate.site import JOBS_MAX, Past

_HINT = "docs/reference/simulation-files.md lists the columns"
_MIB = 2**20
#: Suffixes of Slurm's counts of burst buffer; without one it counts MiB.
_SUFFIXES = {"": _MIB, "K": 2**10, "M": _MIB, "G": 2**30, "T": 2**40, "P": 2**50}
_MINUTE_S = 60.0
#: Faults that are named; a list may have one in each row.
REASONS_MAX = 3


class PastJobs(msgspec.Struct):
    """Jobs, and rows that cannot be played."""

    jobs: Jobs
    left_out: int
    reasons: list[str]  # line, column and fault of the first rows that were left out
    stages: bool  # whether the list says what jobs stage


class _Row(msgspec.Struct):
    submit_s: float
    nodes: float
    run_s: float
    limit_s: float | None = None
    capacity: float = 0.0
    stage_in: float | None = None
    stage_out: float | None = None
    io: float = 0.0


def _number(text: str) -> float:
    found = float(text)
    if not math.isfinite(found) or found < 0:
        raise ValueError(f"{text!r} is no number above or equal to zero")
    return found


def _size(text: str) -> float:
    return _number(text) if re.fullmatch(r"[0-9.]*", text) and text else quantities.size_bytes(text)


def _moment(text: str) -> float:
    """Seconds since 1970, or Slurm's time. The zone has no effect: only differences count."""
    if re.fullmatch(r"\d+(\.\d*)?", text):
        return float(text)
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


def _length(text: str) -> float:
    """`1-02:03:04`, `02:03:04`, `03:04`, as Slurm writes times."""
    found = re.fullmatch(r"(?:(\d+)-)?(?:(\d+):)?(\d+):(\d+)(?:\.\d+)?", text)
    if found is None:
        raise ValueError(f"{text!r} is no length of time")
    days, hours, minutes, seconds = (int(part or 0) for part in found.groups())
    return days * 86400.0 + hours * 3600.0 + minutes * _MINUTE_S + seconds


def _limit(text: str) -> float | None:
    return None if re.fullmatch(r"UNLIMITED|Partition_Limit|", text, re.IGNORECASE) else _length(text)


def _burst_buffer(text: str) -> float:
    """The size in `billing=4,bb/datawarp=400G,cpu=4`."""
    sizes = re.findall(r"(?:^|,)bb/[^=,]+=([0-9.]+)([KMGTP]?)", text)
    return sum(_number(amount) * _SUFFIXES[suffix] for amount, suffix in sizes)


#: Column -> the field of a row, and how it is read. Of several columns for a field the first here counts.
_COLUMNS: dict[str, tuple[str, Callable[[str], float | None]]] = {
    "submit_s": ("submit_s", _number),
    "submit": ("submit_s", _moment),
    "nodes": ("nodes", _number),
    "allocnodes": ("nodes", _number),
    "nnodes": ("nodes", _number),
    "run_s": ("run_s", _number),
    "elapsedraw": ("run_s", _number),
    "elapsed": ("run_s", _length),
    "limit_s": ("limit_s", _number),
    "timelimitraw": ("limit_s", lambda text: _number(text) * _MINUTE_S if text.isdigit() else None),
    "timelimit": ("limit_s", _limit),
    "capacity": ("capacity", _size),
    "alloctres": ("capacity", _burst_buffer),
    "reqtres": ("capacity", _burst_buffer),
    "stage_in": ("stage_in", _size),
    "stage_out": ("stage_out", _size),
    "io": ("io", _size),
}
_REQUIRED = ("submit_s", "nodes", "run_s")


def read_past_jobs(path: Path, past: Past) -> PastJobs:
    """Reads a list. SimulationError if it has no job that can be played."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise SimulationError(f"{path}: cannot be read: {error.strerror}", "give a list of jobs") from error
    found = _of_json(path, text) if text.lstrip().startswith("{") else _of_table(path, text)
    rows: list[_Row] = []
    left_out, reasons = 0, []
    for where, row in found:
        if isinstance(row, _Row) and row.nodes >= 1 and row.run_s > 0:
            rows.append(row)
            continue
        left_out += 1
        why = row if isinstance(row, str) else "the job has no nodes, or did not run"
        if len(reasons) < REASONS_MAX:
            reasons.append(f"{where}: {quantities.printable(why)}")
    if not rows:
        named = f" ({'; '.join(reasons)})" if reasons else ""
        raise SimulationError(f"{path}: no job can be played{named}", _HINT)
    if len(rows) > JOBS_MAX:
        raise SimulationError(f"{path}: {len(rows)} jobs are more than {JOBS_MAX}", "give a part of the list")
    stages = any(row.stage_in is not None or row.stage_out is not None for row in rows)
    return PastJobs(_jobs(rows, past), left_out, reasons, stages)


def _jobs(rows: list[_Row], past: Past) -> Jobs:
    import numpy as np

    rows.sort(key=lambda row: row.submit_s)
    first_s = rows[0].submit_s

    def column(value: Callable[[_Row], float]) -> np.ndarray:
        return np.array([value(row) for row in rows], dtype=np.float64)

    def staged(own: float | None, row: _Row, share: float) -> float:
        return row.capacity * share if own is None else own

    fields = {
        "nodes": column(lambda row: row.nodes),
        "run_time": column(lambda row: row.run_s),
        "limit_factor": column(lambda row: (row.limit_s or row.run_s) / row.run_s),
        "capacity": column(lambda row: row.capacity),
        "stage_in": column(lambda row: staged(row.stage_in, row, past.stage_in_share)),
        "stage_out": column(lambda row: staged(row.stage_out, row, past.stage_out_share)),
        "io": column(lambda row: row.io),
    }
    return make_jobs(column(lambda row: row.submit_s - first_s), fields)


def _of_table(path: Path, text: str) -> Iterator[tuple[str, _Row | str]]:
    """Rows, or why one cannot be read, each with its line."""
    lines = text.splitlines()
    head = lines[0] if lines else ""
    delimiter = max(",|;\t", key=head.count)
    names = [name.strip().lower() for name in next(csv.reader([head], delimiter=delimiter), [])]
    places = _places(names)
    missing = [name for name in _REQUIRED if name not in places]
    if missing:
        raise SimulationError(f"{path}: line 1: no column gives {' or '.join(missing)}", _HINT)
    identity = names.index("jobid") if "jobid" in names else None
    reader = csv.reader(lines[1:], delimiter=delimiter)
    for cells in reader:
        if not cells or (identity is not None and len(cells) > identity and "." in cells[identity]):
            continue  # a blank line, or a step of a job
        yield f"line {1 + reader.line_num}", _row_of_cells(cells, places, names)


def _places(names: list[str]) -> dict[str, tuple[int, Callable[[str], float | None]]]:
    found: dict[str, tuple[int, Callable[[str], float | None]]] = {}
    for name, (field, read) in _COLUMNS.items():
        if name in names:
            found.setdefault(field, (names.index(name), read))
    return found


def _row_of_cells(
    cells: list[str], places: dict[str, tuple[int, Callable[[str], float | None]]], names: list[str]
) -> _Row | str:
    values: dict[str, float | None] = {}
    for field, (at, read) in places.items():
        text = cells[at].strip() if at < len(cells) else ""
        try:
            if text or field in _REQUIRED:
                values[field] = read(text)
        except (ValueError, OverflowError) as error:
            return f"column {at + 1} ({names[at]}): {_fault(text, error)}"
    return _Row(**values)  # type: ignore[arg-type]


def _fault(text: str, error: Exception) -> str:
    return str(error) if text else "it is empty"


def _of_json(path: Path, text: str) -> Iterator[tuple[str, _Row | str]]:
    """The jobs of `sacct --json`."""
    try:
        jobs = json.loads(text)["jobs"]
        if not isinstance(jobs, list):
            raise TypeError("jobs is no list")
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        raise SimulationError(f"{path}: not what `sacct --json` prints: {error}", _HINT) from error
    for number, job in enumerate(jobs, start=1):
        try:
            yield f"job {number}", _row_of_slurm(job)
        except (LookupError, TypeError, ValueError, OverflowError, AttributeError) as error:
            yield f"job {number}", f"{type(error).__name__}: {error}"


def _row_of_slurm(job: dict[str, Any]) -> _Row:
    times = job["time"]
    tres = job.get("tres", {})
    listed = tres.get("allocated") or tres.get("requested") or []
    limit_min = _plain(times.get("limit"))
    return _Row(
        submit_s=_number(str(times["submission"])),
        nodes=_plain(job["allocation_nodes"]) or 0.0,
        run_s=_number(str(times["elapsed"])),
        limit_s=limit_min * _MINUTE_S if limit_min else None,
        capacity=sum(_number(str(one["count"])) * _MIB for one in listed if one.get("type") == "bb"),
    )


def _plain(value: Any) -> float | None:
    """A number, or Slurm's `{"set": true, "infinite": false, "number": 60}`."""
    if isinstance(value, dict):
        is_known = value.get("set", True) and not value.get("infinite")
        return _number(str(value["number"])) if is_known else None
    return None if value is None else _number(str(value))
