"""A job's I/O is recorded by itself, whatever becomes of the job, and never at the job's cost."""

import json
import os
import pathlib
import pwd
import shutil
import subprocess
import sys
import time

import pytest

from support.job import DW, INTERRUPT, KILL, PROFILES, finished
from support.mpi import Mpi
from support.slow_model import MODEL
from support.users import reachable

from support.btio_deck import write_deck
from support.waiting import wait_until

GRID, DUMPS = (12, 12, 12), 3
BTIO_BYTES = 40 * 12**3 * DUMPS
TERMINATE = 15
DAY_S = 86400
ONLY_ROOT = pytest.mark.skipif(os.getuid() != 0, reason="only root can be both")


@pytest.fixture(params=["openmpi", "mpich"])
def mpi(request, build):
    return Mpi(request.param, build)


@pytest.fixture
def with_mpi(job, mpi):
    """The job finds this MPI's mpiexec in PATH, and BTIO with a deck next to its script."""
    programs = job.directory.parent / "bin"
    programs.mkdir()
    launcher = programs / "mpiexec"  # no link: MPICH's looks for its parts where it was called
    launcher.write_text(f'#!/bin/sh\nexec mpiexec.{mpi.family} "$@"\n')
    launcher.chmod(0o755)
    shutil.copy(mpi.btio(), job.directory / "btio")
    write_deck(job.directory, dumps=DUMPS, grid=GRID)
    job.path = f"{programs}:{os.environ['PATH']}"
    return job


def steps(record):
    found = [json.loads(path.read_text()) for path in sorted(record.glob("step-*.json"))]
    assert all(step["finished"] for step in found)
    return found


def asked_bytes(step):
    """What the program asked MPI-IO to write to its one file."""
    (output,) = [file for file in step["files"] if file["layer"] == "mpiio"]
    return output["write"]["asked_bytes"]


@pytest.mark.soak
def test_each_program_of_a_job_is_recorded_separately(with_mpi, mpi):
    job = with_mpi
    job.script("srun -n 4 ./btio inputbt.data && mpiexec -n 1 ./btio inputbt.data", DW)
    done = job.run("--json", PATH=job.path)
    assert done.returncode == 0, done.stderr
    (record,) = job.records()
    found = steps(record)
    assert [step["ranks"] for step in found] == [4, 1]
    for step in found:
        assert asked_bytes(step) == BTIO_BYTES
    account, said = json.loads(done.stdout), job.record()
    assert account["profile"] == str(record) and account["run_id"] == record.name == said["id"]
    assert said["outcome"] == {name: value for name, value in account.items() if name != "emulated"}
    assert said["library"].endswith(f"/lib/forebay/{mpi.family}/libforebay_mpi.so")
    assert (said["forebay_job"], said["kind"], said["state"], said["killed"]) == (1, "run", "ended", False)
    assert (said["script"], said["command"], said["tasks"]) == (f"{job.directory}/job.sh", ["job.sh"], 2)
    assert said["started_unix_s"] < said["ended_unix_s"] and said["error"] is None and said["scheduler_job"] is None
    assert done.stderr.rstrip().splitlines()[-1].endswith(f": forebay report {record.name}")
    assert (record / "job.json").stat().st_mode & 0o077 == 0 or record.stat().st_mode & 0o077 == 0
    job.leaves_nothing()


def test_script_can_use_both_mpi_families(job, build):
    for family in ("openmpi", "mpich"):
        shutil.copy(Mpi(family, build).observed(), job.directory / family)
    job.script('srun -n 2 ./openmpi independent "$PWD/f" && mpiexec.mpich -n 1 ./mpich independent "$PWD/f"')
    done = job.run()
    assert done.returncode == 0, done.stderr
    found = [(step["ranks"], step["mpi"].split()[0]) for step in steps(job.records()[0])]
    assert found == [(2, "Open"), (1, "MPICH")], done.stderr


