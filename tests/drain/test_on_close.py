"""Commands on close: in a job, and next to any program."""

import json
import os
import shutil
import signal
import subprocess
import time

import pytest

from support.job import DW, INTERRUPT, KILL
from support.strace import has_ended
from support.users import reachable
from support.waiting import wait_until

OUT = "#DW stage_out type=directory source=$DW_JOB_STRIPED/pictures destination={}"


@pytest.fixture
def watched(job):
    """A directory, and `forebay watch` over it once it says that it watches."""
    job.top = job.directory / "data"
    job.top.mkdir()
    job.running = []

    def watch(*options):
        process = job.forebay_starts("watch", "data", "--json", *options)
        job.running.append(process)
        assert "watching" in process.stderr.readline()
        return process

    job.watch = watch
    yield job
    for process in job.running:
        if process.poll() is None:
            process.kill()
            process.wait()


def lines(path):
    return path.read_text().splitlines() if path.exists() else []


def stopped(process):
    process.send_signal(INTERRUPT)
    out, err = process.communicate(timeout=300)
    return process.returncode, json.loads(out), err


def ended(watched, process):
    """The account of a watch whose directory was removed: what runs comes to its end."""
    shutil.rmtree(watched.top)
    out, _ = process.communicate(timeout=300)
    return process.returncode, json.loads(out)


def test_each_version_runs_its_command_once_in_its_directory(watched):
    done = watched.directory / "done"
    process = watched.watch("--on-close", f'*.nc=echo "$FOREBAY_VERSION $FOREBAY_FILE" $(cat {{}}) >> "{done}"')
    odd = watched.top / "it's $HOME;.nc"
    odd.write_text("one")
    (watched.top / "other.txt").write_text("no")
    wait_until(lambda: len(lines(done)) == 1)
    with odd.open("a") as file:
        file.write("+two")
        file.flush()
    wait_until(lambda: len(lines(done)) == 2)
    (watched.top / "new").mkdir()
    (watched.top / "new" / "deep.nc").write_text("three")
    wait_until(lambda: len(lines(done)) == 3)
    code, account = ended(watched, process)
    assert lines(done) == [f"1 {odd} one", f"2 {odd} one+two", f"1 {watched.top}/new/deep.nc three"]
    assert (code, account["closed"], account["done"], account["failures"]) == (0, 3, 3, [])


def test_watch_ends_when_its_directory_is_removed(watched):
    process = watched.watch("--on-close", "*=true")
    watched.top.rmdir()
    out, _ = process.communicate(timeout=300)
    assert (process.returncode, json.loads(out)["closed"]) == (0, 0)


def test_commands_at_a_time_are_limited_to_the_option(watched):
    # Each command waits until it has met another one: alone it would never end.
    meet = 'touch {}.here; until [ "$(ls data | grep -c here)" -ge 2 ]; do sleep 0.01; done; echo >> done'
    process = watched.watch("--at-most", "2", "--on-close", f"?={meet}")
    (watched.top / "a").touch()
    (watched.top / "b").touch()
    wait_until(lambda: len(lines(watched.directory / "done")) == 2)
    assert ended(watched, process)[1]["done"] == 2


def test_commands_run_one_at_a_time_by_default(watched):
    alone = "mkdir lock || echo overlap >> done; sleep 0.05; rmdir lock; echo ran >> done"
    process = watched.watch("--on-close", f"*={alone}")
    for name in "abcd":
        (watched.top / name).touch()
    wait_until(lambda: len(lines(watched.directory / "done")) >= 4)
    assert lines(watched.directory / "done") == ["ran"] * 4
    assert ended(watched, process)[1]["done"] == 4


