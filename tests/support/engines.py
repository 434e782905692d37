"""What gives a test bed one directory on all its nodes, and what each may do otherwise than a plain directory.

One suite runs over all of ENGINES. A new engine is one entry: how it is mounted on a bed, and its deviations.
"""

import contextlib
import dataclasses
import functools
import os
import pathlib
import shlex
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence

from support.nodes import USERS, WAIT_S, VirtualNodes, ended
from support.waiting import wait_until

#: What tests ask for with `@pytest.mark.promise(NAME)`; everything else every engine keeps.
PROMISES = ("append", "cut", "locks", "rename", "shared_mmap", "times")


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
    mount: Callable[[VirtualNodes, str], contextlib.AbstractContextManager[pathlib.Path]]
    deviations: Mapping[str, Deviation] = dataclasses.field(default_factory=dict)
    #: The numbers of nodes that it is tried on, and those that only a soak run tries.
    counts: tuple[int, ...] = (2,)
    soak_counts: tuple[int, ...] = (1, 4)
    #: Programs of MPI have Forebay's library, which asks for lazy I/O.
    is_lazy: bool = False

    def __post_init__(self):
        assert set(self.deviations) <= set(PROMISES), self.deviations


@contextlib.contextmanager
def plain(bed: VirtualNodes, user: str) -> Iterator[pathlib.Path]:
    """A directory of the shared file system."""
    yield make_directory(bed.shared / "plain", user)


#: Of the namespaces. Tests leave files in them, and holes count.
CAPACITY = "192MiB"

JOB = """#!/bin/bash
#DW jobdw type=scratch access_mode=striped capacity={capacity}
echo "$DW_JOB_STRIPED" > {top}/mounted.part
mv {top}/mounted.part {top}/mounted
until [ -e {top}/end ]; do sleep 0.1; done
"""


@contextlib.contextmanager
def of_job(
    bed: VirtualNodes, user: str, *options: object, capacity: str = CAPACITY, name: str = "job"
) -> Iterator[pathlib.Path]:
    """The namespace of a job of `forebay run`, which lasts until the tests are done."""
    top = make_directory(bed.shared / name, user)
    script, answer = top / "job.sh", top / "mounted"
    script.write_text(JOB.format(top=shlex.quote(str(top)), capacity=capacity))
    run = bed.popen(bed.names[0], ["forebay", "run", *options, "--nodes", ",".join(bed.names), script], user)
    try:
        wait_until(lambda: answer.exists() or run.poll() is not None, WAIT_S, "the start of the job")
        assert answer.exists(), run.communicate()
        yield pathlib.Path(answer.read_text().strip())
        (top / "end").touch()
        ended(run)
    finally:
        if run.poll() is None:
            run.send_signal(signal.SIGINT)
            ended(run, check=False)


@contextlib.contextmanager
def ceph(bed: VirtualNodes, user: str, capacity: str = CAPACITY) -> Iterator[pathlib.Path]:
    """The mounts are those of `forebay __mount`."""
    with of_job(bed, user, "--engine", "ceph", capacity=capacity) as directory:
        yield directory


@contextlib.contextmanager
def ceph_two_servers(bed: VirtualNodes, user: str) -> Iterator[pathlib.Path]:
    """Two metadata servers share the directories."""
    options = ["--engine", "ceph", "--metadata-servers", 2]
    with of_job(bed, user, *options, name="job-of-two-servers") as directory:
        yield directory


def profile_of_client(bed: VirtualNodes, client: str) -> pathlib.Path:
    """A profile of Ceph whose mounts use this client."""
    profile = bed.shared / f"{client}.toml"
    profile.write_text(f'engine = "ceph"\nclient = "{client}"\n')
    return profile


@contextlib.contextmanager
def ceph_fuse(bed: VirtualNodes, user: str, capacity: str = CAPACITY) -> Iterator[pathlib.Path]:
    profile = profile_of_client(bed, "ceph-fuse")
    with of_job(bed, user, "--engine-profile", profile, capacity=capacity, name="job-of-ceph-fuse") as directory:
        yield directory


PROFILE = """engine = "command"
mount = "{site}/{{{{ user }}}}-{{{{ job }}}}"
[promise]
coherence = "strict"
atomic_append = true
locks = true
shared_mmap = true
[[start]]
on = "first"
command = "mkdir -m 700 {{{{ mount | quote }}}}"
[[stop]]
on = "first"
command = "rm -rf -- {{{{ mount | quote }}}}"
"""


@contextlib.contextmanager
def command(bed: VirtualNodes, user: str) -> Iterator[pathlib.Path]:
    """A directory of the shared file system, made by the commands of a profile."""
    profile = bed.shared / "site.toml"
    profile.write_text(PROFILE.format(site=make_directory(bed.shared / "site", user)))
    with of_job(bed, user, "--engine-profile", profile) as directory:
        yield directory


#: Measured; without them the engine would be refused or the tests be adapted.
CEPH_FUSE = {
    "append": Deviation("the client appends at the size that the kernel last saw", always=False),
    "cut": Deviation("zeros are read beyond the end of a file that was cut while a write was on its way", always=False),
    "rename": Deviation("a directory that another node moved cannot be renamed at once (ESTALE)", always=False),
    "shared_mmap": Deviation("without a page cache mmap with MAP_SHARED fails"),
    "times": Deviation("the client answers with times of directories that it knows", always=False),
}

ENGINES = {
    engine.name: engine
    for engine in [
        Engine("plain", plain),
        Engine("ceph", ceph, soak_counts=(4,)),
        Engine("ceph-lazy", ceph, counts=(), soak_counts=(2,), is_lazy=True),
        Engine("ceph-two-servers", ceph_two_servers, counts=(), soak_counts=(2,)),
        Engine("ceph-fuse", ceph_fuse, CEPH_FUSE, counts=(), soak_counts=(2,)),
        Engine("command", command, counts=(), soak_counts=(2, 4)),
    ]
}

#: Tests fill it.
SMALL = dataclasses.replace(ENGINES["ceph"], mount=functools.partial(ceph, capacity="64MiB"))


@dataclasses.dataclass(frozen=True)
class Namespace:
    """A directory of an engine on all nodes of a bed, used by an ordinary user."""

    bed: VirtualNodes
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
        if self.engine.is_lazy:
            library = self.bed.copied(self.bed.build / "lib" / "forebay" / "openmpi" / "libforebay_mpi.so")
            options |= {"options": ["-x", f"LD_PRELOAD={library}"], "FOREBAY_MPI_LAZY_IO": 1}
        return self.bed.mpirun(ranks, words, self.user, **options)


@contextlib.contextmanager
def namespace_of(bed: VirtualNodes, engine: Engine, user: str = "ada") -> Iterator[Namespace]:
    reference = make_directory(bed.top / f"reference-{engine.name}", user)
    with engine.mount(bed, user) as directory:
        yield Namespace(bed, engine, user, directory, reference)


@contextlib.contextmanager
def incoherent(bed: VirtualNodes, user: str) -> Iterator[pathlib.Path]:
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
