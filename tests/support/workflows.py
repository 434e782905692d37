"""The pipeline of examples/workflows, as each workflow system runs it."""

import json
import pathlib
import shutil
import subprocess
import sys

PROJECT = pathlib.Path(__file__).resolve().parents[2]
#: The script and the exit code of steps: ended by the time limit, results not staged out, succeeded.
TIMED_OUT = ("simulate.sh", 124)
UNDELIVERED = ("simulate.sh", 123)
SIMULATED = ("simulate.sh", 0)
ANALYSED = ("analyse.sh", 0)
#: Of two members, as the simulation computes it.
SUMMARY = "member,mean\n1,4.105241\n2,8.210481\n"
#: Time limit of the first attempt of a member.
SECONDS = 5
#: A step of the simulation, and one at which a simulation that did not resume waits for its time limit.
STEP = "    time.sleep(COMPUTE_S)\n"
SLOW_STEP = "    time.sleep(600 if fresh and state['step'] == 5 else 0)\n"
FRESH = "fresh = not checkpoint.exists()\n"


class Workflow:
    """A copy of the example, and a directory in which its pipeline runs."""

    def __init__(self, job, build: pathlib.Path):
        self.job = job
        self.build = build
        self.directory = job.directory
        self.example = job.directory.parent / "example"
        self.steps = self.example / "steps"
        shutil.copytree(PROJECT / "examples" / "workflows", self.example)

    def slow_down_first_attempts(self) -> None:
        """Makes each member time out once it has a checkpoint, however fast this machine is."""
        program = self.steps / "simulate.py"
        text = program.read_text()
        assert STEP in text
        program.write_text(text.replace("STEPS, CELLS", FRESH + "STEPS, CELLS").replace(STEP, SLOW_STEP))

    def start(self, *words: object, tools: pathlib.Path | None = None, **environment: str) -> subprocess.Popen:
        """Starts a command as a user does who has Forebay and the environment `tools` in PATH."""
        folders = [self.build / "bin", *([tools / "bin"] if tools else [])]
        settings = {
            "PATH": ":".join([*map(str, folders), "/usr/bin:/bin"]),
            "PYTHONPATH": str(PROJECT / "python" / "src"),
            "FOREBAY_STORE": str(self.job.store),
        }
        pipe = subprocess.PIPE
        return subprocess.Popen(
            list(map(str, words)),
            cwd=self.directory,
            env=self.job.environment(**settings | environment),
            stdin=subprocess.DEVNULL,
            stdout=pipe,
            stderr=pipe,
            text=True,
        )

    def run(self, *words: object, **more) -> subprocess.CompletedProcess[str]:
        return ended(self.start(*words, **more))

    def jobs(self) -> list[tuple[str, int]]:
        """The script and the exit code of each job that has ended, oldest first."""
        return [(pathlib.Path(outcome["script"]).name, outcome["exit_code"]) for outcome in self.outcomes()]

    def outcomes(self) -> list[dict]:
        files = [record / "job.json" for record in self.job.records()]
        found = [json.loads(file.read_text())["outcome"] for file in files if file.exists()]
        return [outcome for outcome in found if outcome is not None]

    def assert_resumed_and_analysed(self) -> None:
        """Each member timed out once or more, resumed from its checkpoint, and the analysis saw both results."""
        assert (self.directory / "summary.csv").read_text() == SUMMARY
        jobs = self.jobs()
        assert jobs.count(TIMED_OUT) >= 2 and jobs.count(SIMULATED) == 2 and jobs[-1] == ANALYSED
        assert len(jobs) == jobs.count(TIMED_OUT) + 3
        # The checkpoint of each member, and the results of both.
        staged = [(one["exit_code"], one["stage_in"]["files"], one["stage_out"]["files"]) for one in self.outcomes()]
        assert [files for code, files, _ in staged if code == 0] == [1, 1, 2], staged
        assert self.job.allocations() == []


def ended(process: subprocess.Popen) -> subprocess.CompletedProcess[str]:
    try:
        out, err = process.communicate(timeout=300)
    except BaseException:
        process.kill()
        raise
    print(out, err, file=sys.stderr)
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)
