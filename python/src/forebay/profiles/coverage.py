"""Which share of what programs read and wrote is in the record.

The kernel counts the bytes of system calls for each process (`rchar` and `wchar` of /proc/PID/io), and
the process of `forebay` has those of all its descendants. Programs on other nodes, and those that a daemon of
the scheduler starts, report their own. Programs count the bytes that they move elsewhere than in recorded
files: in pipes, terminals, files of the system. What is in neither went around the recording.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from pathlib import Path

from forebay.profiles import regular_file
from forebay.profiles.errors import ProfileError
from forebay.profiles.model import Coverage, Layer, Program
from forebay.profiles.record_schema import Transferred
from forebay.quantities import size

#: With fewer bytes there is no share: loaded libraries and small programs would distort it.
COMPARED_BYTES_MIN = 4 << 20
#: Below this share, what the I/O cost is not known.
SHARE_MIN = 0.9
#: A block of a file system that does not tell its own.
BLOCK_BYTES = 4096
#: `struct page` of mpi/record/elsewhere.c: magic, host, then slots of which the first two numbers are used.
PAGE_MAGIC = b"fbyelse\n"
PAGE_BYTES, HEAD_BYTES, SLOT_BYTES = 4096, 256, 64


def of_record(
    directory: Path, transferred: Transferred | None, host: str | None, programs: Iterable[Program]
) -> Coverage | str:
    """What is known, or why nothing is."""
    programs = list(programs)
    if transferred is None:
        return "the record does not have what the kernel counted"
    if not all(_is_counted(program, host) for program in programs):
        return "the kernel's count of some programs is not in the record"
    try:
        elsewhere = _elsewhere(directory / "elsewhere")
    except (OSError, ProfileError) as error:
        return f"what programs moved in pipes is not known: {error}"
    counted = [transferred.read_bytes, transferred.written_bytes]
    for count in (count for program in programs for count in program.kernel_counts):
        counted[0] += count.read_bytes
        counted[1] += count.written_bytes
        elsewhere[0] += count.elsewhere_read_bytes
        elsewhere[1] += count.elsewhere_written_bytes
    recorded = [0, 0]
    ahead_bytes = 0
    for program in programs:
        for file in program.files:
            for layer in (file.layers.get("POSIX"), file.layers.get("STDIO")):
                recorded[0] += layer.read.bytes or 0 if layer else 0
                recorded[1] += layer.write.bytes or 0 if layer else 0
            recorded[0] += file.collective.rmw_bytes or 0 if file.collective else 0
            ahead_bytes += _read_ahead(file.layers["STDIO"]) if "STDIO" in file.layers else 0
    missing_read = counted[0] - elsewhere[0] - recorded[0] - ahead_bytes
    missing_written = counted[1] - elsewhere[1] - recorded[1]
    missing = max(0, missing_read) + max(0, missing_written)
    seen = sum(recorded)
    return Coverage(
        counted_bytes=sum(counted),
        elsewhere_bytes=max(0, sum(elsewhere)),
        recorded_bytes=seen,
        missing_bytes=missing,
        share=seen / (seen + missing) if seen + missing >= COMPARED_BYTES_MIN else None,
    )


def sentences(coverage: Coverage | None) -> Iterator[str]:
    """If so much is missing that the cost of the I/O is not known: what, as a part of a sentence."""
    if coverage is None or coverage.share is None or coverage.share >= SHARE_MIN:
        return
    of_files = coverage.recorded_bytes + coverage.missing_bytes
    yield f"{size(coverage.missing_bytes)} of {size(of_files)} that programs read and wrote are not recorded"


def _read_ahead(layer: Layer) -> int:
    """libc reads whole blocks for a stream: after its opening, and after each seek, up to one too many."""
    return ((layer.opens or 0) + (layer.seeks or 0) + 1) * (layer.alignment_bytes or BLOCK_BYTES)


def _is_counted(program: Program, host: str | None) -> bool:
    """By the process of `forebay`, or by its own ranks. Killed ranks and older records do not tell."""
    if program.finished and program.counted_ranks is not None:
        return program.counted_ranks == program.ranks
    return (program.hosts or 1) == 1 and program.host in (None, host)


def _elsewhere(path: Path) -> list[int]:
    """Bytes read and written."""
    content = regular_file.read_bytes(path)
    if len(content) != PAGE_BYTES or not content.startswith(PAGE_MAGIC):
        raise ProfileError(f"{path} is damaged")
    slots = [struct.unpack_from("=qq", content, at) for at in range(HEAD_BYTES, PAGE_BYTES, SLOT_BYTES)]
    return [sum(slot[0] for slot in slots), sum(slot[1] for slot in slots)]
