"""Options that say what a job does: a script, a profile or a described pattern, and fixed settings."""

from __future__ import annotations

import json
import math
import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import click
import msgspec

from forebay.plan import from_profile, units
from forebay.plan.errors import PlanError
from forebay.plan.in_script import ScriptSettings
from forebay.plan.machine import Machine, read_machine
from forebay.plan.pattern import Calls, Pattern
from forebay.plan.planner import Question
from forebay.plan.search import Fixed
from forebay.profiles import records, sources
from forebay.quantities import printable
from forebay.series_client import find_calling_forebay

#: Times of people, besides those of machine files.
_LONG_S = {"min": 60.0, "h": 3600.0, "d": 86400.0}


class Quantity(click.ParamType):
    """A number with its unit. A size without a unit is in bytes."""

    def __init__(self, kind: Literal["time", "size"], *, zero: bool = False) -> None:
        self.kind = kind
        self.name = kind
        self.zero = zero

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """In seconds or bytes."""
        if isinstance(value, int | float):
            return float(value)
        long = re.fullmatch(r"\s*([0-9.]+)\s*(min|h|d)\s*", value) if self.kind == "time" else None
        try:
            if long and 0 < float(long[1]) < math.inf:
                return float(long[1]) * _LONG_S[long[2]]
            written = units.in_bytes(value) if self.kind == "size" else value
            return units.parse(written, self.kind, can_be_zero=self.zero)
        except ValueError as error:
            self.fail(f"{value!r}: {error}; write {units.EXAMPLES[self.kind]}", param, ctx)


class ExactSize(click.ParamType):
    """A size as a whole number of bytes, rounded up, without floating point."""

    name = "size"

    def __init__(self, *, zero: bool = False) -> None:
        self.zero = zero

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """In bytes."""
        if isinstance(value, int):
            return value
        try:
            return units.exact_bytes(units.in_bytes(value), can_be_zero=self.zero)
        except ValueError as error:
            self.fail(f"{value!r}: {error}; write {units.EXAMPLES['size']}", param, ctx)


SIZE, TIME = Quantity("size"), Quantity("time")
_SIZE_OR_ZERO = Quantity("size", zero=True)
_COUNT = click.INT
_OPTIONS: list[Callable[[Any], Any]] = [
    click.argument("script", required=False, metavar="[JOB.sh]", type=click.Path(path_type=Path)),
    click.option("--machine", metavar="NAME", help="Machine file: an installed name or a path. [required]"),
    click.option(
        "--storage", "storages", multiple=True, metavar="NAME", help="Only this storage of the machine."
    ),
    click.option(
        "--profile",
        metavar="LOG|JOBID",
        help="What the job does, from a profile that `forebay report` reads, or `last`.",
    ),
    click.option(
        "--access",
        type=click.Choice(["serial", "file-per-process", "independent", "collective"]),
        help="Describe the pattern: how ranks use files.",
    ),
    click.option("--read", "is_read", is_flag=True, help="The pattern reads. [it writes]"),
    click.option("--nodes", type=_COUNT, metavar="N", help="Compute nodes. [from the script or profile]"),
    click.option("--ranks", type=_COUNT, metavar="N", help="MPI ranks. [from the script or profile]"),
    click.option("--size", type=SIZE, help="Bytes of all ranks and calls, for example 100GB."),
    click.option("--transfer", type=SIZE, help="Bytes of a request of a rank. [1 MiB, or part of a call]"),
    click.option("--calls", type=_COUNT, metavar="N", help="Collective calls of each rank."),
    click.option("--segment", type=SIZE, help="Contiguous bytes of a rank in a file. [part of a call]"),
    click.option("--files", type=_COUNT, metavar="N", help="Files of all processes. [one per rank]"),
    click.option("--interleaved", is_flag=True, help="Neighbours in the file are of different ranks."),
    click.option("--random", "is_random", is_flag=True, help="Requests are at random offsets."),
    click.option("--replicated", is_flag=True, help="Each rank reads all bytes of a collective call."),
    click.option("--capacity", type=SIZE, help="What a burst buffer must hold. [what is read and written]"),
    click.option("--compute", type=TIME, help="Computing time, such as 2h, which hides a drain."),
    click.option(
        "--stage-in",
        type=_SIZE_OR_ZERO,
        help="Bytes to stage in; 0: they are in a persistent allocation. [what is read and not written]",
    ),
    click.option("--servers", type=_COUNT, metavar="N", help="Fix the stripe count, or DataWarp nodes."),
    click.option("--aggregators", type=_COUNT, metavar="N", help="Fix cb_nodes."),
    click.option("--stripe-size", type=SIZE, help="Fix striping_unit."),
    click.option("--buffer-size", type=SIZE, help="Fix cb_buffer_size."),
    click.option("--cb-align", type=click.IntRange(0, 2), help="Fix MPICH_MPIIO_CB_ALIGN."),
    click.option("--data-sieving", is_flag=True, help="Independent writes use data sieving."),
    click.option(
        "--concurrent-jobs", type=_COUNT, default=1, metavar="N", help="Jobs that share the servers. [1]"
    ),
]  # fmt: skip


