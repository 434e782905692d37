"""The programs of the phases, Forebay's own or ior and mdtest: how each is called, and what it says."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Protocol

import msgspec

from forebay import quantities
from forebay.bench.errors import BenchError
from forebay.bench.phases import EASY_TRANSFER_BYTES, HARD_TRANSFER_BYTES, ITEM_BYTES, Phase

_KIB, _MIB, _GIB = 2**10, 2**20, 2**30
#: Of an operation of mdtest, the row of its table.
_ROWS = {"write": "File creation", "stat": "File stat", "read": "File read", "delete": "File removal"}


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """What the phases of a run have in common."""

    directory: Path
    ranks: int
    shift: int
    signature: int
    stonewall_s: int
    operations_max: dict[str, int]  # of each rank, by folder


class Measured(msgspec.Struct, kw_only=True):
    """What a program said of its phase."""

    operations: int
    operations_of_rank: int
    bytes: int
    time_s: float
    score: float  # GiB/s, or kIOPS
    found: int | None = None
    stonewall_operations: int | None = None
    verified: bool | None = None
    errors: list[str] = []


class Output(msgspec.Struct, frozen=True):
    """What a program wrote, and its exit code."""

    exit_code: int
    text: str
    messages: str


class Program(Protocol):
    """A program for some phases."""

    name: str

    def words(self, phase: Phase, setting: Setting, count: int) -> list[str]:
        """Its command line; `count`: operations of each rank, at most in phases that write."""

    def measured(self, phase: Phase, setting: Setting, count: int, output: Output) -> Measured:
        """What it measured. BenchError if it failed, or says nothing that can be understood."""


def folder_of(phase: Phase) -> str:
    """`mdtest-hard` of mdtest-hard-read, `ior-easy` of ior-rnd4K-easy-read."""
    benchmark = phase.name.split("-")[0]
    return f"{benchmark}-{'hard' if '-hard-' in phase.name else 'easy'}"


def failure(phase: Phase, program: str, output: Output) -> BenchError:
    """The error of a program, by its own message if it has one."""
    messages = output.messages + "\n" + output.text
    own = re.search(r"^\w+: error: (.*)$(?:\n^hint: (.*)$)?", messages, re.MULTILINE)
    if own:
        return BenchError(f"{phase.name}: {own[1]}", own[2])
    lines = [quantities.printable(line.strip()) for line in messages.splitlines() if line.strip()]
    telling = [
        line
        for line in lines
        if re.search(r"error|fail|cannot|could not|unable|not found", line, re.IGNORECASE)
    ]
    said = next(iter(telling or lines), "it printed no message")
    code = output.exit_code
    ended = f"{quantities.signal_name(-code)} ended it" if code < 0 else f"exit code {code}"
    return BenchError(f"{phase.name}: {program} failed, {ended}: {said}")


class _Line(msgspec.Struct):
    """The line of JSON of forebay-io500 (kernels/README.md)."""

    ranks: int
    operations: int
    operations_of_rank: int
    found: int
    bytes: int
    wall_s: float
    stonewall_operations: int
    verified: bool | None
    shift: int | None = None
    nodes: list[str] = []


def own_line(phase: str, ranks: int, output: Output) -> _Line:
    """What forebay-io500 printed. BenchError if it did not, or if the launcher is of another MPI."""
    lines = [line for line in output.text.splitlines() if line.startswith("{")]
    try:
        found = [msgspec.json.decode(line, type=_Line) for line in lines]
    except msgspec.MsgspecError as error:
        raise BenchError(f"{phase}: forebay-io500 printed a line that cannot be read: {error}") from error
    if not found:
        raise failure(Phase(phase, None), "forebay-io500", output)
    if len(found) > 1 or found[0].ranks != ranks:
        raise BenchError(
            f"{phase}: {ranks} ranks were asked for, and each of {len(found)} programs had {found[0].ranks}",
            "the launcher is of another MPI than forebay-io500: name one with --launcher",
        )
    return found[0]


class OwnProgram:
    """forebay-io500."""

    name = "forebay-io500"

    def __init__(self, path: str, verifies: bool) -> None:
        """`verifies`: whether it has written the files that it reads, too, so that it knows their bytes."""
        self.path, self.verifies = path, verifies

    def words(self, phase: Phase, setting: Setting, count: int) -> list[str]:
        """See `Program`."""
        words = [self.path, "--directory", str(setting.directory), "--signature", str(setting.signature)]
        words += ["--shift", str(setting.shift), "--limit", str(count)]
        if phase.writes or phase.group is None:
            words += ["--stonewall", str(setting.stonewall_s)]
        if self.verifies and phase.name.endswith(("-read", "-stat")):
            words.append("--verify")
        return [*words, phase.name]

    def measured(self, phase: Phase, setting: Setting, count: int, output: Output) -> Measured:
        """See `Program`. A wrong value is no failure: it makes the phase invalid."""
        line = own_line(phase.name, setting.ranks, output)
        if output.exit_code != 0 and line.verified is not False:
            raise failure(phase, self.name, output)
        errors = [] if line.verified is not False else [str(failure(phase, self.name, output))]
        amount = line.bytes / _GIB if phase.unit == "GiB/s" else line.operations / 1000
        return Measured(
            operations=line.operations,
            operations_of_rank=line.operations_of_rank,
            bytes=line.bytes,
            time_s=line.wall_s,
            score=amount / line.wall_s if line.wall_s > 0 else 0.0,
            found=line.found if phase.name == "find" else None,
            stonewall_operations=line.stonewall_operations if phase.writes else None,
            verified=line.verified,
            errors=errors,
        )


class _IorResult(msgspec.Struct):
    bwMiB: float  # noqa: N815 names of ior
    totalTime: float  # noqa: N815


class _IorTest(msgspec.Struct):
    Results: list[_IorResult]


class _IorSummary(msgspec.Struct):
    tests: list[_IorTest]


class Ior:
    """The installed ior, with the options of IO500."""

    name = "ior"

    def __init__(self, path: str = "ior") -> None:
        """`path`: the same on all nodes, where PATH may be another one."""
        self.path = path

    def words(self, phase: Phase, setting: Setting, count: int) -> list[str]:
        """See `Program`."""
        top, folder = setting.directory, folder_of(phase)
        words = [self.path, "-C", "-Q", "1", "-g", "-G", str(setting.signature), "-k", "-e"]
        if folder == "ior-easy":
            # Whole transfers of 2 MiB in a block of each rank.
            words += ["-o", str(top / folder / "ior_file_easy"), "-F", "-t", str(EASY_TRANSFER_BYTES)]
            words += ["-b", str(EASY_TRANSFER_BYTES * setting.operations_max[folder])]
        else:
            size = str(HARD_TRANSFER_BYTES)
            words += ["-o", str(top / folder / "file"), "-t", size, "-b", size]
            words += ["-s", str(setting.operations_max[folder])]
        words += ["-O", f"stoneWallingStatusFile={top / folder}.stonewall"]
        words += ["-O", "summaryFormat=JSON", "-O", f"summaryFile={top / phase.name}.json"]
        if phase.writes:
            return [*words, "-w", "-D", str(setting.stonewall_s), "-O", "stoneWallingWearOut=1"]
        return [*words, "-r", "-R"]

    def measured(self, phase: Phase, setting: Setting, count: int, output: Output) -> Measured:
        """See `Program`."""
        said = output.text + output.messages
        wrong = re.search(r"Incorrect data on read \((\d+) errors? found\)", said)
        if output.exit_code != 0 and not wrong:
            raise failure(phase, self.name, output)
        path = setting.directory / f"{phase.name}.json"
        try:
            (result,) = msgspec.json.decode(path.read_bytes(), type=_IorSummary).tests[0].Results
        except (OSError, msgspec.MsgspecError, ValueError, IndexError) as error:
            raise BenchError(
                f"{phase.name}: ior wrote no summary that can be read: {error}", "use --programs own"
            ) from error
        data_bytes = round(result.bwMiB * _MIB * result.totalTime)
        each = EASY_TRANSFER_BYTES if folder_of(phase) == "ior-easy" else HARD_TRANSFER_BYTES
        operations = round(data_bytes / each)
        return Measured(
            operations=operations,
            operations_of_rank=round(operations / setting.ranks),
            bytes=operations * each,
            time_s=result.totalTime,
            score=result.bwMiB / _KIB,
            verified=None if phase.writes else wrong is None,
            errors=[f"{phase.name}: {wrong[1]} transfers have wrong data"] if wrong else [],
        )


class Mdtest:
    """The installed mdtest, with the options of IO500."""

    name = "mdtest"

    def __init__(self, path: str = "mdtest") -> None:
        """`path`: the same on all nodes, where PATH may be another one."""
        self.path = path

    def words(self, phase: Phase, setting: Setting, count: int) -> list[str]:
        """See `Program`."""
        folder, size = folder_of(phase), str(ITEM_BYTES)
        words = [
            self.path,
            "-n",
            str(setting.operations_max[folder]),
            "-F",
            "-P",
            "-G",
            str(setting.signature),
        ]
        words += ["-N", str(setting.shift), "-d", str(setting.directory / folder)]
        words += ["-x", f"{setting.directory / folder}.stonewall"]
        words += ["-u", "-L"] if folder == "mdtest-easy" else ["-t", "-w", size, "-e", size]
        more = {"write": ["-C", "-Y", "-W", str(setting.stonewall_s)], "stat": ["-T"], "read": ["-E", "-X"]}
        return [*words, *more.get(phase.name.rsplit("-", 1)[1], ["-r"])]

    def measured(self, phase: Phase, setting: Setting, count: int, output: Output) -> Measured:
        """See `Program`. mdtest ends with 0 when data are wrong, and says so."""
        action = phase.name.rsplit("-", 1)[1]
        rates, _, _ = output.text.partition("SUMMARY time")
        found = re.search(rf"^\s*{_ROWS[action]}\s*:?\s+([0-9.]+)", rates, re.MULTILINE)
        if output.exit_code != 0 or not found:
            raise failure(phase, self.name, output)
        rate = float(found[1])
        of_rank = self._operations_of_rank(phase, setting) if phase.writes else count
        operations = of_rank * setting.ranks
        moves_data = folder_of(phase) == "mdtest-hard" and action in ("write", "read")
        said = output.text + output.messages
        errors = [line.strip() for line in said.splitlines() if re.search(r"\bERROR\b", line)]
        reached = re.search(r"stonewall hit min: \d+ max: \d+ avg: ([0-9.]+)", said)
        return Measured(
            operations=operations,
            operations_of_rank=of_rank,
            bytes=operations * ITEM_BYTES if moves_data else 0,
            time_s=operations / rate if rate > 0 else 0.0,
            score=rate / 1000,
            stonewall_operations=round(float(reached[1]) * setting.ranks) if reached else None,
            verified=not errors if action == "read" else None,
            errors=[f"{phase.name}: mdtest says: {error}" for error in errors[:1]],
        )

    def _operations_of_rank(self, phase: Phase, setting: Setting) -> int:
        """From mdtest's own status file, which it writes when the stonewall ends a phase."""
        folder = folder_of(phase)
        path = setting.directory / f"{folder}.stonewall"
        try:
            return int(path.read_text())
        except FileNotFoundError:
            return setting.operations_max[folder]
        except ValueError as error:
            raise BenchError(
                f"{phase.name}: mdtest wrote no number to {path}", "use --programs own"
            ) from error


class Programs:
    """Which program runs a phase."""

    def __init__(self, own_path: str, kind: str) -> None:
        """`kind`: `own`; `installed`, which are ior and mdtest in PATH; `auto`, these if both are there."""
        paths = {name: shutil.which(name) for name in ("ior", "mdtest")}
        missing = [name for name, path in paths.items() if path is None]
        if kind == "installed" and missing:
            raise BenchError(f"not in PATH: {' and '.join(missing)}", "load them, or use --programs own")
        self.reduced = kind == "own" or bool(missing)
        self.own = OwnProgram(own_path, self.reduced)
        self.installed: dict[str, Program] = {}
        if not self.reduced:
            self.installed = {"ior": Ior(str(paths["ior"])), "mdtest": Mdtest(str(paths["mdtest"]))}

    def of(self, phase: Phase) -> Program:
        """ior and mdtest have no search and, as IO500 calls them here, no random reads."""
        benchmark = phase.name.split("-")[0]
        return self.own if phase.group is None else self.installed.get(benchmark, self.own)
