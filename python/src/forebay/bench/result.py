"""What a run of IO500 found: the object that `--json` prints."""

from __future__ import annotations

import msgspec

from forebay.bench.phases import OFFICIAL_STONEWALL_S
from forebay.bench.scoring import Scores


class PhaseResult(msgspec.Struct, kw_only=True):
    """One phase."""

    name: str
    scored: bool  # whether it counts for the total
    score: float  # in `unit`
    unit: str  # GiB/s, or kIOPS: thousands of operations in a second
    time_s: float  # from the moment when all ranks begin until the last one is done
    operations: int  # of all ranks: transfers or files; of find: names seen
    bytes: int  # data that all ranks moved
    found: int | None  # of find: files that matched
    stonewall_operations: int | None  # of all ranks when the stonewall ended; null for other phases
    verified: bool | None  # whether all that was read is right; null where nothing is compared
    started_unix_s: float
    program: str  # forebay-io500, ior or mdtest
    command: str  # that was run, as a shell reads it
    invalid_because: list[str]  # empty: valid by the rules of IO500


class Io500(msgspec.Struct, kw_only=True):
    """A run of IO500. It is never an official submission, which needs the unchanged program of IO500."""

    forebay_io500: int = 1  # version of this format
    version: str  # of Forebay
    started_unix_s: float
    directory: str  # in which the data were
    file_system: str | None  # its type, null if it is not known
    nodes: list[str]  # in the order of their first rank
    ranks: int
    shift: int  # ranks read what the rank after so many others wrote
    stonewall_s: int
    data_bytes_max: int  # that the run might have written
    reduced: bool  # whether Forebay's own programs stand in for ior and mdtest
    not_official_because: list[str]
    phases: list[PhaseResult]
    scores: Scores
    valid: bool  # by the rules of IO500
    notes: list[str]  # what to know before figures are compared
    results: str | None  # directory with result_summary.txt, null if none was written


def faults(name: str, writes: bool, score: float, time_s: float, stonewall_s: int) -> list[str]:
    """Why a phase is invalid, by the rules of IO500. `time_s` of one that writes includes its wear-out."""
    found = []
    if score <= 0:
        found.append("its score is 0")
    if writes and time_s < stonewall_s:
        found.append(
            f"it wrote for {time_s:.1f} s, less than the stonewall of {stonewall_s} s: its limit was reached"
        )
    if writes and time_s < OFFICIAL_STONEWALL_S:
        found.append(f"it wrote for {time_s:.1f} s, and a valid phase writes for {OFFICIAL_STONEWALL_S} s")
    return found
