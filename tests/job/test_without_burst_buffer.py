"""`--no-burst-buffer`: a `#DW` script runs unchanged on the file system, and no script meets an unset variable."""

import json
import os
import pathlib

import pytest

from support.job import DW, KILL

LUSTRE = pathlib.Path(__file__).resolve().parents[2] / "machines" / "lustre-small.toml"
EMULATED = ["--pfs-model", LUSTRE, "--pfs-root"]
BOTH = DW.replace("striped", "striped,private")
STAGE_IN = "#DW stage_in type=file source=%d/in.dat destination=$DW_JOB_STRIPED/in.dat"
STAGE_OUT = "#DW stage_out type=directory source=$DW_JOB_STRIPED/out destination={}/out"
WORK = "rm -rf $DW_JOB_PRIVATE/*; mkdir $DW_JOB_STRIPED/out; cp $DW_JOB_STRIPED/in.dat $DW_JOB_STRIPED/out/; pwd -P"
SHOW = "echo $DW_JOB_STRIPED"


@pytest.fixture
def results(job):
    """A directory without blanks in its path."""
    (job.directory / "in.dat").write_text("input")
    results = job.directory.parent / "results"
    results.mkdir()
    return results


def test_path_with_blanks_is_avoided(job):
    """`rm -rf $DW_JOB_STRIPED/*` without quotes would remove another directory."""
    job.script(f"rm -rf $DW_JOB_STRIPED/*; {SHOW}", DW, STAGE_OUT.format("%d").replace("directory", "file"))
    assert " " in str(job.directory)
    done = job.run("--no-burst-buffer")
    assert done.stdout.startswith(f"{job.directory.parent}/forebay-"), done.stderr


def allocations_in(directory: pathlib.Path) -> list[pathlib.Path]:
    return sorted(directory.glob("forebay-*"))


def test_variables_are_fresh_directories_next_to_the_outputs(job, results):
    job.script(f"{SHOW} $DW_JOB_PRIVATE; {WORK}", BOTH, STAGE_IN, STAGE_OUT.format(results))
    done = job.run("--no-burst-buffer")
    assert done.returncode == 0, done.stderr
    striped, private = done.stdout.splitlines()[0].removesuffix("/").split("/ ")
    assert striped.startswith(f"{results}/forebay-") and private.startswith(f"{results}/forebay-")
    assert (results / "out" / "in.dat").read_text() == "input"
    assert allocations_in(results) == []
    job.leaves_nothing()


def test_pfs_dir_contains_the_fresh_directories_where_given(job, results):
    elsewhere = job.directory.parent / "elsewhere"
    elsewhere.mkdir()
    job.script(SHOW, DW, STAGE_IN)
    done = job.run("--no-burst-buffer", "--pfs-dir", elsewhere)
    assert done.returncode == 0 and done.stdout.startswith(f"{elsewhere}/forebay-"), done.stderr
    missing = job.run("--no-burst-buffer", "--pfs-dir", "nowhere")
    assert missing.returncode == 125 and "nowhere" in missing.stderr and missing.stdout == ""


@pytest.mark.skipif(os.geteuid() != 0, reason="becomes another user")
def test_ordinary_user_without_write_permission_gets_the_working_directory(job, results):
    results.chmod(0o755)
    job.script(SHOW, DW, STAGE_OUT.format(results))
    job.as_nobody()
    (results / "out").mkdir(mode=0o777)
    (results / "out").chmod(0o777)
    done = job.run("--no-burst-buffer")
    assert done.stdout.startswith(f"{job.directory}/forebay-"), done.stderr
    assert "warning: there are blanks in the allocation's path" in done.stderr


def test_killed_run_is_found_by_clean(job, results):
    job.script(f"{WORK}; touch running; sleep 300", BOTH, STAGE_IN, STAGE_OUT.format(results))
    process = job.start("--no-burst-buffer")
    job.stop_when(process, (job.directory / "running").exists, KILL)
    assert len(allocations_in(results)) == 1
    done = job.command("clean", "--kill")
    assert done.returncode == 0, done.stderr
    assert (results / "out" / "in.dat").read_text() == "input" and allocations_in(results) == []
    job.leaves_nothing()


