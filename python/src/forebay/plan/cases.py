"""The published runs behind data/calibration.json, as patterns and settings.

A row says a value; what was run is spread over its `config`, its neighbours and the papers. Here is each
experiment once, with what had to be assumed. KAUST18, NERSC16, OLCF18 and CRAY12 are the rows' sources.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from forebay.plan.machine import Machine, Storage, read_machine
from forebay.plan.model import Prediction, predict
from forebay.plan.parameters import Parameters
from forebay.plan.pattern import Access, Calls, Direction, Pattern, Settings

MIB, GIB = 1 << 20, 1 << 30
#: The grid of WRF-CHEM on Cori: 330 x 275 points of 4 bytes (S0-077). A 2-D variable is one such plane.
_WRF_PLANE_BYTES = 330 * 275 * 4
#: Its 1280 ranks are 32 x 40 patches: a row of a patch is one segment of a rank.
_WRF_SEGMENT_BYTES = 330 / 32 * 4
#: Collective calls of each rank for one output file of WRF: 552,960 calls of 1280 ranks (S0-101).
_WRF_CALLS = 432
#: The restart of WRF on a domain of 6075 x 6075 (S0-132), in 32 x 38 patches of 4-byte points.
_WRF_RESTART_SEGMENT_BYTES = 6075 / 32 * 4


@cache
def machine(name: str) -> Machine:
    """An installed machine. The machine files of the package's own tree, where nothing is installed."""
    own = Path(__file__).resolve().parents[4] / "machines" / f"{name}.toml"
    return read_machine(own if own.is_file() else name)


#: While `observed` runs, what was run.
_observed_runs: list[tuple[str, Pattern, Settings]] | None = None


@contextmanager
def observed() -> Iterator[list[tuple[str, Pattern, Settings]]]:
    """Collects (kind of storage, pattern, settings) of each run inside: the range that is calibrated."""
    global _observed_runs
    _observed_runs = []
    try:
        yield _observed_runs
    finally:
        _observed_runs = None


def run(parameters: Parameters, place: str, pattern: Pattern, **given: int) -> Prediction:
    """Predicts on `MACHINE.STORAGE`, with the storage's defaults for settings that are not given."""
    of, name = place.split(".")
    storage = machine(of).storage[name]
    settings = _settings(storage, given)
    if _observed_runs is not None:
        _observed_runs.append((storage.kind, pattern, settings))
    return predict(pattern, machine(of), storage, settings, parameters)


def _settings(storage: Storage, given: dict[str, int]) -> Settings:
    values = {"servers": storage.stripe_count, "stripe_bytes": storage.stripe_bytes} | given
    return Settings(**{"aggregators": values["servers"], **values})


def wrf_restart(nodes: int, ranks: int, total_bytes: float = 360e9) -> Pattern:
    """WRF's restart file with PnetCDF: a collective call for each variable (S0-021, S0-022, S0-135)."""
    return Pattern(
        name="WRF restart",
        access="collective",
        ranks=ranks,
        nodes=nodes,
        total_bytes=total_bytes,
        transfer_bytes=_WRF_RESTART_SEGMENT_BYTES,
        segment_bytes=_WRF_RESTART_SEGMENT_BYTES,
        calls=(Calls(count=_WRF_CALLS, total_bytes=total_bytes / _WRF_CALLS),),
    )


def btio_pnetcdf(total_bytes: float = 50 * GIB, ranks: int = 256, nodes: int = 8) -> Pattern:
    """BTIO with PnetCDF: 10 dumps of 16 calls (S0-041, S0-047). A row of a rank has 64 points of 40 B."""
    calls = 10 * round(ranks**0.5)
    return Pattern(
        name="BTIO PnetCDF",
        access="collective",
        ranks=ranks,
        nodes=nodes,
        total_bytes=total_bytes,
        transfer_bytes=1024 / 16 * 40,
        segment_bytes=1024 / 16 * 40,
        calls=(Calls(count=calls, total_bytes=total_bytes / calls),),
    )


