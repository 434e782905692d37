"""`forebay compare`."""

import json
import pathlib
import subprocess

import pytest

from support.job import DW, INTERRUPT
from support.slow_model import MODEL

LUSTRE = pathlib.Path(__file__).resolve().parents[2] / "machines" / "lustre-small.toml"
STAGE_OUT = "#DW stage_out type=directory source=$DW_JOB_STRIPED/out destination=%d/out"
WRITE = 'out=${DW_JOB_STRIPED}out; mkdir -p "$out"; dd if=/dev/zero of="$out/x" bs=1M count=16 2>/dev/null; '


def compare(job, *options):
    command = [job.forebay, "compare", "--store", job.store, *options, "job.sh"]
    return subprocess.run(
        command, cwd=job.directory, env=job.environment(), capture_output=True, text=True, timeout=120
    )


def test_compare_table_has_a_block_per_file_system_and_names_emulation(job):
    job.script(WRITE + """echo '{"kernel": "x", "io_s": 0.25, "bytes": 16777216}'""", DW, STAGE_OUT)
    done = compare(job, "--pfs-model", str(LUSTRE), "--repeat", "1")
    assert done.returncode == 0 and done.stdout.count("I/O seen: as the program itself tells.") == 2, done.stderr
    assert "emulated: lustre-small" in done.stdout and "\nreal: " in done.stdout
    rows = [
        line.split() for line in done.stdout.splitlines() if line.strip().startswith(("file system", "burst buffer"))
    ]
    assert len(rows) == 4
    assert [row[-1] for row in rows] == ["emulated", "emulated", "real", "real"]
    assert all("0.25" in row and "16.00" in row for row in rows), rows
    assert done.stdout.count("Output: the same in all runs, 1 file(s), 16777216 bytes.") == 2
    job.leaves_nothing()


def test_compare_json_has_every_run(job):
    job.script(WRITE, DW, STAGE_OUT)
    blocks = json.loads(compare(job, "--repeat", "2", "--json").stdout)
    (block,) = blocks
    assert (block["emulated"], block["same_output"], block["output_bytes"]) == (False, True, 16 << 20)
    assert [row["way"] for row in block["rows"]] == ["file_system", "burst_buffer"]
    for row in block["rows"]:
        assert len(row["runs"]) == 2
        for run in row["runs"]:
            assert run["io_from"] == "record" and 0 < run["io_s"] < run["job_s"]
            assert run["safe_s"] >= run["job_s"] and run["stage_out_s"] > 0
    assert all(run["safe_s"] >= run["job_s"] + run["stage_out_s"] for run in block["rows"][1]["runs"])


def test_io_time_of_other_programs_comes_from_the_record_of_the_last_run(job):
    job.script(WRITE, DW, STAGE_OUT)
    done = compare(job, "--repeat", "2")
    assert done.returncode == 0 and "I/O seen: from the record of the programs' calls." in done.stdout, done.stderr
    assert [
        row.split()[4] for row in done.stdout.splitlines() if row.startswith((" file system", " burst buffer"))
    ].count("-") == 0
    kept = [record.name for record in job.records()]
    assert len(kept) == 2 and f": forebay report {kept[0]} {kept[1]}" in done.stderr
    done = compare(job, "--repeat", "1", "--no-profile", "--json")
    assert [run["io_s"] for row in json.loads(done.stdout)[0]["rows"] for run in row["runs"]] == [None, None]
    assert len(job.records()) == 2


def test_differing_results_are_reported_and_fail(job):
    job.script(WRITE + 'echo $SLURM_JOB_ID > "$out/id"', DW, STAGE_OUT)
    done = compare(job, "--repeat", "1")
    assert done.returncode == 1 and "THE RUNS DIFFER" in done.stdout


def test_failed_job_is_shown_with_its_error(job):
    job.script("echo the reason >&2; exit 4", DW)
    done = compare(job)
    assert done.returncode == 1
    assert "the job failed on the file system" in done.stderr and "the reason" in done.stderr
    assert done.stdout == ""
    job.leaves_nothing()


def test_compare_without_a_burst_buffer_is_refused(job):
    job.script("true")
    done = compare(job)
    assert done.returncode == 1 and "asks for no burst buffer" in done.stderr


def test_ctrl_c_ends_the_current_run_and_leaves_nothing(job):
    job.script("touch running; sleep 300", DW)
    command = [job.forebay, "compare", "--store", job.store, "job.sh"]
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, cwd=job.directory, env=job.environment(), stdout=pipe, stderr=pipe, text=True)
    status, err = job.stop_when(process, (job.directory / "running").exists, INTERRUPT)
    assert status == 130 and "stopped by a signal" in err
    job.leaves_nothing()


def test_missing_output_of_a_run_is_not_called_equal(job):
    (job.directory / "out").mkdir()
    (job.directory / "out" / "old").write_text("from another day")
    job.script("mkdir $DW_JOB_STRIPED/out", DW, STAGE_OUT)
    done = compare(job, "--repeat", "1")
    assert done.returncode == 0 and "Output: not compared" in done.stdout, done.stderr


