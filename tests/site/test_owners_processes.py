"""What users and epilogs do to the processes that stage: they end or stop them, and no result is lost."""

import pathlib
import re
import subprocess

import pytest

from support.cgroup import of_process
from support.site_cluster import ENGINE_POOL, MIB, SLOW
from support.site_staging import OUT, arrives, in_stage, prepare
from support.slurm_cluster import NOBODY
from support.strace import few

GUIDE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "how-to" / "site-slurm.md"
AS_USER = {"user": NOBODY, "group": NOBODY, "extra_groups": []}


@pytest.fixture
def staging_out(users):
    """A job whose results are on their way, by a process on n1; and what they are."""
    content = prepare(users, 28 * MIB)
    users.script(f"cp {users.directory}/big $DW_JOB_STRIPED/", SLOW.replace("16MiB", "32MiB"), OUT)
    job = users.submit("--nodelist=n2")
    in_stage(users, "out")
    return job, content


def processes(site):
    """Those of owners, as `PID START`: a number can be that of a later process."""
    found = []
    for pid in site.processes("/proc/self/exe", "__site"):
        try:
            found.append(f"{pid} {pathlib.Path(f'/proc/{pid}/stat').read_text().rpartition(')')[2].split()[19]}")
        except OSError:
            continue  # it has ended
    return found


def the_process(site):
    (only,) = processes(site)
    return int(only.split()[0])


def is_another(site, old):
    found = processes(site)
    return found and old not in found


def killed(site, by):
    """How many processes of owners were killed on n1 so far, by whom."""
    line = f'^forebay_node_processes_killed_total{{node="n1",by="{by}"}} (.*)$'
    (count,) = re.findall(line, site.control("metrics").stdout, re.MULTILINE)
    return float(count)


def test_process_has_a_cgroup_of_its_own_that_its_user_cannot_change(slurm_site, users, staging_out):
    job, content = staging_out
    group = slurm_site.cgroup("n1")
    work = the_process(slurm_site)
    path = of_process(work)
    assert path.parts[-3:-1] == (group.name, "forebay-noded.n1") and path.name.startswith(f"{job}.")
    own = group / "forebay-noded.n1" / path.name
    assert (own / "cgroup.procs").read_text().split() == [str(work)]
    (daemon,) = slurm_site.daemons("n1")
    assert of_process(daemon).name == group.name
    log = (slurm_site.top / "log" / "noded-n1").read_text()
    assert f"processes of users run below /mnt/cgroup/{group.name}/forebay-noded.n1\n" in log
    with subprocess.Popen(["sleep", "600"], **AS_USER) as other:
        try:
            # Neither into it, nor out of it, nor stopped as a whole.
            for line, file in (
                (other.pid, own / "cgroup.procs"),
                (work, group / "cgroup.procs"),
                (1, own / "cgroup.freeze"),
            ):
                tried = subprocess.run(["sh", "-c", f"echo {line} > {file}"], **AS_USER, capture_output=True, text=True)
                assert tried.returncode != 0 and "ermission denied" in tried.stderr, tried
        finally:
            other.kill()
    # The next daemon ends what a killed one left, and continues.
    slurm_site.kill_noded("n1")
    arrives(users, job, content)
    assert not own.exists()
    assert [path.name for path in (group / "forebay-noded.n1").iterdir() if path.is_dir()] == []


def test_process_that_its_user_stops_is_started_again(slurm_site, users, staging_out):
    job, content = staging_out
    before = killed(slurm_site, "forebay")
    (old,) = processes(slurm_site)
    subprocess.run(["kill", "-STOP", old.split()[0]], **AS_USER, check=True)
    slurm_site.wait(lambda: is_another(slurm_site, old), lambda: (old, processes(slurm_site), users.log()))
    arrives(users, job, content)
    assert killed(slurm_site, "forebay") == before + 1


@pytest.mark.parametrize("signal", few("KILL", "TERM"))
def test_epilog_that_ends_all_processes_of_the_user_loses_no_result(slurm_site, users, staging_out, signal):
    job, content = staging_out
    before = killed(slurm_site, "others")
    for _ in range(3):
        (old,) = processes(slurm_site)
        slurm_site.run(["pkill", f"-{signal}", "-u", "nobody"], node="n1")
        slurm_site.wait(lambda old=old: is_another(slurm_site, old), lambda: (processes(slurm_site), users.log()))
    arrives(users, job, content)
    assert killed(slurm_site, "others") == before + 3


