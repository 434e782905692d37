"""What commands print as JSON, and record, is as the schemas of docs/reference/schemas have it."""

import copy
import json
import pathlib
import re
import subprocess
import sys
import tomllib

import pytest
from support import study_data
from support.capi import CapiJob
from support.job import DW, INTERRUPT, KILL
from support.persistent import CREATE, USE, made
from support.schemas import NAMES, SCHEMAS, complaints
from support.waiting import wait_until

PROJECT = pathlib.Path(__file__).resolve().parents[2]
LOGS = PROJECT / "tests" / "profiles" / "logs"
MODEL = PROJECT / "machines" / "lustre-small.toml"
STAGE_IN = "#DW stage_in type=file source=%d/input destination=$DW_JOB_STRIPED/input"
STAGE_OUT = "#DW stage_out type=file source=$DW_JOB_STRIPED/output destination=%d/output"
OUTPUT = "echo 1 > ${DW_JOB_STRIPED}output; echo 1 > ${DW_JOB_STRIPED}forgotten"
#: A directory is then where the file is to go.
BLOCKED = "rm -f output; mkdir -p output/output/full"


def printed(job, *words, status=0):
    """The only line of a command that ends so."""
    done = job.command(*words)
    assert done.returncode == status, done.stderr
    return json.loads(done.stdout)


def in_job(job, *options, status=0, directives=(), body=OUTPUT):
    """What `forebay run --json` prints of a job that stages both ways."""
    (job.directory / "input").write_text("1")
    job.script(body, DW, STAGE_IN, STAGE_OUT, *directives)
    return printed(job, "run", "--json", *job.where, *options, "job.sh", status=status)


def undelivered(job):
    """A job whose stage-out fails; what its run prints."""
    return in_job(job, status=123, body=f"{OUTPUT}; {BLOCKED}")


def killed(job):
    """Leaves a job whose `forebay run` was killed while its script ran."""
    job.script(f"{OUTPUT}; touch running; exec sleep 300", DW, STAGE_OUT)
    job.stop_when(job.start(), (job.directory / "running").exists, KILL)


def accounting(job, build):
    asking = CapiJob(job, build / "tests" / "capi")
    (said,) = asking.output_lines("ask accounting $S")
    return [json.loads(said.split(" ", 1)[1])]


def bench_io500(job, build):
    words = ["--stonewall", "1", "--data", "32MiB", "--ranks", "2", "--results", "results", "."]
    return [printed(job, "bench", "io500", "--json", *words)]


def clean(job, build):
    killed(job)
    return [printed(job, "clean", "--json", "--kill", job.records()[0].name)]


def compare(job, build):
    job.script(OUTPUT, DW, STAGE_OUT)
    return [printed(job, "compare", "--json", "--repeat", "1", *job.where, "job.sh")]


def config(job, build):
    job.settings["FOREBAY_STORE"] = str(job.store)
    job.settings["FOREBAY_TRACE"] = "true"
    return [printed(job, "config", "--json")]


def doctor(job, build):
    return [printed(job, "doctor", "--json", *job.where)]


def drain(job, build):
    job.script(f"{OUTPUT}; {job.forebay} drain wait --json > said", DW, STAGE_OUT)
    assert job.run("--drain", "*").returncode == 0
    return [json.loads((job.directory / "said").read_text())]


def dry_run(job, build):
    options = "--dry-run", "--drain", "*", "--on-close", "*=true"
    return [in_job(job, *options, directives=[CREATE, USE])]


def engine_bundle(job, build):
    return [printed(job, "engine", "bundle", "--json", "--output", "ceph")]


def engine_list(job, build):
    return [printed(job, "engine", "list", "--json")]


def error(job, build):
    """Of both programs."""
    of_rust = printed(job, "run", "--json", *job.where, "missing.sh", status=125)
    return [of_rust, printed(job, "why", "--json", "12345", status=1)]


def gather(job, build):
    killed(job)
    return [printed(job, "gather", "--json", status=1)]


