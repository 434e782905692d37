"""Jobs of the superuser and of an ordinary user, in directories that both can reach."""

import contextlib
import os
import pathlib
import shutil
import subprocess
import tempfile

import pytest

from support.job import Job, finished
from support.waiting import wait_until

PROJECT = pathlib.Path(__file__).resolve().parents[2]
SCRIPTS = PROJECT / "examples" / "scripts"
PFS = "pfs dir"


@contextlib.contextmanager
def reachable(build):
    """A job whose directories, program included, every user can reach; it leaves nothing."""
    top = pathlib.Path(tempfile.mkdtemp(prefix="forebay-test-"))
    try:
        top.chmod(0o755)
        yield Job(reachable_program(build, top), top)
    finally:
        shutil.rmtree(top)


def reachable_program(build, top):
    """The build itself if an ordinary user can reach it, else a copy."""
    program = (build / "bin" / "forebay").resolve()
    if all(parent.stat().st_mode & 0o001 for parent in program.parents):
        return program
    return pathlib.Path(shutil.copy(program, top / "forebay"))


@pytest.fixture(params=["root", "nobody"])
def anyone(build, request):
    """The same job as whoever runs the tests, and as an ordinary user."""
    with reachable(build) as job:
        if request.param == "nobody":
            if os.getuid() != 0:
                pytest.skip("only root can become another user")
            job.as_nobody()
        job.top = job.directory.parent
        job.pfs = make(job, job.top / PFS)
        before = names_outside()
        yield job
        assert names_outside() == before


FOREIGN = """
#include <unistd.h>
int main(void) { return setuid(0) || execl("/bin/sleep", "sleep", "600", (char *)0); }
"""


def another_users_program(top):
    """It sleeps as root, whoever starts it, so an ordinary user cannot end it; only root can make it."""
    program = top / "foreign"
    subprocess.run(["cc", "-x", "c", "-o", program, "-"], input=FOREIGN, text=True, check=True)
    program.chmod(0o4755)
    return program


def names_outside():
    """Names that views of these tests show, as far as the machine itself has them: a view never makes one there."""
    return [path for path in ("/gpfs-of-tests", "/mnt/bb", "/mnt/forebay") if os.path.exists(path)]


def make(job, path, **files):
    """A directory of the job's user with these files."""
    missing = [parent for parent in [path, *path.parents] if not parent.exists()]
    path.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (path / name.replace("__", ".")).write_text(text)
    if job.user is not None:
        for made in [*missing, *path.iterdir()]:
            os.chown(made, job.user, job.user)
    return path


def started(job, process):
    """Waits until the job's script has made the file `running`."""
    wait_until((job.directory / "running").exists, process=process)


root_only = pytest.mark.skipif(os.getuid() != 0, reason="only root can become other users")


def starts_as(job: Job, user: int, *words: str, groups: tuple[int, ...] = ()):
    """Starts a command of forebay as some user, with a state directory of his own."""
    state = job.temporary / f"state-{user}"
    if not state.exists():
        state.mkdir()
        os.chown(state, user, user)
    return subprocess.Popen(
        [job.forebay, *words],
        cwd=job.directory,
        env=job.environment(FOREBAY_STATE=str(state), USER=f"user{user}"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        user=user,
        group=user,
        extra_groups=list(groups),
        umask=0o077,
    )


def as_user(job: Job, user: int, *words: str, groups: tuple[int, ...] = ()):
    return finished(starts_as(job, user, *words, groups=groups))