def test_emulated_file_system_covers_the_directory(job, results):
    job.script(f"{SHOW}; {WORK}", BOTH, STAGE_IN, STAGE_OUT.format(results))
    done = job.run("--no-burst-buffer", *EMULATED, results, "--json")
    assert done.returncode == 0, done.stderr
    emulated = json.loads(done.stdout)["emulated"]["counters"]
    staged_in, written, staged_out = 5, 5, 5
    assert emulated["bytes_written"] == staged_in + written + staged_out
    outside = job.directory.parent / "outside"
    outside.mkdir()
    refused = job.run("--no-burst-buffer", *EMULATED, results, "--pfs-dir", outside)
    assert refused.returncode == 125 and str(outside) in refused.stderr and "--pfs-root" in refused.stderr


def test_persistent_allocation_is_used_but_neither_made_nor_destroyed(job):
    assert job.command("persistent", "create", "p", "--capacity", "1MiB", *job.where).returncode == 0
    job.script("echo kept > $DW_PERSISTENT_STRIPED_p/x", "#DW persistentdw name=p")
    assert job.run("--no-burst-buffer").returncode == 0
    for line in ["#BB destroy_persistent name=p", "#BB create_persistent name=q capacity=1MiB"]:
        job.script("touch ran", line)
        done = job.run("--no-burst-buffer")
        assert done.returncode == 125 and "there is no burst buffer with --no-burst-buffer" in done.stderr
        assert "hint: " in done.stderr and not (job.directory / "ran").exists()
    assert (job.store / "forebay-persistent-p" / "striped" / "x").read_text() == "kept\n"


CREATED = "#BB create_persistent name=p capacity=1MiB access=striped type=scratch"


@pytest.mark.parametrize("options", [(), ("--no-burst-buffer",), ("--dry-run",)])
@pytest.mark.parametrize(
    ("directives", "body", "variable", "hint"),
    [
        ([], "rm -rf $DW_JOB_STRIPED/*", "DW_JOB_STRIPED", "add the line #DW jobdw type=scratch"),
        ([DW], "rm -rf ${DW_JOB_PRIVATE}/*", "DW_JOB_PRIVATE", "write access_mode=striped,private"),
        ([DW], "touch $DW_PERSISTENT_STRIPED_p/testFile", "DW_PERSISTENT_STRIPED_p", "#DW persistentdw name=p"),
        ([" ", DW], "cd $DW_JOB_STRIPED", "DW_JOB_STRIPED", "line 3 holds only blanks and ends the header: empty it"),
        ([DW], 'bash -c "mkdir \\$DW_JOB_STRIPE"', "DW_JOB_STRIPE", "did you mean $DW_JOB_STRIPED?"),
    ],
)
def test_script_with_unset_variable_is_refused_before_it_starts(job, directives, body, variable, hint, options):
    job.script(f"touch ran; {body}", *directives)
    done = job.run(*options)
    assert done.returncode == 125 and f"${variable} is not set in this job" in done.stderr, done.stderr
    assert "job.sh: line " in done.stderr and hint in done.stderr
    assert not (job.directory / "ran").exists()
    job.leaves_nothing()


def test_new_allocation_that_a_script_does_not_use_is_refused_before_it_is_made(job):
    job.script("touch $DW_PERSISTENT_STRIPED_p/testFile", CREATED.replace("access", "access_mode"))
    done = job.run()
    assert done.returncode == 125 and "#DW persistentdw name=p" in done.stderr, done.stderr
    job.leaves_nothing()


def test_other_commands_refuse_a_script_with_an_unset_variable(job):
    job.script("touch ran; rm -rf $DW_JOB_STRIPED/*")
    (job.directory / "job.sh").chmod(0o755)
    for words in (["profile", "--", "./job.sh"], ["profile", "--", "bash", "-e", "job.sh"], ["compare", "job.sh"]):
        done = job.command(*words)
        assert done.returncode != 0 and "hint: " in done.stderr, words
        assert not (job.directory / "ran").exists(), words
    assert job.command("profile", "--", "./job.sh", DW_JOB_STRIPED=str(job.temporary)).returncode == 0


def test_script_that_tests_its_variable_runs(job):
    job.script('if [ -n "$DW_JOB_STRIPED" ]; then cd $DW_JOB_STRIPED; fi; echo ${DW_JOB_STRIPED:-none}')
    assert job.run().stdout == "none\n"
