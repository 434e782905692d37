"""Stripes of large files that are staged out to Lustre."""

import json
import os
import pathlib
import signal
import subprocess

import pytest

from support.job import DW

LUSTRE = pathlib.Path(__file__).resolve().parents[2] / "machines" / "lustre-small.toml"
STRIPE = 4 << 20
GIB = 1 << 30
ROOMY = DW.replace("64MiB", "512MiB")
STAGE_OUT = "#DW stage_out type=directory source=$DW_JOB_STRIPED/out destination=%d/data/out"
# From 1 GiB on, mostly a hole; the data begin and end where no stripe does. A large one that is smaller; a small one.
WRITE = """mkdir $DW_JOB_STRIPED/out; python3 - $DW_JOB_STRIPED/out <<'END'
import sys
def write(name, size, *data):
    with open(f'{sys.argv[1]}/{name}', 'wb') as file:
        file.truncate(size)
        for at, length in data:
            file.seek(at)
            file.write(b'x' * length)
write('huge', (1 << 30) + 13, ((5 << 20) + 4096, 6 << 20), (1 << 30, 13))
write('large', 65 << 20, (0, 4096))
write('small', 4096, (0, 4096))
END
"""


@pytest.fixture
def data(job) -> pathlib.Path:
    directory = job.directory / "data"
    directory.mkdir()
    return directory


def staged_out(job, data):
    job.script(WRITE, ROOMY, STAGE_OUT)
    done = job.run("--json", "--pfs-model", str(LUSTRE), "--pfs-root", str(data))
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), done.stderr


def layout(path: pathlib.Path) -> tuple[int, int]:
    """Number of stripes, and bytes of one."""
    text = os.getxattr(path, "user.forebay.pfs.layout").decode()
    fields = dict(field.split("=") for field in text.split()[1:])
    return int(fields["count"]), int(fields["size"])


def test_large_file_is_striped_by_its_size_and_written_in_stripe_units(job, data):
    account, said = staged_out(job, data)
    out = data / "out"
    assert layout(out / "huge") == (4, STRIPE)
    assert layout(out / "large") == layout(out / "small") == (1, 1 << 20), "smaller ones have their directory's"
    assert out.joinpath("huge").stat().st_size == GIB + 13
    assert "stripes" not in said, "nothing to be noted"
    targets = account["emulated"]["counters"]["targets"]
    # Two requests for what reaches over one border of a stripe, one for the tail, one each for the other files.
    assert sum(target["requests"] for target in targets) == 5
    assert sum(target["bytes"] for target in targets) == (6 << 20) + 13 + 2 * 4096


def test_striping_of_the_directory_is_kept(job, data):
    (data / "out").mkdir()
    job.script("lfs setstripe -c 2 -S 1M data/out")
    assert job.run("--pfs-model", str(LUSTRE), "--pfs-root", str(data)).returncode == 0
    staged_out(job, data)
    assert layout(data / "out" / "huge") == layout(data / "out" / "small") == (2, 1 << 20)


def test_stage_command_in_a_job_sets_stripes_like_the_job_itself(job, data):
    job.script(f"{WRITE} forebay stage out $DW_JOB_STRIPED/out data/out", ROOMY)
    done = job.run(
        "--pfs-model", str(LUSTRE), "--pfs-root", str(data), PATH=f"{job.forebay.parent}:{os.environ['PATH']}"
    )
    assert done.returncode == 0, done.stderr
    assert layout(data / "out" / "huge") == (4, STRIPE)


def test_striping_failure_is_noted_and_the_file_arrives(job, data):
    if os.geteuid() != 0:
        pytest.skip("only root mounts a file system without extended attributes")
    subprocess.run(["mount", "-t", "ramfs", "none", data], check=True)
    try:
        account, said = staged_out(job, data)
        assert (data / "out" / "huge").stat().st_size == GIB + 13
        notes = [note for note in account["stage_out"]["notes"] if "stripes could not be set" in note[0]]
        assert [count for _, count in notes] == [1], account
        assert "lfs setstripe refuses" in notes[0][0]
    finally:
        subprocess.run(["umount", data], check=True)


def test_ctrl_c_does_not_wait_for_lfs(job):
    (job.directory / "in").mkdir()
    with open(job.directory / "in" / "huge", "wb") as file:
        file.truncate(GIB)
    state, told = job.directory / "pfs", job.directory / "calls"
    state.touch()
    # lfs alone opens this, and is stopped there.
    command = [
        "strace",
        "-D",
        "-f",
        "-qq",
        "-o",
        told,
        "-P",
        state,
        "-e",
        "trace=openat",
        "-e",
        "inject=openat:signal=STOP",
    ]
    process = subprocess.Popen(
        [*command, job.forebay, "stage", "out", "in", "out"],
        cwd=job.directory,
        env=job.environment(FOREBAY_PFS_STATE=str(state)),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    is_held = lambda: told.exists() and "stopped by SIGSTOP" in told.read_text()
    status, said = job.stop_when(process, is_held, signal.SIGINT)
    assert status == 123 and "staging was stopped" in said, said
    assert "stripes" not in said, "nobody was waited for"
    assert list((job.directory / "out").iterdir()) == []
