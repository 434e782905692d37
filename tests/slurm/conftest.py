"""One Slurm for all tests of this folder."""

import pytest

from support.slurm_batch import Batch
from support.slurm_cluster import NOBODY, Cluster, started


@pytest.fixture(scope="session")
def cluster(build):
    with started(Cluster, build) as cluster:
        yield cluster


@pytest.fixture(params=["nobody", "root"])
def batch(cluster, request):
    user = NOBODY if request.param == "nobody" else None
    yield from made(cluster, user, request)


@pytest.fixture
def users(cluster, request):
    """An ordinary user's jobs only: where it makes no difference who submits."""
    yield from made(cluster, NOBODY, request)


@pytest.fixture
def roots(cluster, request):
    """Root's jobs only."""
    yield from made(cluster, None, request)


def made(cluster, user, request):
    name = "".join(c if c.isalnum() else "-" for c in request.node.name)
    batch = Batch(cluster, user, name)
    yield batch
    batch.end()
