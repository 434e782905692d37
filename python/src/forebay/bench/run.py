"""One run of IO500: from a directory to a result, with nothing left in the directory."""

from __future__ import annotations

import os
import secrets
import shlex
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from forebay import __version__, quantities
from forebay.bench import launching, result, space
from forebay.bench.errors import BenchError
from forebay.bench.guard import CleanupGuard
from forebay.bench.launching import Launch, LaunchRequest
from forebay.bench.phases import OFFICIAL_STONEWALL_S, PHASES, TIMESTAMP_FILE, Phase
from forebay.bench.programs import Measured, Output, Program, Programs, Setting, failure, folder_of, own_line
from forebay.bench.result import Io500, PhaseResult
from forebay.bench.run_directory import RunDirectory, purge
from forebay.bench.run_processes import RUN_VARIABLE, end_processes
from forebay.bench.scoring import scores
from forebay.deferred_signals import DeferredSignals

#: The stonewall of a reduced run: long enough to show a file system's rate, short enough for a first look.
REDUCED_STONEWALL_S = 10
#: find compares times: the files of the phases after it must be newer, where times have a whole second.
_TIMESTAMP_PAUSE_S = 1.0
#: ior and mdtest take the number for a signature as a signed one of 32 bits.
_SIGNATURE_MAX = 2**31 - 1
_SIGNALS = signal.SIGINT, signal.SIGTERM, signal.SIGHUP

Notify = Callable[[str], None]


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """What the user wants."""

    directory: Path
    launch: LaunchRequest
    stonewall_s: int | None = None
    data_bytes: int | None = None
    programs: str = "auto"


class Finished(msgspec.Struct):
    """A result, and the files that go with it."""

    run: Io500
    logs: dict[str, str]  # output of each phase
    operations_max: dict[str, int]


def run(request: Request, notify: Notify) -> Finished:
    """Runs all phases and removes their files. `notify` gets sentences for the user.

    BenchError if the benchmark cannot run or a phase fails. An exception that a signal raises ends it, too.
    However it ends, its processes and files are gone.
    """
    directory = RunDirectory(request.directory)
    launch = launching.choose(request.launch)
    programs = Programs(launch.own_program, request.programs)
    found = space.space_of(directory.parent)
    data_bytes = space.default_data_bytes(found) if request.data_bytes is None else request.data_bytes
    limits = space.limits(data_bytes, launch.ranks, found)
    stonewall_s = request.stonewall_s or (REDUCED_STONEWALL_S if programs.reduced else OFFICIAL_STONEWALL_S)
    for path in directory.leftovers():
        notify(f"{path} is of another run. If that run has ended, remove it with rm -r")
    with CleanupGuard(directory) as guard:
        try:
            directory.make()
            processes = _Processes(launch, directory.token)
            first = _placement(processes, directory, launch)
            setting = Setting(
                directory=directory.path,
                ranks=launch.ranks,
                shift=first.shift or 0,
                signature=secrets.randbelow(_SIGNATURE_MAX) + 1,
                stonewall_s=stonewall_s,
                operations_max=limits.operations,
            )
            _announce(notify, setting, limits, found, first.nodes)
            runner = _Runner(setting, programs, processes, notify)
            phases = [runner.run(phase) for phase in PHASES]
        finally:
            with DeferredSignals(*_SIGNALS):
                _clean(directory, notify)
                guard.cleaned = True
    about = _about(setting, programs, found, first.nodes, limits)
    return Finished(_result(about, phases), runner.logs, limits.operations)


def _announce(
    notify: Notify, setting: Setting, limits: space.Limits, found: space.Space, nodes: list[str]
) -> None:
    kind = f" ({found.kind})" if found.kind else ""
    on = quantities.counted(len(nodes), "node")
    ranks = quantities.counted(setting.ranks, "rank")
    notify(f"IO500 with {ranks} on {on} in {setting.directory}{kind}")
    notify(
        f"writes at most {quantities.size(limits.data_bytes)} of {quantities.size(found.free_bytes)} free"
        f"{' memory' if found.in_memory else ''}, for about {setting.stonewall_s} s in each of 4 phases; "
        "--data and --stonewall change it"
    )


class _Processes:
    """Starts programs one after the other, in a session of their own: Ctrl-C reaches this process alone."""

    def __init__(self, launch: Launch, token: str) -> None:
        self.launch, self.token = launch, token

    def run(self, words: list[str]) -> tuple[list[str], Output]:
        """The command line and its output. The program is gone afterwards, however this ends."""
        command = self.launch.command(*words)
        environment = launching.LAUNCHING | os.environ | {RUN_VARIABLE: self.token}
        pipe, null = subprocess.PIPE, subprocess.DEVNULL
        try:
            process = subprocess.Popen(
                command, stdin=null, stdout=pipe, stderr=pipe, env=environment, start_new_session=True
            )
        except OSError as error:
            raise BenchError(
                f"{command[0]} cannot be started: {error.strerror}", "check --launcher"
            ) from error
        try:
            text, messages = process.communicate()
        except BaseException:
            with DeferredSignals(*_SIGNALS):
                end_processes(self.token)
                process.wait()
            raise
        texts = (one.decode(errors="replace") for one in (text, messages))
        return command, Output(process.returncode, *texts)


