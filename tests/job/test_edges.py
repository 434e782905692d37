"""Jobs that do what jobs should not do, and machines that are not as they should be."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time

import pytest

from support.isolation import WITHOUT_CONFIGURATION
from support.job import DW, INTERRUPT
from support.users import another_users_program
from support.waiting import wait_until

STAGE_OUT = "#DW stage_out type=directory source=$DW_JOB_STRIPED/out destination=%d/results"

# Its first thread ends, another one writes on; it does not mind being asked to stop.
THREAD = """
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>
static void *writer(void *path) {
  FILE *file = fopen(path, "w");
  for (int i = 0; i < 60000; i++) { fprintf(file, "line %d\\n", i); fflush(file); usleep(5000); }
  return 0;
}
int main(int argc, char **argv) {
  pthread_t thread;
  signal(SIGTERM, SIG_IGN);
  if (argc != 2 || pthread_create(&thread, 0, writer, argv[1])) return 1;
  pthread_exit(0);
}
"""


def test_process_whose_first_thread_has_ended_is_still_found(job):
    source, program = job.directory / "thread.c", job.directory / "thread"
    source.write_text(THREAD)
    subprocess.run(["cc", "-pthread", "-o", program, source], check=True)
    job.script(
        "mkdir $DW_JOB_STRIPED/out; ./thread $DW_JOB_STRIPED/out/log & until [ -s $DW_JOB_STRIPED/out/log ]; do sleep 0.01; done",
        DW,
        STAGE_OUT,
    )
    done = job.run()
    assert done.returncode == 0 and "left behind, ended before stage-out: 1" in done.stderr, done.stderr
    assert (job.directory / "results" / "log").stat().st_size > 0
    job.leaves_nothing()


def test_destination_inside_the_allocation_is_refused(job):
    destination = f"{job.store}/forebay-{os.getuid()}-%j/keep"
    job.script(
        "touch started", DW, f"#DW stage_out type=directory source=$DW_JOB_STRIPED/out destination={destination}"
    )
    done = job.run()
    assert done.returncode == 125 and "job.sh: line 4: stage_out: the destination" in done.stderr
    assert "is in the allocation itself" in done.stderr and not (job.directory / "started").exists()
    job.leaves_nothing()


def test_nested_run_starts_its_ranks(job):
    (job.directory / "inner.sh").write_text('#!/bin/bash\necho "${DW_JOB_STRIPED-none}"\nmpiexec -n 2 echo inner\n')
    job.script(f"{job.forebay} run inner.sh", DW)
    done = job.run()
    assert (done.returncode, done.stdout.split()) == (0, ["none", "inner", "inner"]), done.stderr
    job.leaves_nothing()


def test_job_that_clears_the_temporary_folder_keeps_its_exit_code(job):
    job.script("mkdir $DW_JOB_STRIPED/out; echo x > $DW_JOB_STRIPED/out/x; rm -rf $TMPDIR/*; exit 7", DW, STAGE_OUT)
    done = job.run("--json")
    assert done.returncode == 7 and '"exit_code":7' in done.stdout, done.stderr
    assert (job.directory / "results" / "x").read_text() == "x\n"
    job.leaves_nothing()


def test_processes_started_before_the_job_are_not_ended(job):
    job.script("true", DW)
    script = f'sleep 600 & exec "{job.forebay}" run --store "{job.store}" job.sh'
    process = subprocess.Popen(
        ["bash", "-c", script + " 2>&1 >/dev/null"],
        cwd=job.directory,
        env=job.environment(),
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    said = process.stdout.readline()
    while "ended with status" not in said:
        said = process.stdout.readline()
        assert said, "forebay ended without a word"
    assert process.wait(timeout=300) == 0
    sleeping = subprocess.run(["pgrep", "-s", str(process.pid), "sleep"], capture_output=True, text=True).stdout.split()
    assert len(sleeping) == 1
    os.kill(int(sleeping[0]), signal.SIGKILL)
    process.stdout.close()
    job.leaves_nothing()


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGINT])
def test_signal_that_was_ignored_at_the_start_stays_ignored(job, number):
    job.script("mkdir $DW_JOB_STRIPED/out; touch running; until [ -e go ]; do sleep 0.01; done", DW)
    command = ["bash", "-c", f'trap "" {int(number)}; exec "$0" run --store "$1" job.sh', job.forebay, job.store]
    process = subprocess.Popen(command, cwd=job.directory, env=job.environment(), stderr=subprocess.PIPE, text=True)
    wait_until((job.directory / "running").exists, process=process)
    process.send_signal(number)
    time.sleep(0.05)
    (job.directory / "go").touch()
    _, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    job.leaves_nothing()


def test_ctrl_backslash_ends_the_job_like_ctrl_c(job):
    job.script(
        "mkdir $DW_JOB_STRIPED/out; echo so far > $DW_JOB_STRIPED/out/it; touch running; sleep 300", DW, STAGE_OUT
    )
    process = job.start()
    status, err = job.stop_when(process, (job.directory / "running").exists, signal.SIGQUIT)
    assert status == 128 + signal.SIGQUIT, err
    assert (job.directory / "results" / "it").read_text() == "so far\n"
    job.leaves_nothing()


def test_job_that_handles_sigint_keeps_its_exit_code(job):
    job.script("trap 'exit 7' TERM; touch running; while :; do sleep 0.01; done", DW)
    process = job.start()
    status, err = job.stop_when(process, (job.directory / "running").exists, INTERRUPT)
    assert status == 7, err
    job.leaves_nothing()


def test_job_that_ignores_signals_is_killed_at_the_second_one(job):
    job.script("trap '' TERM; touch running; while :; do sleep 0.01; done", DW)
    process = job.start()
    assert job.stop_when(process, lambda: twice(process, (job.directory / "running").exists), INTERRUPT)[0] == 130
    job.leaves_nothing()


def twice(process, reached):
    """Sends a first signal; the second is the caller's."""
    if reached():
        process.send_signal(INTERRUPT)
        time.sleep(0.05)
        return True
    return False


