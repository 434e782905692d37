"""The line of a job script that sets hints for files: MPICH_MPIIO_HINTS; syntax: docs/reference/hints.md."""

from __future__ import annotations

import re
from pathlib import PurePosixPath

#: What a pattern or a shell would read as something else: any one character stands for it.
_UNFIT = frozenset(" :,#'\"\\*?[]!")
#: `_d01`, `-04`, `00010`: where numbers begin.
_NUMBER = re.compile(r"(?:[-_.][A-Za-z]?)?\d")
#: `.nc`, `.h5`.
_EXTENSION = re.compile(r"\.[A-Za-z]+\d?$")


def file_pattern(path: str) -> str:
    """A pattern for the file and those named like it but for numbers: `wrfout*` for `wrfout_d01_2007-04-03`.

    Without `/`, so that it is compared with the last part of a name. The extension is kept.
    """
    name = PurePosixPath(path).name or path
    extension = _EXTENSION.search(name)
    tail = extension[0] if extension else ""
    stem = name.removesuffix(tail)
    number = _NUMBER.search(stem)
    if number is None or not (stem[: number.start()] or tail):
        return _literal(name)
    return _literal(stem[: number.start()]) + "*" + _literal(tail)


def _literal(text: str) -> str:
    return "".join("?" if letter in _UNFIT or not letter.isprintable() else letter for letter in text)


def _value(value: str) -> str:
    """A value with a separator in it stands between `#`."""
    return f"#{value}#" if ":" in value or "," in value else value


def hints_line(hints: dict[str, dict[str, str]]) -> str:
    """`export MPICH_MPIIO_HINTS='PATTERN:KEY=VALUE...,PATTERN:...'`.

    Of patterns that match the first one counts, so longer ones, which say more of a name, stand first.
    """
    patterns = sorted(hints, key=lambda pattern: (-len(pattern), pattern))
    parts = (
        ":".join([pattern, *(f"{key}={_value(value)}" for key, value in hints[pattern].items())])
        for pattern in patterns
    )
    return f"export MPICH_MPIIO_HINTS='{','.join(parts)}'"
