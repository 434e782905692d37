"""What goes around the recording by its nature: mappings, io_uring, programs that load no library.

The library lists programs, and counts how much of a file was mapped. How much of a mapping is read and
written only the hardware knows: between nothing and all of it, and more where pages are read again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

import msgspec

from forebay.profiles import regular_file
from forebay.profiles.coverage import COMPARED_BYTES_MIN, SHARE_MIN
from forebay.profiles.errors import ProfileError
from forebay.profiles.model import Bypass, Coverage, Layer, Program
from forebay.quantities import size

#: So many programs a sentence names.
NAMED_MAX = 5
#: Ways around of a program that is recorded otherwise.
PARTLY = {
    "io_uring": "io_uring",
    "kernel_aio": "the kernel's asynchronous I/O",
    "foreign_mpi": "an MPI of another kind than the preloaded library",
}
#: The program's data is in the record, but not by which calls of MPI it was moved.
BENEATH = "mpi"


def read(path: Path, notes: list[str]) -> list[Bypass]:
    """The list that the library appends to, each program once. Its last line may be cut."""
    try:
        lines = regular_file.read_bytes(path).splitlines()
    except FileNotFoundError:
        return []
    except (ProfileError, OSError) as error:
        notes.append(f"which programs are not recorded is not known: {error}")
        return []
    found = {}
    for line in lines:
        try:
            found[msgspec.json.decode(line, type=Bypass)] = None
        except msgspec.DecodeError:
            continue
    return list(found)


def sentences(bypassed: Sequence[Bypass], programs: Sequence[Program]) -> Iterator[str]:
    """What there is, without a point."""
    for how, name in PARTLY.items():
        if users := _names(bypassed, (how,)):
            yield f"{users} used {name}, of which nothing is recorded"
    if users := _names(bypassed, (BENEATH,)):
        yield (
            f"of the MPI-IO of {users}, only the system calls below are recorded: it looks up MPI's "
            "functions itself (dlsym)"
        )
    if others := _names(bypassed, _without_library(bypassed)):
        yield f"not recorded, since no library can be loaded into it: {others}"
    layers = list(_mapped(programs))
    if layers:
        mapped = sum(layer.mapped_bytes or 0 for layer in layers)
        written = sum(layer.mapped_to_write_bytes or 0 for layer in layers)
        files = "1 file was" if len(layers) == 1 else f"{len(layers)} files were"
        yield (
            f"{files} mapped into memory: up to {size(mapped)} were read and up to {size(written)} written "
            "by that, which is not counted"
        )


def unknown(
    bypassed: Sequence[Bypass], programs: Sequence[Program], coverage: Coverage | None
) -> Iterator[str]:
    """Why more I/O may have been than is recorded, as parts of sentences."""
    for how, name in PARTLY.items():
        if users := _names(bypassed, (how,)):
            yield f"{users} used {name}"
    others = _names(bypassed, _without_library(bypassed))
    if others and coverage is None:
        yield f"no library can be loaded into {others}"
    mapped = sum(layer.mapped_bytes or 0 for layer in _mapped(programs))
    moved = sum(_moved_bytes(program) for program in programs)
    if mapped >= COMPARED_BYTES_MIN and moved < SHARE_MIN * (moved + mapped):
        yield f"up to {size(mapped)} of files were read and written through mappings"


def _without_library(bypassed: Sequence[Bypass]) -> set[str]:
    return {one.how for one in bypassed} - {*PARTLY, BENEATH}


def _names(bypassed: Sequence[Bypass], hows: Collection[str]) -> str:
    names = sorted({one.program.rpartition("/")[2] for one in bypassed if one.how in hows})
    return ", ".join(names[:NAMED_MAX]) + (", ..." if len(names) > NAMED_MAX else "")


def _mapped(programs: Sequence[Program]) -> Iterator[Layer]:
    for program in programs:
        for file in program.files:
            yield from (layer for layer in file.layers.values() if layer.mapped_bytes)


def _moved_bytes(program: Program) -> int:
    layers = [layer for file in program.files for name, layer in file.layers.items() if name != "MPI-IO"]
    return sum((layer.read.bytes or 0) + (layer.write.bytes or 0) for layer in layers)
