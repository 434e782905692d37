"""The life of a job: validate, allocate, stage in, run, stage out, tear down."""

import json
import os
import re
import stat
import subprocess

from support.job import DW, INTERRUPT, KILL

STAGE_IN = "#DW stage_in type=file source=%d/in.dat destination=$DW_JOB_STRIPED/in.dat"
STAGE_OUT = "#DW stage_out type=directory source=$DW_JOB_STRIPED/out destination=%d/results"


def test_job_gets_its_staged_data_and_its_results_are_staged_out(job):
    (job.directory / "in.dat").write_text("input")
    job.script(
        'cd $DW_JOB_STRIPED && mkdir out && cat in.dat > out/copy && ln -s copy out/link && chmod 751 out/copy && echo "$PWD/"',
        DW,
        STAGE_IN,
        STAGE_OUT,
    )
    done = job.run()
    assert (done.returncode, done.stderr.count("error")) == (0, 0), done.stderr
    results = job.directory / "results"
    assert (results / "copy").read_text() == "input"
    assert stat.S_IMODE((results / "copy").stat().st_mode) == 0o751
    assert os.readlink(results / "link") == "copy"
    # The job's standard output is ours, and DW_JOB_STRIPED ends in a slash.
    assert done.stdout.startswith(f"{job.store}/") and done.stdout.endswith("/\n")
    job.leaves_nothing()


def test_both_namespaces_end_in_a_slash_and_are_writable(job):
    job.script(
        "echo $DW_JOB_STRIPED; echo $DW_JOB_PRIVATE; touch ${DW_JOB_STRIPED}a ${DW_JOB_PRIVATE}b",
        DW.replace("striped", "striped,private"),
    )
    done = job.run()
    striped, private = done.stdout.split()
    assert done.returncode == 0 and striped.endswith("/striped/") and private.endswith("/private/")
    job.leaves_nothing()


def test_script_without_directives_runs(job):
    job.script('echo "${DW_JOB_STRIPED-none} $SLURM_NTASKS $SLURM_SUBMIT_DIR"; exit 3')
    done = job.run()
    assert (done.returncode, done.stdout) == (3, f"none 2 {job.directory}\n")
    job.leaves_nothing()


def test_exit_code_is_that_of_the_job_and_results_are_staged_out(job):
    for body, code in [("exit 42", 42), ("kill -9 $$", 137)]:
        job.script(f"mkdir -p $DW_JOB_STRIPED/out; echo saved > $DW_JOB_STRIPED/out/it; {body}", DW, STAGE_OUT)
        done = job.run()
        assert done.returncode == code, done.stderr
        assert (job.directory / "results" / "it").read_text() == "saved\n"
        job.leaves_nothing()


def test_missing_stage_in_source_is_named_and_the_job_is_not_started(job):
    job.script("touch started", DW, STAGE_IN)
    done = job.run()
    assert done.returncode == 125
    assert f"error: job.sh: line 4: stage_in: the source {job.directory}/in.dat does not exist" in done.stderr
    assert "hint: " in done.stderr
    assert not (job.directory / "started").exists()
    job.leaves_nothing()


def test_wrong_directive_is_named_with_line_and_column(job):
    job.script("touch started", DW.replace("64MiB", "64MiX"))
    done = job.run()
    assert done.returncode == 125
    assert "job.sh: line 3, column 53: capacity=64MiX is no size" in done.stderr
    assert "hint: write for example capacity=10GiB" in done.stderr
    assert not (job.directory / "started").exists()
    job.leaves_nothing()


def test_stage_in_beyond_the_capacity_is_refused_with_both_numbers(job):
    with open(job.directory / "in.dat", "wb") as large:
        large.truncate(65 << 20)
    job.script("touch started", DW, STAGE_IN)
    done = job.run()
    assert done.returncode == 125
    assert f"stage-in needs 65.00 MiB, the allocation in {job.store} has 64.00 MiB" in done.stderr
    assert not (job.directory / "started").exists()
    job.leaves_nothing()


def test_results_never_written_are_an_error_and_delete_nothing(job):
    job.script("echo precious > $DW_JOB_STRIPED/elsewhere", DW, STAGE_OUT)
    done = job.run()
    assert done.returncode == 123
    (kept,) = job.allocations()
    assert f"stage out: {kept}/striped/out: the source {kept}/striped/out does not exist" in done.stderr
    assert f"hint: nothing was deleted: the data are in {kept}" in done.stderr
    assert (kept / "striped" / "elsewhere").read_text() == "precious\n"


def test_failed_stage_out_does_not_stop_the_others(job):
    job.script(
        "mkdir $DW_JOB_STRIPED/out; echo x > $DW_JOB_STRIPED/out/x; echo y > $DW_JOB_STRIPED/y; mkdir -p taken/y/z",
        DW,
        "#DW stage_out type=file source=$DW_JOB_STRIPED/y destination=%d/taken/",
        STAGE_OUT,
    )
    done = job.run()
    assert done.returncode == 123, done.stderr
    assert (job.directory / "results" / "x").read_text() == "x\n"
    (kept,) = job.allocations()
    assert (kept / "striped" / "y").read_text() == "y\n"


