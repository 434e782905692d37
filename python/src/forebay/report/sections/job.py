"""The job as a whole: who, what, when, where; staging; what the source does not tell."""

from __future__ import annotations

import re
import shlex

from forebay import quantities
from forebay.advice.diagnosis import problems
from forebay.profiles.model import Allocation, Job, Profile, Program, Staging
from forebay.report.document import Cell, Column, Section, Table, number_cell

#: Letters of a program's arguments that are shown next to its name.
ARGUMENTS_MAX = 40
SOURCES = {"forebay": "Forebay's record", "darshan": "Darshan log", "cray": "statistics of Cray's MPI"}


def sections(profile: Profile) -> list[Section]:
    """The sections of the job."""
    return [_header(profile), *_staging(profile.job), *_environment(profile.job), *_notes(profile)]


def _header(profile: Profile) -> Section:
    job = profile.job
    facts = [
        ("job", " · ".join(dict.fromkeys(filter(None, (job.id, job.scheduler_id))))),
        ("name", job.name),
        ("command", job.command),
        ("script", job.script),
        ("directory", job.directory),
        ("user, host", ", ".join(filter(None, (job.user, job.host)))),
        ("nodes, ranks", extent(profile)),
        ("began", quantities.moment(job.started_unix_s) if job.started_unix_s else None),
        ("run time", quantities.duration(job.wall_s)),
        ("state", state(job)),
        ("recorded", recorded(profile)),
        ("file system", f"emulated: {job.emulated}" if job.emulated else None),
        ("read from", f"{profile.path} ({SOURCES[profile.source]})"),
    ]
    return Section("job", "Job", _titled(profile), facts=[(name, value) for name, value in facts if value])


def recorded(profile: Profile) -> str:
    """Which share of the bytes that programs read and wrote in files the figures are of."""
    known = profile.coverage
    if known is None:
        return f"not known: {profile.coverage_unknown or 'the source does not have what the kernel counted'}"
    missing = f"not recorded: {quantities.size(known.missing_bytes)}" if known.missing_bytes else ""
    if known.share is None:
        return "; ".join(filter(None, ("less than 4 MiB in files", missing)))
    of_files = quantities.size(known.recorded_bytes + known.missing_bytes)
    told_share = f"{quantities.percent(known.share)} of {of_files} that programs read and wrote in files"
    return "; ".join(filter(None, (told_share, missing)))


def name_of(profile: Profile) -> str:
    """A name for people: the job's, its script's, its program's, else where it was read from."""
    job = profile.job
    programs = [program.name for program in profile.programs if program.name]
    program = last_part(programs[0]) if programs else None
    if job.kind == "profile":  # named for the launcher that it begins with
        return program or job.name or "job"
    return (
        job.name
        or last_part(job.script)
        or program
        or last_part(next(iter((job.command or "").split()), None))
        or last_part(profile.path)
        or "job"
    )


def program_text(program: Program) -> str:
    """The program and its first arguments, which tell two runs of one program apart."""
    name = last_part(program.name) or "a program"
    arguments = shlex.join(program.arguments)
    return f"{name} {arguments[:ARGUMENTS_MAX]}{'...' if len(arguments) > ARGUMENTS_MAX else ''}".rstrip()


def alike(programs: list[Program]) -> list[list[Program]]:
    """Processes without MPI whose commands differ in numbers only, as workers of a pool, are together."""
    groups: dict[object, list[Program]] = {}
    for program in programs:
        words = (program.name, *(re.sub(r"\d+", "", word) for word in program.arguments))
        groups.setdefault(id(program) if program.uses_mpi else words, []).append(program)
    return list(groups.values())


def last_part(path: str | None) -> str | None:
    """The file's name without its directories."""
    return path.rstrip("/").rsplit("/", 1)[-1] if path else None


