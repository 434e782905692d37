"""Persistent allocations of batch jobs: one makes it, later ones use it, the last destroys it."""

import json

from support.slurm_batch import Batch

DAEMON = 1  # another ordinary user whom every machine knows
CREATE = "#BB create_persistent name=proj1 capacity=1MiB access_mode=striped type=scratch"
USE = "#DW persistentdw name=proj1"
DESTROY = "#BB destroy_persistent name=proj1"
STRIPED = "$DW_PERSISTENT_STRIPED_proj1"
STAGE_OUT = f"#DW stage_out type=directory source={STRIPED}/ destination=%d/results"


def submit(batch, name, body, *directives, after=()):
    """A batch job on n1 that runs the script under Forebay once the others have succeeded."""
    batch.script(body, *directives, name=f"{name}.sh")
    batch.script(f"exec forebay run {name}.sh", name=f"{name}.batch")
    output = ("-o", f"said-{name}", "-e", f"complained-{name}")
    condition = [f"--dependency=afterok:{':'.join(after)}"] if after else []
    return batch.submit("--nodelist=n1", "--ntasks=1", *output, *condition, name=f"{name}.batch")


def stderr_text(batch, name):
    return (batch.directory / f"complained-{name}").read_text()


def listed(batch, node):
    return json.loads(batch.run("forebay", "persistent", "list", "--json", node=node).stdout)


def test_allocation_created_by_one_job_is_shared_by_two_and_destroyed(users):
    makes = submit(users, "make", f"echo made > {STRIPED}/a", CREATE, USE)
    assert users.wait(makes) == "COMPLETED", stderr_text(users, "make")
    (one,) = listed(users, "n1")
    assert (one["state"], one["job_id"], one["store"]) == ("ready", makes, "/mnt/nvme")
    # The hosts share the user's state directory, not the store.
    (seen,) = listed(users, "n2")
    assert (seen["state"], seen["host"]) == ("elsewhere", "n1")
    forgotten = users.run("forebay", "persistent", "destroy", "--hurry", "proj1", node="n2", check=False)
    assert forgotten.returncode == 1 and "hint: use and destroy it on n1" in forgotten.stderr
    other = Batch(users.cluster, DAEMON, "another-users")
    try:
        refused = submit(other, "use", "true", USE)
        assert other.wait(refused) == "FAILED"
        assert "proj1 is nobody's, and closed to you" in stderr_text(other, "use")
    finally:
        other.end()
    both = []
    for own, others in (("x", "y"), ("y", "x")):
        meets = f"echo {own} > {STRIPED}/{own}; until [ -e {STRIPED}/{others} ]; do sleep 0.02; done"
        both.append(submit(users, own, meets, USE, after=[makes]))
    out = submit(users, "out", "true", USE, STAGE_OUT, after=both)
    destroys = submit(users, "destroy", "true", DESTROY, after=[out])
    for job, name in zip([*both, out, destroys], ["x", "y", "out", "destroy"], strict=True):
        assert users.wait(job) == "COMPLETED", stderr_text(users, name)
    assert users.arrived() == ["a", "x", "y"]
    assert listed(users, "n1") == [] and listed(users, "n2") == [] and users.leftovers() == []
