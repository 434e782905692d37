"""What all tests share: the build under test, and a job in a directory of its own."""

import gc
import os
import pathlib
import signal
import sys
import tempfile

import pytest

from support.isolation import WITHOUT_CONFIGURATION, WITHOUT_DEVICES
from support.job import Job
from support.strace import EVERY_POINT


# What is collected stays: looking for garbage in it would take a quarter of the time.
gc.disable()

os.environ.update(WITHOUT_CONFIGURATION | WITHOUT_DEVICES)
# Python itself is `python3` of the jobs, and not a script of a version manager, which takes five times as long to start.
INTERPRETERS = f"{sys.base_prefix}/bin"
if INTERPRETERS not in os.get_exec_path():
    os.environ["PATH"] = f"{INTERPRETERS}:{os.environ['PATH']}"

# A shell starts what it runs in the background with these ignored, and so would be all we start.
for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
    signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)


# Fixtures that are expensive to make: one worker runs all tests of a module that has them.
OF_A_MODULE = {
    "lua_site", "secret_site", "storage_site",
    "browser", "btio", "ceph_bundle", "ceph_cluster", "duration_s", "environment", "ran", "recorded_runs", "site",
    "statistics", "two", "four",
}  # fmt: skip

# The tests of sites take three of them, so that none takes longer than all other tests.
SITES = {"test_onnode": 2, "test_owners_processes": 2, "test_engine_pool": 3}


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(config, items):
    # Before pytest-xdist reads the groups.
    for item in items:
        names = set(item.fixturenames)
        if "cluster" in names:
            item.add_marker(pytest.mark.xdist_group("slurm"))
        elif "slurm_site" in names:
            item.add_marker(pytest.mark.xdist_group(f"slurm-site-{SITES.get(item.path.stem, 1)}"))
        elif "engine_namespace" in names:
            item.add_marker(
                pytest.mark.xdist_group("namespace-{}-{}".format(*item.callspec.params["engine_namespace"]))
            )
        elif OF_A_MODULE & names:
            item.add_marker(pytest.mark.xdist_group(item.path.stem))
    yield
    is_named = any("::" in word for word in config.args)
    if not (EVERY_POINT or is_named or "soak" in config.option.markexpr):
        left_out = [item for item in items if item.get_closest_marker("soak")]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]
    grouped = [item for item in items if item.get_closest_marker("xdist_group")]
    assert not getattr(config.option, "loadgroup", False) or all("@" in item.nodeid for item in grouped)
    # After the shuffle: the longest begin first, so that no worker has one left when the others are done.
    items.sort(key=lambda item: item.get_closest_marker("long") is None)


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop():
    gc.freeze()
    gc.enable()


#: Their servers take processor time while nobody uses them.
SERVERS = {"cluster", "engine_namespace", "slurm_site"}


def group_of(item) -> str | None:
    """Of pytest-xdist: one worker runs the tests of a group, one after the other."""
    marker = item.get_closest_marker("xdist_group")
    return marker and marker.args[0]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item, nextitem):
    """Ends the servers after the last test of their group; they would go on until the last of all tests."""
    try:
        return (yield)
    finally:
        if nextitem is not None and group_of(nextitem) != group_of(item):
            for name in SERVERS & set(item.fixturenames):
                item.session._fixturemanager.getfixturedefs(name, item)[-1].finish(item._request)


@pytest.fixture(scope="session")
def build() -> pathlib.Path:
    """The folder that `make build` filled."""
    return pathlib.Path(os.environ["FOREBAY_BUILD"])


@pytest.fixture
def job_class():
    """A module may have another kind of job."""
    return Job


@pytest.fixture
def parent_of_jobs() -> str | None:
    """Where jobs have their folders; None: where temporary files are, which may be in memory."""
    return None


def may_have_left(job: Job) -> bool:
    try:
        return bool(job.leftovers() or job.allocations())
    except OSError:  # the test has put something else in the place of a directory
        return True


@pytest.fixture
def job(build, job_class, parent_of_jobs):
    # pytest's own folders are closed to other users, and some jobs are another user's.
    with tempfile.TemporaryDirectory(prefix="forebay-test-", dir=parent_of_jobs) as scratch:
        os.chmod(scratch, 0o711)
        job = job_class(build / "bin" / "forebay", pathlib.Path(scratch))
        yield job
        if may_have_left(job):
            job.command("clean", "--discard", "--kill")
        assert job.keepers() == []


@pytest.fixture(params=["root", "nobody"])
def memory(job, request):
    """A job in the default store: root has a mount namespace, an ordinary user a user namespace too."""
    if os.getuid() != 0:
        pytest.skip("only root can be both")
    job.in_memory()
    if request.param == "nobody":
        job.as_nobody()
    return job