def _placement(processes: _Processes, directory: RunDirectory, launch: Launch):
    words = [launch.own_program, "--directory", str(directory.path), "placement"]
    _, output = processes.run(words)
    line = own_line("placement", launch.ranks, output)
    if output.exit_code != 0:
        raise failure(Phase("placement", None), "forebay-io500", output)
    return line


def _clean(directory: RunDirectory, notify: Notify) -> None:
    end_processes(directory.token)
    try:
        foreign = purge(directory.path, directory.token)
    except OSError as error:
        raise BenchError(
            f"{directory.path} cannot be removed: {error}", f"rm -r {shlex.quote(str(directory.path))}"
        ) from error
    for name in foreign:
        notify(f"{name} stays: the benchmark did not make it")


class _Runner:
    """Runs phases, and remembers how many operations those that write reached."""

    def __init__(self, setting: Setting, programs: Programs, processes: _Processes, notify: Notify) -> None:
        self.setting, self.programs, self.processes, self.notify = setting, programs, processes, notify
        self.reached: dict[str, int] = {}
        self.logs: dict[str, str] = {}

    def run(self, phase: Phase) -> PhaseResult:
        """One phase. BenchError if it fails."""
        started = time.time()
        if phase.name == "timestamp":
            return self._timestamp(phase, started)
        program = self.programs.of(phase)
        count = (
            self.reached[phase.reads] if phase.reads else self.setting.operations_max.get(folder_of(phase), 1)
        )
        self.notify(f"{phase.name} ...")
        command, output = self.processes.run(program.words(phase, self.setting, count))
        self.logs[phase.name] = output.text + output.messages
        measured = program.measured(phase, self.setting, count, output)
        if phase.writes:
            self.reached[phase.name] = measured.operations_of_rank
        found = self._result(phase, program, command, measured, started)
        self.notify(_result_line(found))
        return found

    def _result(
        self, phase: Phase, program: Program, command: list[str], measured: Measured, started: float
    ) -> PhaseResult:
        invalid = result.faults(
            phase.name, phase.writes, measured.score, measured.time_s, self.setting.stonewall_s
        )
        if measured.found == 0:
            invalid.append("it found no file")
        return PhaseResult(
            name=phase.name,
            scored=phase.group is not None,
            score=measured.score,
            unit=phase.unit,
            time_s=measured.time_s,
            operations=measured.operations,
            bytes=measured.bytes,
            found=measured.found,
            stonewall_operations=measured.stonewall_operations,
            verified=measured.verified,
            started_unix_s=started,
            program=program.name,
            command=shlex.join(command),
            invalid_because=invalid + measured.errors,
        )

    def _timestamp(self, phase: Phase, started: float) -> PhaseResult:
        (self.setting.directory / TIMESTAMP_FILE).touch(exist_ok=False)
        time.sleep(_TIMESTAMP_PAUSE_S)
        return PhaseResult(
            name=phase.name, scored=False, score=0.0, unit="kIOPS", time_s=0.0, operations=1, bytes=0,
            found=None, stonewall_operations=None, verified=None, started_unix_s=started, program="forebay",
            command="", invalid_because=[],
        )  # fmt: skip


def _result_line(phase: PhaseResult) -> str:
    wrong = f"; {phase.invalid_because[-1]}" if phase.verified is False else ""
    return f"{phase.name}: {phase.score:.3f} {phase.unit} in {phase.time_s:.1f} s{wrong}"


def _about(
    setting: Setting, programs: Programs, found: space.Space, nodes: list[str], limits: space.Limits
) -> dict[str, object]:
    """What a result says of its run."""
    why = ["only the unchanged program of IO500 makes an official result"]
    notes = []
    if programs.reduced:
        why.append("Forebay's own programs stand in for ior and mdtest")
    why.append("Forebay's own program stands in for pfind")
    if setting.stonewall_s != OFFICIAL_STONEWALL_S:
        why.append(f"the stonewall is {setting.stonewall_s} s, not {OFFICIAL_STONEWALL_S} s")
    if len(nodes) == 1:
        notes.append(
            "one node: names and small files are read from its cache" + _of_large_files(programs, found)
        )
    return {
        "version": __version__, "directory": str(setting.directory.parent), "file_system": found.kind,
        "nodes": nodes, "ranks": setting.ranks, "shift": setting.shift, "stonewall_s": setting.stonewall_s,
        "data_bytes_max": limits.data_bytes, "reduced": programs.reduced, "not_official_because": why,
        "notes": notes,
    }  # fmt: skip


def _of_large_files(programs: Programs, found: space.Space) -> str:
    if found.in_memory:
        return ", and large files from memory, where this file system has them"
    return (
        "; large files are dropped from it before they are read"
        if programs.reduced
        else ", and large files may be"
    )


def _result(about: dict[str, object], phases: list[PhaseResult]) -> Io500:
    official_length = about["stonewall_s"] == OFFICIAL_STONEWALL_S
    return Io500(
        started_unix_s=phases[0].started_unix_s,
        phases=phases,
        scores=scores({phase.name: phase.score for phase in phases}),
        valid=official_length and not any(phase.invalid_because for phase in phases if phase.scored),
        results=None,
        **about,
    )
