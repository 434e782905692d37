"""Results of jobs and their records, with tables for notebooks. Needs the standard library only.

The profile of a record and its pandas tables need further packages, which they load when they are asked for.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from forebay import tables
from forebay.errors import ForebayError
from forebay.program import find_forebay

if TYPE_CHECKING:
    import pandas  # type: ignore[import-untyped]

    from forebay.profiles.model import Profile

#: Version of job.json that this module reads.
_FORMAT = 1


@dataclass(frozen=True)
class Staging:
    """A stage-in or stage-out. `failures` are pairs of a path and a reason."""

    files: int
    bytes: int
    unchanged_files: int
    copied_bytes: int
    missing_files: int
    missing_bytes: int
    seconds: float
    failures: tuple[tuple[str, str], ...]

    @classmethod
    def _of(cls, members: Mapping[str, Any] | None) -> Self | None:
        if members is None:
            return None
        named = {one.name: members[one.name] for one in fields(cls) if one.name != "failures"}
        return cls(**named, failures=tuple((path, reason) for path, reason in members["failures"]))


@dataclass(frozen=True)
class Result:
    """The result of a job, as `forebay run --json` prints it. `members` has the whole JSON object.

    A job that did not start has an `error`, a `hint` and an exit code, and no id.
    """

    exit_code: int
    job_id: str | None
    run_id: str | None
    script: str | None
    job_status: int | None
    job_s: float | None
    stage_in: Staging | None
    stage_out: Staging | None
    undelivered: bool
    kept: Path | None
    profile: Path | None
    error: str | None
    hint: str | None
    members: Mapping[str, Any] = field(repr=False)

    @classmethod
    def _of(cls, members: Mapping[str, Any]) -> Self:
        return cls(
            exit_code=members["exit_code"],
            job_id=members.get("job_id"),
            run_id=members.get("run_id"),
            script=members.get("script"),
            job_status=members.get("job_status"),
            job_s=members.get("job_s"),
            stage_in=Staging._of(members.get("stage_in")),
            stage_out=Staging._of(members.get("stage_out")),
            undelivered=members.get("undelivered", False),
            kept=_path(members.get("kept")),
            profile=_path(members.get("profile")),
            error=members.get("error"),
            hint=members.get("hint"),
            members=members,
        )

    def _repr_html_(self) -> str:
        rows = [
            ("Job", self.run_id),
            ("Script", self.script),
            ("Exit code", str(self.exit_code)),
            ("Error", self.error),
            ("Hint", self.hint),
            ("Kept", None if self.kept is None else str(self.kept)),
        ]
        return _html([(name, text) for name, text in rows if text is not None], self)


@dataclass(frozen=True)
class Record:
    """The record of a job that `forebay run` or `forebay profile` wrote. `members` has all of job.json.

    `result` is None while the job runs, and for a record of `forebay profile`.
    """

    path: Path
    id: str
    kind: str
    state: str
    script: Path | None
    command: tuple[str, ...]
    host: str
    started_unix_s: float
    ended_unix_s: float | None
    result: Result | None
    members: Mapping[str, Any] = field(repr=False)

    @property
    def profile(self) -> Profile:
        """The I/O profile of the job. Each access reads it again; it needs Forebay's report packages."""
        from forebay.profiles import sources

        return sources.open_path(self.path)

    def programs(self) -> pandas.DataFrame:
        """A row for each program: ranks, run time, seconds in I/O, bytes. Needs pandas, as all tables."""
        return tables.programs(self.profile)

    def files(self) -> pandas.DataFrame:
        """A row for each file and layer of each program: calls, bytes, and seconds summed over ranks."""
        return tables.files(self.profile)

    def over_time(self) -> pandas.DataFrame:
        """Bytes of all ranks by time, for each program and layer that has a heat map."""
        return tables.over_time(self.profile)

    def report(self, path: str | os.PathLike[str]) -> Path:
        """Writes the report as a PDF if the name ends with .pdf, else as a page. Returns the path."""
        import subprocess

        path = Path(path)
        form = "--pdf" if path.suffix == ".pdf" else "--html"
        command = [find_forebay(), "report", os.fspath(self.path), form, os.fspath(path)]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise ForebayError(done.stderr.strip() or f"forebay report failed with status {done.returncode}")
        return path

    def _repr_html_(self) -> str:
        rows = [("Job", self.id), ("Command", " ".join(self.command)), ("Host", self.host)]
        return _html([*rows, ("State", self.state)], self.result)


def read_record(path: Path) -> Record:
    """Reads a record in the state directory."""
    try:
        members = json.loads((path / "job.json").read_text(encoding="utf-8", errors="surrogateescape"))
        if members["forebay_job"] != _FORMAT:
            found = members["forebay_job"]
            raise ForebayError(f"{path}: version {found} of job.json, not {_FORMAT}", "update Forebay")
        outcome = members["outcome"]
        if members["error"] is not None:
            outcome = {"exit_code": 125, "error": members["error"], "hint": members["hint"]}
        is_run = members["kind"] == "run" and outcome is not None
        return Record(
            path=path,
            id=members["id"],
            kind=members["kind"],
            state=members["state"],
            script=_path(members["script"]),
            command=tuple(members["command"]),
            host=members["host"],
            started_unix_s=members["started_unix_s"],
            ended_unix_s=members["ended_unix_s"],
            result=Result._of(outcome) if is_run else None,
            members=members,
        )
    except (OSError, KeyError, TypeError, json.JSONDecodeError) as error:
        raise ForebayError(f"{path}: the record cannot be read: {error!r}") from error


def _path(text: str | None) -> Path | None:
    return None if text is None else Path(text)


#: Colours that are legible on light and dark pages.
_COLOURS = {"stage in": "#3b82c4", "script": "#8a8f98", "stage out": "#c9772b"}


def _html(rows: list[tuple[str, str]], result: Result | None) -> str:
    """A table and, below it, a bar of the times. Inherits colours of the page."""
    cells = [f"<tr><th style='text-align:left'>{escape(a)}</th><td>{escape(b)}</td></tr>" for a, b in rows]
    return f"<table>{''.join(cells)}</table>{_bar(result) if result else ''}"


def _bar(result: Result) -> str:
    """Where the time went: stage-in, script, stage-out."""
    times = {
        "stage in": result.stage_in.seconds if result.stage_in else 0.0,
        "script": result.job_s or 0.0,
        "stage out": result.stage_out.seconds if result.stage_out else 0.0,
    }
    total = sum(times.values())
    if total <= 0:
        return ""
    parts = [
        f"<span style='display:inline-block;height:1em;width:{100 * s / total:.2f}%;"
        f"background:{_COLOURS[name]}'></span>"
        for name, s in times.items()
    ]
    legend = [
        f"<span style='color:{_COLOURS[name]}'>&#9632;</span> {name} {s:.2f} s" for name, s in times.items()
    ]
    return (
        f"<div style='width:30em;max-width:100%;white-space:nowrap;font-size:1em;line-height:1'>"
        f"{''.join(parts)}</div><div>{' &nbsp; '.join(legend)}</div>"
    )
