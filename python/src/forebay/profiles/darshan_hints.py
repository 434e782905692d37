"""Hints in the metadata of a Darshan log's job, as Forebay writes them: Darshan has no place for hints.

The metadata are lines `key=value`, 1023 bytes in all. Darshan's own `h=` are the hints of its log, not the
application's. Forebay's lines, ID being Darshan's id of the file in hexadecimal digits:

    forebay=VERSION
    forebay_job=ID OF THE JOB
    mpi=WHAT THE MPI CALLS ITSELF
    job_s=RUN TIME OF THE JOB                    a log has that of a program alone
    io_s=SECONDS, io_slowest_rank_s=SECONDS      in I/O calls, as recorded; counters of files are bounds
    unread=WHY MORE I/O MAY HAVE BEEN THAN IS RECORDED
    hints.ID=KEY=VALUE;KEY=VALUE                 in force, as the MPI tells
    hints_environment.ID=KEY=VALUE;...           asked for in MPICH_MPIIO_HINTS
    hints_program.ID=KEY=VALUE;...               asked for by the program
    hints_without_effect.ID=KEY=ASKED>SEEN;...
    hints_left_out=NUMBER                        of hints for which there was no room

`@ID` in place of the hints: the same as those of that file. `%`, `;`, `=`, `>`, `@` and what is not printable
ASCII are written as `%XX`.
"""

from __future__ import annotations

import re
from urllib.parse import quote, unquote

from forebay.profiles import time_limits
from forebay.profiles.model import Hints, WithoutEffect

METADATA_BYTES_MAX = 1023
#: Of a number of hints.
DIGITS_MAX = 9
PLAIN = "".join(chr(code) for code in range(32, 127) if chr(code) not in "%;=>@")
#: Member of Hints -> key of its lines.
KEYS = {
    "without_effect": "hints_without_effect",
    "environment": "hints_environment",
    "program": "hints_program",
    "in_force": "hints",
}
LEFT_OUT = "hints_left_out"
FILE_ID = re.compile("[0-9a-f]{1,16}")


def _lines(metadata: str) -> dict[str, str]:
    return dict(line.split("=", 1) for line in metadata.splitlines() if "=" in line)


def is_by_forebay(metadata: str) -> bool:
    """Whether Forebay wrote the log."""
    return "forebay" in _lines(metadata)


def mpi(metadata: str) -> str | None:
    """What the MPI calls itself, if Forebay wrote the log."""
    text = _lines(metadata).get("mpi")
    return None if text is None or not is_by_forebay(metadata) else unquote(text)


def writer(metadata: str) -> str | None:
    """What wrote the log: Darshan's runtime library or Forebay, with its version."""
    lines = _lines(metadata)
    if "forebay" in lines:
        return f"Forebay {lines['forebay']}"
    return f"Darshan {lines['lib_ver']}" if "lib_ver" in lines else None


def job(metadata: str) -> str | None:
    """Forebay's id of the job, if Forebay wrote the log."""
    return _lines(metadata).get("forebay_job") if is_by_forebay(metadata) else None


def seconds(metadata: str, key: str) -> float | None:
    """What Forebay wrote as `job_s` and its like; None if it is no time that a run can have."""
    try:
        value = float(_lines(metadata)[key]) if is_by_forebay(metadata) else -1.0
    except (KeyError, ValueError):
        return None
    return value if 0 <= value <= time_limits.SUM_S_MAX else None


def unread(metadata: str) -> list[str]:
    """Why more I/O may have been than is recorded, as the record of Forebay told."""
    text = _lines(metadata).get("unread") if is_by_forebay(metadata) else None
    return [] if text is None else [unquote(text)]


def left_out(metadata: str) -> int:
    """Number of hints for which there was no room."""
    text = _lines(metadata).get(LEFT_OUT, "") if is_by_forebay(metadata) else ""
    return int(text) if text.isdecimal() and len(text) <= DIGITS_MAX else 0


def of_files(metadata: str) -> dict[int, Hints]:
    """The hints of each file, by Darshan's id; empty if Darshan itself wrote the log. Damage is left out."""
    found: dict[int, Hints] = {}
    if not is_by_forebay(metadata):
        return found
    lines = _lines(metadata)
    members = {key: member for member, key in KEYS.items()}
    for key, text in lines.items():
        kind, _, file_id = key.partition(".")
        if kind in members and FILE_ID.fullmatch(file_id):
            value = lines.get(f"{kind}.{text[1:]}", "") if text.startswith("@") else text
            _add(found.setdefault(int(file_id, 16), Hints()), members[kind], value)
    return found


def _add(hints: Hints, member: str, text: str) -> None:
    pairs = [pair.split("=", 1) for pair in text.split(";") if "=" in pair]
    if member == "without_effect":
        for name, value in pairs:
            asked, between, seen = value.partition(">")
            if between:
                words = unquote(name), unquote(asked), unquote(seen)
                hints.without_effect.append(WithoutEffect(key=words[0], asked=words[1], seen=words[2]))
    else:
        setattr(hints, member, {unquote(name): unquote(value) for name, value in pairs})


def plain(text: str) -> str:
    """`text` as a value in the metadata."""
    return quote(text, safe=PLAIN)


def metadata(head: dict[str, str], hints: dict[int, Hints]) -> str:
    """The lines of `head` and the hints of each file, the first files' first, as far as there is room."""
    text = "".join(f"{key}={value}\n" for key, value in head.items())
    room = METADATA_BYTES_MAX - len(text) - len(f"{LEFT_OUT}=9999999\n")
    lines: dict[str, str] = {}
    first_with: dict[tuple[str, str], str] = {}
    missing = 0
    for file_id, of_file in hints.items():
        for member, key in KEYS.items():
            words = _words(of_file, member)
            if not words:
                continue
            line, same = f"{key}.{file_id:x}", first_with.get((key, ";".join(words)))
            taken = [f"@{same}"] if same is not None else _that_fit(words, room - len(line) - 2)
            if not taken or len(line) + len(taken[0]) + 2 > room:
                missing += len(words)
                continue
            if same is None:
                missing += len(words) - len(taken)
                first_with[key, ";".join(taken)] = f"{file_id:x}"
            lines[line] = ";".join(taken)
            room -= len(line) + len(lines[line]) + 2
    text += "".join(f"{key}={value}\n" for key, value in lines.items())
    return text + (f"{LEFT_OUT}={missing}\n" if missing else "")


def _that_fit(words: list[str], room: int) -> list[str]:
    taken = []
    for word in words:
        if len(word) + 1 <= room:
            taken.append(word)
            room -= len(word) + 1
    return taken


def _words(hints: Hints, member: str) -> list[str]:
    """`key=value` of each hint; of those in force first what somebody asked for."""
    if member == "without_effect":
        return [f"{plain(it.key)}={plain(it.asked)}>{plain(it.seen)}" for it in hints.without_effect]
    values: dict[str, str] = getattr(hints, member) or {}
    asked = {**hints.environment, **hints.program}
    names = sorted(values, key=lambda name: name not in asked)
    return [f"{plain(name)}={plain(values[name])}" for name in names]
