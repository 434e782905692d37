"""A job of `forebay run --nodes` with the engine ceph: its directories on all nodes, its data in and out, its
capacity, and what is left."""

import json

import pytest

from support.node_jobs import STRIPED, node_job
from support.nodes import nodes
from support.strace import EVERY_POINT, few

STORE_BYTES = 1 << 30
BOTH = STRIPED.replace("striped", "striped,private")


@pytest.fixture(scope="module", params=[2, 4] if EVERY_POINT else [2])
def some_nodes(build, request):
    with nodes(request.param, build, STORE_BYTES) as bed:
        yield bed


@pytest.fixture
def bed(some_nodes):
    """Nothing is left on it after the test."""
    yield some_nodes
    some_nodes.wait_until_clean()


def on_each(bed, command):
    return "\n".join(f"ssh {node} {command}" for node in bed.names)


@pytest.mark.parametrize(("user", "redundancy"), few(("ada", 2), (None, 1), ("ada", 1), (None, 2), kept=2))
def test_all_nodes_share_one_directory_and_have_one_of_their_own(bed, user, redundancy):
    shared = on_each(
        bed, '"cd $DW_JOB_STRIPED; cat in out/*; hostname >out/\\$(hostname); hostname >$DW_JOB_PRIVATE/name"'
    )
    own = on_each(bed, '"cat $DW_JOB_PRIVATE/name; stat -f -c %t $DW_JOB_STRIPED $DW_JOB_PRIVATE/"')
    script = f"""{BOTH}
#DW stage_in type=file source=HERE/in destination=$DW_JOB_STRIPED/in
#DW stage_out type=directory source=$DW_JOB_STRIPED/out destination=HERE/out
set -e
mkdir $DW_JOB_STRIPED/out
touch $DW_JOB_STRIPED/out/.first
{shared.replace("out/*", "out/.first out/* 2>/dev/null || true")}
{own}"""
    job = node_job(bed, script, "--redundancy", redundancy, user=user, name=f"shared-{user}-{redundancy}")
    job.path("in").write_text("input\n")
    done = job.run()
    seen = "".join("input\n" + "".join(f"{name}\n" for name in bed.names[:at]) for at in range(len(bed.names)))
    fuse, tmpfs = "65735546", "1021994"
    assert done.stdout == seen + "".join(f"{name}\n{fuse}\n{tmpfs}\n" for name in bed.names)
    assert {name: job.text(f"out/{name}") for name in bed.names} == {name: f"{name}\n" for name in bed.names}
    assert job.leftovers() == []


def test_private_directories_need_no_engine(bed):
    script = STRIPED.replace("striped", "private") + "\necho $(hostname) >$DW_JOB_PRIVATE/name; "
    job = node_job(
        bed, script + 'ssh n2 "hostname >$DW_JOB_PRIVATE/other; ls $DW_JOB_PRIVATE"; ls $DW_JOB_PRIVATE', name="private"
    )
    assert job.run().stdout == "other\nname\n"
    assert job.leftovers() == []


def test_node_local_storage_is_that_of_each_node(bed):
    """The path that LSF's scripts use, as a link on each node."""
    script = """#BSUB -alloc_flags nvme
hostname >/mnt/bb/$USER/name
for node in n1 n2; do ssh $node "hostname >/mnt/bb/$USER/\\$(hostname); ls /mnt/bb/$USER; cat $DW_JOB_PRIVATE/*"; done"""
    told = node_job(bed, script, "--dry-run", user="ada", name="plan").run().stdout
    assert "on 2 nodes (no size asked; not enforced)" in told, told
    job = node_job(bed, script, user="ada", name="local")
    assert job.run().stdout.split() == ["n1", "name", "n1", "n1", "n2", "n2"]
    assert job.leftovers() == []
    for node in bed.names:
        assert list(bed.path_of(node, "/mnt/bb").iterdir()) == []


def test_capacity_ends_writes_and_a_delete_makes_room(bed):
    """A busy metadata server counts late, so more than one write may fit."""
    script = f"""{STRIPED}
cd $DW_JOB_STRIPED
df --output=size -B1M . | tail -1
for _ in 1 2 3; do
LC_ALL=C dd if=/dev/zero of=large bs=1M count=80 oflag=append conv=notrunc 2>&1 | grep -m1 quota && break
done
ssh n2 "LC_ALL=C dd if=/dev/zero of=$DW_JOB_STRIPED/more bs=1M count=8 2>&1 | head -1; rm $DW_JOB_STRIPED/more"
rm large
ssh n2 "until dd if=/dev/zero of=$DW_JOB_STRIPED/more bs=1M count=8 status=none; do sleep 0.5; done; stat -c %s $DW_JOB_STRIPED/more" """
    done = node_job(bed, script, name="capacity").run(check=False)
    size, first, second, more = done.stdout.splitlines()
    assert size.strip() == "64"
    assert "quota exceeded" in first and "quota exceeded" in second, done.stdout
    assert more == str(8 << 20)


