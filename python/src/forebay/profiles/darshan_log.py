"""Reader of genuine Darshan logs, and of those that `forebay profile export` wrote.

Counters mean what the documentation of Darshan's modules says. Moments count from the log's start. Seconds
of writing have those of syncing in them: Darshan counts them together. What Darshan does not tell stays None:
hints (its `h=` are those of its own log), read-modify-write where the program reads too, the ranks of a
shared file but for the fastest and the slowest.
"""

from __future__ import annotations

import bz2
import gzip
import os
import re
import signal
import subprocess
import sys
import tempfile
import zlib
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import IO

import msgspec

from forebay import quantities
from forebay.profiles import (
    darshan_bounds,
    darshan_hints,
    darshan_libraries,
    darshan_messages,
    darshan_ranks,
    darshan_repack,
    metrics,
    regular_file,
)
from forebay.profiles.darshan_counters import MODULES, SHARED
from forebay.profiles.darshan_layers import CALLS, Counters, extremes, layer_of
from forebay.profiles.errors import ProfileError
from forebay.profiles.merge import positive, split_streams
from forebay.profiles.model import (
    LAYERS,
    Collective,
    File,
    Heat,
    Job,
    Layer,
    LayerName,
    LogFormat,
    LogModule,
    Profile,
    Program,
)

READER = [sys.executable, "-m", "forebay.profiles.darshan_worker"]
READ_SECONDS_MAX = 600
COMPLAINT_MAX = 300
HEAT_ROWS_MAX = 256
#: Bytes that the system wrote, of those that the program wrote: the rest was read before.
AMPLIFIED_MIN = 1.2
#: Clocks of ranks differ, and a log rounds its run time.
OVERLAP_MIN = 1.02
#: What Darshan 1 and 2 packed their logs with, by the first bytes of the file. The version comes first.
PACKED = {b"\x1f\x8b": gzip.open, b"BZ": bz2.open}
VERSION_BYTES, HEAD_BYTES = 8, 16
OLD_LOG_HINT = "darshan-parser of Darshan 2.3 prints it; a new run with Darshan 3 writes a log for Forebay"
NOT_LOG_HINT = "give a log of Darshan 3 from Darshan's log directory (*.darshan)"
DAMAGED_HINT = "copy it again from where Darshan wrote it, and compare the sizes"

#: Layer -> Darshan's module, and the prefix of its counters.
READ_MODULES: dict[LayerName, tuple[str, str]] = MODULES | {"DFS": ("DFS", "DFS"), "DAOS": ("DAOS", "DAOS")}
#: Modules without data of their own, and those above modules that have the same data.
WITHOUT_DATA = {"LUSTRE", "HEATMAP", "DXT_POSIX", "DXT_MPIIO", "BG/Q"}
WITHOUT_DATA_BEGIN = ("APXC", "APMPI")
ABOVE = set(darshan_libraries.MODULES)


def read(path: Path) -> Profile:
    """The profile of one Darshan log. Raises ProfileError if it is no log, is damaged, or cannot be read."""
    return profile(path, read_log(path))


def profile(path: Path, log: darshan_messages.Log) -> Profile:
    """The profile of what a log holds. Raises ProfileError if it is damaged."""
    _refuse_damage(path, log)
    words = log.command.split(" ")
    files = _files(log)
    program = Program(
        files=files,
        name=words[0] or None,
        arguments=words[1:],
        mpi=darshan_hints.mpi(log.metadata),
        uses_mpi=log.ranks > 1 or "MPI-IO" in log.modules,
        ranks=log.ranks,
        hosts=darshan_ranks.hosts(log),
        started_unix_s=log.started_unix_s,
        wall_s=log.wall_s,
        heat=_heat(log),
        libraries=darshan_libraries.libraries(log),
        objects=darshan_libraries.objects(log),
        log=_format(log),
        io_s=darshan_hints.seconds(log.metadata, "io_s"),
        io_slowest_rank_s=darshan_hints.seconds(log.metadata, "io_slowest_rank_s"),
    )
    job = Job(
        id=darshan_hints.job(log.metadata) or str(log.job),
        command=log.command or None,
        user=str(log.uid),
        started_unix_s=log.started_unix_s,
        wall_s=max(darshan_hints.seconds(log.metadata, "job_s") or 0.0, log.wall_s),
    )
    return Profile(
        source="darshan",
        path=str(path),
        job=job,
        programs=[program],
        notes=_notes(log) + _overlap(program),
        unread=[*_unread(log), *darshan_hints.unread(log.metadata)],
    )


