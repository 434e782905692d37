"""A series: many runs in one allocation, staged in once, told on standard input (docs/explanation/tuner.md)."""

import json
import os
import pathlib
import select
import shutil
import signal
import subprocess
import sys

import pytest

from support.job import DW
from support.strace import abandoned, points, strace
from support.mpi import Mpi, launching
from support.slow_model import MODEL
from support.waiting import wait_until
from support.trees import named

BOTH = DW.replace("striped", "striped,private")
STAGE_IN = "#DW stage_in type=directory source=%d/input destination=$DW_JOB_STRIPED/input"
STAGE_OUT = "#DW stage_out type=directory source=$DW_JOB_STRIPED/input destination=%d/results"
ANSWER_S_MAX = 120
HANGING = "touch running; exec sleep 300"


class Series:
    """A series of the job's script that was started, and the requester's ends of its streams."""

    def __init__(self, job, *options, begun=True, **environment):
        self.log = job.directory.parent / "log"
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                [job.forebay, "__series", *job.where, *map(str, options), "job.sh"],
                cwd=job.directory,
                env=job.environment(**environment),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                bufsize=0,  # select must see all that was not read
                user=job.user,
                group=job.user,
                extra_groups=None if job.user is None else [],
            )
        self.ready = self.answer() if begun else None

    def send(self, line):
        self.process.stdin.write(line.encode() + b"\n")

    def answer(self):
        assert select.select([self.process.stdout], [], [], ANSWER_S_MAX)[0], self.log.read_text()
        line = self.process.stdout.readline()
        assert line, self.log.read_text()
        return json.loads(line)

    def run(self, number, **request):
        """A run that could be begun."""
        self.send(json.dumps({"run": number, **request}))
        answer = self.answer()
        assert answer["run"] == number and "error" not in answer, (answer, self.log.read_text())
        return answer

    def shell(self, number, text, **request):
        """A line of shell, as a command."""
        return self.run(number, command=["sh", "-c", text], **request)

    def outputs(self, job, **request):
        """What a run prints, which must succeed."""
        assert self.run(1, output="out", **request)["job_status"] == 0, self.log.read_text()
        return (job.directory / "out").read_text()

    def namespace_directory(self, namespace):
        """A namespace, as processes outside of the view see it."""
        return pathlib.Path(self.ready["root"] + self.ready["variables"][f"DW_JOB_{namespace}"])

    def end(self):
        """Ends its standard input; returns its exit status."""
        self.process.stdin.close()
        return self.process.wait(timeout=ANSWER_S_MAX)


@pytest.fixture
def begin(job):
    """Begins series of the job, and takes away what a test that failed has left of them."""
    all_begun = []

    def one(*options, **more):
        all_begun.append(Series(job, *options, **more))
        return all_begun[-1]

    yield one
    for series in all_begun:
        if series.process.poll() is None:
            series.process.kill()
            series.process.wait()
        for stream in (series.process.stdin, series.process.stdout):
            stream.close()


@pytest.fixture(params=["directory", "memory of root", "memory of nobody"])
def staged(job, request):
    """A job that stages in two files and a link."""
    if os.getuid() != 0 and "memory" in request.param:
        pytest.skip("only root can be both")
    source = job.directory / "input"
    (source / "deep").mkdir(parents=True)
    (source / "a").write_text("a as it was\n")
    (source / "deep" / "b").write_text("b as it was\n")
    (source / "link").symlink_to("a")
    job.script("", BOTH, STAGE_IN, STAGE_OUT)
    if "memory" in request.param:
        job.in_memory()
    if "nobody" in request.param:
        job.as_nobody()
    return job


def written(job, name, body):
    (job.directory / name).write_text(f"#!/bin/bash\n{body}\n")
    return name


PRINT_DIRECTORY = """stat -c %d:%i "$DW_JOB_STRIPED"; cd "$DW_JOB_STRIPED"
cat input/a input/deep/b input/link new 2>/dev/null; true"""


