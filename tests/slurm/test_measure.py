"""`forebay plan machine measure` in an allocation: its processes are steps on the nodes of the job."""

import tomllib

MEASURE = "forebay plan machine measure storage --size 8MiB --processes 2 --nodes n1,n2"


def test_nodes_of_the_job_measure_at_once(roots):
    roots.script(f"mkdir storage\n{MEASURE} --launcher 'srun -N1 -n1 -w'")
    job = roots.submit("--nodelist=n1,n2", "--ntasks-per-node=2")
    assert roots.wait(job) == "COMPLETED", roots.stderr_text()
    tables = tomllib.loads(roots.stdout_text())
    assert tables["compute"]["nodes"]["value"] == 2
    assert "measured on n1" in tables["compute"]["node_bandwidth"]["source"]
    assert list((roots.directory / "storage").iterdir()) == []
