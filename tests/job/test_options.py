"""The options of `forebay run`, and what the script says in their place."""

import json
import pathlib
import subprocess

import pytest

from support.job import DW
from support.kernels import with_small_disk
from support.users import anyone, make  # noqa: F401 (a fixture)

STAGE_IN = "#DW stage_in type=directory source=%d/in destination=$DW_JOB_STRIPED/in"
STAGE_OUT = "#DW stage_out type=directory source=$DW_JOB_STRIPED/out destination=%d/results"
CHECKPOINT = (
    "mkdir $DW_JOB_STRIPED/out\n"
    "bash -c 'trap \"echo saved > $DW_JOB_STRIPED/out/checkpoint; exit 3\" TERM; while :; do sleep 0.01; done'"
)


def everything(top):
    """All names below, with their times."""
    return {path: path.lstat().st_mtime_ns for path in top.rglob("*")}


def test_dry_run_lists_the_steps_and_creates_nothing(job):
    make(job, job.directory / "in", a="x" * 1000, b="y")
    job.script("touch started", "#SBATCH -t 10", DW, STAGE_IN, STAGE_OUT)
    before = everything(job.directory.parent)
    done = job.run("--dry-run")
    assert done.returncode == 0, done.stderr
    lines = [line.split(maxsplit=1) for line in done.stdout.splitlines()]
    assert [words[0] for words in lines] == ["allocate", "variables", "stage", "run", "stage"]
    assert lines[0][1] == f"64.00 MiB in {job.store} (64.00 MiB asked; not enforced)"
    assert lines[2][1] == f"in    directory {job.directory}/in -> $DW_JOB_STRIPED/in: 2 file(s), 1001 B (line 5)"
    assert lines[3][1] == "with /bin/bash, 2 task(s), ended after 600 s at most"
    assert lines[4][1] == f"out   directory $DW_JOB_STRIPED/out -> {job.directory}/results (line 6)"
    plan = json.loads(job.run("--dry-run", "--json").stdout)
    assert plan["store"]["capacity_bytes"] == 64 << 20 and plan["variables"] == ["DW_JOB_STRIPED"]
    assert [(s["kind"], s["line"], s["files"], s["bytes"]) for s in plan["stage_in"]] == [("directory", 5, 2, 1001)]
    assert [(s["destination"], s["files"]) for s in plan["stage_out"]] == [(f"{job.directory}/results", None)]
    job.in_memory("--store", "memory")
    assert "64.00 MiB in memory (64.00 MiB asked; a hard limit)" in job.run("--dry-run").stdout
    assert everything(job.directory.parent) == before
    listing = '"$0" run --store /dev/shm --dry-run job.sh > /dev/null && ls -A /dev/shm'
    words = [*with_small_disk("/dev/shm", "128m"), "sh", "-c", listing, job.forebay]
    shared = subprocess.run(words, cwd=job.directory, env=job.environment(), capture_output=True, text=True)
    assert (shared.returncode, shared.stdout) == (0, ""), shared.stderr


def test_dry_run_lists_what_runs_during_the_job(job):
    job.script("true", DW, STAGE_OUT)
    drains = ("--drain", "*.nc,*.h5:rate=1MiB/s:newest", "--drain", "log:to=elsewhere")
    more = ("--spectral", "--on-close", "*.nc=plot {}", "--on-close-at-most", "3")
    there = job.directory / "elsewhere"
    told = [
        line
        for line in job.run("--dry-run", *drains, *more).stdout.splitlines()
        if line.startswith(("drain ", "on close "))
    ]
    assert told == [
        "drain       *.nc,*.h5 -> where stage_out says (at most 1.00 MiB/s, only the newest)",
        f"drain       log -> {there} (as fast as it goes)",
        "drain       all of $PERSIST_DIR -> $PFS_DIR, which the script will say (Spectral)",
        "on close    *.nc=plot {} (3 at a time)",
    ]
    assert not there.exists()
    plan = json.loads(job.run("--dry-run", "--json", *drains, *more).stdout)
    assert plan["drain"] == [
        {"patterns": ["*.nc", "*.h5"], "rate_bytes_per_s": 1 << 20, "newest": True, "to": None},
        {"patterns": ["log"], "rate_bytes_per_s": None, "newest": False, "to": str(there)},
    ]
    assert plan["spectral"] == {"persist_dir": None, "pfs_dir": None}
    assert (plan["on_close"], plan["on_close_at_most"]) == (["*.nc=plot {}"], 3)
    plan = json.loads(job.run("--dry-run", "--json", FOREBAY_DRAIN="*").stdout)
    assert [drain["patterns"] for drain in plan["drain"]] == [["*"]] and (plan["spectral"], plan["on_close"]) == (
        None,
        [],
    )