def test_three_runs_share_one_allocation_and_one_staging(staged, begin):
    series = begin()
    assert series.ready["ready"] and series.ready["burst_buffer"] and series.ready["emulated"] is None
    assert series.ready["stage_in"]["files"] == 3 and series.ready["store"]["capacity_bytes"] == 64 << 20
    shutil.rmtree(staged.directory / "input")
    first = series.outputs(staged, script=written(staged, "look.sh", PRINT_DIRECTORY))
    assert first.splitlines()[1:] == ["a as it was", "b as it was", "a as it was"]
    assert series.shell(2, "echo new > $DW_JOB_STRIPED/new")["job_status"] == 0
    assert series.outputs(staged, command=["sh", "-c", PRINT_DIRECTORY]) == first + "new\n"
    assert series.end() == 0
    staged.leaves_nothing()
    assert not (staged.directory / "results").exists() and staged.records() == []


SPOIL = """set -e; cd "$DW_JOB_STRIPED"
touch -r input/a old; echo "a AS IT WAS" > input/a; touch -r old input/a
rm -r input/deep; mkdir -p input/new/deeper; echo x > input/new/deeper/x; chmod 0 input/new
mkfifo fifo; echo x > "$DW_JOB_PRIVATE/x"; chmod 500 input"""


def names(directory):
    return sorted(str(path.relative_to(directory)) for path in directory.rglob("*"))


def test_fresh_run_finds_only_the_staged_in_files(staged, begin):
    series = begin()
    striped, private = series.namespace_directory("STRIPED"), series.namespace_directory("PRIVATE")
    before = {name: (striped / name).lstat() for name in names(striped)}
    record = staged.directory / "record"
    assert series.shell(1, SPOIL)["job_status"] == 0, series.log.read_text()
    assert names(striped) != list(before) and names(private) == ["x"]
    assert series.run(2, command=["true"], fresh=True, record=str(record))["job_status"] == 0
    assert names(private) == [] and {name: (striped / name).lstat().st_mode for name in names(striped)} == {
        name: found.st_mode for name, found in before.items()
    }
    assert (striped / "input" / "a").read_text() == "a as it was\n"
    assert (striped / "input" / "deep" / "b").read_text() == "b as it was\n"
    # Only what was touched was staged in once more.
    assert json.loads((record / "job.json").read_text())["outcome"]["stage_in"]["files"] == 2
    again = {name: (striped / name).lstat() for name in names(striped)}
    assert again["input/link"].st_ino == before["input/link"].st_ino
    assert again["input"].st_mtime_ns == before["input"].st_mtime_ns
    assert series.run(3, command=["true"], fresh=True)["job_status"] == 0
    assert (striped / "input" / "a").stat().st_ino == again["input/a"].st_ino
    assert series.end() == 0
    staged.leaves_nothing()


def test_files_next_to_a_run_record_are_not_taken_for_old_records(job, begin):
    cases = job.directory / "cases"
    for number in range(1000, 1210):
        (cases / str(number)).mkdir(parents=True)
    job.script("true", DW)
    series = begin()
    assert series.run(1, command=["true"], record=str(cases / "2000"))["job_status"] == 0
    assert series.end() == 0
    assert len(list(cases.iterdir())) == 211


def test_file_that_cannot_be_staged_again_is_an_error_and_the_series_continues(staged, begin):
    series = begin()
    (staged.directory / "input").rename(staged.directory / "elsewhere")
    assert series.shell(1, "rm $DW_JOB_STRIPED/input/a")["job_status"] == 0
    series.send('{"run": 2, "command": ["true"], "fresh": true}')
    answer = series.answer()
    assert answer["run"] == 2 and "input does not exist" in answer["error"] and answer["hint"]
    (staged.directory / "elsewhere").rename(staged.directory / "input")
    assert series.run(3, command=["true"], fresh=True)["job_status"] == 0
    assert (series.namespace_directory("STRIPED") / "input" / "a").read_text() == "a as it was\n"
    assert series.end() == 0


def test_directory_removed_by_the_job_is_restored(job, begin):
    job.script("", BOTH)
    series = begin()
    assert series.shell(1, 'rmdir "$DW_JOB_STRIPED" "$DW_JOB_PRIVATE"')["job_status"] == 0
    assert series.shell(2, 'cd "$DW_JOB_STRIPED" && cd "$DW_JOB_PRIVATE"', fresh=True)["job_status"] == 0


