"""What gives a test bed one directory on all its nodes, and what each may do otherwise than a plain directory.

One suite runs over all of ENGINES. A new engine is one entry: how it is mounted on a bed, and its deviations.
"""

import contextlib
import dataclasses
import os
import pathlib
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence

from support.nodes import USERS, Bed

#: What tests ask for with `@pytest.mark.promise(NAME)`; everything else every engine keeps.
PROMISES = ("append", "locks", "rename", "shared_mmap")


@dataclasses.dataclass(frozen=True)
class Deviation:
    """A promise that an engine does not keep."""

    reason: str
    #: The tests of the promise fail every time; if not, some of the time.
    always: bool = True


@dataclasses.dataclass(frozen=True)
class Engine:
    name: str
    #: mount(bed, user) is a context manager: the directory, the same path on every node, owned by the user.
    mount: Callable[[Bed, str], contextlib.AbstractContextManager[pathlib.Path]]
    deviations: Mapping[str, Deviation] = dataclasses.field(default_factory=dict)

    def __post_init__(self):
        assert set(self.deviations) <= set(PROMISES), self.deviations


@contextlib.contextmanager
def plain(bed: Bed, user: str) -> Iterator[pathlib.Path]:
    """A directory of the shared file system."""
    yield make_directory(bed.shared / "plain", user)


ENGINES = {engine.name: engine for engine in [Engine("plain", plain)]}


@dataclasses.dataclass(frozen=True)
class Namespace:
    """A directory of an engine on all nodes of a bed, used by an ordinary user."""

    bed: Bed
    engine: Engine
    user: str
    directory: pathlib.Path
    #: A plain directory, visible on all nodes, for results to be compared with.
    reference: pathlib.Path

    @property
    def nodes(self) -> tuple[str, ...]:
        return self.bed.names

    @property
    def ranks(self) -> int:
        """Of an MPI program: one on each node, at least two."""
        return max(2, len(self.nodes))

    def other(self, node: str) -> str:
        """The next node; the same one where there is no other."""
        return self.nodes[(self.nodes.index(node) + 1) % len(self.nodes)]

    def popen(self, node: str, words: Sequence[object], **options):
        return self.bed.popen(node, words, self.user, **options)

    def run(self, node: str, words: Sequence[object], **options) -> subprocess.CompletedProcess:
        return self.bed.run(node, words, self.user, **options)

    def make_directory(self, name: str) -> pathlib.Path:
        """A new one in the namespace, made on the first node."""
        self.run(self.nodes[0], ["mkdir", self.directory / name])
        return self.directory / name

    def mpirun(self, ranks: int, words: Sequence[object], **options) -> subprocess.CompletedProcess:
        return self.bed.mpirun(ranks, words, self.user, **options)


@contextlib.contextmanager
def namespace_of(bed: Bed, engine: Engine, user: str = "ada") -> Iterator[Namespace]:
    reference = make_directory(bed.top / f"reference-{engine.name}", user)
    with engine.mount(bed, user) as directory:
        yield Namespace(bed, engine, user, directory, reference)


@contextlib.contextmanager
def incoherent(bed: Bed, user: str) -> Iterator[pathlib.Path]:
    """A shared directory that the last node sees through a cache which nobody invalidates: no engine, but what the
    checks must find out."""
    directory = make_directory(bed.shared / "incoherent", user)
    keep = "kernel_cache,attr_timeout=3600,entry_timeout=3600,negative_timeout=3600"
    node = bed.names[-1]
    bed.run(node, ["bindfs", "-o", keep, "--enable-lock-forwarding", "--multithreaded", directory, directory])
    try:
        yield directory
    finally:
        bed.run(node, ["umount", "--lazy", directory])


def make_directory(path: pathlib.Path, user: str) -> pathlib.Path:
    path.mkdir()
    os.chown(path, USERS[user], USERS[user])
    return path