def test_dry_run_names_spectral_directories_where_they_apply(job):
    (job.directory / "job.sh").write_text("#!/bin/bash\n#BSUB -alloc_flags nvme\n")
    pfs = str(job.directory.parent / "pfs")
    for persist, counts in (("/mnt/bb/ada/out", True), ("/tmp", False)):
        plan = job.run("--dry-run", "--json", PERSIST_DIR=persist, PFS_DIR=pfs)
        assert json.loads(plan.stdout)["spectral"] == ({"persist_dir": persist, "pfs_dir": pfs} if counts else None)
    done = job.run("--dry-run", PERSIST_DIR="/mnt/bb/ada/out", PFS_DIR=pfs)
    assert f"drain       all of /mnt/bb/ada/out -> {pfs} (Spectral)\n" in done.stdout


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ((DW, STAGE_IN), "job.sh: line 4: stage_in: the source"),
        ((DW.replace("64MiB", "1MiX"),), "capacity=1MiX is no size"),
        (("#SBATCH -D /no/such",), "/no/such"),
        ((DW, "#DW stage_in type=list source=%d/list"), "cannot open"),
        ((DW, "#DW stage_in type=file source=%d/large destination=$DW_JOB_STRIPED/"), "stage-in needs 65.00 MiB"),
    ],
)
def test_dry_run_reports_the_errors_of_a_run(job, lines, message):
    with open(job.directory / "large", "wb") as large:
        large.truncate(65 << 20)
    job.script("touch started", *lines)
    for options in (["--dry-run"], []):
        done = job.run("--json", *options)
        refusal = json.loads(done.stdout)
        assert (
            sorted(refusal) == ["error", "exit_code", "hint", "profile"]
            and refusal["exit_code"] == done.returncode == 125
        )
        assert message in refusal["error"] and refusal["error"] in done.stderr
    job.leaves_nothing()


def test_explain_prints_reasons(job):
    job.script("true", DW)
    why = [line for line in job.run("--explain").stderr.splitlines() if line.startswith("forebay: because: ")]
    assert len(why) == 2 and why[0].endswith(f"store {job.store}: named with --store")
    assert "64.00 MiB asked" in why[1] and "not enforced" in why[1]
    job.in_memory()
    assert (
        f"store {job.store}: the setting store, which forebay config shows"
        in job.run("--explain", FOREBAY_STORE=str(job.store)).stderr
    )
    assert "because" not in job.run().stderr


def test_capacity_is_a_request_unless_strict(job):
    job.script("touch started", DW.replace("64MiB", "8000TiB"))
    done = job.run("--strict-capacity")
    assert done.returncode == 125 and "7.81 PiB are asked for, and the store" in done.stderr
    assert "--strict-capacity" in done.stderr and not (job.directory / "started").exists()
    done = job.run("--json")
    assert done.returncode == 0 and "the script asks for 7.81 PiB; the store has" in done.stderr
    done = job.run("--json", "--strict-capacity", "--capacity", "3MiB")
    assert (json.loads(done.stdout)["store"]["asked_bytes"], json.loads(done.stdout)["store"]["capacity_bytes"]) == (
        3 << 20,
        3 << 20,
    )
    for wrong in ("3MiX", "-1", "0"):
        assert job.run(f"--capacity={wrong}").returncode == 2
    job.leaves_nothing()