def test_run_over_its_time_limit_is_ended_and_the_next_one_runs(job, begin):
    job.script("", DW)
    series = begin()
    answer = series.run(1, script=written(job, "hangs.sh", HANGING), time_limit_s=0.5)
    assert answer["over_time_limit"] and answer["job_status"] == 124
    answer = series.shell(2, "kill -SEGV $$")
    assert (answer["over_time_limit"], answer["job_status"], answer["ended_by_signal"]) == (False, 139, signal.SIGSEGV)
    answer = series.shell(3, "sleep 300 & exit 3")
    assert (answer["job_status"], answer["leftover_processes"], answer["unended_processes"]) == (3, 1, [])
    assert answer["ended_by_signal"] is None


def test_each_run_has_its_directory_environment_output_and_limit(job, begin):
    job.script("", "#SBATCH --time=0:01", DW)
    series = begin()
    other = job.directory / "other dir"
    other.mkdir()
    said = series.outputs(
        job,
        command=["sh", "-c", 'pwd; echo "$A-$SLURM_SUBMIT_DIR"; echo E >&2'],
        environment={"A": "b"},
        directory="other dir",
    )
    assert said == f"{other}\nb-{other}\nE\n"
    assert series.outputs(job, command=["sh", "-c", 'pwd; echo "${A-none}"; command -v srun']).splitlines()[:2] == [
        str(job.directory),
        "none",
    ]
    answer = series.run(3, script=written(job, "hangs.sh", HANGING))
    assert answer["over_time_limit"], "the script's own limit counts where a request has none"


def test_run_that_cannot_start_is_answered_with_a_hint(job, begin):
    job.script("", DW)
    series = begin()
    (job.directory / "plain").write_text("true\n")
    (job.directory / "record").mkdir()
    (job.directory / "record" / "job.json").write_text("{}")
    for request, said in [
        ({"script": "missing.sh"}, "missing.sh"),
        ({"script": "plain"}, "does not begin with #!"),
        ({"command": ["no-such-program"]}, "no-such-program"),
        ({"command": ["true"], "directory": "/no/such"}, "/no/such"),
        ({"command": ["true"], "output": "/no/such/file"}, "/no/such/file"),
        ({"command": ["true"], "record": "record"}, "there is a record"),
    ]:
        series.send(json.dumps({"run": 4, **request}))
        answer = series.answer()
        assert answer["run"] == 4 and said in answer["error"] and answer["hint"], answer
    assert series.run(5, command=["true"])["job_status"] == 0
    assert (job.directory / "record" / "job.json").read_text() == "{}"


def test_bad_request_is_answered_and_the_series_continues(job, begin):
    job.script("", DW)
    series = begin()
    for line, number in [
        ("run it", None),
        ("", None),
        ('{"run": 7}', 7),
        ('{"run": 7, "script": "a", "command": ["b"]}', 7),
        ('{"run": 7, "command": ["true"], "fresch": true}', 7),
        ('{"run": 7, "command": ["true"], "time_limit_s": -1}', 7),
    ]:
        series.send(line)
        answer = series.answer()
        assert answer["run"] == number and "no request" in answer["error"] and answer["hint"], answer
    assert series.run(8, command=["true"])["job_status"] == 0


def test_requests_can_be_sent_before_earlier_answers(job, begin):
    job.script("", DW)
    series = begin()
    for number in range(5):
        series.send(json.dumps({"run": number, "command": ["sh", "-c", f"exit {number}"]}))
    assert [series.answer()["job_status"] for _ in range(5)] == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("store", ["directory", "memory"])
def test_end_of_requests_ends_the_current_run(job, begin, store):
    if store == "memory":
        job.in_memory()
    job.script("", DW, STAGE_OUT)
    series = begin()
    body = "mkdir $DW_JOB_STRIPED/input; echo $$ > pid; touch running; exec sleep 300"
    series.send(json.dumps({"run": 1, "script": written(job, "hangs.sh", body), "record": "record"}))
    wait_until((job.directory / "running").exists)
    assert series.end() == 0
    assert not pathlib.Path("/proc", (job.directory / "pid").read_text().strip()).exists()
    assert json.loads((job.directory / "record" / "job.json").read_text())["state"] == "ended"
    job.leaves_nothing()
    assert not (job.directory / "results").exists()