def read_log(path: Path) -> darshan_messages.Log:
    """What Darshan's library reads, in a process of its own. Raises ProfileError if it reads nothing."""
    try:
        with regular_file.open_file(path) as log:
            begin = log.read(2)
    except OSError as error:
        raise ProfileError(
            f"{path}: cannot be read: {error.strerror}", "name a Darshan log you may read"
        ) from None
    if not begin:
        raise ProfileError(f"{path}: is empty", "the job may have been killed before Darshan wrote its log")
    _refuse_other_form(path, PACKED.get(begin))
    command = [*READER, str(path.absolute())]
    with tempfile.TemporaryFile() as messages:
        try:
            done = subprocess.run(
                command,
                stdout=subprocess.PIPE,
                stderr=messages,
                timeout=READ_SECONDS_MAX,
                # Each thread of the library would reserve memory, which is limited.
                env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},
            )
        except subprocess.TimeoutExpired:
            message = f"{path}: Darshan's library had not read it after {READ_SECONDS_MAX} s"
            raise ProfileError(message, DAMAGED_HINT) from None
        messages.seek(0)
        complaint = messages.read().decode(errors="replace").strip()
    if done.returncode == -signal.SIGXCPU:
        message = f"{path}: Darshan's library needs more processor time than a log of this size takes"
        raise ProfileError(message, DAMAGED_HINT)
    if done.returncode != 0:
        said = (
            " ".join(complaint.split())[-COMPLAINT_MAX:] or f"its reader ended with status {done.returncode}"
        )
        raise ProfileError(f"{path}: cannot be read as a Darshan log: {said}", NOT_LOG_HINT)
    return msgspec.msgpack.decode(done.stdout, type=darshan_messages.Log)


def _refuse_other_form(path: Path, unpacked: Callable[[IO[bytes]], IO[bytes]] | None) -> None:
    """Refuses a log of an older Darshan, and one that somebody has packed."""
    try:
        with regular_file.open_file(path) as file, unpacked(file) if unpacked else file as log:
            head = log.read(HEAD_BYTES)
            version = head[:VERSION_BYTES].split(b"\0")[0].decode("ascii")
    except (OSError, EOFError, zlib.error, UnicodeDecodeError):
        return  # Darshan's library says what it is
    if re.fullmatch(r"[12]\.\d\d?", version):
        message = f"{path}: a log of Darshan {version}, and Forebay reads those of Darshan 3"
        raise ProfileError(message, OLD_LOG_HINT)
    if unpacked and darshan_repack.byte_order(head):
        raise ProfileError(f"{path}: a packed log of Darshan", "unpack it with gunzip or bunzip2")


def _too_new(module: darshan_messages.Module) -> bool:
    """Lost for its version, not for damage: these are the words of Darshan's library."""
    return module.lost is not None and "module version number" in module.lost


def _refuse_damage(path: Path, log: darshan_messages.Log) -> None:
    wrong = darshan_bounds.impossible(log)
    if wrong:
        raise ProfileError(f"{path}: the Darshan log is damaged: {wrong}", DAMAGED_HINT)
    for name, module in log.modules.items():
        if module.lost is not None and not _too_new(module):
            message = f"{path}: the log is truncated or damaged: module {name}: {module.lost}"
            raise ProfileError(message, DAMAGED_HINT)


def _notes(log: darshan_messages.Log) -> list[str]:
    notes = []
    for name, module in log.modules.items():
        if _too_new(module):
            notes.append(
                f"Module {name} has version {module.version}, newer than the reader knows: not read."
            )
        if module.partial:
            notes.append(f"Module {name} is incomplete: Darshan ran out of memory for it while the job ran.")
    others = sorted(set(log.modules) - _modules_shown(log))
    if others:
        notes.append(f"The log has records of modules that are not shown: {', '.join(others)}.")
    lost = darshan_hints.left_out(log.metadata)
    if lost:
        notes.append(f"{lost} hints found no room in this log; Forebay's own record has them.")
    if "MPI-IO" in log.modules and not darshan_hints.is_by_forebay(log.metadata):
        notes.append("Darshan does not record which hints were in force.")
    return notes