@pytest.mark.parametrize(
    ("lines", "options"),
    [
        (["#SBATCH -t 0:03"], []),
        (["#PBS -l walltime=3"], []),
        (["#FLUX: -t 3s"], []),
        ([], ["--time", "0:03"]),
        (["#SBATCH -t 10"], ["-t", "0:03"]),
    ],
)
def test_job_at_its_time_limit_is_ended_and_its_checkpoint_kept(job, lines, options):
    (job.directory / "job.sh").write_text("\n".join(["#!/bin/bash", *lines, DW, STAGE_OUT, CHECKPOINT, ""]))
    done = job.run("--json", *options)
    account = json.loads(done.stdout)
    assert (done.returncode, account["exit_code"], account["job_status"]) == (124, 124, 124), done.stderr
    assert "warning: the job was ended: its time limit was reached" in done.stderr
    assert (job.directory / "results" / "checkpoint").read_text() == "saved\n" and account["kept"] is None
    job.leaves_nothing()


def test_time_0_removes_the_limit_and_lsf_counts_minutes(job):
    job.script("sleep 1.2; echo done", "#SBATCH -t 0:01")
    assert job.run("--time", "0").stdout == "done\n"
    for line, seconds in [
        ("#BSUB -W 1:02", 3720),
        ("#BSUB -W 1", 60),
        ("#PBS -l walltime=1:00:00", 3600),
        ("#FLUX: -t 1.5h", 5400),
        ("#FLUX: -t 0", None),
    ]:
        (job.directory / "job.sh").write_text(f"#!/bin/bash\n{line}\n")
        assert json.loads(job.run("--dry-run", "--json").stdout)["time_limit_s"] == seconds
    assert job.run("--time", "soon").returncode == 2


def test_job_without_directives_gets_them_from_options(job):
    make(job, job.directory, bbf__conf=f"{DW}\n{STAGE_OUT}\n", in__dat="x")
    body = 'mkdir ${DW_JOB_STRIPED:-/no/such}/out && echo "$1" > $DW_JOB_STRIPED/out/x'
    words = "capacity=64MiB access=striped type=scratch"
    for options, header, environment, results in [
        (["--bb", words], "", {}, False),
        (["--bbf", "bbf.conf"], "", {}, True),
        ([], f'#SBATCH --bb="{words}"', {}, False),
        ([], "#SBATCH --bbf=bbf.conf", {}, True),
        ([], "", {"SBATCH_BURST_BUFFER": words}, False),
        (["--bbf", "bbf.conf"], "#SBATCH --bb=nonsense", {"SBATCH_BURST_BUFFER": "nonsense"}, True),
        ([], "#SBATCH --bb=nonsense", {"SBATCH_BURST_BUFFER": f"{DW}\n{STAGE_OUT}"}, True),
    ]:
        (job.directory / "job.sh").write_text(f"#!/bin/bash\n{header}\n{body}\n")
        done = job.run(*options, **environment)
        assert done.returncode == 0, (options, header, done.stderr)
        result = job.directory / "results" / "x"
        assert result.exists() == results
        result.unlink(missing_ok=True)
        job.leaves_nothing()


def test_errors_in_outside_directives_are_reported_with_their_position(job):
    make(job, job.directory, bbf__conf=f"{DW}\n#DW stage_in type=file source=/no/such destination=$DW_JOB_STRIPED/\n")
    job.script("touch started")
    for options, message in [
        (["--bbf", "bbf.conf"], "job.sh: --bb, line 2: stage_in: the source /no/such does not exist"),
        (["--bb", "capacity=1G type=scratch size=2"], 'job.sh: --bb, line 1, column 26: --bb does not know "size=2"'),
        (["--bbf", "missing"], "cannot read missing"),
    ]:
        done = job.run(*options)
        assert done.returncode == 125 and message in done.stderr, done.stderr
    assert job.run("--bb", "capacity=1G", "--bbf", "bbf.conf").returncode == 2
    job.script("touch started", DW)
    done = job.run("--bb", "capacity=1G access=striped type=scratch")
    assert done.returncode == 125 and "job.sh: line 3" in done.stderr, done.stderr
    assert not (job.directory / "started").exists()
    job.leaves_nothing()