def test_version_replaced_before_its_turn_is_skipped(watched):
    go, seen, told = (watched.directory / name for name in ("go", "seen", "told"))
    hold = "echo $FOREBAY_VERSION $(cat {}) >> seen; until [ -e go ]; do sleep 0.01; done"
    process = watched.watch("--at-most", "2", "--on-close", f"a={hold}", "--on-close", "mark=touch told")
    (watched.top / "a").write_text("1")
    wait_until(lambda: lines(seen) == ["1 1"])
    (watched.top / "a").write_text("2")
    (watched.top / "mark").write_text("")
    wait_until(told.exists)  # and so the second version is told of, and waits
    (watched.top / "a").write_text("3")
    told.unlink()
    (watched.top / "mark").write_text("")
    wait_until(told.exists)
    go.touch()
    wait_until(lambda: len(lines(seen)) == 2)
    _, account = ended(watched, process)
    assert lines(seen) == ["1 1", "3 3"]
    assert [account[name] for name in ("closed", "done", "superseded")] == [5, 4, 1]


def test_failed_command_is_retried_then_listed_and_logged(watched):
    log = watched.directory / "log"
    tries = watched.directory / "tries"
    process = watched.watch(
        "--retries", "2", "--log", "log",
        "--on-close", f'twice=echo x >> "{tries}"; echo saw; [ $(wc -l < "{tries}") = 3 ]',
        "--on-close", "never=echo no >&2; exit 7",
        "--on-close", "killed=kill -9 $$",
    )  # fmt: skip
    for name in ("twice", "never", "killed"):
        (watched.top / name).touch()
    wait_until(
        lambda: log.exists() and log.read_text().count("status 137") == 3 and log.read_text().count("status 7") == 3
    )
    wait_until(lambda: "version 1: status 0" in log.read_text())
    shutil.rmtree(watched.top)
    out, said = process.communicate(timeout=300)
    account = json.loads(out)
    assert (process.returncode, account["done"], account["failed"]) == (1, 1, 2)
    assert account["failures"] == [
        [f"{watched.top}/never", 1, "the command ended with status 7"],
        [f"{watched.top}/killed", 1, "the command was ended by signal 9"],
    ]
    assert "error: on close: " in said and "1 commands succeeded, 2 failed" in said
    text = log.read_text()
    assert (
        text.count("saw\n") == 3 and text.count("no\n") == 3 and f"== {watched.top}/twice, version 1: status 0" in text
    )


def test_stopped_watch_ends_commands_and_names_those_not_started(watched):
    process = watched.watch(
        "--on-close", '*=touch ../running "$FOREBAY_FILE.running"; exec sleep 600', "--on-close", "a.running=true"
    )
    (watched.top / "a").touch()
    wait_until(lambda: (watched.top / "a.running").exists())
    (watched.top / "b").touch()
    time.sleep(2)  # nobody sees when the watch has read the event
    code, account, _ = stopped(process)
    assert code == 130
    assert account["done"] == 0 and account["failed"] == 1 and account["not_run"] == account["closed"] - 1 >= 1
    assert account["failures"][0] == [f"{watched.top}/a", 1, "the command was ended by signal 15"]


@pytest.mark.parametrize(
    ("words", "code", "part"),
    [
        (["data", "--on-close", "*.nc"], 2, "PATTERN"),
        (["data", "--on-close", "*.nc= "], 2, "there is no command"),
        (["data", "--on-close", "=true"], 2, "a pattern is empty"),
        (["data", "--on-close", "/x=true"], 2, "below the burst buffer"),
        (["data"], 2, "--on-close"),
        (["data", "--on-close", "*=true", "--jobs", "0"], 2, "--jobs"),
        (["nowhere", "--on-close", "*=true"], 1, "cannot find nowhere"),
        (["data", "--on-close", "*=true", "--log", "nowhere/log"], 1, "nowhere/log"),
    ],
)
def test_bad_watch_options_are_refused(watched, words, code, part):
    done = watched.command("watch", *words)
    assert done.returncode == code and part in done.stderr, done.stderr


