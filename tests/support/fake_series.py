"""Stands in for `forebay __series`: its lines and records (docs/explanation/tuner.md), with times of a made-up machine.

Scripts are really run, but their MPI program only says how it was launched. Nothing is staged, mounted or measured.
"""

import fnmatch
import json
import math
import os
import pathlib
import random
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile

from support import record_data
from support.synthetic_machine import BUFFER, COLLECTIVE, COUNT, FILE, MIB, NODES, SIEVING, SIZE, SyntheticMachine

#: Seconds of a job beyond its programs' own.
START_S = 0.2
NOISE = 0.004
BLOCK_BYTES = 512
SURFACE = SyntheticMachine(int(os.environ.get("FAKE_SURFACE", "2")))


class Launch:
    """A program that a script launched, with what the machine makes of it."""

    def __init__(self, line: str, layout: list[str], noise: random.Random) -> None:
        ranks, directory, hints, words = line.rstrip("\n").split("\t")
        self.ranks, self.words = int(ranks), words.split(" ")
        is_replay = self.words[0] == "replay"
        self.program = pathlib.Path("/opt/app/forebay-replay" if is_replay else "/opt/app/app")
        self.path = os.path.join(directory, f"forebay-replay/work/{FILE}" if is_replay else self.words[-1])
        is_deaf = "--deaf" in self.words
        self.hints = {} if is_deaf else hints_for(FILE, hints)
        self.layout = {COUNT: str(SURFACE.targets), SIZE: str(MIB)} if is_deaf else dict(zip((COUNT, SIZE), layout))
        hinted = {f"{FILE}:{name}": value for name, value in self.hints.items()}
        known = {name: hinted[name] for name in (NODES, BUFFER, COLLECTIVE, SIEVING) if name in hinted}
        self.io_s = round(SURFACE.seconds(known | self.layout) * math.exp(noise.gauss(0, NOISE)), 6)
        self.compute_s = 0.0 if is_replay else float(self._option("--compute") or 0)
        self.is_buffered = known.get(COLLECTIVE, "automatic") != "disable"
        self.aggregators = int(known.get(NODES, 1)) if self.is_buffered else self.ranks

    def _option(self, name: str) -> str | None:
        return self.words[self.words.index(name) + 1] if name in self.words else None

    def step(self) -> dict:
        """As libforebay_mpi.so writes it."""
        done = {"finished": True, "trace": None, "wall_s": self.io_s + self.compute_s, "ranks": self.ranks}
        named = {"program": str(self.program), "arguments": self.words[1:]}
        spent = {"sum": self.io_s * self.ranks, "slowest": self.io_s}
        return record_data.step(self._file(), mpi="Open MPI v4.1.4", io_s=spent, **named, **done)

    def _file(self) -> dict:
        call_bytes = int(SURFACE.mib * MIB) // self.ranks // 8
        total = call_bytes * self.ranks * 8
        mover_bytes = int(self.hints.get("cb_buffer_size", 16 * MIB)) if self.is_buffered else BLOCK_BYTES
        calls = max(1, total // self.aggregators // mover_bytes)
        writers = [
            {"rank": rank, "aggregator": True, "system_calls": calls, "bytes": total // self.aggregators}
            for rank in range(self.aggregators)
        ]
        write = {
            "calls": {"independent": 0, "collective": 8 * self.ranks},
            "asked_bytes": total,
            "asked_common_sizes": [[call_bytes, 8 * self.ranks]],
            "aggregators": self.aggregators,
            "system_calls": calls * self.aggregators,
            "system_bytes": total,
            "writers": writers,
            "rmw_calls": 0,
        }
        none = {"calls": {"independent": 0, "collective": 0}, "asked_bytes": 0, "system_calls": 0, "system_bytes": 0}
        none["aggregators"] = 0
        spent = {"open": 0.0, "close": 0.0, "metadata": 0.0, "sync": 0.0, "read": {"calls": 0.0, "data": 0.0}}
        asked = {"environment": self.hints, "program": {}, "in_force": None, "without_effect": []}
        return {
            "path": self.path,
            "layer": "mpiio",
            "ranks": self.ranks,
            "opens": self.ranks,
            "opened_by": "mca_io_romio321.so",
            "stripe_count": int(self.layout[COUNT]),
            "stripe_bytes": int(self.layout[SIZE]),
            "hints": asked,
            "write": write,
            "read": none,
            "seconds": {
                "sum": spent | {"write": {"calls": self.io_s * self.ranks, "data": self.io_s * self.ranks}},
                "slowest": spent | {"write": {"calls": self.io_s, "data": self.io_s}},
            },
        }


def hints_for(name: str, text: str) -> dict[str, str]:
    """Those of the first pattern that matches, as docs/reference/mpi.md has it."""
    for rule in re.sub("#[^#]*#", "list", text).split(","):
        pattern, *hints = rule.split(":")
        if fnmatch.fnmatch(name, pattern):
            return dict(hint.split("=", 1) for hint in hints)
    return {}


class Series:
    """One series of a script."""

    def __init__(self, options: list[str], script: pathlib.Path, own: pathlib.Path) -> None:
        self.own, self.layout = own, own / "layout"
        given = dict(zip(options, options[1:]))
        self.emulated = pathlib.Path(given["--pfs-model"]).stem if "--pfs-model" in given else None
        #: A directory and what is seen in its place.
        self.map = given["--map"].split("=", 1) if "--map" in given else None
        on_file_system = "--no-burst-buffer" in options
        place = pathlib.Path(given["--pfs-dir"]) / "forebay-0-1795603578788" if on_file_system else own
        self.allocation = place / "striped" if "#DW jobdw" in script.read_text() else None
        self.is_starting = self.is_ended = False
        self.settings = {"FOREBAY_NO_BURST_BUFFER": "1"} if "--no-burst-buffer" in options else {}
        self.variables = {"DW_JOB_STRIPED": f"{self.allocation}/"} if self.allocation else {}

    def ready(self) -> dict:
        size = {"capacity_bytes": 64 * MIB, "asked_bytes": 64 * MIB}
        store = {"store": str(self.own), "in_memory": False, "enforced": False, "nodes": 1, "copies": 1, **size}
        had = {"burst_buffer": bool(self.allocation), "variables": self.variables, "root": ""}
        staged = {"store": store if self.allocation else None, "stage_in": None}
        return {"ready": True, **had, **staged, "emulated": self.emulated}

    def answer(self, request: dict) -> dict:
        """Does the run, and says what became of it."""
        if self.allocation and request.get("fresh"):
            shutil.rmtree(self.allocation, ignore_errors=True)
            self.allocation.mkdir(parents=True)
        launches = self.own / "launches"
        launches.write_text("")
        if not self.layout.exists():
            self.layout.write_text(f"{SURFACE.targets} {MIB}")
        status = self._run(request, launches)
        noise, layout = random.Random(request["run"]), self.layout.read_text().split()
        done = [Launch(line, layout, noise) for line in launches.read_text().splitlines()]
        job_s = START_S + sum(one.io_s + one.compute_s for one in done)
        limit_s = request.get("time_limit_s")
        is_over = limit_s is not None and job_s > limit_s
        status, job_s = (124, limit_s) if is_over else (status, job_s)
        if request.get("record"):
            self._record(request, done, status, job_s)
        ended = {"ended_by_signal": None, "leftover_processes": 0, "unended_processes": []}
        return {"run": request["run"], "job_status": status, "job_s": job_s, "over_time_limit": is_over, **ended}

    def _run(self, request: dict, launches: pathlib.Path) -> int:
        """The exit status. Where standard input ends, or a signal comes, the run ends with this process."""
        words, directory = request.get("command"), request.get("directory")
        if words is None:
            script = self.own / "script.sh"
            script.write_text(self._mapped(pathlib.Path(request["script"]).read_text()))
            words = ["/bin/bash", str(script)]
        paths = {"FAKE_LAUNCHES": launches, "FAKE_LAYOUT": self.layout}
        environment = os.environ | self.settings | self.variables | {name: str(path) for name, path in paths.items()}
        environment |= request.get("environment", {})
        with open(request.get("output") or os.devnull, "wb") as output:
            self.is_starting = True  # a signal now would leave a process that nothing ends
            process = subprocess.Popen(
                words,
                cwd=directory and self._mapped(directory),
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            try:
                self.is_starting = False
                if self.is_ended:
                    end()
                ended = os.pidfd_open(process.pid)
                if sys.stdin in select.select([ended, sys.stdin], [], [])[0]:
                    end()
                return process.wait()
            finally:
                try:
                    os.killpg(process.pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass

    def on_signal(self, *_: object) -> None:
        self.is_ended = True
        if not self.is_starting:
            end()

    def _mapped(self, text: str) -> str:
        return (
            re.sub(rf"{re.escape(self.map[0])}(?![\w./+-]*\.tune)", lambda _: self.map[1], text) if self.map else text
        )

    def _seen(self, step: dict) -> str:
        text = json.dumps(step)
        return text.replace(self.map[1], self.map[0]) if self.map else text

    def _record(self, request: dict, done: list[Launch], status: int, job_s: float) -> None:
        record = pathlib.Path(request["record"])
        outcome = {"job_status": status, "job_s": job_s, "exit_code": status}
        told = {"directory": request["directory"], "emulated": self.emulated, "outcome": outcome}
        (record / "job.json").write_text(json.dumps(record_data.job_json(f"1.{request['run']}", **told)))
        for number, launch in enumerate(done):
            name, step = f"170000000000{number}-{100 + number}", launch.step()
            if request.get("trace"):
                step["trace"] = f"trace-{name}"
                (record / step["trace"]).mkdir()
                (record / step["trace"] / "header").write_text(f"# {launch.program}, , {launch.ranks} ranks, \n")
            if launch.words[0] == "replay":
                issued = {"ranks": launch.ranks, "calls": 64, "bytes": MIB, "skipped": 0, "differences": 0}
                with open(request["output"], "a") as output:
                    output.write(json.dumps(issued | {"io_s": launch.io_s, "total_s": launch.io_s}) + "\n")
            (record / f"step-{name}.json").write_text(self._seen(step))


def end(*_: object) -> None:
    """Leaves everything, whatever else ends it meanwhile."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise SystemExit


def main(words: list[str]) -> None:
    before = words[: words.index("--")] if "--" in words else words
    signal.signal(signal.SIGTERM, end)
    with tempfile.TemporaryDirectory(prefix="fake-series-") as own:
        series = Series(before[1:-1], pathlib.Path(before[-1]), pathlib.Path(own))
        signal.signal(signal.SIGTERM, series.on_signal)
        print("a made-up series", file=sys.stderr, flush=True)
        print(json.dumps(series.ready()), flush=True)
        while line := sys.stdin.readline():
            print(json.dumps(series.answer(json.loads(line))), flush=True)
        end()


if __name__ == "__main__":
    main(sys.argv[1:])
