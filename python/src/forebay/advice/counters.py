"""What a figure is called in the source that it comes from, so that a reader can look it up there."""

from __future__ import annotations

from forebay.advice.model import Evidence
from forebay.profiles.model import Direction

DIRECTIONS: tuple[Direction, ...] = ("write", "read")

#: Figure -> source -> name. {W} READ or WRITE, {P} READ or WRITTEN, {w} read or write.
NAMES: dict[str, dict[str, str]] = {
    "collective calls": {
        "darshan": "MPIIO_COLL_{W}S",
        "forebay": "{w}.calls.collective",
        "cray": "collective {w}s",
    },
    "independent calls": {
        "darshan": "MPIIO_INDEP_{W}S",
        "forebay": "{w}.calls.independent",
        "cray": "independent {w}s",
    },
    "mean call": {
        "darshan": "MPIIO_BYTES_{P} / calls",
        "forebay": "{w}.asked_bytes / calls",
        "cray": "bytes / calls",
    },
    "system calls": {"darshan": "POSIX_{W}S", "forebay": "{w}.system_calls", "cray": "system {w}s"},
    "mean system call": {
        "darshan": "POSIX_BYTES_{P} / POSIX_{W}S",
        "forebay": "{w}.system_bytes / {w}.system_calls",
        "cray": "ave system {w} size",
    },
    "system bytes": {
        "darshan": "POSIX_BYTES_{P}",
        "forebay": "{w}.system_bytes",
        "cray": "total bytes for {w}s",
    },
    "aggregators": {
        "darshan": "ranks with POSIX {w}s",
        "forebay": "{w}.aggregators",
        "cray": "aggregators",
    },
    "active": {"forebay": "write.aggregators_active", "cray": "aggregators active"},
    "stripe unit": {"darshan": "LUSTRE_STRIPE_SIZE", "forebay": "stripe_bytes", "cray": "stripe size"},
    "stripe count": {"darshan": "LUSTRE_STRIPE_WIDTH", "forebay": "stripe_count", "cray": "stripe count"},
    "stripe sized": {"forebay": "{w}.stripe_sized", "cray": "stripe sized {w}s"},
    "rmw calls": {
        "darshan": "POSIX_READS of a file only written",
        "forebay": "write.rmw_calls",
        "cray": "read-modify-write count",
    },
    "rmw bytes": {
        "darshan": "POSIX_BYTES_READ of a file only written",
        "forebay": "write.rmw_bytes",
        "cray": "read-modify-write bytes",
    },
    "not aligned": {"darshan": "POSIX_FILE_NOT_ALIGNED", "forebay": "not_aligned"},
    "steps back": {
        "darshan": "POSIX_{W}S - POSIX_SEQ_{W}S",
        "forebay": "{w}.system_calls - gaps - consecutive",
    },
    "end": {"darshan": "POSIX_MAX_BYTE_{P} + 1", "forebay": "{w}.end_bytes"},
    "syncs": {"darshan": "POSIX_FSYNCS + POSIX_FDSYNCS", "forebay": "syncs"},
    "opens": {"darshan": "POSIX_OPENS", "forebay": "opens"},
    "metadata": {"darshan": "F_META_TIME", "forebay": "seconds.open + close + metadata"},
    "hosts": {"forebay": "hosts", "darshan": "hosts"},
}  # fmt: skip


def evidence(
    source: str, figure: str, value: int | float | str | None, unit: str = "", direction: Direction = "write"
) -> Evidence:
    """A figure under the name it has in the source; under our own where the source has none."""
    name = NAMES.get(figure, {}).get(source, figure)
    past = {"read": "READ", "write": "WRITTEN"}[direction]
    return Evidence(counter=name.format(W=direction.upper(), P=past, w=direction), value=value, unit=unit)
