"""Reader of our own records: a directory, or one file of FOREBAY_MPI_STATS (docs/explanation/profiles.md).

What is damaged, half-written or newer than this reader is named in the notes; the rest is read.
"""

from __future__ import annotations

import glob
import os
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

import msgspec

from forebay.profiles import bypasses, coverage, record_schema, regular_file
from forebay.profiles.errors import ProfileError
from forebay.profiles.merge import by_path, known_sum, positive, split_streams
from forebay.profiles.model import (
    Allocation,
    Collective,
    Coverage,
    Extreme,
    FailedWrite,
    File,
    Heat,
    Hints,
    Job,
    Layer,
    LayerName,
    Profile,
    Program,
    Staging,
    Traffic,
    WithoutEffect,
    Writer,
)
from forebay.profiles.time_limits import RUN_S_MAX, TICK_S

LAYER_NAMES: dict[str, LayerName] = {"mpiio": "MPI-IO", "posix": "POSIX", "stdio": "STDIO"}
#: docs/explanation/profiles.md: at most 256 rows of 128 bins. What claims more is damaged.
HEAT_CELLS_MAX = 256 * 128
EXIT_CODE_REFUSED = 125
EXIT_CODE_TIME_LIMIT = 124
EXIT_CODE_SIGNAL = 128
#: Statuses beyond are no signal's: `exit -1` is 255.
SIGNAL_MAX = 64

Form = TypeVar("Form")


def read_record(directory: Path) -> Profile:
    """The profile of a record directory."""
    notes: list[str] = []
    job, transferred = _read_job(directory, notes)
    programs, damaged = [], []
    for path in sorted([*directory.glob("step-*.json"), *directory.glob("process-*.json")]):
        try:
            programs.append(_program(_decoded(path, record_schema.Step), path, notes))
        except (ProfileError, OSError) as error:
            notes.append(f"{error}; it is left out")
            damaged.append(f"{path.name} of the record cannot be read")
    notes.extend(f"{sentence}." for sentence in _processes_left_out(directory))
    programs.sort(key=lambda program: program.started_unix_s or 0.0)
    left = [] if job.running else list(_live_files_left(directory))
    notes.extend(f"{sentence}." for sentence in left)
    if not programs and not left and not job.running and job.error is None:
        notes.append("No program of this job did I/O that was recorded.")
    unread = [*_processes_left_out(directory)]
    if not job.running:
        unread += [*damaged, *_unread(programs), *left]
    known = coverage.of_record(directory, transferred, job.host, programs)
    bypassed = bypasses.read(directory / "bypassed", notes)
    notes += [f"{sentence}." for sentence in bypasses.sentences(bypassed, programs)]
    unread += [
        *coverage.sentences(known if isinstance(known, Coverage) else None),
        *bypasses.unknown(bypassed, programs, known if isinstance(known, Coverage) else None),
    ]
    return Profile(
        source="forebay",
        path=str(directory),
        job=job,
        programs=programs,
        notes=list(dict.fromkeys(notes)),
        unread=unread,
        coverage=known if isinstance(known, Coverage) else None,
        coverage_unknown=known if isinstance(known, str) else None,
        bypassed=bypassed,
    )


def _unread(programs: list[Program]) -> Iterator[str]:
    """Of which I/O the records have nothing."""
    for program in programs:
        name = (program.name or "a program").rpartition("/")[2]
        if not program.finished and not program.recovered:
            yield f"{name} ended without MPI_Finalize"
        elif program.torn:
            yield f"a part of what {name} had recorded is damaged"
        elif program.files_dropped:
            yield f"{program.files_dropped} opens of {name} found no room in the record"


def _processes_left_out(directory: Path) -> Iterator[str]:
    """`processes` has a byte for each process without MPI that did I/O; the first of them have a file."""
    counted, recorded = directory / "processes", len(list(directory.glob("process-*.json")))
    number = counted.stat().st_size if counted.is_file() else 0
    if number > recorded:
        yield (
            f"{number} processes without MPI did enough I/O for a record; "
            f"{recorded} of them are in the record"
        )


def _live_files_left(directory: Path) -> Iterator[str]:
    """A killed program leaves a live file for each of its processes until Forebay makes a report of them."""
    number = len(list(directory.glob("live-*")))
    if number:
        yield f"{number} killed processes left counters of which there is no report yet: forebay clean"