def test_series_ends_when_its_requester_stops_reading(job, begin):
    job.script("", DW)
    series = begin()
    series.process.stdout.close()
    series.send('{"run": 1, "command": ["true"]}')
    assert series.process.wait(timeout=300) == 0
    job.leaves_nothing()


REQUESTER = """
import subprocess, sys, time
series = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
series.stdout.readline()
series.stdin.write('{"run": 1, "command": ["sh", "-c", "touch running; exec sleep 300"]}\\n')
series.stdin.flush()
print(series.pid, flush=True)
time.sleep(300)
"""


def test_series_removes_everything_after_its_requester_is_killed(job):
    job.script("", DW)
    words = [sys.executable, "-c", REQUESTER, job.forebay, "__series", *job.where, "job.sh"]
    requester = subprocess.Popen(words, cwd=job.directory, env=job.environment(), stdout=subprocess.PIPE, text=True)
    series = pathlib.Path("/proc", requester.stdout.readline().strip())
    wait_until((job.directory / "running").exists)
    requester.kill()
    requester.communicate()
    wait_until(lambda: not series.exists())
    job.leaves_nothing()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("busy", [False, True])
def test_signal_ends_the_series_and_nothing_is_staged_out(job, begin, number, busy):
    job.script("", DW, STAGE_OUT)
    series = begin()
    assert series.shell(1, "mkdir $DW_JOB_STRIPED/input")["job_status"] == 0
    if busy:
        series.send(json.dumps({"run": 2, "script": written(job, "hangs.sh", HANGING)}))
        wait_until((job.directory / "running").exists)
    series.process.send_signal(number)
    assert series.process.wait(timeout=300) == 128 + number
    job.leaves_nothing()
    assert not (job.directory / "results").exists()


def killed(job, series):
    series.process.kill()
    series.process.wait()
    (shown,) = json.loads(job.command("status", "--json").stdout)
    assert shown["state"] == "left" and not shown["undrained"], shown
    return shown


def test_clean_removes_a_killed_series_and_stages_nothing_out(staged, begin):
    series = begin()
    body = "echo wrong > $DW_JOB_STRIPED/input/a; touch running; exec sleep 300"
    series.send(json.dumps({"run": 1, "script": written(staged, "hangs.sh", body), "record": "record"}))
    wait_until((staged.directory / "running").exists)
    assert killed(staged, series)["processes"]
    assert staged.command("clean").returncode == 1
    done = staged.command("clean", "--kill")
    assert done.returncode == 0, done.stderr
    staged.leaves_nothing()
    assert not (staged.directory / "results").exists()
    said = json.loads((staged.directory / "record" / "job.json").read_text())
    assert (said["state"], said["killed"], said["kind"]) == ("ended", True, "run")


def test_clean_removes_a_series_killed_between_runs_without_options(staged, begin):
    series = begin()
    assert series.shell(1, "echo wrong > $DW_JOB_STRIPED/input/a")["job_status"] == 0
    assert killed(staged, series)["processes"] == []
    done = staged.command("clean")
    assert done.returncode == 0, done.stderr
    staged.leaves_nothing()
    assert not (staged.directory / "results").exists()


def test_series_continues_after_a_run_empties_the_temporary_directory(job, begin):
    job.script("", DW)
    series = begin()
    assert series.shell(1, 'rm -rf "$TMPDIR"/*')["job_status"] == 0
    assert series.outputs(job, script=written(job, "steps.sh", "srun -n 1 echo step")) == "step\n"
    assert series.end() == 0
    job.leaves_nothing()


def test_series_without_a_burst_buffer_allocates_on_the_file_system(staged, begin):
    series = begin("--no-burst-buffer")
    assert series.ready["root"] == ""
    variable = series.ready["variables"]["DW_JOB_STRIPED"]
    assert variable.startswith(f"{staged.directory.parent}/") and pathlib.Path(variable).is_dir()
    assert series.outputs(staged, command=["sh", "-c", "echo $DW_JOB_STRIPED"], fresh=True) == f"{variable}\n"
    assert series.end() == 0
    staged.leaves_nothing()
    assert not pathlib.Path(variable).exists()


def test_script_with_an_unset_variable_is_not_run(job, begin):
    job.script("", DW)
    series = begin()
    request = {"run": 1, "script": written(job, "other.sh", "touch ran; rm -rf $DW_JOB_PRIVATE/*")}
    series.send(json.dumps(request))
    answer = series.answer()
    assert "$DW_JOB_PRIVATE is not set" in answer["error"] and not (job.directory / "ran").exists()
    assert series.end() == 0