def btio_mpi(total_bytes: float = 100e9) -> Pattern:
    """BTIO with MPI-IO, 1024 ranks on 32 nodes: one call for each of 10 dumps.

    The rows do not give the size. 100 GB are the published size of these tests; 50 GiB (S0-041) would halve
    all rates, below those of the WRF restart on the same OSTs. A rank has 1/32 of a row of 1024 points.
    """
    return Pattern(
        name="BTIO",
        access="collective",
        ranks=1024,
        nodes=32,
        total_bytes=total_bytes,
        transfer_bytes=1024 / 32 * 40,
        segment_bytes=1024 / 32 * 40,
        calls=(Calls(count=10, total_bytes=total_bytes / 10),),
    )


def replib() -> Pattern:
    """Neuromapp's Replib: 1024 ranks of 650 KB a report. S0-065 and S0-069 give 65,000 MiB: 100 reports."""
    block = 650 * 1024
    return Pattern(
        name="Replib",
        access="collective",
        ranks=1024,
        nodes=32,
        total_bytes=100.0 * block * 1024,
        transfer_bytes=block,
        segment_bytes=block,
        calls=(Calls(count=100, total_bytes=block * 1024),),
    )


def wrf_chem(file: str) -> Pattern:
    """A file of WRF-CHEM on Cori, 1280 ranks on 40 nodes (S0-098 to S0-115).

    Input and output have planes and volumes. The totals give the volumes' size: 33 levels. Boundary files
    have strips along the edges, and each rank reads a whole strip.
    """
    calls, total, direction = {
        "wrfinput": (412, 2930104643, "read"),
        "wrfout": (432, 3045341799, "write"),
        "wrfbdy": (1827, 371398962, "read"),
    }[file]
    if file == "wrfbdy":
        groups = (Calls(count=calls, total_bytes=total / calls),)
        segment = total / calls
    else:
        volume = 33 * _WRF_PLANE_BYTES
        volumes = round((total - calls * _WRF_PLANE_BYTES) / (volume - _WRF_PLANE_BYTES))
        planes = Calls(count=calls - volumes, total_bytes=_WRF_PLANE_BYTES)
        groups = (
            planes,
            Calls(count=volumes, total_bytes=(total - planes.count * planes.total_bytes) / volumes),
        )
        segment = _WRF_SEGMENT_BYTES
    return Pattern(
        name=file,
        direction=direction,
        access="collective",
        ranks=1280,
        nodes=40,
        total_bytes=total,
        transfer_bytes=segment,
        segment_bytes=segment,
        is_replicated=file == "wrfbdy",
        calls=groups,
    )


def ior(
    access: Access, direction: Direction, *, nodes: int, ranks: int, block: float, transfer: float
) -> Pattern:
    """IOR: each rank moves one contiguous block in transfers."""
    return Pattern(
        name="IOR",
        direction=direction,
        access=access,
        ranks=ranks,
        nodes=nodes,
        total_bytes=block * ranks,
        transfer_bytes=transfer,
        files=ranks if access == "file-per-process" else 1,
    )


def cori_ior(access: Access, direction: Direction) -> Pattern:
    """Table I of NERSC16: 1120 nodes of 4 ranks, blocks of 8 GB in transfers of 1 MB."""
    return ior(access, direction, nodes=1120, ranks=4480, block=8e9, transfer=1e6)


def cori_random(direction: Direction) -> Pattern:
    """Random requests of 4 KB on DataWarp (S3-013, S3-014)."""
    return Pattern(
        name="IOR random",
        direction=direction,
        access="file-per-process",
        ranks=4480,
        nodes=1120,
        total_bytes=4480 * 1e9,
        transfer_bytes=4096,
        is_random=True,
        files=4480,
    )


def nyx(transfer: float, writers: int = 2, nodes: int = 1) -> Pattern:
    """Nyx's plotfiles: each process writes files of its own (S3-019 to S3-021)."""
    return Pattern(
        name="Nyx",
        access="file-per-process",
        ranks=writers,
        nodes=nodes,
        total_bytes=6 * 1.8e9,
        transfer_bytes=transfer,
        files=6 * writers,
    )
