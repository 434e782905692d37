"""Lines for a job script that ask for what the planner recommends: `#DW`, hints, `lfs setstripe`."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from forebay.advice.hint_lines import file_pattern, hints_line
from forebay.plan.machine import Storage
from forebay.plan.pattern import Pattern, Settings

#: The first unit that divides a size exactly writes it, as Slurm prints sizes.
_UNITS = (
    ("PiB", 1 << 50), ("PB", 10**15), ("TiB", 1 << 40), ("TB", 10**12), ("GiB", 1 << 30), ("GB", 10**9),
    ("MiB", 1 << 20), ("MB", 10**6), ("KiB", 1 << 10), ("KB", 10**3),
)  # fmt: skip


def exact_size(size_bytes: int, like_bytes: int = 0) -> str:
    """A size as `#DW` lines take it, without rounding: in the unit of `like_bytes`, such as a grain."""
    for unit, factor in _UNITS:
        if size_bytes and size_bytes % factor == 0 and like_bytes % factor == 0:
            return f"{size_bytes // factor}{unit}"
    return f"{size_bytes}B"


def allocation_line(capacity_bytes: int, pool: str | None, grain_bytes: int) -> str:
    """A `#DW` line that asks for so much."""
    capacity = exact_size(capacity_bytes, grain_bytes)
    return f"#DW jobdw type=scratch access_mode=striped capacity={capacity}" + (
        f" pool={pool}" if pool else ""
    )


def lines(
    storage: Storage,
    patterns: Sequence[Pattern],
    settings: Sequence[Settings],
    capacity_bytes: int | None,
    *,
    is_persistent: bool = False,
) -> list[str]:
    """What to put into the script for this storage, most important first."""
    found = []
    if storage.kind == "datawarp" and is_persistent:
        found.append("#DW persistentdw name=NAME")
    elif storage.kind == "datawarp" and capacity_bytes is not None:
        grain = round(storage.granularity_bytes or 0)
        found.append(allocation_line(capacity_bytes, storage.pool, grain))
    hints = {_pattern_of(pattern): _hints(storage, one) for pattern, one in _collective(patterns, settings)}
    if hints and storage.kind in ("datawarp", "lustre"):
        found.append(hints_line(hints))
    elif hints:
        found += _romio_file(next(iter(hints.values())))
    if storage.kind == "lustre":
        found += _setstripes(patterns, settings)
    if storage.kind == "node-local":
        found.append("#BSUB -alloc_flags nvme")
    return found


def _collective(patterns: Sequence[Pattern], settings: Sequence[Settings]) -> list[tuple[Pattern, Settings]]:
    pairs = zip(patterns, settings, strict=True)
    return [(pattern, one) for pattern, one in pairs if pattern.access == "collective"]


def _pattern_of(pattern: Pattern) -> str:
    return "*" if pattern.name == "pattern" else file_pattern(pattern.name)


def _hints(storage: Storage, settings: Settings) -> dict[str, str]:
    hints = {"cb_nodes": str(settings.aggregators), "striping_unit": str(settings.stripe_bytes)}
    if storage.kind == "lustre":
        hints["striping_factor"] = str(settings.servers)
    if storage.kind not in ("datawarp", "lustre"):
        del hints["striping_unit"]
    return hints


def _romio_file(hints: dict[str, str]) -> list[str]:
    words = " ".join(shlex.quote(f"{key} {value}") for key, value in hints.items())
    return [f"printf '%s\\n' {words} > romio.hints", 'export ROMIO_HINTS="$PWD/romio.hints"']


def _setstripes(patterns: Sequence[Pattern], settings: Sequence[Settings]) -> list[str]:
    """A line for each directory: files that need other stripes need a directory of their own."""
    lines: dict[str, list[str]] = {}
    for pattern, one in zip(patterns, settings, strict=True):
        directory = "OUTPUT_DIRECTORY" if pattern.direction == "write" else "INPUT_DIRECTORY"
        line = f"lfs setstripe -c {one.stripe_count or one.servers} -S {one.stripe_bytes} {directory}"
        lines.setdefault(line, []).append(pattern.name)
    if len(lines) == 1:
        return list(lines)
    return [f"{line}  # of {', '.join(dict.fromkeys(names))}" for line, names in lines.items()]