def test_directory_of_jobs_is_a_link_on_another_node(bed):
    """The kernel lists a mount without the links above it."""
    for node in bed.names:
        lines = "mkdir /tmp/jobs" if node == "n1" else "mkdir /tmp/real; ln -s real /tmp/jobs"
        bed.run(node, ["sh", "-c", lines], "ada")
    script = f"""{STRIPED}
ssh n2 "hostname >$DW_JOB_STRIPED/name"; cat $DW_JOB_STRIPED/name"""
    job = node_job(bed, script, "--node-dir", "/tmp/jobs", name="linked")
    assert job.run().stdout == "n2\n"
    for node in bed.names:
        # Nothing of the job is left in it.
        bed.run(node, ["sh", "-c", "rmdir $(readlink -f /tmp/jobs)"], "ada")
    bed.run("n2", ["rm", "/tmp/jobs"], "ada")
    assert job.leftovers() == []


def test_two_jobs_side_by_side(bed):
    script = f"""{STRIPED}
#DW stage_out type=file source=$DW_JOB_STRIPED/name destination=HERE/name
hold
echo $DW_JOB_STRIPED >$DW_JOB_STRIPED/name; ls $DW_JOB_STRIPED"""
    first, second = (node_job(bed, script, user=user, name=f"side-{user}") for user in ("ada", "bob"))
    runs = [first.start(), second.start()]
    # Another user has the address, but not the key and not the directory.
    looked = bed.run("n1", ["ls", first.mount()], second.user, check=False)
    assert looked.returncode != 0 and "Permission denied" in looked.stderr
    assert [job.release(run).stdout for job, run in zip((first, second), runs)] == ["name\n", "name\n"]
    assert first.text("name") == first.text("striped") != second.text("name") == second.text("striped")


def test_kept_allocation_is_there_until_clean(bed):
    job = node_job(
        bed, f"{STRIPED}\necho result >$DW_JOB_STRIPED/a; echo $DW_JOB_STRIPED >striped", "--keep", name="keep"
    )
    job.run()
    for node in bed.names:
        assert bed.run(node, ["cat", job.mount() / "a"], job.user).stdout == "result\n"
    (listed,) = job.jobs()
    assert listed["state"] == "kept", listed
    job.forebay("clean", listed["job_id"], "--to", job.path("rescued"))
    assert (job.path("rescued") / "striped" / "a").read_text() == "result\n"
    assert job.leftovers() == []


def test_description_for_programs_names_nodes_and_engine(bed):
    job = node_job(bed, f"{STRIPED}\nhold\ntrue", "--json", name="json")
    run = job.start()
    (listed,) = job.jobs()
    used = {"engine": "ceph", "names": list(bed.names), "failed": None, "data_lost": False, "redundancy": 1}
    used |= {"stores": ["/mnt/nvme"] * len(bed.names), "share_bytes": (64 << 20) // len(bed.names)}
    stored = listed["nodes"].pop("stored_bytes")
    assert listed["nodes"] == used and len(stored) in (0, len(bed.names))
    line = f"ceph on {', '.join(bed.names)}; one copy; up to "
    assert line in job.forebay("status").stdout
    done = job.release(run)
    summary = json.loads(done.stdout.splitlines()[-1])
    assert len(summary["nodes"].pop("stored_bytes")) in (0, len(bed.names)) and summary["nodes"] == used
    # After the job, from its record.
    past = json.loads(job.forebay("jobs", "--json").stdout)[0]
    past["nodes"].pop("stored_bytes")
    assert (past["job_id"], past["nodes"]) == (listed["job_id"], used)
    assert f"64.00 MiB on {','.join(bed.names)}" in job.forebay("jobs").stdout


def test_gather_and_clean_name_the_nodes_of_a_killed_job(bed):
    script = f"""{STRIPED} redundancy=2
#DW stage_out type=file source=$DW_JOB_STRIPED/a destination=HERE/a
echo 1 >$DW_JOB_STRIPED/a
hold
"""
    job = node_job(bed, script, name="gather")
    run = job.start()
    run.kill()
    job.path("go").touch()
    run.communicate(timeout=60)
    (node,) = json.loads(job.forebay("gather", "--json").stdout)
    (cleaned,) = node["jobs"]
    assert (node["node"], cleaned["removed"], cleaned["nodes"]["names"]) == ("n1", True, list(bed.names))
    assert cleaned["nodes"]["redundancy"] == 2
    assert job.text("a") == "1\n"
    assert job.leftovers() == []