def read_file(path: Path) -> Profile:
    """The profile of one JSON file: a step or process file, what FOREBAY_MPI_STATS named, or a job.json."""
    document = _json(path)
    if isinstance(document, dict) and "forebay_job" in document:
        return read_record(path.parent)
    if not isinstance(document, dict) or "forebay_mpi" not in document:
        raise ProfileError(
            f"{path}: JSON, but not of libforebay_mpi.so",
            "FOREBAY_MPI_STATS=FILE writes what can be read here",
        )
    notes: list[str] = []
    program = _program(_converted(path, document, record_schema.Step), path, notes)
    job = Job(
        command=shlex.join([program.name, *program.arguments]) if program.name else None,
        started_unix_s=program.started_unix_s,
        wall_s=program.wall_s,
    )
    return Profile(
        source="forebay",
        path=str(path),
        job=job,
        programs=[program],
        notes=notes,
        unread=list(_unread([program])),
    )


def _json(path: Path) -> object:
    content = regular_file.read_bytes(path)
    if not content:
        raise ProfileError(f"{path}: empty file", "its writer was killed, or the disk is full")
    try:
        return msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ProfileError(
            f"{path}: damaged or half-written: {error}", "its writer was killed, or the disk is full"
        ) from error


def _converted(path: Path, document: object, form: type[Form]) -> Form:
    try:
        return msgspec.convert(document, form)
    except msgspec.ValidationError as error:
        raise ProfileError(
            f"{path}: not as documented: {error}", "docs/explanation/profiles.md has the format"
        ) from error


def _decoded(path: Path, form: type[Form]) -> Form:
    return _converted(path, _json(path), form)


def _read_job(directory: Path, notes: list[str]) -> tuple[Job, record_schema.Transferred | None]:
    path = directory / "job.json"
    try:
        job = _decoded(path, record_schema.WireJob)
    except FileNotFoundError:
        notes.append("job.json is missing: nothing is known of the job but its programs.")
        return Job(id=directory.name), None
    except ProfileError as error:
        notes.append(f"{error}; nothing is known of the job but its programs")
        return Job(id=directory.name), None
    job.id = job.id or directory.name
    if job.forebay_job > record_schema.JOB_FORMAT:
        notes.append(
            f"job.json has format {job.forebay_job}; {record_schema.JOB_FORMAT} is known here: "
            "the rest is left out."
        )
    read = _job(job, _has_allocation(directory, job.id))
    read.failed_writes = _failed_writes(directory / "failed-writes", notes)
    return read, job.transferred


def _failed_writes(path: Path, notes: list[str]) -> list[FailedWrite]:
    """The list that the recording library appends to. Its last line may be cut: there may be no room."""
    try:
        lines = regular_file.read_bytes(path).splitlines()
    except FileNotFoundError:
        return []
    except (ProfileError, OSError) as error:
        notes.append(f"failed writes are not known: {error}")
        return []
    found: dict[tuple[int | None, int | None, str | None], FailedWrite] = {}
    for line in lines:
        try:
            failed = msgspec.json.decode(line, type=record_schema.FailedWriteLine)
        except msgspec.DecodeError:
            continue
        key = (failed.device, failed.inode, failed.path if failed.inode is None else None)
        if failed.error is None:
            found.pop(key, None)
        else:
            write = FailedWrite(
                path=failed.path, error=failed.error, call=failed.call, unix_us=failed.unix_us
            )
            found.setdefault(key, write)
    return sorted(found.values(), key=lambda failed: failed.unix_us)


def _has_allocation(directory: Path, identity: str) -> bool:
    """A job that holds an allocation has a file, named after it, in the directory above the records."""
    return any(directory.absolute().parent.parent.glob(f"{glob.escape(identity)}-*@*.json"))