def test_only_environment_that_affects_io_is_recorded(job):
    job.script("true")
    job.run(MPICH_MPIIO_HINTS="*:cb_nodes=2", PNETCDF_HINTS="x=1", OMPI_MCA_io="ompio", SECRET_TOKEN="no")
    said = job.record()["environment"]
    assert {"MPICH_MPIIO_HINTS": "*:cb_nodes=2", "PNETCDF_HINTS": "x=1", "OMPI_MCA_io": "ompio"}.items() <= said.items()
    assert "SECRET_TOKEN" not in said and "PATH" not in said


ENVIRONMENT = 'env | grep -E "^(LD_PRELOAD|FOREBAY_PROFILE|FOREBAY_MPI)" | sort; true'


def test_no_profile_does_not_change_the_environment(job):
    job.script(ENVIRONMENT)
    done = job.run("--no-profile", "--json", "--output", "out")
    assert (job.directory / "out").read_text() == "" and json.loads(done.stdout)["profile"] is None
    own = "/usr/lib/x86_64-linux-gnu/libm.so.6"
    assert job.run("--no-profile", LD_PRELOAD=own).stdout == f"LD_PRELOAD={own}\n"
    assert job.records() == [] and not (job.state / PROFILES).exists()
    assert job.run("--no-profile", "--trace").returncode == 2


def test_hints_without_effect_without_a_profile_are_reported(job):
    hints = "export MPICH_MPIIO_HINTS='*:cb_nodes=2'"
    job.script(hints)
    warning = "warning: --no-profile: Open MPI and MPICH get no MPICH_MPIIO_HINTS"
    assert warning in job.run("--no-profile").stderr and "warning" not in job.run().stderr
    job.script("true")
    assert warning in job.run("--no-profile", MPICH_MPIIO_HINTS="*:cb_nodes=2").stderr
    assert "warning" not in job.run("--no-profile").stderr
    job.script(f"{hints}\n# LD_PRELOAD=/opt/libforebay_mpi.so")
    assert "warning" not in job.run("--no-profile").stderr


def test_preload_of_the_user_is_kept_behind_ours_and_traces_are_enabled(job):
    job.script(ENVIRONMENT)
    own = next(str(path) for path in pathlib.Path("/").glob("*lib/*/libm.so.6"))
    done = job.run("--trace", LD_PRELOAD=own)
    assert done.stdout.splitlines() == [
        "FOREBAY_MPI_TRACE=1",
        f"FOREBAY_PROFILE={job.records()[0]}",
        f"LD_PRELOAD={job.record()['library']}:{own}",
    ], done.stderr


@pytest.mark.parametrize(
    ("variable", "value"), [("SLURM_JOB_ID", "77"), ("PBS_JOBID", "5.server"), ("FLUX_URI", "local://x")]
)
def test_job_under_a_real_scheduler_is_recorded(job, variable, value):
    job.script(ENVIRONMENT)
    done = job.run(**{variable: value})
    assert f"FOREBAY_PROFILE={job.records()[0]}" in done.stdout and "LD_PRELOAD=" in done.stdout, done.stderr
    assert job.record()["scheduler_job"] == (None if variable == "FLUX_URI" else value)


def test_record_of_a_killed_job_is_readable_and_completed_by_clean(with_mpi):
    job = with_mpi
    job.script("srun -n 4 ./btio inputbt.data; touch running; exec sleep 300", DW)
    job.stop_when(job.start(PATH=job.path), (job.directory / "running").exists, KILL)
    said = job.record()
    assert (said["state"], said["killed"], said["outcome"], said["ended_unix_s"]) == ("running", False, None, None)
    process = said["process"]
    assert (
        process["host"] == os.uname().nodename
        and process["boot_id"] == pathlib.Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    )
    assert not pathlib.Path(f"/proc/{process['pid']}").exists()
    assert len(steps(job.records()[0])) == 1
    done = job.command("clean", "--kill", "--discard")
    assert done.returncode == 0, done.stderr
    after = job.record()
    assert (after.pop("state"), after.pop("killed")) == ("ended", True)
    assert after == {name: value for name, value in said.items() if name not in ("state", "killed")}
    job.leaves_nothing()