def _overlap(program: Program) -> list[str]:
    """Named where there is more time in I/O than time."""
    spent_s, whole_s = metrics.io_s(program), (program.wall_s or 0.0) * (program.ranks or 1)
    if spent_s is None or spent_s <= OVERLAP_MIN * whole_s:
        return []
    spent, whole = quantities.duration(spent_s), quantities.duration(whole_s)
    return [
        f"The calls took {spent} together, and all ranks together ran for {whole}: calls overlapped, "
        "as those of threads do, or the times in the log are wrong."
    ]


def _modules_of_data(log: darshan_messages.Log) -> set[str]:
    """Those that are read. DAOS has the data of DFS and of MPI-IO again, below other names."""
    found = {name for name, _ in READ_MODULES.values() if name in log.modules}
    has_above = bool(found & {"DFS", "MPI-IO"})
    return found - {"DAOS"} if has_above else found


def _modules_shown(log: darshan_messages.Log) -> set[str]:
    """Those that the profile has something of."""
    return _modules_of_data(log) | ABOVE | {"LUSTRE", "HEATMAP", "DXT_POSIX", "DXT_MPIIO"}


def _format(log: darshan_messages.Log) -> LogFormat:
    shown = _modules_shown(log)
    modules = [
        LogModule(
            name=name,
            version=module.version,
            complete=not module.partial,
            read=name in shown and module.lost is None,
        )
        for name, module in log.modules.items()
    ]
    return LogFormat(version=log.version, writer=darshan_hints.writer(log.metadata), modules=modules)


def _unread(log: darshan_messages.Log) -> list[str]:
    """Why data may have been moved that the profile does not have."""
    found, reasons = _modules_of_data(log), []
    for name, module in log.modules.items():
        if name in WITHOUT_DATA or name.startswith(WITHOUT_DATA_BEGIN):
            continue
        if name in found:
            if _too_new(module):
                reasons.append(f"Darshan's module {name} has a version that is not read")
            elif module.partial:
                reasons.append(f"Darshan's module {name} is incomplete")
            elif _has_negative_times(module):
                reasons.append(f"Darshan's module {name} has negative times")
        elif not (found and (name in ABOVE or name == "DAOS")):
            reasons.append(f"Darshan's module {name} is not read")
    return reasons


def _has_negative_times(module: darshan_messages.Module) -> bool:
    """Clocks that are set back, or damage. Moments of what never was are 0 or below."""
    durations = [at for at, name in enumerate(module.time_names) if name.endswith("_TIME")]
    return any(record.times[at] < 0 for record in module.records for at in durations)


def _files(log: darshan_messages.Log) -> list[File]:
    by_id: dict[int, dict[LayerName, list[tuple[int, Counters]]]] = defaultdict(lambda: defaultdict(list))
    found = _modules_of_data(log)
    for layer, (name, _) in READ_MODULES.items():
        if name not in found:
            continue
        module = log.modules[name]
        names = module.counter_names + module.time_names
        for record in module.records:
            counters = dict(zip(names, record.counters + record.times, strict=True))
            by_id[record.id][layer].append((record.rank, counters))
    layouts = {one.id: one for one in log.modules["LUSTRE"].stripes} if "LUSTRE" in log.modules else {}
    hints = darshan_hints.of_files(log.metadata)
    mounts = sorted(log.mounts, key=lambda mount: -len(mount[0]))
    who = darshan_ranks.RankAttribution(log)
    files = []
    for file_id, records in by_id.items():
        file = _file(log.names.get(file_id) or f"<no name, record {file_id:x}>", records, log.ranks)
        file.mount, file.file_system = _mount(file.path, mounts)
        file.hints = hints.get(file_id)
        layout = layouts.get(file_id)
        if layout is not None and len(set(layout.components)) == 1:
            file.stripe_count, file.stripe_bytes = map(positive, layout.components[0])
            file.targets = layout.targets
        who.fill(file, file_id, {layer: _of_ranks(layer, one) for layer, one in records.items()})
        files += split_streams(file)
    return files


