"""A batch script of several nodes under one `forebay run`: one namespace over all of them."""

import json
import shutil
import signal
import time

import pytest
from support.bed_processes import send
from support.mpi import PROJECT, Mpi
from support.slurm_batch import STAGE_OUT
from support.slurm_cluster import NODES, command_of, descendants
from support.strace import few

DW = "#DW jobdw type=scratch access_mode=striped,private capacity=64MiB"
STAGE_IN = "#DW stage_in type=directory source=%d/in destination=$DW_JOB_STRIPED/in"
#: As docs/how-to/slurm.md writes it; with the options of the batch script that reach each srun.
RUN = '[ -n "${DW_JOB_STRIPED-}" ] || exec forebay run %s "$0"\nmkdir ${DW_JOB_STRIPED}out'
ON_EACH = "hostname >$DW_JOB_PRIVATE/me; cp $DW_JOB_STRIPED/in/file $DW_JOB_STRIPED/out/rank$SLURM_PROCID"
OF_MPIRUN = 'echo "$OMPI_COMM_WORLD_RANK $(cat $DW_JOB_PRIVATE/me) $(ls $DW_JOB_STRIPED/out | wc -l)"'
EXCHANGE = "read name </proc/sys/kernel/hostname; FOREBAY_BED_NODE=${name#n} exec ./exchange $DW_JOB_STRIPED/out/shared 8 400000 1 posix collective"
WAIT = "until [ -e go ]; do sleep 0.05; done"
WRITE = "srun sh -c 'hostname >${DW_JOB_STRIPED}out/rank$SLURM_PROCID'; touch wrote"


def clean(batch):
    """Nothing is left on any node: no file, no mount, no process of an engine."""
    assert batch.leftovers() == [] and batch.status("n1") == []
    for name in NODES:
        mounts = batch.cluster.run(["cat", "/proc/mounts"], name).stdout
        assert "forebay-node" not in mounts
        batch.cluster.wait(lambda name=name: not of_engine(batch, name), lambda name=name: of_engine(batch, name))


def of_engine(batch, node):
    """Processes of an engine on a node."""
    listed = batch.cluster.run(["ps", "ax", "-o", "args"], node).stdout.splitlines()
    return [words for words in listed if "forebay-node" in words or "__node" in words]


def make_input(batch):
    (batch.directory / "in").mkdir()
    (batch.directory / "in" / "file").write_text("for all\n")


@pytest.mark.parametrize("batch", few("nobody", "root"), indirect=True)
@pytest.mark.parametrize("count", few(4, 2))
def test_tasks_of_all_nodes_share_one_namespace(batch, build, count):
    """Started by srun and by mpirun; with what a script sets for its own steps."""
    make_input(batch)
    program = PROJECT / "tests" / "programs" / "nodes" / "exchange.c"
    shutil.copy(Mpi("openmpi", build).compiled("exchange", program), batch.directory / "exchange")
    root = "export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_mpi_yield_when_idle=1"
    mpirun = f"{root}\nmpirun --map-by node -n {count}"
    body = f"srun sh -c '{ON_EACH}'\n{mpirun} sh -c '{OF_MPIRUN}'\n{mpirun} sh -c '{EXCHANGE}'"
    batch.script(f"{RUN % ''}\n{body}", "#SBATCH --mem-per-cpu=100 --cpus-per-task=1", DW, STAGE_IN, STAGE_OUT)
    job = batch.submit(f"--nodes={count}", "--ntasks-per-node=1")
    assert batch.wait(job) == "COMPLETED", batch.stderr_text()
    shared = ["shared.collective", "shared.posix"]
    assert batch.arrived() == [*(f"rank{number}" for number in range(count)), *shared], batch.stderr_text()
    said = batch.stdout_text().splitlines()
    ranks = sorted(line.split() for line in said if line[0].isdigit())
    assert len({node for _, node, _ in ranks}) == count
    assert [(rank, files) for rank, _, files in ranks] == [(str(n), str(count)) for n in range(count)]
    exchanged = [line for line in said if line.startswith("{")]
    assert len(exchanged) == 2 and all('"mismatches": 0' in line for line in exchanged), said
    assert all(f'"bytes_of_other_nodes": {count * 8 * 400000}' in line for line in exchanged)
    assert f"on {count} nodes" in batch.stderr_text()
    report = batch.cluster.run(["forebay", "report", "--json", "last"], FOREBAY_STATE=str(batch.state))
    (job,) = json.loads(report.stdout)["jobs"]
    known = job["profile"]["coverage"]
    assert known is not None and known["recorded_bytes"] > 2 * count * 8 * 400000, job["profile"]["coverage_unknown"]
    assert known["share"] > 0.95, "the ranks of other nodes report what the kernel counted there"
    clean(batch)


