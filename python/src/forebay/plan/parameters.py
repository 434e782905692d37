"""The parameters of the model: physical quantities that hold for all machines of a kind.

Rates of servers come from machine files. `calibration.py` fits the values, data/parameters.json has them.
"""

from __future__ import annotations

from functools import cache
from importlib import resources

import msgspec


class Parameter(msgspec.Struct, frozen=True, kw_only=True):
    """What a parameter means, and what is known of it without the calibration."""

    unit: str
    meaning: str
    prior: float
    factor: float  # the prior may be wrong by about this factor, either way
    source: str  # of the prior


class Parameters(msgspec.Struct, frozen=True, kw_only=True):
    """Values, in seconds, bytes per second, or fractions. `DESCRIPTIONS` says what each is."""

    stream_bytes_per_s: float
    stream_request_s: float
    node_bytes_per_s: float
    exchange_bytes_per_s: float
    segment_s: float
    collective_rank_s: float
    cycle_rank_s: float
    open_s: float
    open_stripe_s: float
    lustre_lock_s: float
    flash_lock_s: float
    flash_shared_fraction: float
    shared_read_fraction: float
    flash_request_s: float
    switch_s: float
    interference: float


DESCRIPTIONS: dict[str, Parameter] = {
    "stream_bytes_per_s": Parameter(
        unit="B/s",
        meaning="what one process moves to storage at most, with large requests",
        prior=1.5e9,
        factor=2.0,
        source="one node of a Cray XE6 sustains 1500 MB/s (CRAY12)",
    ),
    "stream_request_s": Parameter(
        unit="s",
        meaning="time of a request of one process that does not depend on its size",
        prior=0.5e-3,
        factor=3.0,
        source="assumption: a request to a server and back, through the kernel's client",
    ),
    "node_bytes_per_s": Parameter(
        unit="B/s",
        meaning="what one node moves to storage, if the machine file has no compute.node_bandwidth",
        prior=1.5e9,
        factor=1.5,
        source="one node of a Cray XE6 sustains 1500 MB/s (CRAY12)",
    ),
    "exchange_bytes_per_s": Parameter(
        unit="B/s",
        meaning="what the aggregators of one node receive in the exchange of two-phase I/O",
        prior=5e9,
        factor=2.0,
        source="assumption: half of the rate of a network adapter of that time",
    ),
    "segment_s": Parameter(
        unit="s",
        meaning="time of an aggregator for each contiguous segment that it sorts and copies",
        prior=0.3e-6,
        factor=3.0,
        source="assumption: some cache misses, and a step in a heap",
    ),
    "collective_rank_s": Parameter(
        unit="s",
        meaning="time of a collective call for each rank: all exchange offsets with all",
        prior=3e-6,
        factor=3.0,
        source="assumption: one small message",
    ),
    "cycle_rank_s": Parameter(
        unit="s",
        meaning="time of each buffer cycle for each rank: all agree on what is sent",
        prior=0.2e-6,
        factor=3.0,
        source="assumption: a share of a small message",
    ),
    "open_s": Parameter(
        unit="s",
        meaning="time of the metadata server for one rank that opens and closes a file",
        prior=0.5e-3,
        factor=3.0,
        source="assumption: two operations at 4,000 operations a second",
    ),
    "open_stripe_s": Parameter(
        unit="s",
        meaning="added to open_s for each stripe, where all ranks open a file for collective calls",
        prior=10e-6,
        factor=3.0,
        source="assumption: as in lustre-small.toml",
    ),
    "lustre_lock_s": Parameter(
        unit="s",
        meaning="time to lock what one call writes to one OST in a shared file on Lustre, at least 1 MiB",
        prior=0.5e-3,
        factor=3.0,
        source="assumption: one request for the lock of an extent",
    ),
    "flash_lock_s": Parameter(
        unit="s",
        meaning="the same for one request to a shared file on a DataWarp node",
        prior=0.15e-3,
        factor=3.0,
        source="assumption: the lock of one inode",
    ),
    "flash_shared_fraction": Parameter(
        unit="1",
        meaning="what a DataWarp node keeps of its peak when many processes write one file",
        prior=0.6,
        factor=1.6,
        source="assumption: three substripes for two SSDs of two devices (NERSC16)",
    ),
    "shared_read_fraction": Parameter(
        unit="1",
        meaning="what a server keeps of its peak when many processes read one file",
        prior=0.85,
        factor=1.2,
        source="assumption: reads share locks",
    ),
    "flash_request_s": Parameter(
        unit="s",
        meaning="time of a DataWarp node for one small request at a random offset",
        prior=10e-6,
        factor=3.0,
        source="assumption: 100,000 requests a second",
    ),
    "switch_s": Parameter(
        unit="s",
        meaning="time to move a lock between clients, if the machine file has no switch_time",
        prior=1e-3,
        factor=2.0,
        source="assumption: two requests of 500 us, as in lustre-small.toml",
    ),
    "interference": Parameter(
        unit="1",
        meaning="what another job on the same servers adds to the time in system calls, as a share of it",
        prior=0.5,
        factor=2.0,
        source="assumption: halfway between nothing shared and everything shared",
    ),
}

PRIORS = Parameters(**{name: one.prior for name, one in DESCRIPTIONS.items()})


class Residual(msgspec.Struct, frozen=True, kw_only=True):
    """How a published figure was missed by a model that was fitted without its group."""

    id: str  # row of data/calibration.json
    group: str  # experiment that was left out
    storage: str  # kind of storage
    ratio: float  # predicted over published


class Range(msgspec.Struct, frozen=True, kw_only=True):
    """What the published runs on one kind of storage cover."""

    storage: str  # its kind
    feature: str  # as features.py names it
    low: float
    high: float


class Fitted(msgspec.Struct, frozen=True, kw_only=True):
    """The content of data/parameters.json."""

    parameters: Parameters
    residuals: list[Residual]  # of the cross-validation
    ranges: list[Range]


def data(name: str) -> bytes:
    """A file of this package's data."""
    return resources.files("forebay.plan").joinpath("data", name).read_bytes()


@cache
def fitted() -> Fitted:
    """The fitted parameters, and the residuals of the cross-validation."""
    return msgspec.json.decode(data("parameters.json"), type=Fitted)