def _of_ranks(layer: LayerName, records: list[tuple[int, Counters]]) -> list[darshan_messages.Traced]:
    """What each rank moved, if the records are of single ranks."""
    if any(rank == SHARED for rank, _ in records):
        return []
    read, write = ("READ", "READ"), ("WRITE", "WRITTEN")
    prefix = READ_MODULES[layer][1]
    found = []
    for rank, counters in records:
        sides = [
            darshan_messages.Moved(
                calls=sum(counters[f"{prefix}_{calls}"] for calls in CALLS.get((layer, verb), [f"{verb}S"])),
                bytes=counters[f"{prefix}_BYTES_{past}"],
                seconds=max(0.0, counters[f"{prefix}_F_{verb}_TIME"]),
                first_s=None,
                last_s=None,
            )
            for verb, past in (read, write)
        ]
        found.append(darshan_messages.Traced(0, rank, "", *sides))
    return found


def _mount(path: str, mounts: list[tuple[str, str]]) -> tuple[str | None, str | None]:
    """The longest of `mounts`, (path, type), above `path`."""
    for mount, kind in mounts:
        if path == mount or path.startswith(mount.rstrip("/") + "/"):
            return mount, kind
    return None, None


def _file(path: str, records: dict[LayerName, list[tuple[int, Counters]]], ranks: int) -> File:
    layers = {layer: layer_of(READ_MODULES[layer][1], of_layer) for layer, of_layer in records.items()}
    file = File(path=path, layers=layers)
    seen = {rank for of_layer in records.values() for rank, _ in of_layer}
    file.ranks = ranks if SHARED in seen else len(seen)
    file.rank = min(seen) if len(seen) == 1 and SHARED not in seen else None
    for layer in LAYERS:
        if file.fastest is None and layer in records:
            file.fastest, file.slowest = extremes(READ_MODULES[layer][1], records[layer])
    file.collective = _sieving(layers)
    return file


def _sieving(layers: dict[LayerName, Layer]) -> Collective | None:
    """Reads below MPI-IO that alternate with writes, as those of data sieving and for partial blocks do.

    A program that reads itself makes alternations, too: those of its own calls do not count. Where the log
    does not have them, all reads count of a file that the program only writes, and no read of another one.
    """
    if "MPI-IO" not in layers or "POSIX" not in layers:
        return None
    asked, made = layers["MPI-IO"], layers["POSIX"]
    if not asked.write.calls:
        return Collective()
    reads, switches = made.read.calls or 0, made.switches
    if switches is None:
        of_rmw = 0 if asked.read.calls else reads
    else:
        of_rmw = min(reads, (max(0, switches - (asked.switches or 0)) + 1) // 2)
    if asked.read.calls and (switches is None or not _is_amplified(asked, made)):
        return Collective()
    share = of_rmw / reads if reads else 0.0
    read_bytes = max(0, (made.read.bytes or 0) - (asked.read.bytes or 0))
    return Collective(
        rmw_calls=of_rmw, rmw_bytes=round(share * read_bytes), rmw_s=share * (made.read.seconds or 0.0)
    )


def _is_amplified(asked: Layer, made: Layer) -> bool:
    """Whether the system wrote clearly more than the program: what was read is written again."""
    return (made.write.bytes or 0) > AMPLIFIED_MIN * (asked.write.bytes or 0)


def _heat(log: darshan_messages.Log) -> list[Heat]:
    """By layer, from HEATMAP, else from the trace (DXT)."""
    layers: dict[LayerName, list[darshan_messages.Binned]] = defaultdict(list)
    for module in ("HEATMAP", "DXT_MPIIO", "DXT_POSIX"):
        earlier_layers = set(layers)
        for binned in log.modules[module].binned if module in log.modules else []:
            layer = "MPI-IO" if binned.layer == "MPIIO" else binned.layer
            if layer in READ_MODULES and layer not in earlier_layers:
                layers[layer].append(binned)
    return [_rows(layer, binned, log.ranks) for layer, binned in layers.items()]


def _rows(layer: LayerName, binned: list[darshan_messages.Binned], ranks: int) -> Heat:
    ranks_per_row = -(-ranks // HEAT_ROWS_MAX)
    rows, bins = -(-ranks // ranks_per_row), max(len(one.write) for one in binned)
    heat = Heat(
        layer=layer,
        bin_s=binned[0].bin_s,
        ranks_per_row=ranks_per_row,
        read=[[0] * bins for _ in range(rows)],
        write=[[0] * bins for _ in range(rows)],
    )
    for one in binned:
        row = one.rank // ranks_per_row
        for target, source in ((heat.read[row], one.read), (heat.write[row], one.write)):
            for number, count in enumerate(source):
                target[number] += count
    return heat
