"""`forebay compare`."""

import json
import pathlib
import subprocess

from job import DW, INTERRUPT

LUSTRE = pathlib.Path(__file__).resolve().parents[2] / "machines" / "lustre-small.toml"
STAGE_OUT = "#DW stage_out type=directory source=$DW_JOB_STRIPED/out destination=%d/out"
WRITE = 'out=${DW_JOB_STRIPED:-$SLURM_SUBMIT_DIR/}out; mkdir -p "$out"; dd if=/dev/zero of="$out/x" bs=1M count=16 2>/dev/null; '


def compare(job, *options):
    command = [job.forebay, "compare", "--store", job.store, *options, "job.sh"]
    return subprocess.run(command, cwd=job.directory, env=job.environment(), capture_output=True, text=True, timeout=120)


def test_the_table_has_a_block_for_each_file_system_and_says_emulated(job):
    job.script(WRITE + """echo '{"kernel": "x", "io_s": 0.25, "bytes": 16777216}'""", DW, STAGE_OUT)
    done = compare(job, "--pfs-model", str(LUSTRE), "--repeat", "1")
    assert done.returncode == 0, done.stderr
    assert "emulated: lustre-small" in done.stdout and "\nreal: " in done.stdout
    rows = [line.split() for line in done.stdout.splitlines() if line.strip().startswith(("file system", "burst buffer"))]
    assert len(rows) == 4
    assert [row[-1] for row in rows] == ["emulated", "emulated", "real", "real"]
    assert all("0.25" in row and "16.00" in row for row in rows), rows
    assert done.stdout.count("Output: the same in all runs, 1 file(s), 16777216 bytes.") == 2
    job.leaves_nothing()


def test_json_has_every_run(job):
    job.script(WRITE, DW, STAGE_OUT)
    blocks = json.loads(compare(job, "--repeat", "2", "--json").stdout)
    (block,) = blocks
    assert (block["emulated"], block["same_output"], block["output_bytes"]) == (False, True, 16 << 20)
    assert [row["way"] for row in block["rows"]] == ["file_system", "burst_buffer"]
    for row in block["rows"]:
        assert len(row["runs"]) == 2
        for run in row["runs"]:
            assert run["io_s"] is None
            assert run["safe_s"] >= run["job_s"] + run["stage_out_s"]
    assert all(run["stage_out_s"] > 0 for run in block["rows"][1]["runs"])


def test_results_that_differ_are_shouted_and_fail(job):
    job.script(WRITE + 'echo $SLURM_JOB_ID > "$out/id"', DW, STAGE_OUT)
    done = compare(job, "--repeat", "1")
    assert done.returncode == 1 and "THE RUNS DIFFER" in done.stdout


def test_a_job_that_fails_is_shown_with_its_complaint(job):
    job.script("echo the reason >&2; exit 4", DW)
    done = compare(job)
    assert done.returncode == 1
    assert "the job failed on the file system" in done.stderr and "the reason" in done.stderr
    assert done.stdout == ""
    job.leaves_nothing()


def test_a_script_without_a_burst_buffer_has_nothing_to_compare(job):
    job.script("true")
    done = compare(job)
    assert done.returncode == 1 and "asks for no burst buffer" in done.stderr


def test_ctrl_c_ends_the_run_in_hand_and_leaves_nothing(job):
    job.script("touch running; sleep 300", DW)
    command = [job.forebay, "compare", "--store", job.store, "job.sh"]
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, cwd=job.directory, env=job.environment(), stdout=pipe, stderr=pipe, text=True)
    status, err = job.stop_when(process, (job.directory / "running").exists, INTERRUPT)
    assert status == 130 and "stopped by a signal" in err
    job.leaves_nothing()
