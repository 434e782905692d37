"""Hints in the metadata of a Darshan log's job, as Forebay writes them: Darshan has no place for hints.

The metadata are lines `key=value`, 1023 bytes in all. Darshan's own `h=` are the hints of its log, not the
application's. Forebay's lines, ID being Darshan's id of the file in hexadecimal digits:

    forebay=VERSION
    mpi=WHAT THE MPI CALLS ITSELF
    hints.ID=KEY=VALUE;KEY=VALUE            in force, as the MPI tells
    hints_environment.ID=KEY=VALUE;...      asked for in MPICH_MPIIO_HINTS
    hints_program.ID=KEY=VALUE;...          asked for by the program
    hints_without_effect.ID=KEY=ASKED>SEEN;...
    hints_left_out=NUMBER                   of hints for which there was no room

`%`, `;`, `>` and what is not printable ASCII are written as `%XX`.
"""

from __future__ import annotations

from urllib.parse import unquote

from forebay.profiles.model import Hints, WithoutEffect

METADATA_BYTES_MAX = 1023
PLAIN = "".join(chr(code) for code in range(32, 127) if chr(code) not in "%;>=")
#: Field of Hints -> key of its lines; in this order hints are left out, last first, when room is short.
KEYS = {"in_force": "hints", "environment": "hints_environment", "program": "hints_program"}
WITHOUT_EFFECT = "hints_without_effect"
LEFT_OUT = "hints_left_out"


def _lines(metadata: str) -> dict[str, str]:
    return dict(line.split("=", 1) for line in metadata.splitlines() if "=" in line)


def are_told(metadata: str) -> bool:
    """Whether Forebay wrote the log."""
    return "forebay" in _lines(metadata)


def mpi(metadata: str) -> str | None:
    """What the MPI calls itself, if Forebay wrote the log."""
    text = _lines(metadata).get("mpi")
    return None if text is None or not are_told(metadata) else unquote(text)


def left_out(metadata: str) -> int:
    """Number of hints for which there was no room."""
    return int(_lines(metadata).get(LEFT_OUT, "0")) if are_told(metadata) else 0


def of_files(metadata: str) -> dict[int, Hints]:
    """The hints of each file, by Darshan's id; empty if Darshan itself wrote the log."""
    found: dict[int, Hints] = {}
    if not are_told(metadata):
        return found
    fields = {key: field for field, key in KEYS.items()}
    for key, text in _lines(metadata).items():
        kind, _, file_id = key.partition(".")
        pairs = [pair.split("=", 1) for pair in text.split(";") if "=" in pair]
        if kind in fields:
            hints = found.setdefault(int(file_id, 16), Hints())
            setattr(hints, fields[kind], {unquote(name): unquote(value) for name, value in pairs})
        elif kind == WITHOUT_EFFECT:
            hints = found.setdefault(int(file_id, 16), Hints())
            for name, value in pairs:
                asked, seen = (unquote(part) for part in value.split(">", 1))
                hints.without_effect.append(WithoutEffect(key=unquote(name), asked=asked, seen=seen))
    return found