def state(job: Job) -> str | None:
    """How the job ended, if there is anything to show."""
    if job.error:
        return f"not started: {'; '.join(error for error, _ in problems(job))}"
    if job.killed:
        return "killed: it says that it runs, and its process is gone"
    if job.running:
        return "still running: figures are of what has been recorded by now"
    if job.ended_for_stage_out:
        return f"ended before the end that {job.deadline_told_by} tells, so that its stage-out had time"
    if job.over_time_limit:
        return "ended at its time limit"
    if job.ended_by_signal:
        return f"ended by {quantities.signal_name(job.ended_by_signal)}"
    failed = next((code for code in (job.job_status, job.exit_code) if code), None)
    return f"failed with status {failed}" if failed else None


def extent(profile: Profile) -> str | None:
    """Nodes, and ranks of the largest program."""
    ranks = [program.ranks for program in profile.programs if program.ranks]
    hosts = max((program.hosts for program in profile.programs if program.hosts), default=None)
    nodes = profile.job.nodes or hosts
    parts = [f"{nodes} node{'s' if nodes > 1 else ''}"] if nodes else []
    if ranks:
        parts.append(f"{max(ranks)} rank{'s' if max(ranks) > 1 else ''}")
    return ", ".join(parts) or None


def _titled(profile: Profile) -> str:
    programs = len(profile.programs)
    if programs == 0:
        return f"{name_of(profile)}: no program of it was recorded."
    number = "one program" if programs == 1 else f"{programs} programs"
    return f"{name_of(profile)}: {number} in {quantities.duration(profile.job.wall_s)}."


def _staging(job: Job) -> list[Section]:
    moves = [(name, move) for name, move in (("in", job.stage_in), ("out", job.stage_out)) if move]
    if not moves and not job.store:
        return []
    facts = [
        ("store", job.store),
        ("capacity", quantities.size(job.capacity_bytes) if job.capacity_bytes else None),
        *_of_nodes(job.allocation),
        ("data kept in", job.kept),
    ]
    columns = [Column("stage", "text"), *map(Column, ("files", "bytes", "time", "throughput", "failures"))]
    rows = [_move(name, move) for name, move in moves]
    return [
        Section(
            "staging",
            "Staging and store",
            _moved(moves),
            facts=[(name, value) for name, value in facts if value],
            tables=[Table("Staged", columns, rows)] if rows else [],
            notes=[
                *(f"not staged: {failure}" for failure in job.failures),
                *(f"may be incomplete: {path}" for path in job.incomplete),
                *(f"a write failed: {one.path}: {one.error} in {one.call}" for one in job.failed_writes),
            ],
        )
    ]


def _of_nodes(allocation: Allocation | None) -> list[tuple[str, str | None]]:
    """What holds of an allocation over several nodes."""
    if allocation is None:
        return []
    share = allocation.share_bytes
    return [
        ("nodes of the allocation", ", ".join(allocation.nodes)),
        ("engine", allocation.engine),
        ("copies of the data", str(allocation.redundancy)),
        ("share of each node, at most", quantities.size(share) if share is not None else None),
        ("engine failed", allocation.failed),
    ]


def _move(name: str, move: Staging) -> list[Cell]:
    speed = move.bytes / move.seconds if move.seconds > 0 else None
    return [
        Cell(name),
        number_cell(move.files),
        number_cell(move.bytes, quantities.size),
        number_cell(move.seconds, quantities.duration),
        number_cell(speed, quantities.rate),
        number_cell(move.failures),
    ]


def _moved(moves: list[tuple[str, Staging]]) -> str:
    told_moves = [
        f"{quantities.size(move.bytes)} staged {name} in {quantities.duration(move.seconds)}"
        for name, move in moves
    ]
    return (", ".join(told_moves) or "Nothing was staged") + "."


def _environment(job: Job) -> list[Section]:
    if not job.environment:
        return []
    number = len(job.environment)
    return [
        Section(
            "environment",
            "Environment",
            f"{number} variable{'s bear' if number > 1 else ' bears'} on I/O.",
            facts=sorted(job.environment.items()),
        )
    ]


def _notes(profile: Profile) -> list[Section]:
    if not profile.notes:
        return []
    return [
        Section(
            "notes",
            "What the source does not tell",
            "Read the figures with this in mind.",
            notes=profile.notes,
        )
    ]
