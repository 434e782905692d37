"""Whole runs of `forebay bench io500`, and how they end."""

import json
import os
import re
import shutil
import signal
import subprocess
import time

import pytest

from forebay.bench.phases import PHASES
from forebay.bench.scoring import scores
from support.io500 import LONG, SHORT, interrupt
from support.kernels import with_small_disk
from support.mpi import launching
from support.schemas import complaints
from support.strace import few
from support.waiting import wait_until

FAMILIES = [family for family in ("openmpi", "mpich") if shutil.which(f"mpiexec.{family}")]


def result_of(done):
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def leftovers(bench):
    """What of a run is still there."""
    return [*os.listdir(bench.data), *bench.processes()]


def test_run_prints_all_phases_with_their_score_and_leaves_nothing(bench):
    (bench.data / "mine").write_text("stays")
    run = result_of(bench.run(*SHORT, "--json"))
    assert complaints("bench-io500", run) == []
    assert [phase["name"] for phase in run["phases"]] == [phase.name for phase in PHASES]
    assert (run["reduced"], run["valid"], run["ranks"], run["shift"]) == (True, False, 2, 1)
    expected = scores({phase["name"]: phase["score"] for phase in run["phases"]})
    assert run["scores"]["total"] == pytest.approx(expected.total) and expected.total > 0
    by_name = {phase["name"]: phase for phase in run["phases"]}
    reading = [phase for phase in by_name.values() if phase["name"].endswith(("-read", "-stat"))]
    assert [phase["verified"] for phase in reading] == [True] * 6 and len(reading) == 6
    # All files of both trees, the large ones, the marker, the timestamp and eight directories.
    items = by_name["mdtest-easy-write"]["operations"] + by_name["mdtest-hard-write"]["operations"]
    assert by_name["find"]["operations"] == items + 2 + 1 + 2 + 9
    assert 0 < by_name["find"]["found"] < by_name["mdtest-hard-write"]["operations"]
    assert os.listdir(bench.data) == ["mine"] and bench.processes() == []


@pytest.mark.soak
def test_summary_on_standard_output_is_that_of_the_results(bench):
    done = bench.run(*SHORT)
    assert done.returncode == 0, done.stderr
    text = (bench.results / "result_summary.txt").read_text()
    assert done.stdout.startswith(text) and "not an official submission" in text.splitlines()[0]
    assert text.splitlines()[-1].endswith("[INVALID]")
    names = {path.name for path in bench.results.iterdir()}
    assert {"result.txt", "config.ini", "ior-easy-write.txt", "find.txt"} <= names
    assert "writes at most" in done.stderr and "note: the stonewall is 1 s, not 300 s" in done.stdout
    assert leftovers(bench) == []


@pytest.mark.soak
@pytest.mark.parametrize("family", few(*FAMILIES))
def test_program_of_the_launchers_mpi_is_chosen(bench, family):
    run = result_of(bench.run(*SHORT, "--json", "--launcher", f"mpiexec.{family}"))
    assert f"/{family}/forebay-io500" in run["phases"][0]["command"] and run["ranks"] == 2


def test_installed_programs_run_their_phases(bench):
    if not (shutil.which("ior") and shutil.which("mdtest")):
        pytest.skip("ior and mdtest are not installed")
    run = result_of(bench.run(*SHORT, "--json", "--programs", "installed"))
    assert not run["reduced"]
    assert {phase["program"] for phase in run["phases"]} == {"ior", "mdtest", "forebay", "forebay-io500"}
    assert all(phase["score"] > 0 for phase in run["phases"] if phase["scored"])
    assert leftovers(bench) == []


@pytest.mark.soak
@pytest.mark.parametrize("number", few(signal.SIGINT, signal.SIGTERM, signal.SIGHUP))
@pytest.mark.parametrize("phase", ["ior-easy-write", "mdtest-easy-write"])
def test_signal_ends_the_run_and_removes_its_files(bench, number, phase):
    limits = LONG if phase == "ior-easy-write" else ("--stonewall", "2", "--data", "200MiB", "--ranks", "2")
    process = bench.start(*limits, "--json")
    bench.reaches(process, phase)
    code, out, _ = interrupt(process, number)
    assert code == 128 + number
    assert complaints("error", json.loads(out)) == []
    assert leftovers(bench) == [] and not bench.results.exists()


@pytest.mark.parametrize("phase", few("mdtest-easy-write", "ior-easy-write", "ior-hard-write"))
def test_kill_leaves_nothing(bench, phase):
    process = bench.start("--stonewall", "3", "--data", "1GiB", "--ranks", "2")
    bench.reaches(process, phase)
    code, _, err = interrupt(process, signal.SIGKILL)
    assert code == -signal.SIGKILL
    wait_until(lambda: leftovers(bench) == [], 60, "the guard to clean up")
    assert "was killed; its files are removed" in err


