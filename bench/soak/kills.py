"""Kills `forebay run` at a seeded moment and looks whether `forebay clean` finds and takes away everything."""

import collections
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import time

from support.job import NOBODY, Job
from support.strace import abandoned

from case import CALLS, Case

MODEL = pathlib.Path(__file__).resolve().parents[2] / "machines" / "lustre-small.toml"
PATIENCE_S = 60


class SoakFailure(Exception):
    """Something that Forebay promises was not so."""


class Round:
    """One job in folders of its own, which are removed at the end."""

    def __init__(self, forebay: pathlib.Path, case: Case):
        self.case = case
        self.scratch = pathlib.Path(tempfile.mkdtemp(prefix="soak-"))
        self.scratch.chmod(0o755)
        self.job = Job(forebay, self.scratch)
        self.results = self.job.directory / "results"
        self._fill(self.job.directory / "input")
        (self.job.directory / "job.sh").write_text("\n".join(case.script()))
        if case.in_memory:
            self.job.in_memory()
        if case.ordinary_user:
            self.job.as_nobody()
            for path in [self.scratch, *self.scratch.rglob("*")]:
                os.chown(path, NOBODY, NOBODY)

    def _fill(self, directory: pathlib.Path) -> None:
        directory.mkdir()
        for number in range(self.case.files):
            (directory / str(number)).write_text(f"input {number}\n" * 100)

    def start(self, *prefix: str) -> subprocess.Popen:
        emulation = ["--pfs-model", MODEL] if self.case.emulated else []
        return self.starts([*prefix, self.job.forebay, "run", *self.job.where, *emulation, "job.sh"])

    def starts(self, words: list) -> subprocess.Popen:
        # Into a file: what outlives a killed process would hold a pipe open.
        with open(self.scratch / "said", "ab") as said:
            user = self.job.user
            return subprocess.Popen(
                words,
                cwd=self.job.directory,
                env=self.job.environment(),
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                user=user,
                group=user,
                extra_groups=None if user is None else [],
            )

    def said(self) -> str:
        return (self.scratch / "said").read_text(errors="replace")

    def processes(self) -> dict[int, str]:
        """All that were started here and are alive, by their environment; and their names."""
        found = {}
        mark = str(self.scratch).encode()
        for directory in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                if mark in (directory / "environ").read_bytes():
                    found[int(directory.name)] = (directory / "comm").read_text().strip()
            except OSError:  # it has ended
                continue
        return found

    def close(self) -> None:
        for pid in self.processes():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        shutil.rmtree(self.scratch, ignore_errors=True)


class Undisturbed:
    """How long a kind of job takes and which calls its main thread makes, learnt once."""

    def __init__(self, forebay: pathlib.Path):
        self.forebay = forebay
        self.known = {}

    def of(self, case: Case) -> tuple[float, collections.Counter]:
        if case.kind() not in self.known:
            self.known[case.kind()] = self._learn(case)
        return self.known[case.kind()]

    def _learn(self, case: Case) -> tuple[float, collections.Counter]:
        here = Round(self.forebay, case)
        try:
            seconds = min(timed(here) for _ in range(2))
            trace = here.scratch / "trace"
            assert_succeeded(here, here.start("strace", "-D", "-qq", "-o", trace, "-e", "trace=" + ",".join(CALLS)))
            counted = collections.Counter(re.findall(r"^(\w+)\(", trace.read_text(), re.MULTILINE))
            return seconds, counted
        finally:
            here.close()


def timed(here: Round) -> float:
    began = time.monotonic()
    assert_succeeded(here, here.start())
    seconds = time.monotonic() - began
    whole(here)
    nothing_left(here, set())
    return seconds


def assert_succeeded(here: Round, process: subprocess.Popen) -> None:
    if process.wait(PATIENCE_S) != 0:
        raise SoakFailure(f"an undisturbed run ended with {process.returncode}: {here.stdout_text()}")


def play(forebay: pathlib.Path, case: Case, undisturbed: Undisturbed) -> str:
    """One seed. Returns in a word where the kill met the job; raises SoakFailure."""
    seconds, calls = undisturbed.of(case)
    here = Round(forebay, case)
    emulation_before = emulated_states()
    try:
        killed, pid = kill(here, seconds, calls)
        states = {path for path in emulated_states() - emulation_before if path.name.startswith(f"forebay-pfs-{pid}-")}
        if not killed:
            whole(here)
            nothing_left(here, states)
            return "too late"
        where = look(here)
        clean(here)
        if (here.job.directory / "written").exists() and where == "script over" and not case.discard:
            whole(here)
        nothing_left(here, states)
        return where
    except (SoakFailure, subprocess.TimeoutExpired, AssertionError) as error:
        raise SoakFailure(f"{error}\n--- said:\n{here.stdout_text()[-3000:]}") from error
    finally:
        here.close()
        for path in emulated_states() - emulation_before:
            if path.name.startswith(f"forebay-pfs-{pid}-"):
                path.unlink(missing_ok=True)