def test_lists_are_staged_in_and_out_also_if_written_by_the_job(job):
    make(job, job.directory / "in", a="1", b="2")
    escaped = str(job.directory).replace(" ", "\\ ")
    rows = [
        f"{escaped}/in/a $DW_JOB_STRIPED/in/first",
        f'"{job.directory}/in/b"  $DW_JOB_STRIPED/in/ # under its own name',
    ]
    (job.directory / "list").write_text("\n".join(["# a comment", "", *rows, ""]))
    job.script(
        'cat $DW_JOB_STRIPED/in/first $DW_JOB_STRIPED/in/b > "$DW_JOB_STRIPED/two words"\n'
        "echo '\"$DW_JOB_STRIPED/two words\"' \"'$PWD/results/both'\" > out_list",
        DW,
        "#DW stage_in type=list source=%d/list destination=$DW_JOB_STRIPED/ignored",
        "#DW stage_out type=list source=%d/out_list",
    )
    done = job.run("--json")
    assert done.returncode == 0, done.stderr
    assert (job.directory / "results" / "both").read_text() == "12"
    assert json.loads(done.stdout)["stage_in"]["files"] == 2
    assert "warning: job.sh: line 4, column" in done.stderr and "destination=" in done.stderr  # has no effect
    job.leaves_nothing()


def test_errors_in_a_list_are_reported_with_file_line_and_column(job):
    make(
        job, job.directory, list="/a $DW_JOB_STRIPED/a\n\n/only\n  relative $DW_JOB_STRIPED/b\n/x '$DW_JOB_STRIPED/c\n"
    )
    job.script("touch started", DW, "#DW stage_in type=list source=%d/list")
    done = job.run()
    assert done.returncode == 125 and not (job.directory / "started").exists()
    for place in ("line 3, column 1", "line 4, column 3", "line 5, column 4"):
        assert f"{job.directory}/list: {place}: " in done.stderr, done.stderr
    job.leaves_nothing()
    # A list that the job gets wrong, or does not write, keeps the data.
    for body in ("echo /only > list", "rm list"):
        job.script(f"echo x > $DW_JOB_STRIPED/x; {body}", DW, "#DW stage_out type=list source=%d/list")
        done = job.run()
        assert done.returncode == 123 and f"{job.directory}/list" in done.stderr, done.stderr
    assert len(job.allocations()) == 2 and all((kept / "striped" / "x").exists() for kept in job.allocations())


def test_modifiers_without_effect_are_warnings(job):
    job.script(
        "true", DW.replace("striped", "striped(MFS=1GiB,client_cache=yes)") + " write_window_length=10 max_mds=yes"
    )
    done = job.run()
    assert done.returncode == 0
    for word in ("MFS", "write_window_length", "max_mds"):
        assert any(
            line.startswith("warning: job.sh: line 3, column ") and word in line for line in done.stderr.splitlines()
        ), done.stderr
    assert "client_cache" not in done.stderr.replace("striped(MFS=1GiB,client_cache=yes)", "")


@pytest.mark.parametrize("store", ["memory", "memory:huge"])
def test_memory_stores_are_used_and_freed(anyone, store):
    job = anyone
    job.in_memory("--store", store)
    job.script("stat -f -c %T $DW_JOB_STRIPED; grep -c huge=always /proc/self/mounts; echo $FOREBAY_STORE", DW)
    done = job.run("--json", FOREBAY_STORE="/no/such")
    if "memory:huge" == store and done.returncode == 125:
        pytest.skip("no huge pages here")
    assert done.returncode == 0, done.stderr
    account = json.loads(done.stdout)["store"]
    assert (account["store"], account["in_memory"], account["enforced"]) == (store, True, True)
    kind = [line for line in done.stderr.splitlines() if line in ("tmpfs", "0", "1")]
    assert kind == ["tmpfs", "1" if store == "memory:huge" else "0"]
    job.leaves_nothing()


def test_store_of_the_site_is_used(job):
    job.in_memory()
    job.script("echo $DW_JOB_STRIPED", DW)
    done = job.run(FOREBAY_STORE=str(job.store))
    assert pathlib.Path(done.stdout.strip()).is_relative_to(job.store), done.stderr
    done = job.run(FOREBAY_STORE="/no/such")
    assert done.returncode == 125 and "/no/such" in done.stderr
    job.leaves_nothing()
