"""Persistent allocations that a group shares."""

import itertools
import subprocess

import pytest

from support.site_cluster import DAEMON, MIB, TEAM, chown
from support.slurm_cluster import NOBODY

CREATE_CALL = "--function create_persistent -c CLI -t {name} -u {user} -C flash:16MiB -a striped(group={group})"
NUMBERS = itertools.count(1)


class Buffer:
    """One that nobody made for the team. Slurm remembers a name, so each has its own."""

    def __init__(self, cluster):
        self.cluster = cluster
        self.name = f"team{next(NUMBERS)}"
        self.create = f"#BB create_persistent name={self.name} capacity=32MiB access_mode=striped(group={TEAM})"
        self.use = f"#DW persistentdw name={self.name}"
        self.destroy = f"#BB destroy_persistent name={self.name}"
        self.variable = f"$DW_PERSISTENT_STRIPED_{self.name}"
        self.teardown = f"--function teardown --token {self.name} --job /dev/null --hurry".split()

    def allocation(self):
        return self.cluster.allocation(self.name)

    @property
    def directory(self):
        return self.cluster.pool / self.allocation()["directory"].rpartition("/")[2]


@pytest.fixture
def buffer(slurm_site, users):
    made = Buffer(slurm_site)
    run(users, "exit 0", made.create)
    yield made
    slurm_site.call(*made.teardown, check=True)
    assert slurm_site.directories() == []


def run(batch, body, *directives):
    batch.script(body, *directives)
    job = batch.submit()
    assert batch.wait(job) == "COMPLETED", (batch.reason(job), batch.stderr_text(), batch.log())
    batch.wait_until_freed(job)
    return job


def refused(batch, text, *directives):
    """The reason with which a job waits; the job is cancelled."""
    batch.script("true", *directives)
    job = batch.submit()
    reason = batch.waits_for(job, text)
    batch.run("scancel", job)
    return reason


def destroy(buffer, batch):
    batch.script("exit 0", buffer.destroy)
    job = batch.submit()
    buffer.cluster.wait(lambda: buffer.allocation() is None, lambda: (batch.reason(job), batch.log()))


def test_members_use_a_buffer_as_the_modes_of_its_files_say(buffer, users, others, strangers):
    directory = buffer.directory
    assert [path.stat().st_mode & 0o7777 for path in (directory, directory / "striped")] == [0o710, 0o2770]
    assert (buffer.allocation()["user"], buffer.allocation()["group"]) == ("nobody", TEAM)
    (users.directory / "input").write_text("staged by the owner\n")
    stage_in = f"#DW stage_in type=file source=%d/input destination={buffer.variable}"
    enter = f"cd {buffer.variable}"
    run(users, f"{enter}; umask 027; echo a >read; umask 007; echo b >write", buffer.use, f"{stage_in}/first")
    (others.directory / "input").write_text("staged by a member\n")
    body = f"{enter}; cat first read; echo more >>write && (echo no >>read || chmod 600 read || echo refused)"
    results = f"#DW stage_out type=file source={buffer.variable}/write destination=%d/results/write"
    run(others, body, buffer.use, f"{stage_in}/second", results)
    assert others.stdout_text() == "staged by the owner\na\nrefused\n", others.stderr_text()
    delivered, second = others.results / "write", (directory / "striped" / "second").stat()
    assert delivered.read_text() == "b\nmore\n" and delivered.stat().st_uid == DAEMON
    assert (second.st_uid, second.st_gid) == (DAEMON, directory.stat().st_gid)
    reason = refused(strangers, "you are none", buffer.use)
    wanted = f"is nobody's, for members of the group {TEAM}, and you are none; ask the site to add you to {TEAM}"
    assert f"{buffer.name} {wanted}" in reason
    refused(others, f"Delete buffer {buffer.name} permission denied", buffer.destroy)
    destroy(buffer, users)
    assert not directory.exists()


def test_membership_counts_when_a_job_begins_to_use_the_buffer(slurm_site, buffer, users, others):
    try:
        slurm_site.set_team("nobody")
        refused(others, "you are none", buffer.use)
        # The owner stays the owner.
        slurm_site.set_team()
        run(users, f"touch {buffer.variable}/own", buffer.use)
    finally:
        slurm_site.set_team("nobody", "daemon")
    # A node with other groups than the control host.
    slurm_site.run(["mount", "--bind", "/etc/group-", "/etc/group"], node="n2")
    try:
        others.script("true", buffer.use)
        job = others.submit("-w", "n2")
        why = "n2: daemon is not in the group 64007 on this node; all hosts need the same users and groups"
        slurm_site.wait(lambda: why in others.run("scontrol", "show", "job", job).stdout, others.log)
        others.run("scancel", job)
    finally:
        slurm_site.run(["umount", "/etc/group"], node="n2")