def pattern_options(command: Any) -> Any:
    """Adds all options to a command; `question` reads them."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


class _AllocationRequest(msgspec.Struct, kw_only=True):
    """`#DW jobdw` of a script."""

    capacity_bytes: int | None
    striped: bool
    private: bool
    pool: str | None
    line: int | None


class ScriptRequest(msgspec.Struct, kw_only=True):
    """What `forebay __request` says of a script."""

    has_header: bool
    nodes: int | None
    tasks: int
    time_limit_s: int | None
    node_local: bool
    allocation: _AllocationRequest | None
    persistent: list[str]
    stage_in: list[dict[str, str]]
    stage_out: list[dict[str, str]]
    warnings: list[str]


def read_script(path: Path) -> ScriptRequest:
    """What the script asks for, as the Rust parser reads it. Raises PlanError with that parser's message."""
    try:
        done = subprocess.run(
            [str(find_calling_forebay()), "__request", str(path)], capture_output=True, text=True
        )
    except OSError as error:
        raise PlanError(f"{find_calling_forebay()}: {error.strerror}", "run make install") from error
    try:
        answer = json.loads(done.stdout)
    except json.JSONDecodeError:
        said = done.stderr.strip().partition("\n")[0].removeprefix("error: ")
        raise PlanError(f"{path}: {said}", "check the script") from None
    if "error" in answer:
        raise PlanError(answer["error"], answer.get("hint"))
    return msgspec.convert(answer, ScriptRequest)


def question(options: dict[str, Any]) -> Question:
    """The job and the machine of a command line. Raises PlanError for what is missing or does not fit."""
    if options["machine"] is None:
        raise PlanError(
            "no machine is named", "give --machine; forebay plan machine list shows the installed ones"
        )
    machine = read_machine(options["machine"])
    script = _scripted(options) if options["script"] else None
    nodes = _first(options["nodes"], script and script.nodes)
    ranks = _first(options["ranks"], script and script.ranks)
    if options["profile"] is not None:
        if options["access"]:
            raise PlanError("--profile and --access both say what the job does", "give one of them")
        return _of_profile(machine, script, nodes, ranks, options)
    if options["access"] is None:
        about = f"{options['script']}: nothing" if options["script"] else "nothing"
        raise PlanError(
            f"{about} says what the job reads and writes",
            "give --profile, or describe it: --access collective --size 100GB --ranks 1024 --nodes 32",
        )
    nodes, notes = _nodes(machine, nodes, ranks)
    patterns = (described(options, nodes, ranks),)
    return _question(machine, script, patterns, options, notes)