def test_record_of_a_running_job_has_the_state_running(job):
    job.script("touch running; until [ -e go ]; do sleep 0.01; done")
    process = job.start()
    wait_until((job.directory / "running").exists)
    said = job.record()
    stat = pathlib.Path(f"/proc/{process.pid}/stat").read_text().rsplit(") ", 1)[1].split()
    assert (said["state"], said["process"]["pid"], said["process"]["start_ticks"]) == (
        "running",
        process.pid,
        int(stat[19]),
    )
    assert job.command("clean").returncode == 0 and job.record() == said
    (job.directory / "go").touch()
    assert finished(process).returncode == 0 and job.record()["state"] == "ended"


@pytest.mark.parametrize(("number", "status"), [(INTERRUPT, 130), (TERMINATE, 143)])
def test_stopped_job_is_recorded_to_its_end(job, number, status):
    job.script("touch running; sleep 300", DW)
    code, _ = job.stop_when(job.start(), (job.directory / "running").exists, number)
    said = job.record()
    assert (code, said["state"], said["outcome"]["exit_code"]) == (status, "ended", status)


@pytest.mark.parametrize(
    ("body", "lines", "options", "exit_code", "error"),
    [
        ("exit 7", [DW], [], 7, None),
        ("sleep 300", [], ["--time", "0:01"], 124, None),
        ("true", [DW.replace("64MiB", "much")], [], 125, "capacity=much"),
        ("true", [DW, "#DW stage_in type=file source=/no/such destination=$DW_JOB_STRIPED/x"], [], 125, "/no/such"),
        ("true", ["#SBATCH -D /no/such"], [], 125, "/no/such"),
        ("true", [DW, "#DW stage_out type=file source=$DW_JOB_STRIPED/none destination=%d/x"], [], 123, None),
    ],
)
def test_end_of_a_job_is_recorded(job, body, lines, options, exit_code, error):
    job.script(body, *lines)
    done = job.run(*options)
    said = job.record()
    assert done.returncode == exit_code and said["state"] == "ended", done.stderr
    if error is None:
        assert said["outcome"]["exit_code"] == exit_code and said["error"] is None
    else:
        assert said["outcome"] is None and error in said["error"] and said["error"] in done.stderr
        assert said["hint"] is None or said["hint"] in done.stderr


def test_job_refused_before_it_had_an_id_is_recorded(job):
    job.script("touch started")
    done = job.run(TMPDIR="/no/such")
    assert done.returncode == 125 and "/no/such" in job.record()["error"]
    (job.directory / "job.sh").unlink()  # a script that was never read is no job
    assert job.run().returncode == 125 and len(job.records()) == 1


def test_summary_of_a_refused_job_names_its_record(job):
    job.script("true", DW, "#DW stage_in type=file source=/no/such destination=$DW_JOB_STRIPED/x")
    account, (record,) = json.loads(job.run("--json").stdout), job.records()
    assert account["profile"] == str(record) and account["error"] == job.record()["error"]
    done = job.command("profile", "--json", "--", "no-such-command")
    assert json.loads(done.stdout)["profile"] == str(job.records()[-1])
    assert json.loads(job.run("--no-profile", "--json").stdout)["profile"] is None


def test_user_name_is_recorded_without_user_variable(job):
    job.script("true")
    words = ["env", "-u", "USER", "-u", "LOGNAME", job.forebay, "run", *job.where, "job.sh"]
    subprocess.run(words, cwd=job.directory, env=job.environment(), check=True, capture_output=True)
    assert job.record()["user"] == pwd.getpwuid(os.getuid()).pw_name