@pytest.mark.alone
def test_scancel_allows_stage_out_of_all_nodes_within_killwait(users):
    users.script(f"{RUN % ''}\n{WRITE}\nsrun sleep 300", DW, STAGE_OUT)
    job = users.submit("--nodes=4", "--ntasks-per-node=1")
    users.wait_for_file("wrote")
    users.run("scancel", job)
    assert users.wait(job) == "CANCELLED"
    assert users.arrived() == ["rank0", "rank1", "rank2", "rank3"], users.stderr_text()
    clean(users)


@pytest.mark.alone
def test_stage_out_begins_before_the_time_limit(users):
    begin = f"touch ready\n{WAIT}\n" + RUN % "--drain-margin 0:02"
    users.script(f"{begin}\n{WRITE}\nsrun sleep 300", DW, STAGE_OUT)
    job = users.submit("--nodes=4", "--ntasks-per-node=1")
    users.wait_for_file("ready")
    users.run("scontrol", "update", f"JobId={job}", "EndTime=now+20")
    (users.directory / "go").touch()
    assert users.wait(job) == "FAILED"
    assert users.show_job(job)["ExitCode"] == "124:0", users.stderr_text()
    assert users.arrived() == ["rank0", "rank1", "rank2", "rank3"]
    clean(users)


@pytest.mark.soak
def test_job_with_copies_continues_when_all_of_it_dies_on_a_node(users):
    """Servers, mount, agent, tasks and Slurm's own process of the job; the agent is started again there."""
    await_go = f"touch wrote\n{WAIT}"
    body = f"{WRITE}\n{await_go}\nls ${{DW_JOB_STRIPED}}out | wc -l\necho after >${{DW_JOB_STRIPED}}out/after"
    users.script(f"{RUN % '--redundancy 2'}\n{body}", DW, STAGE_OUT)
    job = users.submit("--nodes=3", "--nodelist=n1,n2,n3", "--ntasks-per-node=1")
    users.wait_for_file("wrote")
    victims = [pid for pid in descendants(users.cluster.leader("n3")) if is_of_job(command_of(pid))]
    assert any("ceph-osd" in "".join(command_of(pid)[:1]) for pid in victims), [command_of(pid) for pid in victims]
    for pid in victims:
        send(pid, signal.SIGKILL)
    time.sleep(6)
    (users.directory / "go").touch()
    assert users.wait(job) == "COMPLETED", users.stderr_text()
    assert users.stdout_text().split() == ["3"]
    assert users.arrived() == ["after", "rank0", "rank1", "rank2"], users.stderr_text()
    # The agent had told it, or it did not answer any more either.
    told = ("node n3: n3.storage ended", "node n3: the node is lost")
    assert any(text in users.stderr_text() for text in told), users.stderr_text()
    clean(users)


def is_of_job(command):
    words = " ".join(command)
    return any(part in words for part in ("forebay-node", "__node", "slurmstepd"))


def test_node_outside_of_the_job_is_refused_by_name(users):
    users.script('exec forebay run --nodes n1,n3 "$0"', DW, STAGE_OUT)
    job = users.submit("--nodelist=n1,n2", "--ntasks-per-node=1")
    assert users.wait(job) == "FAILED"
    complained = users.stderr_text()
    assert "node n3 is not in this job, which has n1, n2" in complained and "--launcher" in complained, complained
    clean(users)


def test_missing_engine_is_refused_by_name_with_its_remedy(users):
    programs = users.directory / "programs"
    programs.mkdir()
    for name in ("scontrol", "srun"):
        (programs / name).symlink_to(f"/usr/bin/{name}")
    program = users.cluster.build / "bin" / "forebay"
    users.script(f'PATH=$PWD/programs exec {program} run "$0"', DW, STAGE_OUT)
    job = users.submit("--nodelist=n1,n2", "--ntasks-per-node=1")
    assert users.wait(job) == "FAILED"
    assert users.show_job(job)["ExitCode"] == "125:0"
    complained = users.stderr_text()
    assert "ceph" in complained and "install the package" in complained, complained
    clean(users)