def test_processes_left_behind_are_ended_before_stage_out(job):
    job.script(
        "mkdir $DW_JOB_STRIPED/out; exec 2>/dev/null; (setsid sh -c 'while echo x; do sleep 0.01; done' > $DW_JOB_STRIPED/out/log) & until [ -s $DW_JOB_STRIPED/out/log ]; do sleep 0.01; done",
        DW,
        STAGE_OUT,
    )
    done = job.run()
    assert done.returncode == 0, done.stderr
    # The loop, and a sleep if one is under way.
    assert re.search(r"the job left behind, ended before stage-out: [12]$", done.stderr, re.M), done.stderr
    assert (job.directory / "results" / "log").stat().st_size > 0
    job.leaves_nothing()


def test_ctrl_c_ends_the_job_and_stages_its_results_out(job):
    job.script(
        "mkdir $DW_JOB_STRIPED/out; echo so far > $DW_JOB_STRIPED/out/it; touch running; sleep 300", DW, STAGE_OUT
    )
    process = job.start()
    status, err = job.stop_when(process, (job.directory / "running").exists, INTERRUPT)
    assert status == 130, err
    assert (job.directory / "results" / "it").read_text() == "so far\n"
    job.leaves_nothing()


def test_killed_run_keeps_its_data_in_the_store(job):
    job.script(
        "mkdir $DW_JOB_STRIPED/out; echo precious > $DW_JOB_STRIPED/out/it; touch running; exec sleep 5", DW, STAGE_OUT
    )
    process = job.start()
    status, _ = job.stop_when(process, (job.directory / "running").exists, KILL)
    assert status == -9
    (kept,) = job.allocations()
    assert (kept / "striped" / "out" / "it").read_text() == "precious\n"
    assert not (job.directory / "results").exists()


def test_concurrent_runs_do_not_interfere(job):
    job.script(
        "mkdir $DW_JOB_STRIPED/out; echo $1$SLURM_JOB_ID > $DW_JOB_STRIPED/out/$SLURM_JOB_ID; sleep 0.5", DW, STAGE_OUT
    )
    processes = [job.start() for _ in range(3)]
    for process in processes:
        _, err = process.communicate(timeout=300)
        assert process.returncode == 0, err
    assert len(list((job.directory / "results").iterdir())) == 3
    job.leaves_nothing()


def test_job_ids_are_unique(job):
    job.script("echo $SLURM_JOB_ID")
    ids = [job.run().stdout for _ in range(5)]
    assert len(set(ids)) == 5 and all(id.strip().isdigit() for id in ids)


def test_json_is_one_object_apart_from_the_job_output(job):
    (job.directory / "in.dat").write_text("input")
    job.script(
        "echo from the job; mkdir $DW_JOB_STRIPED/out; echo 12345 > $DW_JOB_STRIPED/out/x", DW, STAGE_IN, STAGE_OUT
    )
    done = job.run("--json")
    account = json.loads(done.stdout)
    assert "from the job" in done.stderr
    assert account["exit_code"] == account["job_status"] == 0
    kind = subprocess.run(["stat", "-f", "-c", "%T", job.store], check=True, capture_output=True, text=True)
    assert account["store"] == {
        "store": str(job.store),
        "in_memory": kind.stdout == "tmpfs\n",
        "enforced": False,
        "capacity_bytes": 64 << 20,
        "asked_bytes": 64 << 20,
        "copies": 1,
        "nodes": 1,
    }
    assert (account["stage_in"]["files"], account["stage_in"]["bytes"]) == (1, 5)
    assert (account["stage_out"]["files"], account["stage_out"]["bytes"]) == (1, 6)
    assert account["kept"] is None and account["emulated"] is None


def test_output_option_writes_to_a_file(job):
    job.script("echo to the file; pwd >&2", DW)
    done = job.run("--output", "job.out")
    assert (job.directory / "job.out").read_text() == "to the file\n"
    assert done.stdout == "" and str(job.directory) in done.stderr


def test_script_that_cannot_run_is_refused(job):
    for script, message in [
        (b"echo no interpreter\n", "does not begin with #!"),
        (b"#!/no/such/shell\n", "cannot run /no/such/shell"),
        (b"#!/bin/bash\n#SBATCH -n none\n", "job.sh: line 2: -n needs a whole number above 0"),
    ]:
        (job.directory / "job.sh").write_bytes(script)
        done = job.run()
        assert done.returncode == 125 and message in done.stderr, done.stderr
        job.leaves_nothing()
    (job.directory / "job.sh").unlink()
    done = job.run()
    assert done.returncode == 125 and "cannot read job.sh: No such file" in done.stderr
