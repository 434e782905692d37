"""One Slurm with Forebay's burst buffers for all tests of this folder."""

import itertools

import pytest

from support.site_cluster import BIN, DAEMON, SiteBatch, SiteCluster
from support.slurm_cluster import NOBODY, started


@pytest.fixture(scope="session")
def slurm_site(build):
    with started(SiteCluster, build) as cluster:
        yield cluster


@pytest.fixture
def users(slurm_site, request):
    """Jobs of one ordinary user."""
    yield from made(slurm_site, NOBODY, request, "")


@pytest.fixture
def others(slurm_site, request):
    """Jobs of another one."""
    yield from made(slurm_site, DAEMON, request, "-other")


@pytest.fixture
def strangers(slurm_site, request):
    """Jobs of a third one."""
    yield from made(slurm_site, BIN, request, "-stranger")


NUMBERS = itertools.count(1)


def made(cluster, user, request, end):
    name = "".join(c if c.isalnum() else "-" for c in request.node.originalname)
    name = f"{name}-{next(NUMBERS)}{end}"
    batch = SiteBatch(cluster, user, name)
    yield batch
    batch.end()
