"""The launchers of schedulers that cannot be had here: programs that take the same words reach the node with ssh."""

import pytest

from support.bed_files import BUILD
from support.node_jobs import STRIPED, node_job
from support.nodes import ended, nodes

ON_NODE = 'exec ssh -o BatchMode=yes "$node" "$(printf "%q " "$@")"'
NAMED = f"node=$1; shift; {ON_NODE}"
PROGRAMS = {
    "blaunch": NAMED,
    "pbs_tmrsh": NAMED,
    "flux": f"""case "$1 $2" in
"getattr instance-level") echo "${{FLUX_LEVEL:-1}}" ;;
"hostlist --expand") [ "$4" = instance ] && printf 'n1\\nn2\\n' ;;
"exec --rank="*) node=n$((${{2#--rank=}} + 1)); shift 2; {ON_NODE} ;;
*) exit 2 ;;
esac""",
    "mpiexec": f'[ "$1 $2 $3" = "-n 1 --host" ] || exit 2; node=$4; shift 4; {ON_NODE}',
}
JOBS = {
    "blaunch": {"LSB_JOBID": 1, "LSB_MCPU_HOSTS": "n1 2 n2 2"},
    "pbs_tmrsh": {"PBS_JOBID": "1.head"},
    "flux": {"FLUX_URI": "local:///x"},
}


@pytest.fixture(scope="module")
def bed(build):
    with nodes(2, build) as bed:
        yield bed


def programs(bed, name, of, lines=None):
    """A directory of one test with the launcher, which says in a file that it was called; and PATH with it."""
    directory = bed.shared / f"programs-{of}-{name}"
    directory.mkdir()
    program = directory / name
    program.write_text(f"#!/bin/bash\necho called >>{directory}/called\n{lines or PROGRAMS[name]}\n")
    program.chmod(0o755)
    directory.chmod(0o777)
    return directory, f"{directory}:{BUILD}/bin:/usr/bin:/bin:/usr/sbin"


@pytest.mark.parametrize("name", JOBS)
def test_job_of_a_scheduler_gets_its_nodes_and_launcher(bed, name):
    directory, path = programs(bed, name, "scheduler")
    job = node_job(bed, f"{STRIPED}\nssh n2 'hostname >'$DW_JOB_STRIPED/a; cat $DW_JOB_STRIPED/a", name=f"job-{name}")
    environment = dict(JOBS[name])
    if name == "pbs_tmrsh":
        job.path("nodes").write_text("n1\nn1\nn2\n")
        environment["PBS_NODEFILE"] = job.path("nodes")
    words = ["env", f"PATH={path}", "forebay", "run", "--no-deadline"]
    run = bed.popen("n1", [*words, "--engine", "ceph", job.path("job.sh")], "ada", job.folder, **environment)
    done = ended(run, check=False)
    assert done.returncode == 0 and done.stdout == "n2\n", done.stderr
    assert (directory / "called").exists()
    assert job.leftovers() == []


def test_instance_of_the_whole_system_is_no_job(bed):
    _, path = programs(bed, "flux", "system")
    job = node_job(bed, f"{STRIPED}\ntrue", name="system")
    words = ["env", f"PATH={path}", "forebay", "run", "--no-deadline", job.path("job.sh")]
    run = bed.popen("n1", words, "ada", job.folder, FLUX_URI="local:///x", FLUX_LEVEL=0)
    done = ended(run)
    assert "nodes" not in done.stderr, done.stderr


@pytest.mark.soak
@pytest.mark.parametrize("name", ["mpiexec", "flux"])
def test_launcher_is_selected_by_name(bed, name):
    directory, path = programs(bed, name, "selected")
    job = node_job(bed, f"{STRIPED}\ntrue", "--launcher", name, name=f"selected-{name}")
    job.run(PATH=path)
    assert (directory / "called").exists()
    assert job.leftovers() == []


@pytest.mark.soak
def test_node_outside_of_the_flux_instance_is_refused(bed):
    _, path = programs(bed, "flux", "outside", "printf 'n1\\nn3\\n'")
    job = node_job(bed, f"{STRIPED}\ntrue", "--launcher", "flux", name="outside")
    done = job.run(check=False, PATH=path)
    assert done.returncode != 0 and "n2 is no node of this Flux instance: n1, n3" in done.stderr, done.stderr