def _job(job: record_schema.WireJob, left: bool) -> Job:
    outcome = job.outcome or record_schema.Outcome()
    running = job.state == "running" and not job.killed
    gone = _is_gone(job.process) if running and job.process is not None else None
    killed = job.killed or gone is True
    exit_code = (
        EXIT_CODE_REFUSED if job.error is not None and outcome.exit_code is None else outcome.exit_code
    )
    status = outcome.job_status
    signal = (status or 0) - EXIT_CODE_SIGNAL
    ended_by = signal if 0 < signal <= SIGNAL_MAX else None
    deadline = outcome.deadline
    staged = [part for part in (outcome.stage_in, outcome.stage_out) if part is not None]
    return Job(
        id=job.id,
        name=job.name,
        command=shlex.join(job.command) or None,
        directory=job.directory,
        user=job.user,
        host=job.host,
        nodes=job.nodes,
        started_unix_s=job.started_unix_s,
        wall_s=_run_s(outcome.job_s),
        exit_code=exit_code,
        job_status=status,
        running=running and not killed,
        error=job.error,
        hint=job.hint,
        emulated=job.emulated.model if isinstance(job.emulated, record_schema.Emulated) else job.emulated,
        store=outcome.store.store if outcome.store else None,
        capacity_bytes=outcome.store.capacity_bytes if outcome.store else None,
        allocation=_allocation(outcome.nodes),
        stage_in=_staging(outcome.stage_in),
        stage_out=_staging(outcome.stage_out),
        kept=outcome.kept,
        environment=job.environment,
        kind=job.kind if job.kind in ("run", "profile") else None,
        scheduler_id=job.scheduler_job,
        script=job.script,
        killed=killed,
        cleaned=job.killed,
        unseen=running and gone is None,
        left=left,
        ended_by_signal=ended_by,
        over_time_limit=outcome.exit_code == EXIT_CODE_TIME_LIMIT and not (deadline and deadline.ended_job),
        deadline_told_by=deadline.told_by
        if deadline and (deadline.ended_job or deadline.signalled)
        else None,
        ended_for_stage_out=deadline is not None and deadline.ended_job,
        failures=[f"{path}: {reason}" for part in staged for path, reason in part.failures],
        store_was_full=outcome.store_full_unix_ms is not None,
        incomplete=[file.destination for part in staged for file in part.incomplete],
        undelivered=outcome.undelivered,
    )


def _allocation(used: record_schema.NodesUsed | None) -> Allocation | None:
    if used is None:
        return None
    return Allocation(
        engine=used.engine,
        nodes=used.names,
        redundancy=used.redundancy,
        share_bytes=used.share_bytes,
        failed=used.failed,
    )


def _run_s(seconds: float | None) -> float | None:
    """A run time, of which there are shares; None for one that no clock tells."""
    return None if seconds is not None and 0 < seconds < TICK_S else seconds


def _is_gone(process: record_schema.Process) -> bool | None:
    """Whether the process runs no more. None: another machine or container has it, which cannot be seen."""
    if process.host != os.uname().nodename:
        return None
    if process.pid_namespace not in (None, os.readlink("/proc/self/ns/pid")):
        return None
    if process.boot_id != Path("/proc/sys/kernel/random/boot_id").read_text().strip():
        return True
    try:
        # The name, in brackets, may hold blanks; state and start are the 1st and 20th field behind it.
        fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, PermissionError, ProcessLookupError):
        return None if _is_hidden(process.pid) else True
    # Its parent may not have looked at its remains yet.
    return fields[0] in "ZX" or int(fields[19]) != process.start_ticks