def test_close_of_another_users_file_counts_without_a_lease(build):
    """An ordinary user gets no lease on root's files."""
    if os.getuid() != 0:
        pytest.skip("only root can become another user")
    with reachable(build) as job:
        job.as_nobody()
        top = job.directory / "data"
        top.mkdir()
        process = job.forebay_starts("watch", "data", "--on-close", "*=cat {}", "--json")
        try:
            process.stderr.readline()
            (top / "a").write_text("of root\n")
            said = ""
            while "of root" not in said:
                line = process.stderr.readline()
                assert line, said
                said += line
            shutil.rmtree(top)
            told, later = process.communicate(timeout=300)
            assert json.loads(told)["done"] == 1
            assert "take a lease on" in said + later
        finally:
            process.kill()
            process.wait()


@pytest.fixture(params=["directory", "memory"])
def plotted(job, request):
    job.pfs = job.directory.parent / "pfs"
    if request.param == "memory":
        job.in_memory()
    job.body = lambda *body: job.script(
        "\n".join(['mkdir -p "$DW_JOB_STRIPED/pictures"', 'cd "$DW_JOB_STRIPED"', f'FOREBAY="{job.forebay}"', *body]),
        DW,
        OUT.format(job.pfs),
    )
    return job


# Where the kind of store makes no difference.
one_store = pytest.mark.parametrize("plotted", ["directory"], indirect=True)
PLOT = 'cp {} "$DW_JOB_STRIPED/pictures/$(basename {}).png"'


def test_pictures_are_staged_out_while_the_simulation_runs(plotted):
    plotted.body(
        "echo 1 > step-1.nc",
        f"until [ -e {plotted.pfs}/step-1.nc.png ]; do sleep 0.01; done",  # it is there while the job runs
        "echo 2 > step-2.nc",
    )
    done = plotted.run("--json", "--on-close", f"step-*.nc={PLOT}", "--drain", "pictures/*")
    assert done.returncode == 0, done.stderr
    assert sorted(os.listdir(plotted.pfs)) == ["step-1.nc.png", "step-2.nc.png"]
    account = json.loads(done.stdout)
    assert account["on_close"] == {
        "closed": 2,
        "done": 2,
        "failed": 0,
        "superseded": 0,
        "not_run": 0,
        "failures": [],
        "unmatched": [],
    }
    plotted.leaves_nothing()


@one_store
def test_queued_commands_and_their_followers_run_before_stage_out(plotted):
    plotted.body("for step in 1 2 3 4 5; do echo $step > step-$step.nc; done")
    follow = '*.png=echo also >> "$DW_JOB_STRIPED/pictures/all"'
    done = plotted.run(
        "--json", "--on-close", f"step-*.nc=sleep 0.1; {PLOT}", "--on-close", follow, "--on-close-at-most", "2"
    )
    assert done.returncode == 0, done.stderr
    assert sorted(os.listdir(plotted.pfs)) == ["all", *(f"step-{step}.nc.png" for step in range(1, 6))]
    assert (plotted.pfs / "all").read_text() == "also\n" * 5
    assert json.loads(done.stdout)["on_close"]["done"] == 10
    plotted.leaves_nothing()


@one_store
def test_failed_command_is_listed_and_does_not_fail_the_job(plotted):
    plotted.body("echo 1 > step-1.nc; sleep 600 & exit 3")
    done = plotted.run(
        "--json",
        "--on-close",
        "*.nc=echo to the log; sleep 600 & exit 7",
        "--on-close-log",
        "log",
        "--on-close-retries",
        "1",
    )
    assert done.returncode == 3, done.stderr
    account = json.loads(done.stdout)
    assert account["on_close"]["failed"] == 1 and account["leftover_processes"] == 1
    assert "error: on close: " in done.stderr and "step-1.nc, version 1: the command ended with status 7" in done.stderr
    assert (plotted.directory / "log").read_text().count("to the log\n") == 2
    plotted.leaves_nothing()