def test_root_member_shows_what_only_the_job_sees(job, begin):
    shown = job.directory.parent / "shown"
    shown.mkdir()
    job.script("", BOTH)
    job.in_memory("--map", f"/forebay-test/{shown.parent.name}={shown}")
    series = begin()
    place = f"/forebay-test/{shown.parent.name}"
    assert series.shell(1, f"echo 1 > $DW_JOB_STRIPED/x; echo 2 > {place}/x")["job_status"] == 0
    assert (series.namespace_directory("STRIPED") / "x").read_text() == "1\n" and not pathlib.Path(place).exists()
    assert pathlib.Path(f"{series.ready['root']}{place}/x").read_text() == "2\n" == (shown / "x").read_text()
    assert series.end() == 0


def test_series_without_a_view_has_no_root_member(job, begin):
    job.script("", DW)
    job.in_memory("--no-userns")
    series = begin()
    assert series.ready["root"] == "" and series.namespace_directory("STRIPED").is_dir()
    assert series.end() == 0
    assert not series.namespace_directory("STRIPED").exists()


def test_launchers_of_a_real_scheduler_are_used(job, begin):
    job.script("", DW)
    series = begin(SLURM_JOB_ID="77")
    said = series.outputs(job, command=["sh", "-c", 'echo "$SLURM_JOB_ID ${FOREBAY_SHIMS-none}"; ls "$DW_JOB_STRIPED"'])
    assert said == "77 none\n"


@pytest.mark.parametrize("family", ["openmpi", "mpich"])
def test_command_is_recorded_with_ranks_hints_and_calls(job, begin, build, family):
    mpi = Mpi(family, build)
    file = f"series-{family}-{job.directory.parent.name}"
    job.script("", DW)
    series = begin()
    mpiexec = mpi.command("mpiexec")
    for number, trace in enumerate([False, True]):
        answer = series.run(
            number,
            command=[mpiexec, "-n", "4", str(mpi.observed()), "independent", str(job.directory / file)],
            record=f"records/{number}",
            trace=trace,
            output=f"output-{number}",
            environment=launching() | {"ROMIO_HINTS": "/no/such"},
        )
        assert answer["job_status"] == 0, (job.directory / f"output-{number}").read_text()
        record = job.directory / "records" / str(number)
        (step,) = [json.loads(path.read_text()) for path in record.glob("step-*.json")]
        said = json.loads((record / "job.json").read_text())
        assert step["ranks"] == 4 and step["finished"] and any(used["path"].endswith(file) for used in step["files"])
        assert (said["kind"], said["state"], said["outcome"]["job_status"]) == ("run", "ended", 0)
        assert said["library"].endswith(f"/{family}/libforebay_mpi.so") and said["command"][0] == mpiexec
        assert said["environment"]["ROMIO_HINTS"] == "/no/such"
        assert bool(list(record.glob("trace-*"))) == trace, list(record.iterdir())
    assert series.end() == 0
    assert job.records() == []


def test_emulated_runs_are_delayed_and_marked(job, begin):
    source = job.directory / "data" / "input"
    source.mkdir(parents=True)
    (source / "x").write_bytes(b"x" * 1000)
    model = job.directory.parent / "slow.toml"
    model.write_text(MODEL)
    job.script("", DW, STAGE_IN.replace("%d", "%d/data"))
    series = begin("--pfs-model", model, "--pfs-root", job.directory / "data")
    assert series.ready["emulated"] == "slow" and series.ready["stage_in"]["bytes"] == 1000
    (state,) = pathlib.Path("/dev/shm").glob(f"forebay-pfs-{series.process.pid}-*")
    said = series.outputs(
        job,
        command=["sh", "-c", "mkdir data/wide && lfs setstripe -S 2M data/wide && lfs getstripe -S data/wide"],
        record="record",
    )
    assert said.split()[-1] == "2097152"
    assert json.loads((job.directory / "record" / "job.json").read_text())["emulated"] == "slow"
    assert series.end() == 0
    assert not state.exists()
    job.leaves_nothing()