@pytest.mark.soak
@pytest.mark.parametrize("pause_s", few(0.002, 0.2, 0, 0.02, kept=2))
def test_second_signal_leaves_nothing_either(bench, pause_s):
    process = bench.start(*LONG)
    bench.reaches(process, "ior-easy-write")
    process.send_signal(signal.SIGINT)
    time.sleep(pause_s)
    code, _, _ = interrupt(process, signal.SIGTERM)
    assert code in (128 + signal.SIGINT, 128 + signal.SIGTERM)
    wait_until(lambda: leftovers(bench) == [], 60, "the end of the run")


@pytest.mark.parametrize(
    "name", few(b"-n a caf\xe9\n$(touch x)", b"a b", b"caf\xe9", b"new\nline", b"-n", b"$(touch x)")
)
@pytest.mark.soak
def test_directory_may_have_any_name(bench, name):
    directory = os.fsencode(bench.scratch) + b"/" + name
    os.mkdir(directory)
    command = [bench.forebay, "bench", "io500", "--json", "--results", "results", *SHORT, "--", name]
    done = subprocess.run(command, cwd=bench.scratch, capture_output=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert os.fsencode(json.loads(done.stdout)["directory"]) == directory
    assert os.listdir(directory) == [] and not (bench.scratch / "x").exists()


@pytest.mark.parametrize("delay_s", [0.05, 0.15, 0.3, 0.6])
def test_kill_at_the_start_leaves_nothing(bench, delay_s):
    process = bench.start(*LONG)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(delay_s)
    interrupt(process, signal.SIGKILL)
    wait_until(lambda: leftovers(bench) == [], 60, "the guard to clean up")


@pytest.mark.soak
def test_death_of_the_launcher_fails_the_phase_and_leaves_nothing(bench):
    launcher = bench.launcher('test "$PHASE" != ior-hard-write || kill -9 $$')
    done = bench.run(*SHORT, "--json", "--launcher", launcher)
    assert done.returncode == 1
    assert "ior-hard-write: forebay-io500 failed, SIGKILL ended it" in json.loads(done.stdout)["error"]
    assert leftovers(bench) == [] and not bench.results.exists()


def test_names_that_the_run_did_not_make_stay(bench):
    victim = bench.scratch / "victim"
    victim.write_text("mine")
    plant = f"""
        if test "$PHASE" = ior-hard-write; then
            echo mine > "$RUN/mdtest-easy/precious"
            mkdir "$RUN/mdtest-hard/more"
            ln -s {victim} "$RUN/ior-easy/ior_file_easy.00000099"
            ln -s {bench.scratch} "$RUN/mdtest-easy/test-dir.9-9"
        fi"""
    done = bench.run(*SHORT, "--launcher", bench.launcher(plant))
    assert done.returncode == 0, done.stderr
    (run,) = bench.data.iterdir()
    stays = sorted(str(path.relative_to(run)) for path in run.rglob("*") if path.name != ".forebay-io500")
    foreign = [
        "ior-easy/ior_file_easy.00000099",
        "mdtest-easy/precious",
        "mdtest-easy/test-dir.9-9",
        "mdtest-hard/more",
    ]
    assert stays == sorted([*foreign, "ior-easy", "mdtest-easy", "mdtest-hard"])
    assert victim.read_text() == "mine"
    for name in foreign:
        assert f"{run / name} stays: the benchmark did not make it" in done.stderr
    again = bench.run("--data", "1KiB")
    assert again.returncode == 1 and run.is_dir()


@pytest.mark.soak
def test_damaged_data_fail_the_command_after_the_result(bench):
    damage = """test "$PHASE" != ior-hard-read ||
        printf X | dd of="$RUN/ior-hard/file" bs=1 seek=70000 conv=notrunc 2> /dev/null"""
    done = bench.run(*SHORT, "--json", "--launcher", bench.launcher(damage))
    assert done.returncode == 1
    run = json.loads(done.stdout)
    (wrong,) = [phase for phase in run["phases"] if phase["verified"] is False]
    assert wrong["name"] == "ior-hard-read" and "wrong value at byte 70000" in wrong["invalid_because"][0]
    assert "error: ior-hard-read: what was read is not what was written" in done.stderr
    summary = (bench.results / "result_summary.txt").read_text()
    assert any("ior-hard-read" in line and "[INVALID]" in line for line in summary.splitlines())


def test_full_disk_names_the_phase_and_leaves_nothing(build, bench):
    """Something else fills the disk while the benchmark runs."""
    fill = f"""test "$PHASE" != ior-hard-write || dd if=/dev/zero of={bench.data}/other bs=1M 2> /dev/null"""
    launcher = bench.launcher(fill)
    inside = bench.scratch / "inside.sh"
    inside.write_text(f'#!/bin/bash\n"$@"; status=$?; ls -A {bench.data} > {bench.scratch}/listed; exit $status\n')
    inside.chmod(0o755)
    before = [*with_small_disk(bench.data, "100m"), inside]
    command = [*before, bench.forebay, "bench", "io500", *SHORT, "--launcher", launcher, bench.data]
    done = subprocess.run(
        [str(word) for word in command], cwd=bench.scratch, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 1
    assert "error: ior-hard-write: " in done.stderr and "No space left on device" in done.stderr
    assert "hint: is the file system full" in done.stderr
    assert (bench.scratch / "listed").read_text().split() == ["other"]


@pytest.mark.parametrize(
    "words, message",
    [
        (["--data", "100PiB"], "error: --data .* is more than the free (space|memory)"),
        (["--data", "1MiB"], "are too little for .* ranks\nhint: give at least --data"),
        (["--nodes", "n1,-x"], "'-x' is no name of a node"),
        (["--nodes", "n1,n2", "--ranks", "3"], "3 ranks do not spread evenly over 2 nodes"),
        (["--hostfile", "/dev/null"], "/dev/null names no node"),
        (["--hostfile", "missing"], "missing: cannot be read"),
        (["--nodes", "n1", "--hostfile", "/dev/null"], "both name nodes"),
        (["--launcher", "no-such-launcher -x"], "no such program"),
        (["--launcher", "'open"], "hint: close the quote"),
        (["--launcher", "env mpiexec", "--nodes", "n1"], "env: Forebay does not know how it takes nodes"),
        (["--programs", "installed"], "not in PATH: ior"),
    ],
)
def test_bad_request_is_refused_before_anything_is_written(bench, words, message):
    if shutil.which("ior") and "installed" in words:
        pytest.skip("ior is installed")
    done = bench.run(*words)
    assert done.returncode == 1
    assert re.search(message, done.stderr), done.stderr
    assert leftovers(bench) == [] and not bench.results.exists()


@pytest.mark.soak
@pytest.mark.parametrize(
    "words", [["--stonewall", "0"], ["--ranks", "0"], ["--data", "5 apples"], ["--data", "0B"], ["-o", "."]]
)
def test_bad_option_is_a_usage_error(bench, words):
    assert bench.run(*words).returncode == 2


def test_directory_that_cannot_be_used_is_refused(bench):
    file = bench.scratch / "file"
    file.touch()
    open_to_all = bench.scratch / "open"
    open_to_all.mkdir()
    open_to_all.chmod(0o777)
    loop = bench.scratch / "loop"
    loop.symlink_to(loop)
    for directory, message in [
        (bench.scratch / "missing", "missing: No such file or directory"),
        (file, "file is not a directory"),
        (open_to_all, "every user may rename what is in it"),
        (loop, "loop: "),
    ]:
        done = bench.run(*SHORT, directory=directory)
        assert done.returncode == 1 and message in done.stderr, done.stderr
    assert list(open_to_all.iterdir()) == []


def test_directory_of_another_user_is_refused(build, bench):
    if os.getuid() != 0:
        pytest.skip("only root can become another user")
    probe = subprocess.run([bench.forebay, "bench", "--help"], user=65534, group=65534, capture_output=True)
    if probe.returncode != 0:
        pytest.skip("another user cannot start the build's Python")
    done = bench.run(*SHORT, user=65534, group=65534, extra_groups=[])
    assert done.returncode == 1 and "hint:" in done.stderr
    assert leftovers(bench) == []


def test_existing_results_are_not_replaced(bench):
    bench.results.mkdir()
    done = bench.run(*SHORT)
    assert done.returncode == 1 and "exists" in done.stderr and list(bench.results.iterdir()) == []


@pytest.mark.soak
def test_leftover_of_an_earlier_run_is_named(bench):
    old = bench.data / "forebay-io500-2020.01.01-00.00.00-00000000"
    (old / "ior-easy").mkdir(parents=True)
    done = bench.run(*SHORT)
    assert done.returncode == 0 and f"{old} is of another run" in done.stderr
    assert os.listdir(bench.data) == [old.name]


def test_without_mpi_the_command_says_what_to_load(build, bench):
    tools = bench.scratch / "bin"
    tools.mkdir()
    for name in ("sh", "env", "python3", "bash"):
        (tools / name).symlink_to(shutil.which(name))
    bench.path = str(tools)
    done = bench.run(*SHORT)
    assert done.returncode == 1 and "mpiexec" in done.stderr and "load an MPI" in done.stderr


def test_both_ways_to_name_the_directory_are_the_same(bench):
    words = ["bench", "io500", "-o", bench.data, "--data", "1KiB"]
    done = subprocess.run([bench.forebay, *words], capture_output=True, text=True, cwd=bench.scratch)
    assert done.returncode == 1 and "too little" in done.stderr
    assert subprocess.run([bench.forebay, "bench", "io500"], capture_output=True, cwd=bench.scratch).returncode == 2


@pytest.mark.soak
def test_run_within_a_job_measures_its_allocation(job):
    command = 'forebay bench io500 --stonewall 1 --data 32MiB --ranks 2 --results "$RESULTS" $DW_JOB_STRIPED'
    job.script(command, "#DW jobdw type=scratch access_mode=striped capacity=128MiB")
    results = job.directory / "results"
    path = f"{job.forebay.parent}:{os.environ['PATH']}"
    done = job.run(RESULTS=str(results), PATH=path, **launching())
    assert done.returncode == 0, done.stderr
    assert "[SCORE ]" in (results / "result_summary.txt").read_text()
