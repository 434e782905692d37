"""Allocations that a group shares: what its members and the owner do to each other."""

import json
import os
import signal

import pytest

from support.persistent import WAIT, root
from support.users import as_user, reachable, root_only, starts_as
from support.waiting import wait_until

pytestmark = root_only
ADA, BOB, TEAM = 40001, 40002, 4242
USE = "#!/bin/bash\n#DW persistentdw name=team\n"
STRIPED = "$DW_PERSISTENT_STRIPED_team"


@pytest.fixture
def team(build):
    """An allocation of ada that the members of her group use, of whom bob is one."""
    with reachable(build) as job:
        for directory in (job.store, job.temporary, job.directory):
            directory.chmod(0o1777)
        create = ["persistent", "create", "--capacity", "1MiB", "--store", job.store, "team", "--group", str(TEAM)]
        assert as_user(job, ADA, *create, "--mode", "0770", groups=(TEAM,)).returncode == 0
        yield job
        job.command("clean", "--discard", "--kill")


def runs(job, user, script):
    path = job.directory / f"{user}.sh"
    path.write_text(USE + script)
    done = as_user(job, user, "run", "--store", job.store, path, groups=(TEAM,))
    assert done.returncode == 0, done.stderr


def destroyed(job):
    return as_user(job, ADA, "persistent", "destroy", "team", "--store", job.store, groups=(TEAM,))


def test_destroy_names_the_directory_that_another_user_keeps_and_changes_nothing(team):
    runs(team, BOB, f"umask 022; mkdir {STRIPED}/results; chmod 755 {STRIPED}/results; echo x >{STRIPED}/results/x")
    results = root(team, "team") / "striped" / "results"
    before = {path: path.stat().st_mode for path in results.parent.rglob("*")}
    done = destroyed(team)
    assert done.returncode == 1 and "40002 lets nobody else remove what is in" in done.stderr, done.stderr
    assert f"hint: ask 40002 to remove it, or to allow it: chmod -R g+rwX {results}" in done.stderr
    assert {path: path.stat().st_mode for path in results.parent.rglob("*")} == before
    create = ["persistent", "create", "other", "--capacity", "1MiB", "--store", team.store]
    assert as_user(team, ADA, *create).returncode == 0
    runs(team, BOB, f"chmod -R g+rwX {STRIPED}/results")
    done = destroyed(team)
    assert done.returncode == 0 and not results.exists(), done.stderr


def test_script_makes_an_allocation_for_the_group_that_it_names(team):
    script = team.directory / "make.sh"
    create = f"#BB create_persistent name=named capacity=1MiB access_mode=striped(group={TEAM})"
    script.write_text(f"#!/bin/bash\n{create}\ntrue\n")
    refused = as_user(team, BOB, "run", "--store", team.store, script)  # not a group of his
    assert refused.returncode != 0
    done = as_user(team, ADA, "run", "--store", team.store, script, groups=(TEAM,))
    assert done.returncode == 0, done.stderr
    listed = json.loads(as_user(team, ADA, "persistent", "list", "--json", "--store", team.store).stdout)
    (named,) = [one for one in listed if one["persistent"] == "named"]
    assert (named["group"], named["mode"]) == (str(TEAM), "0770")


def test_staged_files_have_the_group_of_the_allocation(team):
    tree = team.directory / "mine"
    (tree / "deep").mkdir(parents=True)
    for path in (tree / "file", tree / "deep" / "file"):
        path.write_text("ada's\n")
        path.chmod(0o640)
    for path in (tree, *tree.rglob("*")):
        os.chown(path, ADA, ADA)
    stage_in = f"#DW stage_in type=directory source=%d/mine destination={STRIPED}/mine\n"
    for _ in range(2):  # what is there already is not changed either
        runs(team, ADA, stage_in)
        runs(team, BOB, f"cat {STRIPED}/mine/file {STRIPED}/mine/deep/file >read")
        assert (team.directory / "read").read_text() == "ada's\n" * 2
    staged = root(team, "team") / "striped" / "mine"
    assert {path.stat().st_gid for path in (staged, *staged.rglob("*"))} == {TEAM}
    assert (staged / "deep").stat().st_mode & 0o7777 == 0o2755


def test_destroy_is_refused_while_processes_of_another_users_killed_job_live(team):
    (team.directory / "waiting.sh").write_text(f"{USE}touch runs; {WAIT}; echo written >{STRIPED}/late; touch done\n")
    process = starts_as(team, BOB, "run", "--store", team.store, "waiting.sh", groups=(TEAM,))
    wait_until((team.directory / "runs").exists, process=process)
    process.send_signal(signal.SIGKILL)
    process.stdout.close(), process.stderr.close()
    process.wait()
    done = destroyed(team)
    assert done.returncode == 1 and "team is in use: job" in done.stderr and "user40002" in done.stderr, done.stderr
    assert "ask for forebay clean there" in done.stderr
    (team.directory / "go").touch()
    wait_until((team.directory / "done").exists)
    assert (root(team, "team") / "striped" / "late").read_text() == "written\n"
    wait_until(lambda: as_user(team, BOB, "clean", groups=(TEAM,)).returncode == 0)
    assert destroyed(team).returncode == 0


def test_group_of_a_file_in_memory_is_that_of_a_shared_directory(team):
    """A view of the job knows no group but the user's own; it must not set one that it does not know."""
    shared = team.directory / "shared"
    shared.mkdir()
    os.chown(shared, ADA, TEAM)
    shared.chmod(0o2770)
    (shared / "in").write_text("x")
    os.chown(shared / "in", ADA, TEAM)
    (shared / "in").chmod(0o640)
    (team.directory / "memory.sh").write_text(
        "#!/bin/bash\n#DW jobdw type=scratch access_mode=striped capacity=1MiB\n"
        "#DW stage_in type=file source=%d/shared/in destination=$DW_JOB_STRIPED/in\n"
        "#DW stage_out type=file source=$DW_JOB_STRIPED/in destination=%d/shared/out\ntrue\n"
    )
    done = as_user(team, ADA, "run", "--json", "memory.sh", groups=(TEAM,))
    assert done.returncode == 0, done.stderr
    assert (shared / "out").stat().st_gid == TEAM and "note:" not in done.stderr
    assert json.loads(done.stdout)["stage_out"]["notes"] == []