def test_message_of_a_failed_job_names_forebay_why(job):
    job.script("dd if=/dev/zero of=x bs=1M count=2 2>/dev/null; exit 3")
    done = job.run()
    assert done.stderr.rstrip().endswith(f": forebay why {job.records()[0].name}")


@pytest.mark.parametrize(
    ("body", "directives", "code"),
    [("exit 3", (), 3), ("true", (DW, "#DW stage_in type=file source=/none destination=$DW_JOB_STRIPED/a"), 125)],
)
def test_failed_run_without_a_recorded_program_names_forebay_why(job, body, directives, code):
    job.script(body, *directives)
    done = job.run()
    assert done.returncode == code
    assert done.stderr.rstrip().endswith(f": forebay why {job.records()[0].name}")


def test_successful_run_without_a_recorded_program_names_no_command(job):
    job.script("true")
    assert "forebay why" not in job.run().stderr and "forebay report" not in job.run().stderr


def test_dry_run_records_nothing(job):
    job.script("true", DW)
    assert job.run("--dry-run").returncode == 0 and job.records() == []


@ONLY_ROOT
def test_unwritable_state_directory_does_not_affect_the_job(job):
    job.as_nobody()
    job.state.chmod(0o500)
    job.script("exit 3")
    done = job.run("--json")
    record = pathlib.Path(json.loads(done.stdout)["profile"])
    assert done.returncode == 3 and record.parent == job.temporary / "forebay-state-65534" / PROFILES
    assert json.loads((record / "job.json").read_text())["outcome"]["exit_code"] == 3


@pytest.fixture
def small(job):
    """A state directory of 64 KiB."""
    if os.getuid() != 0:
        pytest.skip("only root can mount")
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k,mode=700", "tmpfs", job.state], check=True)
    yield job
    subprocess.run(["umount", job.state], check=True)


def test_full_state_directory_does_not_affect_the_job(small):
    job = small
    fill(job.state / "fill")
    job.script("echo ran; exit 3")
    done = job.run()
    assert (done.returncode, done.stdout) == (3, "ran\n") and job.records() == []
    (state,) = job.temporary.glob("forebay-state-*")
    assert len(list((state / PROFILES).iterdir())) == 1


def fill(path):
    with path.open("wb", buffering=0) as file:
        try:
            while file.write(b"x" * 4096):
                pass
        except OSError:
            pass


def test_record_leaves_free_space_in_the_state_directory(small):
    job = small
    fill(job.state / "fill")
    os.truncate(job.state / "fill", (job.state / "fill").stat().st_size - 8192)
    job.script("echo ran; exit 3")
    done = job.run()
    assert (done.returncode, done.stdout) == (3, "ran\n") and job.records() == [], done.stderr
    assert done.stderr.count("warning: the job's I/O is not recorded") == done.stderr.count("warning: ") == 1


def test_state_directory_that_fills_during_the_job_is_reported_once(small):
    job = small
    job.script(
        f'{sys.executable} -c \'f = open("{job.state}/fill", "wb", 0)\nwhile f.write(b"x" * 4096): pass\' 2>/dev/null; exit 3'
    )
    done = job.run()
    assert done.returncode == 3
    assert [
        line
        for line in done.stderr.splitlines()
        if "warning: how the job ended is not recorded" in line and "No space left" in line
    ], done.stderr
    assert done.stderr.count("warning: ") == 1
    (record,) = job.records()
    assert {path.name for path in record.iterdir()} == {"elsewhere", "failed-writes", "job.json"}
    assert job.record()["state"] == "running"


@pytest.mark.soak
@ONLY_ROOT
@pytest.mark.parametrize("store", ["memory", "directory"])
def test_job_of_an_ordinary_user_in_a_view_is_recorded(build, store):
    with reachable(build) as job:
        installed(build, job)
        job.as_nobody()
        job.in_memory(*([] if store == "memory" else job.where), "--map", f"/gpfs-of-tests={job.directory}")
        shutil.copy(Mpi("openmpi", build).btio(), job.directory / "btio")
        write_deck(job.directory, dumps=DUMPS, grid=GRID)
        os.chown(job.directory / "out", 65534, 65534)
        job.script("cd /gpfs-of-tests && srun -n 4 ./btio inputbt.data", DW)
        done = job.run()
        assert done.returncode == 0, done.stderr
        (record,) = job.records()
        assert [step["ranks"] for step in steps(record)] == [4] and record.owner() == "nobody"


