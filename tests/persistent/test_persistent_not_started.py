"""A job that cannot be started leaves every persistent allocation as it was."""

import pytest
from support.job import DW, INTERRUPT, finished
from support.persistent import (
    CREATE,
    DESTROY,
    STRIPED,
    USE,
    begun,
    listed,
    made,
    assert_job_allocations_removed,
    ran,
    refused,
    root,
)
from support.waiting import wait_until
from support.trees import named


def test_job_that_was_not_started_creates_and_destroys_nothing(job):
    made(job, "old")
    stage = "#DW stage_in type=file source=%d/missing destination=$DW_JOB_STRIPED/x"
    error = refused(job, CREATE, DW, stage, "#BB destroy_persistent name=old")
    assert "missing" in error
    assert_job_allocations_removed(job, "old")


def test_script_that_could_not_start_runs_once_it_is_corrected(job):
    """What is missing when everything else is done: the interpreter, by path and by name; one is no program."""
    made(job, "old")
    stage = f"#DW stage_out type=file source={STRIPED}/x destination=%d/x"
    directives = (CREATE, USE, DW, stage)
    destroys = "#BB destroy_persistent name=old"
    empty = job.temporary.with_name("empty")
    empty.touch(0o755)
    text = job.temporary.with_name("text")
    text.write_text("exit 0\n")  # a shell would take it for its own
    text.chmod(0o755)
    (root(job, "old") / "striped" / "data").write_text("precious")
    for interpreter in ("/no/such/bash", "no-such-bash", empty, text, "/bin"):
        job.script(f"echo data > {STRIPED}/x", *directives, destroys)
        script = job.directory / "job.sh"
        script.write_text(script.read_text().replace("#!/bin/bash", f"#!{interpreter}"))
        done = job.run()
        assert done.returncode == 125 and f"cannot run {interpreter}" in done.stderr, done.stderr
        assert_job_allocations_removed(job, "old")
        assert (root(job, "old") / "striped" / "data").read_text() == "precious"
        assert listed(job)["old"]["state"] == "ready"
    job.script(f"echo data > {STRIPED}/x", *directives, destroys, "#SBATCH --chdir=work")
    script.write_text(script.read_text().replace("#!/bin/bash", "#!./bash"))  # seen from where it works
    (job.directory / "work").mkdir()
    (job.directory / "work" / "bash").symlink_to("/bin/bash")
    done = job.run()
    assert done.returncode == 0, done.stderr
    assert (job.directory / "work" / "x").read_text() == "data\n"
    assert_job_allocations_removed(job, "proj1")


def test_destroy_lines_of_a_job_remove_all_or_nothing(job):
    """The second is taken into use while the job stages in, when the first could be destroyed and both were seen."""
    for name in ("first", "second"):
        made(job, name)
        (root(job, name) / "striped" / "data").write_text(name)
    (job.directory / "large").write_bytes(bytes(4 << 20))
    stage_in = "#DW stage_in type=file source=%d/large destination=$DW_JOB_STRIPED/large"
    destroys = [f"#BB destroy_persistent name={name}" for name in ("first", "second")]
    job.script("touch ran", DW, stage_in, *destroys)
    destroying = job.start("--stage-rate", "1MiB")
    wait_until(lambda: named(job.store, "*.part") or destroying.poll() is not None)
    user = begun(job, "user", name="second")
    done = finished(destroying)
    assert done.returncode == 125, done.stderr
    assert "line 6: the persistent allocation second is in use" in done.stderr, done.stderr
    assert not (job.directory / "ran").exists()
    (job.directory / "go").touch()
    assert finished(user).returncode == 0
    assert_job_allocations_removed(job, "first", "second")
    for name in ("first", "second"):
        assert (root(job, name) / "striped" / "data").read_text() == name
        assert listed(job)[name]["state"] == "ready"
    job.script("touch ran", *destroys)
    assert job.run().returncode == 0
    assert_job_allocations_removed(job)


@pytest.mark.parametrize("own", [[], [USE]], ids=["made", "made and used"])
def test_allocation_used_by_another_job_meanwhile_is_kept(job, own):
    """It is there for others as soon as it is made, and the job that made it is stopped while it stages in."""
    (job.directory / "large").write_bytes(bytes(60 << 20))
    stage_in = "#DW stage_in type=file source=%d/large destination=$DW_JOB_STRIPED/large"
    job.script("touch ran", CREATE, *own, DW, stage_in)
    process = job.start("--stage-rate", "1MiB")

    def another_has_used_it():
        if not named(job.store, "*.part"):
            return False
        user = begun(job, "user")
        (job.directory / "go").touch()
        assert finished(user).returncode == 0
        return True

    status, error = job.stop_when(process, another_has_used_it, INTERRUPT)
    assert status != 0 and not (job.directory / "ran").exists()
    assert "proj1 stays: another job has used it" in error, error
    assert_job_allocations_removed(job, "proj1")
    assert (root(job) / "striped" / "user").read_text() == "user\n"


@pytest.mark.parametrize("own", [[], [USE]], ids=["made", "made and used"])
def test_unused_new_allocation_is_removed_with_its_failed_job(job, own):
    refused(job, CREATE, *own, DW, "#DW stage_in type=file source=%d/missing destination=$DW_JOB_STRIPED/x")
    assert_job_allocations_removed(job)


def test_job_whose_files_cannot_be_watched_changes_no_allocation(job):
    """A user namespace without any inotify instance: known only after the allocation is made."""
    made(job)
    made(job, "old")
    job.script(
        "touch ran",
        CREATE.replace("proj1", "proj2"),
        USE,
        DW,
        "#DW persistentdw name=proj2",
        "#BB destroy_persistent name=old",
    )
    limited = 'echo 0 > /proc/sys/user/max_inotify_instances && exec "$0" "$@"'
    words = ["run", *job.where, "--on-close", "*=true", "job.sh"]
    real, job.forebay = job.forebay, "unshare"
    try:
        done = job.command("--user", "--map-root-user", "sh", "-c", limited, real, *words)
    finally:
        job.forebay = real
    assert done.returncode == 125 and "nothing can be watched" in done.stderr, done.stderr
    assert_job_allocations_removed(job, "old", "proj1")
    ran(job, "true", DESTROY)