def test_size_counts_for_the_owner_while_a_member_uses_the_buffer(buffer, others):
    waits = f"touch {others.directory}/running; until [ -e {others.directory}/go ]; do sleep 0.05; done"
    others.script(f"head -c 1M /dev/zero >{buffer.variable}/file; {waits}", buffer.use)
    job = others.submit()
    others.wait_for_file("running")
    shown = buffer.cluster.control("metrics").stdout.splitlines()
    sizes = [line for line in shown if line.startswith("forebay_allocation_size_bytes{")]
    of = {user: line.split()[-1] for line in sizes for user in ("nobody", "daemon") if f'user="{user}"' in line}
    assert of == {"nobody": str(32 * MIB), "daemon": "0"}, sizes
    (others.directory / "go").touch()
    assert others.wait(job) == "COMPLETED", others.stderr_text()


def test_what_members_closed_is_removed_with_the_buffer_and_nothing_else(buffer, users, others):
    secret = others.directory / "secret"
    secret.mkdir()
    (secret / "file").write_text("secret\n")
    chown(secret, DAEMON)
    deep = "/".join("d" * 300)
    body = f"""cd {buffer.variable}; umask 077; mkdir -p closed/{deep} sticky/inner; touch closed/{deep}/f sticky/inner/f
    chmod 1777 sticky; chmod 0 sticky/inner; ln -s {secret} closed/link; ln -s {secret}/file link"""
    run(others, body, buffer.use)
    directory = buffer.directory
    changes = "while mkdir x && touch x/file && mv x y && rm -r y; do :; done 2>/dev/null"
    member = {"user": DAEMON, "group": DAEMON, "extra_groups": [directory.stat().st_gid]}
    with subprocess.Popen(["sh", "-c", changes], cwd=directory / "striped" / "closed", **member):
        destroy(buffer, users)
    assert not directory.exists()
    assert (secret / "file").read_text() == "secret\n" and secret.stat().st_uid == DAEMON


def test_removal_stops_at_a_mount_and_is_completed_after_an_interruption(slurm_site, buffer, others):
    outside = slurm_site.shared / "outside"
    outside.mkdir()
    (outside / "file").touch()
    run(others, f"mkdir -m 700 {buffer.variable}/closed; mkdir {buffer.variable}/closed/mount", buffer.use)
    directory = buffer.directory
    mount = directory / "striped" / "closed" / "mount"
    node = buffer.allocation()["node"].partition(":")[0]
    slurm_site.run(["mount", "--bind", outside, mount], node=node)
    try:
        torn = slurm_site.call(*buffer.teardown)
        assert torn.returncode == 1 and f"something is mounted at {mount}, unmount it" in torn.stderr, torn.stderr
    finally:
        slurm_site.run(["umount", mount], node=node)
    assert (outside / "file").exists()
    # A daemon that is started again knows nothing of it.
    assert directory.exists()
    slurm_site.kill_noded(node)
    slurm_site.call(*buffer.teardown, check=True)
    assert not directory.exists()


def test_group_that_is_not_the_owners_is_refused(slurm_site, users):
    for name, group, wanted in [
        (
            "a",
            "daemon",
            f"nobody is not in the group daemon of (group=daemon); name one of your groups: nogroup, {TEAM}",
        ),
        ("b", "no-such-group", "nobody is not in the group no-such-group of"),
        ("c", "root", "nobody is not in the group root of"),
        ("d", "", "d: group= has no value (write group="),
    ]:
        words = CREATE_CALL.format(name=name, group=group, user=NOBODY).split()
        created = slurm_site.call(*words)
        assert created.returncode == 1 and wanted in created.stderr, created.stderr
        assert slurm_site.allocation(name) is None
    users.script("true", f"#DW jobdw type=scratch access_mode=striped(group={TEAM}) capacity=16MiB")
    said = users.run("sbatch", "job.sh", check=False)
    assert said.returncode == 1 and "(group=) in a jobdw" in said.stderr