@pytest.mark.parametrize(
    ("line", "said"), [(DW.replace("64MiB", "much"), "capacity=much"), (f"{DW}\n{STAGE_IN}", "input does not exist")]
)
def test_series_that_cannot_start_prints_one_line_of_json(job, line, said):
    job.script("", line)
    done = job.command("__series", *job.where, "job.sh")
    refusal = json.loads(done.stdout)
    assert done.returncode == 125 == refusal["exit_code"] and said in refusal["error"] and "hint" in refusal
    job.leaves_nothing()
    assert job.records() == []


@pytest.mark.parametrize("number", [signal.SIGTERM, None])
def test_series_stopped_in_stage_in_leaves_nothing(job, begin, number):
    (job.directory / "input").mkdir()
    (job.directory / "input" / "large").write_bytes(bytes(50 << 20))
    (job.directory.parent / "slow.toml").write_text(MODEL.replace("20 MB/s", "2 MB/s"))
    job.script("", DW, STAGE_IN)
    series = begin("--pfs-model", "../slow.toml", begun=False)
    wait_until(lambda: named(job.store, "large"))
    if number is None:
        assert series.end() == 0
    else:
        series.process.send_signal(number)
        assert series.process.wait(timeout=300) == 128 + number
    assert series.process.stdout.read() == b""
    job.leaves_nothing()


def test_options_without_meaning_for_a_series_are_refused(job):
    job.script("", DW)
    for option in ("--keep", "--dry-run", "--json", "--output=x"):
        assert job.command("__series", *job.where, option, "job.sh").returncode == 2


def test_tune_verb_in_python_can_call_forebay(job, build):
    listed = job.command("--help").stdout
    assert "\n  tune " in listed and "__series" not in listed
    top = job.directory.parent / "prefix" / "bin"
    top.mkdir(parents=True)
    job.forebay = pathlib.Path(shutil.copy(build / "bin" / "forebay", top))
    (top / "forebay-py").write_text('#!/bin/sh\nfor word in "$@" "$FOREBAY_PROGRAM"; do echo "$word"; done\n')
    (top / "forebay-py").chmod(0o755)
    assert job.command("tune", "--dry-run", "job.sh").stdout.splitlines() == [
        "tune",
        "--dry-run",
        "job.sh",
        str(top / "forebay"),
    ]
    job.forebay = build / "bin" / "forebay"


REQUESTS = b'{"run": 1, "command": ["true"], "record": "record"}\n{"run": 2, "command": ["true"], "fresh": true}\n'


def series_traced(job, call, happens, trace="/dev/null") -> bool:
    """A series of two runs to whose main thread this happens at that call; was it killed?"""
    traced = [*strace(), "-D", "-qq", "-o", trace, "-e", f"trace={call}", "-e", f"inject={call}:{happens}"]
    words = [*traced, job.forebay, "__series", *job.where, "job.sh"]
    streams = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(words, cwd=job.directory, env=job.environment(), bufsize=0, **streams) as process:
        try:
            process.stdin.write(REQUESTS)
            while (line := process.stdout.readline()) and json.loads(line).get("run") != 2:
                pass
            process.stdin.close()
        except BrokenPipeError:
            pass  # it was killed before it had read them
        return process.wait(timeout=300) != 0


@pytest.mark.soak
@pytest.mark.parametrize("call", ["mkdir", "rename", "unlink"])
def test_series_killed_at_any_step_is_removed_completely(job, call):
    (job.directory / "input").mkdir()
    (job.directory / "input" / "a").write_text("a\n")
    job.script("", DW, STAGE_IN, STAGE_OUT)
    job.in_memory()
    counted = job.directory.parent / "counted"
    assert not series_traced(job, call, "delay_enter=0", counted)
    count = counted.read_text().count(f"{call}(")
    shutil.rmtree(job.directory / "record", ignore_errors=True)
    for number in points(count):
        if not series_traced(job, call, f"signal=KILL:when={number}"):
            continue
        done = job.command("clean", "--kill")
        assert done.returncode == 0, (number, done.stderr)
        if job.leftovers():
            abandoned(job)
            job.command("clean")
            job.settings.clear()
        job.leaves_nothing()
        shutil.rmtree(job.directory / "record", ignore_errors=True)
    assert count > 0 and not (job.directory / "results").exists()