def _is_hidden(pid: int) -> bool:
    """By the option hidepid of /proc."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _staging(staged: record_schema.Staged | None) -> Staging | None:
    if staged is None:
        return None
    return Staging(
        files=staged.files, bytes=staged.bytes, seconds=staged.seconds, failures=len(staged.failures)
    )


def _program(step: record_schema.Step, path: Path, notes: list[str]) -> Program:
    name = Path(step.program).name if step.program else path.name
    notes.extend(_shortcomings(step, name, path))
    known = [file for file in [*step.files, *step.other_files] if file.layer in LAYER_NAMES]
    return Program(
        files=[part for file in by_path(map(_file, known)) for part in split_streams(file)],
        name=step.program,
        arguments=step.arguments,
        mpi=step.mpi,
        uses_mpi=step.mpi is not None,
        ranks=step.ranks if step.ranks is not None or step.mpi is not None else 1,
        hosts=step.hosts,
        host=step.host,
        kernel_counts=step.kernel_counts,
        counted_ranks=step.counted_ranks,
        started_unix_s=step.started_unix_s,
        wall_s=_run_s(step.recovered.until_s if step.recovered else step.wall_s if step.finished else None),
        finished=step.finished,
        recovered=step.recovered is not None,
        torn=step.recovered is not None and step.recovered.torn,
        heat=[heat for item in step.heat if (heat := _heat(item, name, notes)) is not None],
        files_dropped=step.files_dropped,
        trace=str(path.parent / step.trace) if step.trace else None,
        io_s=step.io_s.sum if step.io_s else None,
        io_slowest_rank_s=step.io_s.slowest if step.io_s else None,
        aborted_rank=step.aborted.rank if step.aborted else None,
        aborted_code=step.aborted.code if step.aborted else None,
    )


def _shortcomings(step: record_schema.Step, name: str, path: Path) -> Iterator[str]:
    """What this account of a program does not tell."""
    known = record_schema.STEP_FORMAT
    if step.forebay_mpi > known:
        yield f"{path.name} has format {step.forebay_mpi}; {known} is known here, the rest is left out."
    if step.forebay_mpi < 2:
        yield f"{path.name} has format 1: files opened without MPI-IO, and moments, are not in it."
    if step.aborted is not None:
        yield f"{name}: rank {step.aborted.rank} called MPI_Abort with code {step.aborted.code}."
    elif step.recovered is not None:
        end = "did not reach MPI_Finalize" if step.mpi else "was killed, or became another program"
        yield f"{name} {end}: what it did until then is known, and its run time counts to its last call."
    elif not step.finished:
        yield f"{name} runs, or ended without MPI_Finalize: nothing is known of its files."
    if step.files_joined:
        yield f"{name}: {step.files_joined} opens of further files are counted as one: [other files]."
    if step.files_dropped:
        yield f"{name}: {step.files_dropped} opens of files found no room in the record."
    unknown = sorted({file.layer for file in step.files if file.layer not in LAYER_NAMES})
    if unknown:
        yield f"{name}: the layers {', '.join(unknown)} are not known here and left out."


def _file(file: record_schema.WireFile) -> File:
    is_mpiio = file.layer == "mpiio"
    layers: dict[LayerName, Layer]
    if is_mpiio:
        layers = {"MPI-IO": _called_layer(file), "POSIX": _system_layer(file, with_opens=False)}
    else:
        layers = {LAYER_NAMES[file.layer]: _system_layer(file, with_opens=True)}
    fastest, slowest = _extremes(file)
    return File(
        path=file.path,
        layers=layers,
        ranks=file.ranks,
        stripe_count=positive(file.stripe_count),
        stripe_bytes=positive(file.stripe_bytes),
        opened_by=file.opened_by,
        hints=_hints(file.hints),
        collective=_collective(file) if is_mpiio else None,
        writers=[
            Writer(rank=it.rank, bytes=it.bytes, calls=it.system_calls, aggregator=it.aggregator)
            for it in file.write.writers
        ],
        fastest=fastest,
        slowest=slowest,
        not_closed=file.not_closed,
        lazy_opens=file.lazy_opens,
        rank=file.rank,
    )


def _called_layer(file: record_schema.WireFile) -> Layer:
    """What the program asked of MPI-IO."""
    total, slowest = file.seconds.sum, file.seconds.slowest
    return Layer(
        read=_called(file, file.read, total.read, slowest.read),
        write=_called(file, file.write, total.write, slowest.write),
        opens=file.opens,
        syncs=file.sync_calls,
        metadata_s=known_sum((total.open, total.close, total.metadata)),
        metadata_slowest_rank_s=known_sum((slowest.open, slowest.close, slowest.metadata)),
        sync_s=total.sync,
        sync_slowest_rank_s=slowest.sync,
        opened_s=file.moments.open,
        closed_s=file.moments.close,
    )


def _called(
    file: record_schema.WireFile,
    traffic: record_schema.WireTraffic,
    total: record_schema.TrafficSeconds,
    slowest: record_schema.TrafficSeconds,
) -> Traffic:
    calls = traffic.calls or record_schema.Calls()
    collective = calls.collective + calls.nonblocking_collective
    moments = traffic.moments or record_schema.Moments()
    return Traffic(
        calls=calls.independent + calls.nonblocking + calls.split_collective + collective,
        bytes=traffic.asked_bytes,
        sizes=traffic.asked_sizes,
        common_sizes=traffic.asked_common_sizes,
        seconds=total.calls,
        slowest_rank_s=slowest.calls,
        first_s=moments.first,
        last_s=moments.last,
        # All ranks of the file take part in a collective call.
        ranks=file.ranks if collective + calls.split_collective else traffic.independent_ranks,
        independent=calls.independent,
        collective=collective,
        nonblocking=calls.nonblocking,
        split=calls.split_collective,
        data_s=total.data,
        other_system_s=total.other_system,
        slowest_rank_data_s=slowest.data,
        slowest_rank_other_s=slowest.other_system,
        rest_s=total.rest,
    )


def _system_layer(file: record_schema.WireFile, *, with_opens: bool) -> Layer:
    """System calls; below MPI-IO (`with_opens` false) opening and asking are counted as calls of MPI-IO."""
    total, slowest = file.seconds.sum, file.seconds.slowest
    layer = Layer(
        read=_system(file.read, total.read, slowest.read),
        write=_system(file.write, total.write, slowest.write),
        syncs=file.syncs,
        not_aligned=file.not_aligned,
        alignment_bytes=positive(file.alignment_bytes),
    )
    if with_opens:
        layer.opens, layer.seeks, layer.stats = file.opens, file.seeks, file.stats
        layer.mapped_bytes = file.mapped_bytes
        layer.mapped_to_write_bytes = file.mapped_to_write_bytes
        layer.name_calls = sum(file.name_calls.values())
        layer.metadata_s = known_sum((total.open, total.close, total.metadata))
        layer.metadata_slowest_rank_s = known_sum((slowest.open, slowest.close, slowest.metadata))
        layer.sync_s, layer.sync_slowest_rank_s = total.sync, slowest.sync
        layer.opened_s, layer.closed_s = file.moments.open, file.moments.close
    return layer


def _system(
    traffic: record_schema.WireTraffic,
    total: record_schema.TrafficSeconds,
    slowest: record_schema.TrafficSeconds,
) -> Traffic:
    gaps, consecutive = traffic.gaps, traffic.consecutive
    moments = traffic.system_moments or traffic.moments or record_schema.Moments()
    return Traffic(
        calls=traffic.system_calls,
        bytes=traffic.system_bytes,
        sizes=traffic.system_sizes,
        common_sizes=traffic.common_sizes,
        seconds=known_sum((total.data, total.data_outside)),
        slowest_rank_s=known_sum((slowest.data, slowest.data_outside)),
        first_s=moments.first,
        last_s=moments.last,
        ranks=traffic.system_ranks,
        sequential=None if gaps is None or consecutive is None else gaps + consecutive,
        consecutive=consecutive,
        gaps=gaps,
        gap_bytes=traffic.gap_bytes,
        end_bytes=traffic.end_bytes or None,
        stripe_sized=traffic.stripe_sized,
    )


def _hints(hints: record_schema.WireHints | None) -> Hints | None:
    if hints is None:
        return None
    return Hints(
        environment=hints.environment,
        program=hints.program,
        in_force=hints.in_force,
        without_effect=[
            WithoutEffect(key=it.get("key", ""), asked=it.get("asked", ""), seen=it.get("seen", ""))
            for it in hints.without_effect
        ],
    )


def _collective(file: record_schema.WireFile) -> Collective:
    return Collective(
        aggregators_write=file.write.aggregators,
        aggregators_read=file.read.aggregators,
        active=file.write.aggregators_active,
        rmw_calls=file.write.rmw_calls,
        rmw_bytes=file.write.rmw_bytes,
    )


def _extremes(file: record_schema.WireFile) -> tuple[Extreme | None, Extreme | None]:
    """Fastest and slowest rank, of the direction that took the slowest rank longer."""
    found = [it.rank_seconds for it in (file.write, file.read) if it.rank_seconds is not None]
    if not found:
        return None, None
    longer = max(found, key=lambda extremes: extremes.slowest.seconds)
    fastest, slowest = (
        Extreme(rank=it.rank, seconds=it.seconds, bytes=it.bytes) for it in (longer.fastest, longer.slowest)
    )
    return fastest, slowest


def _heat(heat: record_schema.WireHeat, name: str, notes: list[str]) -> Heat | None:
    if heat.layer not in LAYER_NAMES:
        return None
    cells = [*heat.read, *heat.write]
    fits = 0 <= heat.rows * heat.bins <= HEAT_CELLS_MAX and heat.rows >= 0 and heat.bins >= 0
    fits = fits and TICK_S <= heat.bin_s <= RUN_S_MAX and heat.ranks_per_row >= 1
    if not fits or any(not (0 <= row < heat.rows and 0 <= bin_ < heat.bins) for row, bin_, _ in cells):
        notes.append(f"{name}: the heat map of the layer {heat.layer} is damaged and left out.")
        return None
    return Heat(
        layer=LAYER_NAMES[heat.layer],
        bin_s=heat.bin_s,
        ranks_per_row=heat.ranks_per_row,
        read=_dense(heat, heat.read),
        write=_dense(heat, heat.write),
    )


def _dense(heat: record_schema.WireHeat, cells: list[tuple[int, int, int]]) -> list[list[int]]:
    dense = [[0] * heat.bins for _ in range(heat.rows)]
    for row, bin_, moved_bytes in cells:
        dense[row][bin_] += moved_bytes
    return dense
