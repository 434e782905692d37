"""`forebay __ceph` acts on a real Ceph cluster, and ends with an error where there is none."""

import json
import shutil
import signal
import subprocess

import pytest

from support.ceph import Ceph, keyring, secret

POOL = {"monitor": {"prefix": "osd pool get", "pool": "missing", "var": "size"}}
HEALTH = {"monitor": {"prefix": "health", "format": "json"}}
DIRECTORY = {"make_directory": {"path": "/allocation", "mode": 0o700, "uid": 65534, "gid": 65534}}


def attribute(name):
    return {"attribute": {"path": "/allocation", "name": name}}


def change(name, value):
    return {"set_attribute": {"path": "/allocation", "name": name, "value": value}}


@pytest.fixture(scope="module")
def ceph_cluster(build, tmp_path_factory):
    cluster = Ceph(build / "bin" / "forebay", tmp_path_factory.mktemp("ceph") / "n")
    try:
        cluster.created = cluster.start()
        yield cluster
    finally:
        cluster.stop()


def lines(done):
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_each_action_is_one_line_with_its_answer(ceph_cluster):
    assert [one["action"] for one in ceph_cluster.created] == [0, 1, 2, 3]
    assert ceph_cluster.created[0]["output"] == 0  # the id of the first storage daemon
    assert lines(ceph_cluster.act(HEALTH))[0]["output"]["status"].startswith("HEALTH_")


def test_directory_has_its_quota_and_layout(ceph_cluster):
    quota, count = "ceph.quota.max_bytes", "ceph.dir.layout.stripe_count"
    done = ceph_cluster.act(
        DIRECTORY, change(quota, "1000000"), change(count, "2"), attribute(quota), attribute("ceph.dir.layout")
    )
    *_, bytes_max, layout = lines(done)
    assert bytes_max["output"] == 1000000 and "stripe_count=2" in layout["output"]
    # A directory that exists is no error.
    assert len(lines(ceph_cluster.act(DIRECTORY, attribute("ceph.dir.rbytes")))) == 2


def test_commands_at_once_answer_in_their_order(ceph_cluster):
    names = ["meta", "data"] * 20
    commands = [{"prefix": "osd pool get", "pool": name, "var": "size", "format": "json"} for name in names]
    (line,) = lines(ceph_cluster.act({"monitor_at_once": commands}))
    assert [answer["pool"] for answer in line["output"]] == names


def test_accepted_error_is_success_and_any_other_ends_the_actions(ceph_cluster):
    first, second = lines(ceph_cluster.act(POOL | {"accept": ["ENOENT"]}, HEALTH))
    assert first["accepted"] == "ENOENT" and "accepted" not in second
    done = ceph_cluster.act(HEALTH, POOL, HEALTH)
    assert done.returncode == 1 and len(done.stdout.splitlines()) == 1
    assert 'error: the monitor refused "osd pool get": ENOENT' in done.stderr


def test_wait_that_is_too_long_says_what_it_saw(ceph_cluster):
    storage = {"wait_for_storage": {"daemons": 99}, "s_max": 3}
    done = ceph_cluster.act(storage)
    assert done.returncode == 1 and "within 3 s; last seen: 1 up" in done.stderr
    servers = {"wait_for_metadata_servers": {"file_system": "x", "active": 1, "standby": 1}, "s_max": 3}
    done = ceph_cluster.act(servers)
    assert done.returncode == 1 and "last seen: 1 active, 0 standby" in done.stderr


def test_key_of_another_cluster_is_refused(ceph_cluster, tmp_path):
    wrong = tmp_path / "keyring"
    wrong.write_text(keyring(ceph_cluster.keys | {"client.admin": secret()}))
    for action in (HEALTH, DIRECTORY):
        done = ceph_cluster.act(action, keyring=str(wrong))
        assert done.returncode == 1 and not done.stdout
        assert "as client.admin" in done.stderr and "EACCES" in done.stderr
        assert "hint: the key in the keyring is not the cluster's key" in done.stderr


