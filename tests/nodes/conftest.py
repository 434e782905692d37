"""One directory on all nodes of a test bed, for each engine and number of nodes."""

import pytest

from support.engines import ENGINES, Engine, PROMISES, incoherent, namespace_of
from support.mpi import Mpi, PROJECT
from support.node_programs import program_on_each
from support.nodes import missing, nodes
from support.strace import EVERY_POINT


@pytest.fixture(scope="session", autouse=True)
def can_make_nodes():
    why = missing()
    if why:
        pytest.skip(why)


CASES = [
    pytest.param((engine.name, count), id=f"{engine.name}-{count}")
    for engine in ENGINES.values()
    for count in engine.counts + (engine.soak_counts if EVERY_POINT else ())
]


@pytest.fixture(scope="session", params=CASES)
def engine_namespace(build, request):
    """Of all tests; each uses names of its own in it."""
    name, count = request.param
    with nodes(count, build) as bed, namespace_of(bed, ENGINES[name]) as namespace:
        yield namespace


@pytest.fixture
def namespace(engine_namespace, request):
    """The namespace of an engine. A test of a promise that the engine does not keep is expected to fail."""
    for marker in request.node.iter_markers("promise"):
        (promise,) = marker.args
        assert promise in PROMISES, promise
        deviation = engine_namespace.engine.deviations.get(promise)
        if deviation:
            request.applymarker(pytest.mark.xfail(reason=deviation.reason, strict=deviation.always))
    return engine_namespace


@pytest.fixture
def incoherent_namespace(build):
    """Two nodes, of which n2 sees what it once saw."""
    with nodes(2, build) as bed, namespace_of(bed, Engine("incoherent", incoherent)) as namespace:
        yield namespace


@pytest.fixture
def programs(two):
    """A program on each node of a module's namespace `two`, that makes calls as the test says."""
    with program_on_each(two) as started:
        yield started


@pytest.fixture(scope="session")
def exchange(build):
    """The program exchange, compiled once."""
    return Mpi("openmpi", build).compiled("exchange", PROJECT / "tests" / "programs" / "nodes" / "exchange.c")