def _nodes(machine: Machine, nodes: int | None, ranks: int | None) -> tuple[int | None, tuple[str, ...]]:
    """If nobody says the number of nodes, as many as hold a rank on each core."""
    if nodes is not None or ranks is None or machine.cores_per_node is None:
        return nodes, ()
    found = max(1, -(-ranks // machine.cores_per_node))
    if found == 1:
        return found, ()
    note = f"nothing says the number of nodes: the plan takes {found}, a rank for each core; --nodes says it"
    return found, (note,)


class Scripted(msgspec.Struct, frozen=True, kw_only=True):
    """A job script: what it asks for, and what it sets by itself."""

    request: ScriptRequest
    settings: ScriptSettings | None  # None: nothing
    nodes: int | None
    ranks: int | None
    notes: tuple[str, ...]


def _scripted(options: dict[str, Any]) -> Scripted:
    from forebay.cli.plan.script_settings import read_settings, text_of

    text = text_of(options["script"])
    request = read_script(options["script"])
    asked, allocation = request.allocation, None
    if asked and asked.line is not None and asked.capacity_bytes:
        allocation = asked.line, asked.capacity_bytes, asked.private and not asked.striped
    found, notes, launched, tasks_per_node = read_settings(options["script"], text, allocation)
    # Without lines of a scheduler, one task is a guess and no request.
    in_header = request.tasks if request.has_header else None
    ranks = max(filter(None, (launched, in_header)), default=None)
    nodes = request.nodes
    if nodes is None and ranks and tasks_per_node:
        nodes = -(-ranks // tasks_per_node)
    for name, value in (("nodes", nodes), ("ranks", ranks)):
        if options[name] is not None and value is not None and options[name] != value:
            notes.append(f"--{name} {options[name]} is taken, and not the {value} of the script")
    settings = None if found == ScriptSettings() else found
    notes = [*request.warnings, *notes, *_notes_of(request, found, options["profile"] is not None)]
    return Scripted(request=request, settings=settings, nodes=nodes, ranks=ranks, notes=tuple(notes))


def _notes_of(request: ScriptRequest, settings: ScriptSettings, has_profile: bool) -> list[str]:
    """What a script leaves open."""
    notes = []
    if request.persistent and request.allocation is None:
        notes.append(
            "the script does not say how many storage nodes its persistent allocation has: "
            "the plan takes the fewest; --servers says it"
        )
    rules = settings.hints.rules if settings.hints and not has_profile else ()
    if len(rules) > 1:
        notes.append(
            f"the script has hints for {len(rules)} kinds of files, and the plan is for the first, "
            f"{printable(rules[0][0])}: --profile tells the files apart"
        )
    return notes


def described(options: dict[str, Any], nodes: int | None, ranks: int | None) -> Pattern:
    """The pattern of the options."""
    if options["size"] is None:
        raise PlanError(
            f"--access {options['access']} needs the amount of data", "give --size, such as 100GB"
        )
    if ranks is None:
        raise PlanError("the number of ranks is not known", "give --ranks")
    if options["calls"] is not None and options["calls"] < 1:
        raise PlanError(f"{options['calls']} collective calls", "give --calls of at least 1")
    nodes = nodes if nodes is not None else 1
    calls = options["calls"]
    part = options["size"] / max(1, ranks) / (calls or 1)
    segment = min(options["segment"] or part, max(part, 1.0))
    transfer = options["transfer"] or (part if calls else min(1 << 20, part))
    return Pattern(
        direction="read" if options["is_read"] else "write",
        access=options["access"],
        ranks=ranks,
        nodes=nodes,
        total_bytes=options["size"],
        transfer_bytes=max(1.0, transfer),
        calls=(Calls(count=calls, total_bytes=options["size"] / calls),) if calls else (),
        segment_bytes=segment if options["access"] == "collective" else None,
        is_replicated=options["replicated"],
        is_random=options["is_random"],
        is_interleaved=options["interleaved"],
        files=_first(options["files"], ranks if options["access"] == "file-per-process" else 1) or 0,
    )


def _of_profile(
    machine: Machine,
    script: Scripted | None,
    nodes: int | None,
    ranks: int | None,
    options: dict[str, Any],
) -> Question:
    named = options["profile"]
    (profile,) = sources.open_profiles(
        [] if named == "last" else [named], records.state_directory(os.environ)
    )
    found = from_profile.read(profile, nodes, ranks)
    nodes, of_nodes = _nodes(machine, found.nodes, found.ranks)
    if nodes != found.nodes:
        found = from_profile.read(profile, nodes, ranks)
    if options["compute"] is None and found.compute_s is not None:
        options = options | {"compute": found.compute_s}
    patterns, notes = _with_segments(found.patterns, options["segment"])
    return _question(machine, script, patterns, options, (*found.notes, *of_nodes, *notes), profile.path)


def _with_segments(
    patterns: tuple[Pattern, ...], segment_bytes: float | None
) -> tuple[tuple[Pattern, ...], tuple[str, ...]]:
    """A profile does not say how the pieces of a collective call are in the file; the user may."""
    collective = [pattern.access == "collective" for pattern in patterns]
    if segment_bytes is None:
        note = (
            "each rank's part of a collective call is taken as one piece of the file: --segment corrects it"
        )
        return patterns, (note,) if any(collective) else ()
    found = [
        msgspec.structs.replace(pattern, segment_bytes=min(segment_bytes, pattern.transfer_bytes))
        if is_collective
        else pattern
        for pattern, is_collective in zip(patterns, collective, strict=True)
    ]
    return tuple(found), ()


def _question(
    machine: Machine,
    script: Scripted | None,
    patterns: tuple[Pattern, ...],
    options: dict[str, Any],
    notes: tuple[str, ...],
    profile: str | None = None,
) -> Question:
    fixed = _fixed(options)
    settings = script.settings if script else None
    return Question(
        machine=machine,
        patterns=patterns,
        fixed=fixed,
        storages=tuple(options["storages"]),
        capacity_bytes=int(options["capacity"] or _capacity_of_stage_in(script, options) or 0),
        compute_s=options["compute"] or 0.0,
        has_local=script is not None and script.request.node_local,
        stage_in_bytes=_stage_in(script, options),
        script=str(options["script"]) if options["script"] else None,
        script_settings=settings,
        profile=profile,
        notes=(
            *notes,
            *(script.notes if script else ()),
            *(_overridden(settings, fixed) if settings else ()),
            *_staging_notes(script, options),
            *_pool_notes(machine, script),
        ),
    )


def _overridden(settings: ScriptSettings, fixed: Fixed) -> list[str]:
    from forebay.cli.plan.script_settings import overridden

    return overridden(settings, fixed)


def _capacity_of_stage_in(script: Scripted | None, options: dict[str, Any]) -> int | None:
    """The script's capacity where nobody knows how much it stages in; else the data say what is needed."""
    asked = script.request if script else None
    if asked is None or asked.allocation is None or not asked.stage_in or options["stage_in"] is not None:
        return None
    return asked.allocation.capacity_bytes


def _pool_notes(machine: Machine, script: Scripted | None) -> list[str]:
    """What the plan takes otherwise than `#DW jobdw` has it."""
    asked = script.request.allocation if script else None
    if asked is None:
        return []
    pools = {one.pool for one in machine.storage.values() if one.pool}
    notes = []
    if asked.pool and pools and asked.pool not in pools:
        known = ", ".join(sorted(pools))
        notes.append(
            f"the script asks for the pool {printable(asked.pool)}; the machine file has {known}: "
            "granules and nodes of the plan are those of the machine file"
        )
    if asked.private and not asked.striped:
        notes.append(
            "the script has access_mode=private: each node sees a directory of its own, and a shared file "
            "needs access_mode=striped"
        )
    return notes


def _stage_in(script: Scripted | None, options: dict[str, Any]) -> float | None:
    """Bytes to stage in; None: what the job reads. Input in a persistent allocation is there already."""
    asked = script.request if script else None
    if options["stage_in"] is None and asked and asked.persistent and not asked.stage_in:
        return 0.0
    return options["stage_in"]


def _staging_notes(script: Scripted | None, options: dict[str, Any]) -> tuple[str, ...]:
    if script is None or options["stage_in"] is not None:
        return ()
    if script.request.stage_in:
        return (
            "the script stages in files of unknown size: the plan takes what the job reads; "
            "--stage-in corrects it",
        )
    if script.request.persistent:
        named = ", ".join(printable(name) for name in script.request.persistent)
        return (
            f"the script uses the persistent allocation {named}: the plan takes input to be there; "
            "--stage-in corrects it",
        )
    return ()


def _fixed(options: dict[str, Any]) -> Fixed:
    return Fixed(
        servers=_positive(options, "servers"),
        aggregators=_positive(options, "aggregators"),
        stripe_bytes=None if options["stripe_size"] is None else max(1, int(options["stripe_size"])),
        buffer_bytes=None if options["buffer_size"] is None else max(1, int(options["buffer_size"])),
        cb_align=options["cb_align"],
        data_sieving=options["data_sieving"],
        jobs=_positive(options, "concurrent_jobs") or 1,
    )


def _positive(options: dict[str, Any], name: str) -> int | None:
    value = options[name]
    if value is not None and value < 1:
        raise PlanError(f"--{name.replace('_', '-')} is {value}", "give at least 1")
    return value


def _first(*values: int | None) -> int | None:
    return next((value for value in values if value is not None), None)