def test_ctrl_c_ends_commands_on_close(plotted):
    begun, written = plotted.directory / "begun", plotted.directory / "written"
    plotted.body(f'echo 1 > pictures/a.nc; echo 2 > b.nc; touch "{written}"; sleep 600')
    process = plotted.start("--on-close", f'*.nc=touch "{begun}"; sleep 600')
    code, err = plotted.stop_when(process, lambda: begun.exists() and written.exists(), INTERRUPT)
    assert code == 130, err
    assert "on close: 0 commands succeeded, 1 failed" in err and "it was not begun" in err
    assert os.listdir(plotted.pfs) == ["a.nc"]
    plotted.leaves_nothing()


def of_ours(job, name):
    """Processes of the job's `forebay run` whose command line has this."""
    mine = f"TMPDIR={job.temporary}\0".encode()
    found = []
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{entry}/cmdline", "rb") as words, open(f"/proc/{entry}/environ", "rb") as environment:
                if name in words.read() and mine in environment.read():
                    found.append(int(entry))
        except OSError:  # it has ended
            continue
    return found


def test_commands_end_when_the_watching_process_is_killed(plotted):
    begun = plotted.directory / "begun"
    plotted.body("echo 1 > b.nc; sleep 600")
    process = plotted.start("--on-close", f'*.nc=touch "{begun}"; sleep 601')
    plotted.stop_when(process, begun.exists, KILL)
    wait_until(lambda: of_ours(plotted, b"sleep\x00600"), what="the job itself, which stays")
    wait_until(lambda: not of_ours(plotted, b"sleep\x00601") and not of_ours(plotted, b"--beside-job"))
    assert plotted.command("clean", "--kill").returncode == 0
    plotted.leaves_nothing()


@pytest.mark.parametrize("goes_on", [True, False])
def test_commands_of_killed_watch_do_not_write_during_stage_out(plotted, goes_on):
    """While the script runs, and when only its commands do."""
    begun = plotted.directory / "begun"
    script = plotted.directory / "script"
    wait = "until [ -e go ]; do sleep 0.01; done" if goes_on else f'until [ -e "{begun}" ]; do sleep 0.01; done'
    plotted.body(f'echo $$ > "{script}"; echo 1 > b.nc', f'cd "{plotted.directory}"; {wait}')
    process = plotted.start(
        "--json", "--on-close", f'*.nc=touch "{begun}"; sleep 601; touch "$DW_JOB_STRIPED/pictures/late"'
    )
    wait_until(begun.exists)
    if not goes_on:
        wait_until(lambda: has_ended(int(script.read_text())))
    (watch,) = of_ours(plotted, b"--beside-job")
    os.kill(watch, KILL)
    (plotted.directory / "go").touch()
    out, err = process.communicate(timeout=300)
    account = json.loads(out)
    assert of_ours(plotted, b"sleep\x00601") == []
    assert (process.returncode, account["leftover_processes"] > 0) == (0, True), err
    assert "the watching process was killed; what became of the commands is not known" in err
    assert account["on_close"] is None and "commands succeeded" not in err
    plotted.leaves_nothing()


@one_store
def test_commands_on_close_end_in_time_for_stage_out(plotted):
    plotted.body("echo 1 > pictures/a.png; echo 2 > b.nc; echo 3 > c.nc")
    soon = ("--deadline", "0:14", "--drain-margin", "0:01")
    done = plotted.run("--json", *soon, "--on-close", "*.nc=sleep 600")
    account = json.loads(done.stdout)
    assert (done.returncode, account["job_status"], account["deadline"]["ended_job"]) == (0, 0, True), done.stderr
    commands = account["on_close"]
    assert [commands[name] for name in ("closed", "done", "failed", "not_run")] == [2, 0, 1, 1]
    assert commands["failures"][0][2] == "the command was ended by signal 15"
    assert os.listdir(plotted.pfs) == ["a.png"] and account["not_safe"] is None
    plotted.leaves_nothing()


STUBBORN = """trap '' TERM; touch "{}"; while :; do sleep 601; done"""