def test_epilog_of_another_job_of_the_user_loses_no_result(slurm_site, users):
    content = prepare(users, 44 * MIB)
    users.script("touch running; until [ -e end ]; do sleep 0.1; done")
    other = users.submit("--nodelist=n1")
    users.wait_for_file("running")
    users.script(f"cp {users.directory}/big $DW_JOB_STRIPED/", SLOW.replace("16MiB", "48MiB"), OUT)
    job = users.submit("--nodelist=n2")
    in_stage(users, "out")
    before = killed(slurm_site, "others")
    slurm_site.epilog_ends_users.touch()
    try:
        (users.directory / "end").touch()
        slurm_site.wait(lambda: killed(slurm_site, "others") > before, users.log)
        assert users.wait(other) == "COMPLETED"
    finally:
        slurm_site.epilog_ends_users.unlink()
    arrives(users, job, content)


def test_epilog_of_the_guide_spares_the_process(slurm_site, users, staging_out):
    job, content = staging_out
    slurm_site.cgroup("n1")
    before = killed(slurm_site, "others")
    (epilog,) = re.findall(r"^```bash\n(for process in .*?)```$", GUIDE.read_text(), re.MULTILINE | re.DOTALL)
    (old,) = processes(slurm_site)
    inside = ["nsenter", "--target", str(slurm_site.leader("n1")), "--mount", "--pid"]
    become = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    with subprocess.Popen([*inside, *become, "sleep", "600"]) as other:
        try:
            mine = ["pgrep", "-u", "nobody", "-x", "sleep"]
            slurm_site.wait(lambda: slurm_site.run(mine, node="n1", check=False).stdout, other.poll)
            slurm_site.run(["bash", "-c", epilog], node="n1", SLURM_JOB_USER="nobody")
            assert other.wait(timeout=60) != 0
        finally:
            other.kill()
    assert processes(slurm_site) in ([old], [])  # it may have come to its end
    arrives(users, job, content)
    assert killed(slurm_site, "others") == before


def test_daemon_without_cgroups_says_so_and_refuses_a_pool_with_an_engine(slurm_site):
    slurm_site.cgroup("n2")
    whole = slurm_site.top / "site.toml"
    plain = slurm_site.top / "site-without-engine.toml"
    plain.write_text(whole.read_text().partition(ENGINE_POOL)[0])
    daemon = f"{slurm_site.build}/bin/forebay-noded --listen 127.0.0.1:7078 --name n2"
    words = ["unshare", "--mount", "sh", "-c", f"umount /mnt/cgroup && exec timeout 60 {daemon}"]
    refused = slurm_site.run(words, node="n2", check=False, FOREBAY_SITE=str(whole))
    assert refused.returncode == 1 and "an engine needs a cgroup of version 2" in refused.stderr
    words[-1] = words[-1].replace("timeout 60", "timeout 2")
    said = slurm_site.run(words, node="n2", check=False, FOREBAY_SITE=str(plain)).stderr
    assert "processes of users run in the cgroup of this daemon: cannot find the cgroup of" in said


#: Kills each process that a daemon starts for this user.
KILLER = """
import os, signal, sys, time
print("ready", flush=True)
while True:
    for daemon in sys.argv[1:]:
        for thread in os.listdir(f"/proc/{daemon}/task"):
            try:
                for number in open(f"/proc/{daemon}/task/{thread}/children").read().split():
                    os.kill(int(number), signal.SIGKILL)
            except OSError:  # it has ended, or is not the user's yet
                pass
    time.sleep(0.01)
"""


@pytest.mark.soak
@pytest.mark.long
def test_user_who_always_kills_the_process_is_named_and_the_results_arrive_later(slurm_site, users):
    content = prepare(users, 28 * MIB)
    here = users.directory
    body = f"cp {here}/big $DW_JOB_STRIPED/; touch {here}/written; until [ -e {here}/go ]; do sleep 0.05; done"
    users.script(body, SLOW.replace("16MiB", "32MiB"), OUT)
    job = users.submit("--nodelist=n2")
    users.wait_for_file("written")
    words = ["python3", "-c", KILLER, *map(str, slurm_site.daemons("n1"))]
    before = killed(slurm_site, "others")
    with subprocess.Popen(words, **AS_USER, stdout=subprocess.PIPE, text=True) as killer:
        try:
            assert killer.stdout.readline() == "ready\n"
            (here / "go").touch()
            wanted = (
                "its process was ended by signal 9 on n1, 20 times; nobody must leave the processes forebay-staging "
                "there alone, and so must an epilog of the site"
            )
            slurm_site.wait(lambda: wanted in str(slurm_site.allocation(job)["problem"]), users.log)
            assert not (users.results / "big").exists()
        finally:
            killer.kill()
    # A stage-out that failed is tried again.
    arrives(users, job, content)
    assert killed(slurm_site, "others") >= before + 20