class NobodysHome:
    """A home and a store of the user nobody, and a `forebay` that this user can start."""

    def __init__(self, build, mode):
        self.top = pathlib.Path(tempfile.mkdtemp(prefix="forebay-test-"))
        self.top.chmod(mode)
        self.directory, self.store = self.top / "ada", self.top / "store"
        for directory in (self.directory, self.store):
            directory.mkdir()
            os.chown(directory, 65534, 65534)
        self.program = self.top / "forebay"
        shutil.copyfile(build / "bin" / "forebay", self.program)
        self.program.chmod(0o755)

    def run(self, body):
        """A job with one stage_out line."""
        (self.directory / "job.sh").write_text(f"#!/bin/bash\n{DW}\n{STAGE_OUT}\n{body}\n")
        user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
        command = [*user, self.program, "run", "--store", self.store, "job.sh"]
        state = str(self.directory / "state")
        environment = {"PATH": os.environ["PATH"], "TMPDIR": str(self.store), "FOREBAY_STATE": state}
        environment |= WITHOUT_CONFIGURATION
        return subprocess.run(command, cwd=self.directory, env=environment, capture_output=True, text=True, timeout=120)


@pytest.fixture
def nobodys(build, request):
    """Its directory has the mode of the parameter."""
    if os.getuid() != 0:
        pytest.skip("only root can become another user")
    home = NobodysHome(build, request.param)
    yield home
    subprocess.run(["rm", "-rf", home.top], check=True)


@pytest.mark.parametrize("nobodys", [0o711], indirect=True)
def test_ordinary_user_runs_below_an_unlistable_folder(nobodys):
    done = nobodys.run("mkdir $DW_JOB_STRIPED/out; id -u > $DW_JOB_STRIPED/out/id")
    assert done.returncode == 0, done.stderr
    assert (nobodys.directory / "results" / "id").read_text() == "65534\n"
    assert list(nobodys.store.iterdir()) == []


def test_script_changed_after_it_was_read_runs_as_read(job):
    job.script("echo first; echo '#!/bin/bash' > job.sh; sleep 0.1; echo last; basename $0; echo \"$1\"", DW)
    command = [job.forebay, "run", "--store", job.store, "job.sh", "--", "an argument"]
    done = subprocess.run(command, cwd=job.directory, env=job.environment(), capture_output=True, text=True)
    assert done.stdout.splitlines() == ["first", "last", "job.sh", "an argument"], done.stderr


def test_wrong_working_directory_is_named_before_the_job_starts(job):
    job.script("touch started", "#SBATCH --chdir=/no/such", DW)
    done = job.run()
    assert done.returncode == 125 and "/no/such" in done.stderr and "--chdir" in done.stderr
    job.leaves_nothing()


def test_options_without_effect_are_named(job):
    job.script("true", "#SBATCH -t 10 --exclusive", "#SBATCH -o out_%j")
    assert "#SBATCH options without effect here: --exclusive -o" in job.run().stderr


def test_closed_terminal_does_not_lose_the_data(job):
    job.script("mkdir $DW_JOB_STRIPED/out; echo x > $DW_JOB_STRIPED/out/x", DW, STAGE_OUT)
    with open("/dev/full", "w") as full:
        command = [job.forebay, "run", "--json", "--store", job.store, "job.sh"]
        done = subprocess.run(command, cwd=job.directory, env=job.environment(), stdout=full, stderr=full)
    assert done.returncode == 1  # the account could not be written
    assert (job.directory / "results" / "x").read_text() == "x\n"
    job.leaves_nothing()


@pytest.mark.long
@pytest.mark.parametrize("nobodys", [0o755], indirect=True)
@pytest.mark.soak
def test_unkillable_process_keeps_the_allocation(nobodys):
    foreign = another_users_program(nobodys.top)
    written = nobodys.directory / "pid"
    try:
        done = nobodys.run(
            "mkdir $DW_JOB_STRIPED/out; echo x > $DW_JOB_STRIPED/out/x\n"
            f"{foreign} >/dev/null 2>&1 & echo $! > pid; until grep -q sleep /proc/$!/comm; do sleep 0.01; done"
        )
        assert done.returncode == 123, done.stderr
        assert f"these could not be ended and may still write: {written.read_text().strip()}" in done.stderr
        assert (nobodys.directory / "results" / "x").read_text() == "x\n"
        (kept,) = nobodys.store.iterdir()
        assert f"nothing was deleted: the data are in {kept}" in done.stderr
    finally:
        if written.exists():
            os.kill(int(written.read_text()), signal.SIGKILL)


def test_account_names_a_missing_file_whose_name_is_no_text(job):
    os.makedirs(os.fsencode(job.directory / "results") + b"/\xff")  # in the way
    job.script("mkdir $DW_JOB_STRIPED/out; echo x > $DW_JOB_STRIPED/out/$'\\xff'", DW, STAGE_OUT)
    done = job.run("--json")
    assert done.returncode == 123 and "is not recorded" not in done.stderr, done.stderr
    assert json.loads(done.stdout)["exit_code"] == 123
    assert job.command("clean", "--discard").returncode == 0
    job.leaves_nothing()