@one_store
def test_hanging_command_does_not_lose_the_job_summary(plotted):
    """Where a scheduler wants the end, so that it is killed soon."""
    begun, written = plotted.directory / "begun", plotted.directory / "written"
    names = "quick1 quick2 slow waits"
    plotted.body(f'for name in {names}; do echo > $name.nc; done; touch "{written}"; exec sleep 600')
    command = f"case {{}} in *slow*) {STUBBORN.format(begun)};; esac"
    process = plotted.start("--json", "--deadline", "10:00", "--on-close", f"*.nc={command}")
    wait_until(lambda: begun.exists() and written.exists())
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=300)
    commands = json.loads(out)["on_close"]
    assert [commands[name] for name in ("closed", "done", "failed", "not_run")] == [4, 2, 1, 1], err
    assert [(os.path.basename(path), why) for path, _, why in commands["failures"]] == [
        ("slow.nc", "the command was ended by signal 9"),
        ("waits.nc", "it was not begun: we were to stop"),
    ]
    assert process.returncode == 143 and "on close: 2 commands succeeded, 1 failed" in err
    assert of_ours(plotted, b"sleep\x00601") == []
    plotted.leaves_nothing()


@one_store
@pytest.mark.parametrize("is_stubborn", [False, True])
def test_time_limit_bounds_commands_after_the_script(plotted, is_stubborn):
    """One that does not end is killed soon where the job's end is known."""
    plotted.body("echo 1 > pictures/a.png; echo 2 > b.nc; echo 3 > c.nc")
    command = STUBBORN.format(plotted.directory / "begun") if is_stubborn else "exec sleep 601"
    end = ("--deadline", "10:00") if is_stubborn else ()
    done = plotted.run("--json", "--time", "0:02", *end, "--on-close", f"*.nc={command}")
    account = json.loads(done.stdout)
    assert (done.returncode, account["job_status"]) == (0, 0), done.stderr
    assert "the commands on close were ended: the job's time limit was reached" in done.stderr
    commands = account["on_close"]
    assert [commands[name] for name in ("closed", "done", "failed", "not_run")] == [2, 0, 1, 1]
    assert commands["failures"][0][2] == f"the command was ended by signal {9 if is_stubborn else 15}"
    assert os.listdir(plotted.pfs) == ["a.png"] and account["leftover_processes"] == 0
    assert of_ours(plotted, b"sleep\x00601") == []
    plotted.leaves_nothing()


@one_store
def test_signal_before_the_deadline_reaches_the_script_only(plotted):
    plotted.body("echo 1 > pictures/a.png; echo 2 > b.nc")
    soon = ("--deadline", "0:20", "--drain-margin", "0:01", "--signal-before", "USR1@3")
    done = plotted.run("--json", *soon, "--on-close", "*.nc=trap 'touch signalled' USR1; sleep 600 & wait")
    told = json.loads(done.stdout)["deadline"]
    assert told["ended_job"] and not (plotted.directory / "signalled").exists(), done.stderr


def test_on_close_without_a_burst_buffer_is_refused(job):
    job.script("touch ran")
    done = job.run("--on-close", "*=true")
    assert done.returncode == 125 and "there is no burst buffer" in done.stderr and "forebay watch DIR" in done.stderr
    assert not (job.directory / "ran").exists()
    assert subprocess.run([job.forebay, "run", "--on-close-at-most", "2", "x"], capture_output=True).returncode == 2


@pytest.mark.parametrize(("verb", "refused"), [("run", 125), ("watch", 1)])
@pytest.mark.parametrize(("name", "value"), [("jobs", "2"), ("retries", "1"), ("log", "said")])
def test_run_and_watch_take_each_other_s_option_names(job, verb, refused, name, value):
    """The script or directory is missing, which is found after the options were parsed. The help has one name."""
    names = [f"--{name}", f"--on-close-{name}"]
    for option in names:
        done = job.command(verb, "--on-close", "*=true", option, value, "/none")
        assert done.returncode == refused and "/none" in done.stderr, done.stderr
    words = job.command(verb, "--help").stdout.split()
    assert [option for option in names if option in words] == names[verb == "run" :][:1]