def test_key_of_a_job_is_limited_to_its_directory(ceph_cluster):
    done = ceph_cluster.act(HEALTH | {"monitor": {"prefix": "auth ls"}}, name="client.job")
    assert done.returncode == 1 and "EACCES" in done.stderr and "hint: use a key" in done.stderr
    done = ceph_cluster.act(change("ceph.quota.max_bytes", "1"), name="client.job")
    assert done.returncode == 1 and "cannot connect to the file system" in done.stderr


@pytest.mark.parametrize("action", [HEALTH, DIRECTORY])
def test_dead_monitor_is_an_error_within_the_limit(ceph_cluster, tmp_path, action):
    config = tmp_path / "ceph.conf"
    config.write_text(ceph_cluster.config.read_text().replace(":3300]", ":3301]"))
    done = ceph_cluster.act(action, config=str(config), connect_s_max=1)
    assert done.returncode == 1 and "(limit 1 s): ETIMEDOUT" in done.stderr
    assert f'"mon host" in {config}' in done.stderr


@pytest.mark.soak
@pytest.mark.parametrize("action", [HEALTH, DIRECTORY])
def test_stopped_monitor_is_an_error_within_the_limit(ceph_cluster, action):
    monitor = ceph_cluster.daemons["ceph-mon"]
    monitor.send_signal(signal.SIGSTOP)
    try:
        done = ceph_cluster.act(action, connect_s_max=1)
    finally:
        monitor.send_signal(signal.SIGCONT)
    assert done.returncode == 1 and "ETIMEDOUT" in done.stderr
    assert lines(ceph_cluster.act(HEALTH))


def test_stopped_metadata_server_is_an_error_within_the_limit(ceph_cluster):
    server = ceph_cluster.daemons["ceph-mds"]
    server.send_signal(signal.SIGSTOP)
    try:
        done = ceph_cluster.act(HEALTH, DIRECTORY, connect_s_max=4)
    finally:
        server.send_signal(signal.SIGCONT)
    assert done.returncode == 1 and len(done.stdout.splitlines()) == 1
    # The library's own limit, or that of the command where a call of the library does not return.
    ends = ("cannot connect to the file system", "the connection to the metadata server did not complete within")
    assert any(end in done.stderr for end in ends), done.stderr
    assert lines(ceph_cluster.act(DIRECTORY))


def test_signal_ends_it_at_once(ceph_cluster):
    path = ceph_cluster.file({"wait_for_storage": {"daemons": 99}, "s_max": 600})
    process = subprocess.Popen([ceph_cluster.program, "__ceph", path])
    ceph_cluster.wait_for_connection(process)
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == -signal.SIGTERM


@pytest.fixture
def unconnected(build, tmp_path):
    """Files as of a cluster that was never started."""
    return Ceph(build / "bin" / "forebay", tmp_path / "n")


@pytest.mark.parametrize(("action", "library"), [(HEALTH, "librados"), (DIRECTORY, "libcephfs")])
def test_missing_library_is_named_with_its_package(unconnected, tmp_path, action, library):
    done = unconnected.act(action, library_directory=str(tmp_path))
    assert done.returncode == 1 and f"cannot load {tmp_path}/{library}.so.2" in done.stderr
    assert f"hint: install the package {library}2" in done.stderr


def test_library_without_the_functions_is_refused(unconnected, build, tmp_path):
    shutil.copy(build / "lib" / "libdatawarp.so", tmp_path / "librados.so.2")
    done = unconnected.act(HEALTH, library_directory=str(tmp_path))
    assert done.returncode == 1 and "it has no function rados_create2" in done.stderr


@pytest.mark.parametrize(
    ("action", "error"),
    [
        ({"wait_for_storage": {"daemons": 1}, "acept": []}, "is not a list of actions"),
        ({"destroy": {}}, "unknown variant `destroy`"),
    ],
)
def test_unknown_action_is_refused(unconnected, action, error):
    done = unconnected.act(action)
    assert done.returncode == 1 and error in done.stderr and not done.stdout


def test_missing_configuration_is_named(unconnected):
    done = unconnected.act(HEALTH, config="/no/such/ceph.conf")
    assert done.returncode == 1 and "/no/such/ceph.conf" in done.stderr and "ENOENT" in done.stderr
