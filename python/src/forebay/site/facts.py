"""What Slurm and the site say of a job and its burst buffer. An ordinary user may ask for all of it."""

import contextlib
import re
import shutil
import subprocess

import msgspec

from forebay.errors import ForebayError
from forebay.program import find_forebay

#: Slurm's controller may be busy.
ASK_S = 60
#: Characters of the directives of a job; Forebay refuses longer ones.
DIRECTIVES_MAX = 65_600
STATE_CHARACTERS = 40
FIELDS = "%i|%A|%T|%U|%u|%S|%r"


class SlurmError(ForebayError, OSError):
    """Slurm does not answer."""


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """A job, as Slurm has it."""

    id: str
    token: str  # its number; tasks of an array have one each
    state: str
    user: str
    start: str  # when it starts, as Slurm estimates it
    reason: str
    stage: str  # of its burst buffer
    directives: str


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """How far a staging is."""

    is_waiting: bool
    files: int
    bytes: int
    bytes_done: int


class OnNode(msgspec.Struct, frozen=True, kw_only=True):
    """How far a node is with a staging."""

    node: str
    progress: Progress | None
    failures: int
    next_try_unix_s: int | None
    silent_since_unix_s: int | None


class Staging(msgspec.Struct, frozen=True, kw_only=True):
    """A staging for which a call waits."""

    direction: str
    since_unix_s: int
    seen_unix_s: int
    full_nodes: list[str]  # they have no room for their part of the allocation yet
    nodes: list[OnNode]  # that have not completed it


class Node(msgspec.Struct, frozen=True, kw_only=True):
    """A node that has data of an allocation."""

    name: str
    is_online: bool | None  # None if nobody has asked it
    is_delivered: bool


class Allocation(msgspec.Struct, frozen=True, kw_only=True):
    """The job's part of a pool."""

    user: str
    pool: str
    capacity_bytes: int
    phase: str
    is_on_nodes: bool  # whether each node of the job has its own part
    nodes: list[Node]
    # Other allocations that it waits for: on nodes that have no room, or of the user.
    in_the_way: list["Holder"]
    has_problem: bool
    has_stage_out: bool
    staging: Staging | None


class Holder(msgspec.Struct, frozen=True, kw_only=True):
    """Somebody's allocation in a pool."""

    token: str
    user: str
    capacity_bytes: int
    phase: str


class Pool(msgspec.Struct, frozen=True, kw_only=True):
    """A pool of the site."""

    name: str
    granularity_bytes: int
    quantity: int
    free: int
    user_bytes_max: int | None  # the most that one user has at a time
    is_drained: bool
    allocations: list[Holder]


class Site(msgspec.Struct, frozen=True, kw_only=True):
    """What `dwstat why` says."""

    allocation: Allocation | None
    pools: list[Pool]


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """All that an explanation rests on."""

    job: Job
    site: Site | None  # None if Forebay does not answer
    pool: Pool | None  # the one that the job asks for
    wanted_bytes: int  # of the pool; 0 if it is not known
    ends: dict[str, str]  # when jobs that hold space end, as Slurm expects it
    problem: str | None  # Forebay's last error, for administrators


def answered(*words: str) -> str | None:
    """What a command prints; None if it fails."""
    try:
        done = subprocess.run(
            words, capture_output=True, text=True, errors="replace", timeout=ASK_S, stdin=subprocess.DEVNULL
        )
    except subprocess.TimeoutExpired:
        hint = "look at scontrol ping"
        raise SlurmError(f"{words[0]} has not answered for {ASK_S} s", hint) from None
    except OSError:
        return None
    return done.stdout if done.returncode == 0 else None


def job_of(wanted: str) -> Job | None:
    """The job with this ID, if it has a burst buffer."""
    if not re.fullmatch(r"\d+(_\d+)?", wanted) or shutil.which("squeue") is None:
        return None
    listed = answered("squeue", "-h", "-t", "all", "-j", wanted, "-o", FIELDS)
    lines = [line for line in (listed or "").splitlines() if line.count("|") >= FIELDS.count("|")]
    if not lines:
        return None
    job_id, token, state, _, user, start, reason = lines[0].split("|", FIELDS.count("|"))
    columns = f"BurstBufferState:{STATE_CHARACTERS},BurstBuffer:{DIRECTIVES_MAX}"
    shown = answered("squeue", "-h", "-t", "all", "-j", token, "-O", columns) or ""
    directives = shown[STATE_CHARACTERS:].strip()
    if not directives.startswith("#"):
        return None
    return Job(
        id=job_id, token=token, state=state, user=user, start=start, reason=reason.strip(),
        stage=shown[:STATE_CHARACTERS].strip(), directives=directives,
    )  # fmt: skip


def facts_of(job: Job) -> Facts:
    """What is known of a job."""
    site = None
    said = answered("scontrol", "show", "bbstat", "why", job.token)
    if said is not None:
        # It may be another system of burst buffers, or another version.
        with contextlib.suppress(msgspec.MsgspecError):
            site = msgspec.json.decode(said, type=Site)
    name = _value("pool", job.directives) or _default_pool()
    pool = next((pool for pool in site.pools if pool.name == name), None) if site else None
    holders = list(pool.allocations) if pool else []
    if site and site.allocation:
        holders += site.allocation.in_the_way
    held = [one.token for one in holders if one.token.isdigit()]
    return Facts(
        job=job, site=site, pool=pool, wanted_bytes=_wanted_bytes(job.directives), ends=_ends(held),
        problem=_problem(job.token),
    )  # fmt: skip


def _value(key: str, directives: str) -> str | None:
    found = re.search(rf"^#(?:DW\s*jobdw|BB\s*create_persistent)\s.*?\b{key}=(\S+)", directives, re.MULTILINE)
    return found[1] if found else None


def _wanted_bytes(directives: str) -> int:
    capacity = _value("capacity", directives)
    found = re.fullmatch(r"([0-9.]+)(?:([KMGTP])(i?B)?)?", capacity or "", re.IGNORECASE)
    if found is None:
        return 0
    # As Slurm reads sizes: K and KiB are 1024 bytes, KB is 1000.
    unit = 1000 if (found[3] or "").upper() == "B" else 1024
    return int(float(found[1]) * unit ** " KMGTP".index((found[2] or " ").upper()))


def _default_pool() -> str | None:
    found = re.search(r"DefaultPool=(\S+)", answered("scontrol", "show", "burst") or "")
    return found[1] if found else None


def _ends(tokens: list[str]) -> dict[str, str]:
    if not tokens:
        return {}
    listed = answered("squeue", "-h", "-j", ",".join(tokens), "-o", "%A|%T|%e") or ""
    lines = [line.split("|") for line in listed.splitlines() if line.count("|") == 2]
    return {token: end for token, state, end in lines if state == "RUNNING" and end[:1].isdigit()}


class _AllocationStatus(msgspec.Struct):
    token: str
    problem: str | None


class _Status(msgspec.Struct):
    allocations: list[_AllocationStatus]


def _problem(token: str) -> str | None:
    """Forebay's last error of an allocation. Only an administrator of the control host gets it."""
    said = answered(find_forebay(), "control", "status", "--json")
    if said is None:
        return None
    found = msgspec.json.decode(said, type=_Status).allocations
    return next((one.problem for one in found if one.token == token), None)