def job_json(job, build):
    """Of a job, a command, and a job that was refused."""
    in_job(job, "--pfs-model", str(MODEL), "--pfs-root", str(job.directory))
    printed(job, "profile", "--json", "--", "true")
    printed(job, "run", "--json", *job.where, "--capacity", "1000PiB", "--strict-capacity", "job.sh", status=125)
    return [json.loads((record / "job.json").read_text()) for record in job.records()]


def jobs(job, build):
    in_job(job)
    killed(job)
    return [printed(job, "jobs", "--json")]


def machine_file(job, build):
    """Those that are shipped, and what prints one."""
    shown = printed(job, "plan", "machine", "show", "summit", "--json")
    return [shown] + [tomllib.loads(path.read_text()) for path in sorted((PROJECT / "machines").glob("*.toml"))]


def machines(job, build):
    return [printed(job, "machines", "--json")]


PATTERN = "--access", "collective", "--size", "100GB", "--calls", "10", "--ranks", "64", "--nodes", "8"


def plan(job, build):
    """Of a machine with two storages, of one that cannot serve the job, of given settings, and of a profile."""
    job.script("true", DW)
    profile = LOGS / "mpiio_shared_default.darshan"
    return [
        printed(job, "plan", "--json", "--machine", "shaheen2", *PATTERN, "--servers", "4", "--stage-in", "1GB"),
        printed(job, "plan", "--json", "--machine", "summit", *PATTERN),
        printed(job, "plan", "--json", "--machine", "cori1", "--profile", profile, "job.sh"),
    ]


def plan_calibration(job, build):
    return [printed(job, "plan", "calibration", "--json")]


def plan_calls(job, build):
    words = "--size", "50GiB", "--calls", "160", "--stripe-size", "8MiB"
    more = "--ranks", "256", "--servers", "2", "--aggregators", "100"
    return [printed(job, "plan", "calls", "--json", *words), printed(job, "plan", "calls", "--json", *words, *more)]


def plan_capacity(job, build):
    on = "--machine", "shaheen2"
    return [
        printed(job, "plan", "capacity", "--json", "60TiB", *on),
        printed(job, "plan", "capacity", "--json", *on, "--job", "90TiB", "--job", "90TiB"),
    ]


def plan_checkpoint(job, build):
    words = "--machine", "summit", "--size", "20TB", "--nodes", "1024", "--ranks", "6144", "--mtbf", "24h"
    return [printed(job, "plan", "checkpoint", "--json", *words)]


def plan_machines(job, build):
    return printed(job, "plan", "machine", "list", "--json")


def plan_study(job, build):
    words = "--machine", "cori1", "--storage", "lustre", *PATTERN, "--runs", "6", "--known", "8:1MiB"
    return [printed(job, "plan", "study", "--json", *words)]


def plan_sweep(job, build):
    return [printed(job, "plan", "sweep", "--json", "--machine", "summit", *PATTERN)]


def persistent(job, build):
    return [made(job), printed(job, "persistent", "show", "proj1", "--json", *job.where)]


def persistent_destroy(job, build):
    made(job)
    return [printed(job, "persistent", "destroy", "proj1", "--json", *job.where)]


def persistent_list(job, build):
    """While a job uses the allocation."""
    made(job)
    job.script(f"{job.forebay} persistent list --json --store {job.store} > said", USE)
    assert job.run().returncode == 0
    listed = json.loads((job.directory / "said").read_text())
    assert listed[0]["jobs"]
    return [listed]


def profile(job, build):
    return [printed(job, "profile", "--json", "--", "true")]


def report(job, build):
    of = LOGS / "mpiio_shared_default.darshan", LOGS / "mpiio_shared_tuned.darshan"
    two = printed(job, "report", "--json", *of)
    one = printed(job, "report", "--json", "--no-advice", "--machine", "lustre-small", of[0])
    in_job(job, "--pfs-model", str(MODEL), "--pfs-root", str(job.directory))
    return [one, two, printed(job, "report", "--json", "last")]


def run(job, build):
    emulated = "--pfs-model", str(MODEL), "--pfs-root", str(job.directory)
    return [in_job(job, "--drain", "*", "--on-close", "*=true", *emulated), undelivered(job)]


