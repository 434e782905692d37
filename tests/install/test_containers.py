"""A container in a job: what docs/how-to/containers.md says must be bound, with Bubblewrap as the engine."""

import pytest

from support.job import DW

STAGE_OUT = "#DW stage_out type=directory source=$DW_JOB_STRIPED/out destination=%d/out"
# A root directory that has programs, and nothing of the job and of Forebay.
EMPTY = (
    "bwrap --ro-bind /usr /usr --symlink usr/bin /bin --symlink usr/lib /lib --symlink usr/lib64 /lib64 "
    '--dev /dev --proc /proc --bind "$DW_JOB_STRIPED" "$DW_JOB_STRIPED" '
)
PROGRAM = 'dd if=/dev/zero of="$DW_JOB_STRIPED/out/file" bs=1M count=7'


def run(memory, binds, *options):
    """Runs the program in a container with these binds; its results must be staged out."""
    memory.script(f"mkdir $DW_JOB_STRIPED/out\n{EMPTY} {binds} {PROGRAM}", DW, STAGE_OUT)
    done = memory.run(*options)
    assert done.returncode == 0, done.stderr
    assert (memory.directory / "out" / "file").stat().st_size == 7 << 20
    return done.stderr


def recorded(memory):
    """The records of processes that name the file."""
    (record,) = memory.records()
    return [path for path in record.glob("process-*.json") if "/out/file" in path.read_text()]


@pytest.mark.parametrize("userns", [[], ["--no-userns"]])
def test_a_container_uses_the_allocation_that_is_bound(memory, userns):
    assert "cannot be preloaded" in run(memory, "", *userns)
    assert recorded(memory) == []


def test_without_recording_a_container_prints_nothing_of_libraries(memory):
    assert "cannot be preloaded" not in run(memory, "", "--no-profile")


def test_a_container_that_sees_forebay_and_the_record_is_recorded(memory):
    installation = memory.forebay.resolve().parents[1]
    binds = f"--ro-bind {installation} {installation} --bind $FOREBAY_PROFILE $FOREBAY_PROFILE"
    assert "cannot be preloaded" not in run(memory, binds)
    assert len(recorded(memory)) == 1