def test_old_files_near_the_results_do_not_hide_a_difference(job):
    (job.directory / "out").mkdir()
    (job.directory / "out" / "old").write_text("from another day")
    job.script(WRITE + 'echo $SLURM_JOB_ID > "$out/id"', DW, STAGE_OUT)
    assert "THE RUNS DIFFER" in compare(job, "--repeat", "1").stdout


def test_file_staged_into_a_directory_is_compared_there(job):
    job.script(
        "echo same > ${DW_JOB_STRIPED}result",
        DW,
        "#DW stage_out type=file source=$DW_JOB_STRIPED/result destination=%d/",
    )
    done = compare(job, "--repeat", "1")
    assert "Output: the same in all runs, 1 file(s), 5 bytes." in done.stdout, done.stdout + done.stderr


def test_output_is_compared_at_a_destination_that_is_a_link(job):
    (job.directory / "elsewhere").mkdir()
    (job.directory / "out").symlink_to("elsewhere")
    job.script(WRITE + 'ln -s x "$out/link"', DW, STAGE_OUT)
    done = compare(job, "--repeat", "1")
    assert "Output: the same in all runs, 1 file(s), 16777216 bytes." in done.stdout, done.stdout + done.stderr
    assert (job.directory / "out").is_symlink()


def test_io_outside_the_emulation_is_reported(job):
    job.script(
        'out=${DW_JOB_STRIPED}out; mkdir -p "$out"; LD_PRELOAD= head -c 1000000 /dev/zero > "$out/x"', DW, STAGE_OUT
    )
    done = compare(job, "--repeat", "1", "--no-real", "--pfs-model", str(LUSTRE))
    assert "NOT COMPARABLE: the emulation saw only 0 of the 1000000 bytes" in done.stdout, done.stdout + done.stderr


def test_destination_can_contain_the_job_id(job):
    job.script(
        "mkdir $DW_JOB_STRIPED/out; echo x > $DW_JOB_STRIPED/out/x", DW, STAGE_OUT.replace("%d/out", "%d/out-%j")
    )
    done = compare(job, "--repeat", "2")
    assert "Output: the same in all runs, 1 file(s), 2 bytes." in done.stdout, done.stdout + done.stderr


def test_second_ctrl_c_stops_stage_out_and_says_where_the_data_are(job):
    model = job.directory.parent / "slow.toml"
    model.write_text(MODEL)
    job.script(
        'mkdir "$DW_JOB_STRIPED/out"; case "$DW_JOB_STRIPED" in "$SLURM_SUBMIT_DIR"*) exit 0;; esac\n'
        "head -c 100000000 /dev/zero > $DW_JOB_STRIPED/out/x; touch running; sleep 300",
        DW.replace("64MiB", "512MiB"),
        STAGE_OUT,
    )
    command = [job.forebay, "compare", "--store", job.store, "--no-real", "--pfs-model", model, "job.sh"]
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, cwd=job.directory, env=job.environment(), stdout=pipe, stderr=pipe, text=True)

    def staging_out_after_a_first_signal():
        if (job.directory / "running").exists():
            (job.directory / "running").unlink()
            process.send_signal(INTERRUPT)
        return list((job.directory / "out").glob("*.part"))

    status, err = job.stop_when(process, staging_out_after_a_first_signal, INTERRUPT)
    (kept,) = job.allocations()
    assert status == 130 and f"nothing was deleted: the data are in {kept}" in err
    assert (kept / "striped" / "out" / "x").stat().st_size == 100_000_000
    assert list((job.directory / "out").iterdir()) == [] and list(job.temporary.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "hint"), [("nosuch.toml", "forebay machines"), ("job.sh", "docs/reference/machine-files.md")]
)
def test_unreadable_machine_file_is_reported_with_a_remedy(job, name, hint):
    job.script("touch ran", DW)
    done = compare(job, "--pfs-model", name)
    assert done.returncode == 1 and name in done.stderr and not (job.directory / "ran").exists()
    assert hint in done.stderr.splitlines()[-1] and done.stderr.splitlines()[-1].startswith("hint: ")
    assert list(job.temporary.iterdir()) == []


def test_persistent_allocation_is_used_with_a_warning_and_not_created(job):
    create = "#BB create_persistent name=p capacity=1MiB"
    job.script("touch ran", DW, create)
    done = compare(job)
    assert done.returncode == 1 and "job.sh: line 4, column 5: it makes the persistent allocation p" in done.stderr
    assert "hint: compare a copy without that line" in done.stderr and not (job.directory / "ran").exists()
    job.leaves_nothing()
    assert job.command("persistent", "create", "p", "--capacity", "1MiB", *job.where).returncode == 0
    job.script(
        'echo "$DW_PERSISTENT_STRIPED_p" >> seen; touch ${DW_PERSISTENT_STRIPED_p}x', DW, "#DW persistentdw name=p"
    )
    done = compare(job, "--repeat", "1")
    assert (
        done.returncode == 0
        and "warning: p: each run, on the burst buffer and on the file system, begins" in done.stderr
    )
    namespace = job.store / "forebay-persistent-p" / "striped"
    assert (job.directory / "seen").read_text() == f"{namespace}/\n" * 2 and (namespace / "x").exists()
