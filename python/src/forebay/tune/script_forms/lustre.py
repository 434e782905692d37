"""Striping of directories: `lfs setstripe`. New files and directories inherit it.

A script that does so by itself gets other numbers in its own lines. Settings: lfs_stripe_count, and
lfs_stripe_size in bytes; their pattern is a directory, or none for that of the job.
"""

from __future__ import annotations

import re
import shlex
from pathlib import PurePath

from forebay.tune.job_script.script import StripeLine
from forebay.tune.script_forms import syntax
from forebay.tune.script_forms.job_lines import Change, Job, Line, grouped

COUNT, SIZE = "lfs_stripe_count", "lfs_stripe_size"
_WHY = "# New files in the directory are laid out so, from now on; those that exist stay as they are."
_OPTIONS = {
    COUNT: ("-c", re.compile(r"(\s(?:-c\s*|--stripe-count[=\s]\s*|--count[=\s]\s*))([^\s;|&)]+)")),
    SIZE: ("-S", re.compile(r"(\s(?:-[Ss]\s*|--stripe-size[=\s]\s*|--size[=\s]\s*))([^\s;|&)]+)")),
}


def lines(job: Job, directory: str | None, settings: dict[str, str], carries: frozenset[str]) -> list[Line]:
    """For a directory that exists when the job begins, if the script has no line for it."""
    if _own(job, directory):
        return []
    words = " ".join(f"{_OPTIONS[name][0]} {value}" for name, value in sorted(settings.items()))
    setting = f"lfs setstripe {words} {_targets(job, directory)}"
    if job.script.syntax == "csh":
        text = f"which lfs >& /dev/null && {setting} || true"
    else:
        text = f"if command -v lfs > /dev/null; then {setting} || true; fi"
    return grouped([_WHY, text], carries)


def _targets(job: Job, directory: str | None) -> str:
    """Directories that exist inherit nothing, so each is named."""
    if directory is not None:
        return shlex.quote(directory)
    here = f'"{syntax.submitted_in(job.script)}"'
    return " ".join([here, *(f"{here}/{shlex.quote(one)}" for one in job.machine.output_directories)])


def changes(
    job: Job, directory: str | None, settings: dict[str, str], carries: frozenset[str]
) -> list[Change]:
    """The script's own lines for the directory, with our numbers."""
    rows = job.script.text.split("\n")
    result = []
    for own in _own(job, directory):
        first = own.line - 1
        old = "\n".join(rows[first : own.end])
        result.append(Change(first=first, end=own.end, text=_changed(old, settings), carries=carries))
    return result


def _own(job: Job, directory: str | None) -> list[StripeLine]:
    lines = job.script.stripe_lines
    return [line for line in lines if directory is None or _same(line.directory, directory, job)]


def _same(written: str | None, directory: str, job: Job) -> bool:
    """Paths that hold variables are the same if their ends are."""
    base = job.script.path.parent
    if written is None or "$" not in written:
        return written is not None and base / written == base / directory
    return PurePath(written).name == PurePath(directory).name


def _changed(statement: str, settings: dict[str, str]) -> str:
    head, command, tail = statement.partition("setstripe")
    for name, value in settings.items():
        option, pattern = _OPTIONS[name]
        if pattern.search(tail):
            tail = pattern.sub(lambda found, value=value: found[1] + value, tail, count=1)
        else:
            tail = f" {option} {value}{tail}"
    return head + command + tail