def kill(here: Round, seconds: float, calls: collections.Counter) -> tuple[bool, int]:
    """Was the job's `forebay run` killed, and what was its process?"""
    case = here.case
    if case.share is not None:
        process = here.start()
        try:
            process.wait(seconds * case.share)
        except subprocess.TimeoutExpired:
            process.kill()
    else:
        name = sorted(calls)[int(case.call * len(calls))]
        number = 1 + int(case.call_share * calls[name])
        inject = f"inject={name}:signal=KILL:when={number}"
        process = here.start("strace", "-D", "-qq", "-o", "/dev/null", "-e", f"trace={name}", "-e", inject)
    status = process.wait(PATIENCE_S)
    if status not in (0, -signal.SIGKILL):
        raise SoakFailure(f"forebay run ended with {status}")
    return status != 0, process.pid


def look(here: Round) -> str:
    """`forebay status` names what was left; where the kill met the job."""
    time.sleep(0.05)  # a keeper that was not to stay is about to end
    jobs = json.loads(finished(here, "status", "--json"))
    holds_memory = "forebay-keeper" in here.processes().values()
    if (here.job.allocations() or holds_memory) and len(jobs) != 1:
        raise SoakFailure(f"there is an allocation, and forebay status names {len(jobs)} jobs: {jobs}")
    if not jobs:
        return "before"
    if jobs[0]["state"] not in ("left", "lost"):
        raise SoakFailure(f"forebay status: {jobs[0]}")
    if jobs[0]["state"] == "lost" and jobs[0]["undrained"]:
        raise SoakFailure(f"what was to be staged out is lost: {jobs[0]}")
    if (here.job.directory / "written").exists():
        return "script over"
    return "script" if (here.job.directory / "began").exists() else jobs[0]["phase"]


def finished(here: Round, *words: str) -> str:
    done = here.job.command(*words)
    if done.returncode != 0:
        raise SoakFailure(f"forebay {' '.join(words)} ended with {done.returncode}: {done.stderr}")
    return done.stdout


def clean(here: Round) -> None:
    case = here.case
    discard = ["--discard"] if case.discard else []
    if case.clean_killed_after_s is not None:
        first = here.starts([here.job.forebay, "clean", "--kill", *discard])
        try:
            first.wait(case.clean_killed_after_s)
        except subprocess.TimeoutExpired:
            first.kill()
        first.wait()
    before = (here.job.directory / "began").exists()
    done = here.job.command("clean", "--kill", *discard)
    # A script that was killed before it made what is staged out: that is said, and nothing deleted.
    never_written = case.makes_its_directory and not before and "does not exist" in done.stderr
    if done.returncode == 123 and never_written:
        done = here.job.command("clean", "--kill", "--discard")
    if done.returncode != 0:
        raise SoakFailure(f"forebay clean --kill ended with {done.returncode}: {done.stderr}")


def whole(here: Round) -> None:
    """The results are at their place, as the script wrote them, and nothing else is."""
    wanted = {f"new/{number}": f"result {number}\n" for number in range(here.case.files)}
    if not here.case.makes_its_directory:
        wanted |= {str(number): f"input {number}\n" * 100 for number in range(here.case.files)}
    found = {str(path.relative_to(here.results)): path for path in here.results.rglob("*") if path.is_file()}
    if wanted.keys() != found.keys():
        different = sorted(wanted.keys() ^ found.keys())
        raise SoakFailure(f"{len(found)} results instead of {len(wanted)}: {different[:5]} ...")
    for name, text in wanted.items():
        if found[name].read_text() != text:
            raise SoakFailure(f"results/{name} is not what the script wrote")


def remains(here: Round, states: set[pathlib.Path]) -> list[pathlib.Path]:
    job = here.job
    left = [*job.state.iterdir(), *job.temporary.iterdir(), *job.allocations(), *job.directory.rglob(".forebay-*.part")]
    return left + [state for state in states if state.exists()]


def nothing_left(here: Round, states: set[pathlib.Path]) -> None:
    if remains(here, states):
        abandoned(here.job)
        finished(here, "clean")
    if left := remains(here, states):
        raise SoakFailure("left behind: " + ", ".join(str(path) for path in left[:5]))
    deadline = time.monotonic() + 5
    while alive := here.processes():
        if time.monotonic() > deadline:
            raise SoakFailure(f"still alive: {alive}")
        time.sleep(0.02)


def emulated_states() -> set[pathlib.Path]:
    return set(pathlib.Path("/dev/shm").glob("forebay-pfs-*"))