def series(job, build):
    """It begins, runs, and refuses a line; another one cannot begin."""
    job.script("true", DW)
    refused = job.command("__series", *job.where, "missing.sh").stdout
    words, pipe = [job.forebay, "__series", *job.where, "job.sh"], subprocess.PIPE
    how = {"cwd": job.directory, "env": job.environment(), "stdin": pipe, "stdout": pipe, "text": True}
    with subprocess.Popen(words, **how) as process:
        answers = [process.stdout.readline()]
        for line in ('{"run": 1, "command": ["true"]}', "no request"):
            process.stdin.write(f"{line}\n")
            process.stdin.flush()
            answers.append(process.stdout.readline())
        process.stdin.close()
    return [json.loads(line) for line in [*answers, refused]]


def simulation(job, build):
    site = PROJECT / "examples" / "site" / "site.toml"
    return [printed(job, "plan", "simulate", "--json", "--jobs", "50", site)]


def staging(job):
    """A stage-in that fails for a file; its id."""
    (job.directory / "input").write_text("1")
    (job.directory / "target" / "input" / "input" / "full").mkdir(parents=True)
    return printed(job, "stage", "in", "--json", "input", "target/input/", status=123)


def stage(job, build):
    failed = staging(job)
    return [
        failed,
        printed(job, "stage", "in", "--json", "input", "copy"),
        printed(job, "stage", "cancel", "--json", failed["id"]),
        printed(job, "stage", "forget", "--json", failed["id"]),
    ]


def stage_list(job, build):
    staging(job)
    (job.state / "stagings" / "1700000000001.journal").write_text("no journal")
    return [printed(job, "stage", verb, "--json", status=1) for verb in ("list", "status")]


def status(job, build):
    made(job)
    killed(job)
    undelivered(job)
    lines = printed(job, "status", "--json")
    assert len(lines) == 3
    return [lines]


def study(job, build):
    study_data.whole(job.directory / "job.tune").close()
    lines = (job.directory / "job.tune" / "study.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def tuning_report(job, build):
    study_data.whole(job.directory / "job.tune").close()
    return [printed(job, "report", "--json", "job.tune")]


def watch(job, build):
    (job.directory / "data").mkdir()
    process = job.forebay_starts("watch", "data", "--json", "--on-close", "*=cat {} > seen; false")
    assert "watching" in process.stderr.readline()
    (job.directory / "data" / "file").write_text("1")
    wait_until((job.directory / "seen").exists, what="the command", process=process)
    process.send_signal(INTERRUPT)
    out, _ = process.communicate(timeout=120)
    return [json.loads(out)]


def why(job, build):
    in_job(job)
    return [printed(job, "why", "--json")]


#: Schema -> what prints outputs of it.
OUTPUTS = {"job": job_json} | {name: globals().get(name.replace("-", "_")) for name in NAMES if name != "job"}


def test_schema_files_match_the_program(build):
    words = [sys.executable, PROJECT / "tools" / "schemas.py", build / "bin" / "forebay", "--check"]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


#: tests/nodes/test_doctor_engine.py validates that of an engine, which needs two nodes, and tests/site those of a site.
ELSEWHERE = ("control-reap", "control-status", "doctor-engine")


#: Their commands compute for many seconds.
LONG = ("plan-calibration", "study")


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.soak] if name in LONG else []) for name in NAMES if name not in ELSEWHERE],
)
def test_output_validates_against_its_schema(job, build, name):
    for value in OUTPUTS[name](job, build):
        assert complaints(name, value) == [], value


def test_unknown_and_missing_members_are_rejected(job, build):
    (value,) = profile(job, build)
    assert complaints("profile", value | {"more": 1}) != []
    assert complaints("profile", value | {"job_status": "0"}) != []
    lacking = copy.copy(value)
    del lacking["job_s"]
    assert complaints("profile", lacking) != []


def test_page_lists_every_schema_with_its_version():
    page = (SCHEMAS.parent / "json.md").read_text()
    listed = re.findall(r"\[`([a-z0-9-]+)`\]\(schemas/\1\.json\) \| (\d+) \|", page)
    ids = [json.loads((SCHEMAS / f"{name}.json").read_text())["$id"] for name in NAMES]
    assert sorted(f"https://forebay.invalid/schemas/{name}/{version}" for name, version in listed) == sorted(ids)