def installed(build, job):
    """Forebay with its libraries in a folder that every user can reach."""
    top = job.directory.parent / "installed"
    shutil.copytree(build / "lib" / "forebay", top / "lib" / "forebay")
    (top / "bin").mkdir()
    job.forebay = pathlib.Path(shutil.copy(build / "bin" / "forebay", top / "bin"))


def test_nested_job_has_its_own_record(with_mpi):
    job = with_mpi
    (job.directory / "inner.sh").write_text(
        '#!/bin/bash\nsrun -n 1 ./btio inputbt.data > /dev/null; echo "$LD_PRELOAD"\n'
    )
    job.script(f'srun -n 4 ./btio inputbt.data > /dev/null; {job.forebay} run inner.sh; echo "$LD_PRELOAD"')
    done = job.run(PATH=job.path)
    assert done.returncode == 0, done.stderr
    outer, inner = job.records()
    assert [[step["ranks"] for step in steps(record)] for record in (outer, inner)] == [[4], [1]]
    library = json.loads((inner / "job.json").read_text())["library"]
    assert done.stdout.splitlines() == [library, library]


def test_emulated_job_is_recorded_before_the_emulation(with_mpi):
    job = with_mpi
    (job.directory / "slow.toml").write_text(MODEL)
    job.script('srun -n 4 ./btio inputbt.data > /dev/null; echo "$LD_PRELOAD"')
    done = job.run("--pfs-model", "slow.toml", PATH=job.path)
    assert done.returncode == 0, done.stderr
    said = job.record()
    ours, emulation = done.stdout.strip().split(":")
    assert ours == said["library"] and emulation.endswith("libforebay_pfsmodel_preload.so")
    assert said["emulated"]["model"] == "slow" and said["emulated"]["counters"]["bytes_written"] >= BTIO_BYTES
    (step,) = steps(job.records()[0])
    assert "the other order" not in done.stderr and asked_bytes(step) == BTIO_BYTES


TOOLS = r"""
set -e
printf 'b 2\na 1\n' > table; sort table | sed 's/a/A/' | awk '{ print $2 $1 }'
mkdir -p tree; cp table tree/; tar cf tree.tar tree; tar tf tree.tar; tar xOf tree.tar tree/table | md5sum
python3 -c 'import os, subprocess; print(open("table").read()); print(subprocess.check_output(["cat", "table"])); os._exit(0)'
perl -e 'open my $f, "<", "table"; print <$f>; exec "wc", "-c", "table"'
(exec 2>&-; echo closed); dd if=table bs=1 count=3 2>/dev/null; find . -name table | sort | xargs cat; xz -c table | xz -d
bash -c 'exec 3<table; read -u 3 x; echo $x; kill -TERM $$' || echo $?
python3 -c 'import multiprocessing as m; print(m.get_context("fork").Pool(2).map(len, ["a", "bc"]))'
"""


def test_shell_tools_run_unchanged(job):
    job.script(TOOLS)
    plain, recorded = job.run("--no-profile"), job.run()
    assert recorded.returncode == plain.returncode == 0, recorded.stderr
    assert recorded.stdout == plain.stdout and "closed" in plain.stdout
    ours = lambda done: [line for line in done.stderr.splitlines() if not line.startswith("forebay: ")]
    assert ours(recorded) == ours(plain)


