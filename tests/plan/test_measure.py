"""`forebay plan machine measure`: the file is sound, nothing is left, and what is wrong is named."""

import shlex
import signal
import tomllib

import pytest

from forebay.plan.errors import PlanError
from forebay.plan.machine import read_machine
from forebay.plan.measure import Request, measure as run_measure
from support.job import Job
from support.waiting import wait_until

SMALL = "--size", "8MiB", "--processes", "2"


@pytest.fixture
def job_class():
    """The program itself."""
    return Job


def measure(job, *words):
    return job.command("plan", "machine", "measure", *words)


@pytest.fixture
def place(job):
    folder = job.directory / "storage"
    folder.mkdir()
    return folder


def test_measured_file_is_a_machine_to_plan_for(job, place):
    done = measure(job, "storage", *SMALL, "--output", "mine.toml", "--name", "mine")
    assert done.returncode == 0 and "machine file: mine.toml" in done.stderr
    machine = read_machine(job.directory / "mine.toml")
    storage = machine.storage["measured"]
    assert machine.name == "mine" and storage.kind == "directory" and storage.servers == 1
    assert storage.server_write_bytes_per_s > 1e6 and storage.request_s > 0 and storage.operation_s > 0
    assert list(place.iterdir()) == []
    words = "--access", "file-per-process", "--size", "64MB", "--ranks", "2", "--nodes", "1"
    assert job.command("plan", "--machine", "mine.toml", *words).returncode == 0


@pytest.mark.soak
def test_sources_name_command_host_and_range(job, place):
    tables = tomllib.loads(measure(job, "storage", *SMALL).stdout)
    source = tables["storage"]["measured"]["write_bandwidth"]["source"]
    assert "forebay plan machine measure storage --size 8MiB" in source and "in 3 runs" in source


def launcher(job, body='exec "$@"'):
    """Starts a command in place of a node."""
    path = job.directory / "there"
    path.write_text(f'#!/bin/sh\necho "$1" >> nodes\nshift\n{body}\n')
    path.chmod(0o755)
    return shlex.quote(str(path))


@pytest.mark.soak
def test_several_nodes_measure_at_once(job, place):
    words = "--nodes", "n[1-2]", "--launcher", launcher(job)
    tables = tomllib.loads(measure(job, "storage", *SMALL, *words).stdout)
    assert sorted((job.directory / "nodes").read_text().split()) == ["n1", "n1", "n2", "n2"]
    assert tables["compute"]["nodes"]["value"] == 2 and "node_bandwidth" in tables["compute"]
    assert list(place.iterdir()) == []


def test_node_that_is_named_twice_is_refused(job, place):
    done = measure(job, "storage", *SMALL, "--nodes", "n1,n2,n1", "--launcher", launcher(job))
    assert done.returncode == 1 and "n1 is in --nodes more than once" in done.stderr
    assert not (job.directory / "nodes").exists() and list(place.iterdir()) == []


@pytest.mark.parametrize(
    ("nodes", "named"),
    [(",", "',' names no node"), ("n[1-", "'n[1-' is no list of nodes: write for example n[1-16,20]")],
)
def test_nodes_without_a_name_are_refused(job, place, nodes, named):
    done = measure(job, "storage", *SMALL, "--nodes", nodes)
    assert done.returncode != 0 and named in done.stderr and list(place.iterdir()) == []


def test_process_that_does_not_begin_ends_the_measurement(place, monkeypatch):
    monkeypatch.setattr("forebay.plan.measure.START_S_MAX", 0.2)
    asked = Request(
        directory=place, processes=1, bytes_per_process=8 << 20, nodes=("n1",), launcher="sh -c 'exec sleep 1000'"
    )
    with pytest.raises(PlanError, match="n1: the measuring process has not begun"):
        run_measure(asked)
    assert list(place.iterdir()) == []


@pytest.mark.soak
def test_parallel_file_system_takes_its_servers_from_lfs(job, place):
    tools = job.directory / "tools"
    tools.mkdir()
    (tools / "lfs").write_text(
        '#!/bin/sh\nprintf "OBDS:\\n0: a_UUID ACTIVE\\n1: b_UUID ACTIVE\\n12: c_UUID ACTIVE\\n"\n'
    )
    (tools / "lfs").chmod(0o755)
    job.settings["PATH"] = f"{tools}:{job.environment()['PATH']}"
    tables = tomllib.loads(measure(job, "storage", *SMALL, "--kind", "lustre").stdout)
    found = tables["storage"]["measured"]
    assert found["kind"] == "lustre" and found["servers"]["value"] == 3
    assert "lower bound" in found["write_bandwidth"]["source"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_interrupted_measurement_leaves_nothing(job, place, number):
    process = job.forebay_starts("plan", "machine", "measure", "storage", "--size", "64MiB")
    wait_until(lambda: any(place.glob("*/*.data")), what="the first file", process=process)
    process.send_signal(number)
    process.communicate(timeout=120)
    assert process.returncode != 0
    wait_until(lambda: list(place.iterdir()) == [], what="the directory to be removed")


@pytest.mark.soak
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["missing", *SMALL], ["missing", "existing directory"]),
        (["storage", "--size", "1MiB"], ["1.05 MB", "8.39 MB"]),
        (["storage", "--size", "8MiB", "--processes", "0"], ["0 processes"]),
        (["storage", "--size", "900TB"], ["are free", "smaller --size"]),
        (["storage", *SMALL, "--kind", "spectrum-scale"], ["number of servers", "--servers"]),
        (["storage", *SMALL, "--nodes", "n1", "--launcher", "/no/launcher"], ["/no/launcher", "--launcher"]),
        (["storage", *SMALL, "--nodes", "n1", "--launcher", " "], ["--launcher is empty"]),
        (["storage", *SMALL, "--output", "storage"], ["it exists"]),
    ],
)
def test_wrong_request_is_refused_with_the_remedy(job, place, words, said):
    done = measure(job, *words)
    assert done.returncode == 1 and not done.stdout
    for word in said:
        assert word in done.stderr, done.stderr
    assert "\nhint: " in done.stderr and "Traceback" not in done.stderr and list(place.iterdir()) == []


def test_node_that_fails_is_named_and_nothing_is_left(job, place):
    done = measure(job, "storage", *SMALL, "--nodes", "n7", "--launcher", launcher(job, "echo broken >&2; exit 3"))
    assert done.returncode == 1 and "n7: the measuring process ended: broken" in done.stderr
    assert list(place.iterdir()) == []
