"""Which reader for which source: what a user may name as a profile, recognised by content, never by name."""

from __future__ import annotations

import re
from pathlib import Path

from forebay import quantities
from forebay.profiles import darshan_repack, records, regular_file
from forebay.profiles.errors import ProfileError
from forebay.profiles.model import Job, Profile

#: A Darshan log begins with its version in 8 bytes and this number in the byte order of its machine.
HEAD_BYTES = 16
#: Of gzip and bzip2: Darshan 1 and 2 packed whole logs.
PACKED_BEGINS = (b"\x1f\x8b", b"BZh")
#: In a directory with more files only so many of the newest are looked at.
ENTRIES_MAX = 10_000
#: Ids repeat: without a scheduler Darshan takes that of a process. After such a pause it is another job.
PAUSE_S_MAX = 86_400

WHAT_CAN_BE_READ = (
    "what can be read: Darshan logs, Forebay's records, files of FOREBAY_MPI_STATS, "
    "text with the boxes of MPICH_MPIIO_STATS"
)


def open_profiles(arguments: list[str], state: Path) -> list[Profile]:
    """A profile for each argument: file, directory or job id; without arguments that of the last record.

    `state` is Forebay's state directory. ProfileError, with a hint, for whatever cannot be read.
    """
    if not arguments:
        return [open_path(records.last_record(state))]
    return [_open_one(argument, state) for argument in arguments]


def _open_one(argument: str, state: Path) -> Profile:
    if not argument:
        raise ProfileError("an empty name", "give a log, a directory or a job id; nothing for the last run")
    try:
        exists = Path(argument).exists()
    except OSError as error:
        raise ProfileError(f"{argument}: {error.strerror}", WHAT_CAN_BE_READ) from error
    except ValueError as error:
        raise ProfileError(f"{argument!r}: {error}", WHAT_CAN_BE_READ) from error
    if exists:
        return open_path(Path(argument))
    if "/" in argument:
        raise ProfileError(f"{argument}: no such file or directory", WHAT_CAN_BE_READ)
    return open_path(records.find_record(state, argument))


def open_path(path: Path) -> Profile:
    """The profile in a file or a directory."""
    try:
        return _open_directory(path) if path.is_dir() else _open_file(path)
    except OSError as error:
        raise ProfileError(f"{error.filename or path}: {error.strerror}", "is it yours to read?") from error


def _head(path: Path) -> bytes:
    with regular_file.open_file(path) as file:
        return file.read(HEAD_BYTES)


def _open_file(path: Path) -> Profile:
    if not path.is_file():
        raise ProfileError(f"{path}: neither a file nor a directory", WHAT_CAN_BE_READ)
    head = _head(path)
    if not head:
        raise ProfileError(
            f"{path}: empty file", "the program that was to write it was killed, or the disk is full"
        )
    if _is_darshan(head) or head.startswith(PACKED_BEGINS):
        from forebay.profiles import darshan_log

        return darshan_log.read(path)
    if head.lstrip().startswith(b"{"):
        from forebay.profiles import record_reader

        return record_reader.read_file(path)
    from forebay.profiles import cray

    return cray.read(path)


def _is_darshan(head: bytes) -> bool:
    return darshan_repack.byte_order(head) is not None


def _open_directory(path: Path) -> Profile:
    names = {entry.name for entry in path.iterdir()}
    if "job.json" in names or any(
        name.startswith(("step-", "process-")) and name.endswith(".json") for name in names
    ):
        from forebay.profiles import record_reader

        return record_reader.read_record(path)
    newest = sorted(path.iterdir(), key=lambda entry: entry.lstat().st_mtime_ns, reverse=True)[:ENTRIES_MAX]
    for entry in newest:
        if entry.is_file() and _begins_as_darshan(entry):
            return _darshan_job(entry, newest)
        if entry.is_dir() and (entry / "job.json").is_file():
            return open_path(entry)
    raise ProfileError(f"{path}: neither a record nor a Darshan log is in this directory", WHAT_CAN_BE_READ)


def _begins_as_darshan(path: Path) -> bool:
    """What cannot be opened is no candidate: others in the directory may be readable."""
    try:
        return _is_darshan(_head(path))
    except (PermissionError, ProfileError):
        return False


def _darshan_job(newest: Path, entries: list[Path]) -> Profile:
    """The newest log and what else was logged by the same job: one log for each program that it started."""
    from forebay.profiles import darshan_log

    first = darshan_log.read(newest)
    mark = re.compile(rf"_id{re.escape(first.job.id or '')}(?!\d)")
    owner = newest.stat().st_uid
    parts, notes, unread = [first], [], []
    for log in entries:
        if log == newest or not mark.search(log.name) or not log.is_file():
            continue
        try:
            if not _is_darshan(_head(log)):
                continue
            part = darshan_log.read(log)
        except FileNotFoundError:
            continue  # somebody has removed it
        except (ProfileError, OSError) as error:
            if log.stat().st_uid == owner:
                notes.append(str(error))
                unread.append(f"{log.name}, a log of the same job, cannot be read")
            continue
        if (part.job.id, part.job.user) == (first.job.id, first.job.user):
            parts.append(part)
    of_run = _of_one_run(first, parts)
    if len(of_run) < len(parts):
        left_out = quantities.counted(len(parts) - len(of_run), "log")
        notes.append(f"{left_out} of the same job id and another day: left out.")
    joined = _merged(of_run, newest.parent)
    joined.notes.extend(notes)
    joined.unread.extend(unread)
    return joined


def _of_one_run(first: Profile, parts: list[Profile]) -> list[Profile]:
    """Those that ran with `first`, or with less than PAUSE_S_MAX in between; the earliest first."""
    runs: list[list[Profile]] = []
    end_s = 0.0
    for part in sorted(parts, key=lambda part: part.job.started_unix_s or 0.0):
        start_s = part.job.started_unix_s or 0.0
        if not runs or start_s > end_s + PAUSE_S_MAX:
            runs.append([])
        runs[-1].append(part)
        end_s = max(end_s, start_s + (part.job.wall_s or 0.0))
    return next(run for run in runs if any(part is first for part in run))


def _merged(parts: list[Profile], directory: Path) -> Profile:
    """Several logs of one job as one profile; its time runs from the first begin to the last end."""
    if len(parts) == 1:
        return parts[0]
    first = parts[0]
    begins = [part.job.started_unix_s for part in parts if part.job.started_unix_s is not None]
    ends = [
        part.job.started_unix_s + part.job.wall_s
        for part in parts
        if part.job.started_unix_s is not None and part.job.wall_s is not None
    ]
    job = Job(
        id=first.job.id,
        user=first.job.user,
        host=first.job.host,
        started_unix_s=min(begins, default=None),
        wall_s=max(ends) - min(begins) if ends else None,
    )
    return Profile(
        source=first.source,
        path=str(directory),
        job=job,
        programs=[program for part in parts for program in part.programs],
        notes=list(dict.fromkeys(note for part in parts for note in part.notes)),
        unread=list(dict.fromkeys(reason for part in parts for reason in part.unread)),
    )
