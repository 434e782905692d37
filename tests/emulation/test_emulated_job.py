"""A job on the emulated parallel file system."""

import json
import pathlib
import subprocess

import pytest

from support.job import DW
from support.slow_model import MODEL

PROJECT = pathlib.Path(__file__).resolve().parents[2]
LUSTRE = PROJECT / "machines" / "lustre-small.toml"
STAGE_IN = "#DW stage_in type=directory source=%d/data/in destination=$DW_JOB_STRIPED/in"
STAGE_OUT = "#DW stage_out type=directory source=$DW_JOB_STRIPED/out destination=%d/data/out"


@pytest.fixture
def data(job) -> pathlib.Path:
    """The emulated part of the submit directory; the script itself lies outside."""
    directory = job.directory / "data"
    (directory / "in" / "deep").mkdir(parents=True)
    return directory


def emulated(job, data, *options):
    done = job.run("--json", "--pfs-model", str(LUSTRE), "--pfs-root", str(data), *options)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), done.stderr


def test_staging_is_delayed_by_exactly_the_bytes_copied(job, data):
    sizes = {"a": 5_000_000, "deep/b": 3, "deep/empty": 0, "c": (4 << 20) + 1}
    for name, size in sizes.items():
        (data / "in" / name).write_bytes(b"x" * size)
    job.script("cp -r $DW_JOB_STRIPED/in $DW_JOB_STRIPED/out", DW, STAGE_IN, STAGE_OUT)
    account, said = emulated(job, data)
    counters = account["emulated"]["counters"]
    total = sum(sizes.values())
    assert account["stage_in"]["bytes"] == account["stage_out"]["bytes"] == total
    assert (counters["bytes_read"], counters["bytes_written"]) == (total, total)
    assert counters["slept_ns"] > 0 and counters["metadata_ops"] > 0
    assert "the parallel file system is emulated: lustre-small" in said
    for name, size in sizes.items():
        assert (data / "out" / name).read_bytes() == b"x" * size


def test_burst_buffer_is_not_delayed(job, data):
    job.script("dd if=/dev/zero of=$DW_JOB_STRIPED/x bs=1M count=8 2>/dev/null; cat $DW_JOB_STRIPED/x | wc -c", DW)
    account, _ = emulated(job, data)
    counters = account["emulated"]["counters"]
    assert (counters["bytes_read"], counters["bytes_written"]) == (0, 0)


def test_lfs_sets_layouts_for_new_files(job, data):
    job.script(
        "set -e; cd data; mkdir one many; lfs setstripe -c 1 one; lfs setstripe -c 8 -S 2M many; mkdir many/sub\n"
        "for d in one many/sub; do dd if=/dev/zero of=$d/f bs=1M count=16 2>/dev/null; done\n"
        "lfs getstripe -c one/f; lfs getstripe -c many/sub/f; lfs getstripe -S many/sub/f; lfs getstripe many/sub/f >&2"
    )
    done = job.run("--pfs-model", str(LUSTRE), "--pfs-root", str(data))
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["1", "8", str(2 << 20)]
    assert "lmm_stripe_count" in done.stderr and "emulated" in done.stderr


def test_store_inside_the_emulated_file_system_is_refused(job, data):
    job.script("touch started", DW)
    (data / "store").mkdir()
    command = [job.forebay, "run", "--store", data / "store", "--pfs-model", LUSTRE, "job.sh"]
    done = subprocess.run(command, cwd=job.directory, env=job.environment(), capture_output=True, text=True)
    assert done.returncode == 125 and "is on the emulated file system" in done.stderr
    assert not (job.directory / "started").exists()


def test_lfs_names_what_is_not_emulated(job, data):
    job.script("lfs getstripe -r .; lfs migrate x; exit 0")
    done = job.run("--pfs-model", str(LUSTRE))
    assert "-r is not emulated" in done.stderr and "migrate" in done.stderr


def test_lfs_outside_an_emulation_is_an_error(job, data):
    job.script("lfs getstripe /tmp; exit $?")
    done = job.run("--pfs-model", str(LUSTRE), "--pfs-root", str(data))
    assert done.returncode not in (0, 127) and "emulated" in done.stderr


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"20 MB/s"', '"20 MB"', "20 MB"),
        ('"1 ms"', '"1 parsec"', "1 parsec"),
        ("[client]", "[clint]", "clint"),
        ('value = 1, source = "test" }\nstripe_size', 'value = 7, source = "test" }\nstripe_size', "7"),
    ],
)
def test_wrong_machine_file_is_refused_with_its_position(job, old, new, said):
    assert old in MODEL
    (job.directory / "bad.toml").write_text(MODEL.replace(old, new))
    job.script("touch started")
    done = job.run("--pfs-model", "bad.toml")
    assert done.returncode == 125
    assert "bad.toml" in done.stderr and said in done.stderr, done.stderr
    assert not (job.directory / "started").exists()


def test_emulation_leaves_nothing_in_shared_memory(job, data):
    job.script("ls $FOREBAY_PFS_STATE")
    done = job.run("--pfs-model", str(LUSTRE))
    (state,) = done.stdout.split()
    assert not pathlib.Path(state).exists()