def test_program_with_address_sanitizer_runs(job):
    source = job.directory / "checked.c"
    source.write_text('#include <stdio.h>\nint main(void) { return puts("ran") < 0; }\n')
    built = subprocess.run(["cc", "-fsanitize=address", source, "-o", job.directory / "checked"], capture_output=True)
    if built.returncode != 0:
        pytest.skip("no AddressSanitizer here")
    job.script("ASAN_OPTIONS=$ASAN_OPTIONS:detect_leaks=0 ./checked; echo $ASAN_OPTIONS")
    assert job.run().stdout == "ran\nverify_asan_link_order=0\n"
    assert job.run(ASAN_OPTIONS="color=never").stdout == "ran\ncolor=never:verify_asan_link_order=0\n"


def test_job_without_a_recording_library_runs_with_one_message(build):
    with reachable(build) as job:
        top = job.directory.parent / "alone"
        top.mkdir()
        job.forebay = pathlib.Path(shutil.copy(build / "bin" / "forebay", top))
        job.script(ENVIRONMENT)
        done = job.run()
        assert (done.returncode, done.stdout) == (0, "") and done.stderr.count(
            "is not recorded: there is no libforebay_mpi.so"
        ) == 1
        assert job.record()["library"] is None and job.record()["state"] == "ended"
        shutil.copytree(build / "lib" / "forebay", top / "with blank" / "lib" / "forebay")
        (top / "with blank" / "bin").mkdir()
        job.forebay = pathlib.Path(shutil.copy(build / "bin" / "forebay", top / "with blank" / "bin"))
        done = job.run()
        assert (done.returncode, done.stdout) == (0, "") and "do not pass LD_PRELOAD" in done.stderr


def old_record(job, number, **more):
    directory = job.state / PROFILES / str(number)
    directory.mkdir(parents=True)
    process = {"pid": 1, "start_ticks": 0, "boot_id": "x", "host": os.uname().nodename, "pid_namespace": "x"}
    said = {"forebay_job": 1, "id": str(number), "state": "ended", "process": process} | more
    (directory / "job.json").write_text(json.dumps(said))
    return directory


def ours_alive():
    """How the process of these tests is named in a record."""
    stat = pathlib.Path("/proc/self/stat").read_text().rsplit(") ", 1)[1].split()
    boot = pathlib.Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return {
        "pid": os.getpid(),
        "start_ticks": int(stat[19]),
        "boot_id": boot,
        "host": os.uname().nodename,
        "pid_namespace": os.readlink("/proc/self/ns/pid"),
    }


def test_newest_two_hundred_records_and_those_of_running_jobs_are_kept(job):
    for number in range(10, 215):
        old_record(job, number)
    alive = old_record(job, 1, state="running", process=ours_alive())
    killed = old_record(job, 2, state="running")
    other = ours_alive() | {"host": "other", "boot_id": "other"}
    elsewhere = old_record(job, 3, state="running", process=other, started_unix_s=time.time() - 29 * DAY_S)
    forgotten = old_record(job, 4, state="running", process=other, started_unix_s=time.time() - 31 * DAY_S)
    (job.state / PROFILES / "notes").write_text("mine")
    job.script("true")
    assert job.run().returncode == 0
    kept = {path.name for path in (job.state / PROFILES).iterdir()}
    assert {"notes", alive.name, elsewhere.name, "16", "214"} <= kept and not {
        killed.name,
        forgotten.name,
        "10",
        "15",
    } & kept
    assert len(kept) == 200 + 3


def test_records_beyond_four_gib_are_removed_oldest_first(job):
    for number in (1, 2, 3):
        old_record(job, number)
    alive = old_record(job, 0, state="running", process=ours_alive())
    large = job.state / PROFILES / "2" / "trace"
    if subprocess.run(["fallocate", "-l", "4G", large], capture_output=True).returncode != 0:
        pytest.skip("no 4 GiB to be had at once here")
    job.script("true")
    assert job.run().returncode == 0
    kept = [path.name for path in job.records()]
    assert kept[:2] == [alive.name, "3"] and len(kept) == 3
