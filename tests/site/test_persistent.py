"""Persistent allocations: one job makes them, later ones use them, the last destroys them."""

from support.site_cluster import DW

CREATE = "#BB create_persistent name=proj-1 capacity=40MiB access_mode=striped type=scratch"
USE = "#DW persistentdw name=proj-1"
DESTROY = "#BB destroy_persistent name=proj-1"
STRIPED = "$DW_PERSISTENT_STRIPED_proj_1"
IN = "#DW stage_in type=file source=%d/input destination=$DW_PERSISTENT_STRIPED_proj-1/input"
OUT = "#DW stage_out type=directory source=$DW_PERSISTENT_STRIPED_proj-1/ destination=%d/results"


def run(batch, body, *directives, options=()):
    batch.script(body, *directives)
    job = batch.submit(*options)
    assert batch.wait(job) == "COMPLETED", (batch.reason(job), batch.stderr_text(), batch.log())
    batch.wait_until_freed(job)
    return job


def test_buffer_lives_over_three_jobs_and_is_its_owners_alone(slurm_site, users, others):
    (users.directory / "input").write_text("from the file system\n")
    run(users, "exit 0", CREATE)
    assert slurm_site.allocation("proj-1")["capacity_bytes"] == 48 << 20  # whole granules
    run(users, f"cat {STRIPED}/input > {STRIPED}/copy; ls -d $DW_JOB_STRIPED", DW, USE, IN)
    # A restart of Slurm finds it again.
    users.script("true")
    slurm_site.wait_until_saved(users.submit("--hold"))
    slurm_site.kill_controller()
    seen = []

    def is_shown():
        seen.append(slurm_site.run(["scontrol", "show", "burst"], check=False).stdout)
        return "Name=proj-1" in seen[-1] and "UserID=nobody(65534) Used=48MiB" in seen[-1]

    slurm_site.wait(is_shown, lambda: seen[-1])
    others.script("true", USE)
    refused = others.submit()
    assert "proj-1 is nobody's, and closed to you" in others.waits_for(refused, "closed to you")
    others.run("scancel", refused)
    others.script("true", DESTROY)
    refused = others.submit()
    others.waits_for(refused, "Delete buffer proj-1 permission denied")
    others.run("scancel", refused)
    run(users, f"echo last > {STRIPED}/last", USE, OUT)
    assert users.arrived() == ["copy", "input", "last"]
    assert (users.results / "copy").read_text() == "from the file system\n"
    run(users, "exit 0", DESTROY)
    slurm_site.wait(lambda: slurm_site.allocation("proj-1") is None, users.log)
    assert slurm_site.directories() == []


def test_buffer_in_use_is_not_destroyed(slurm_site, users):
    create, use = (line.replace("proj-1", "busy") for line in (CREATE, USE))
    run(users, "exit 0", create)
    users.script(f"touch {users.directory}/running; until [ -e {users.directory}/go ]; do sleep 0.05; done", use)
    job = users.submit()
    users.wait_for_file("running")
    torn = slurm_site.call("--function", "teardown", "--token", "busy", "--job", "/dev/null")
    assert torn.returncode == 1 and f"busy is in use by job {job}; wait for the job to end" in torn.stderr
    (users.directory / "go").touch()
    assert users.wait(job) == "COMPLETED"
    users.wait_until_freed(job)
    users.script("exit 0", DESTROY.replace("proj-1", "busy"))
    users.submit()
    slurm_site.wait(lambda: slurm_site.allocation("busy") is None, users.log)


def test_scripts_show_the_pool_with_dwstat(slurm_site, users):
    def asked(*words):
        return users.run("scontrol", "show", "bbstat", *words, check=False).stdout

    assert asked("pools").splitlines()[0].split() == ["pool", "units", "quantity", "free", "gran"]
    assert asked().splitlines()[1].split() == ["flash", "bytes", "384MiB", "384MiB", "16MiB"]
    assert "did not find any sessions, instances" in asked("most")
    users.script(f"touch {users.directory}/running; sleep 60", DW)
    job = users.submit("-N2")
    users.wait_for_file("running")
    session = dict(zip(*(line.split() for line in asked("sessions").splitlines()[:2]), strict=True))
    assert (session["token"], session["owner"], session["nodes"]) == (job, "nobody", "2")
    assert (session["state"], session["creator"], session["expiration"]) == ("CA---", "SLURM", "never")
    tables = asked("all").split("\n\n")
    assert [table.split()[0] for table in tables] == "pool node sess inst conf reg activ frag nss".split()
    assert asked("activations").splitlines()[1].split()[-1] == f"{users.directory_of(job)}/"
    assert asked("pools").splitlines()[1].split()[3] == "368MiB"
