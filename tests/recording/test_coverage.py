"""The record says what is not in it: against the kernel's count, and by name."""

import ctypes
import errno
import json
import os
import platform
import shutil
import subprocess

import pytest

from support.mpi import PROGRAMS, launching

MIB = 1 << 20
ENOUGH_S = 0.5


@pytest.fixture(scope="session")
def bypassing(compiled):
    return built(compiled / "bypassing")


@pytest.fixture(scope="session")
def static(compiled):
    return built(compiled / "bypassing_static", "-static")


def built(program, *options, source="bypassing.c", libraries=()):
    subprocess.run(["gcc", "-O1", *options, PROGRAMS / source, "-o", program, *libraries], check=True)
    return program


def need_io_uring():
    """Skips where the kernel, or a container around the test, refuses it."""
    io_uring_setup = 425  # on all machines
    kernel = ctypes.CDLL(None, use_errno=True)
    kernel.syscall(io_uring_setup, 1, None)
    if ctypes.get_errno() in (errno.EPERM, errno.ENOSYS):
        pytest.skip("io_uring is refused here")


def profiled(job, script: str) -> dict:
    """The profile in the report of a shell script that computes for a while as well."""
    done = job.command("profile", "--", "sh", "-c", f"set -e; {script}\nsleep {ENOUGH_S}")
    assert done.returncode == 0, done.stderr
    return reported(job)["profile"]


def reported(job) -> dict:
    shown = job.command("report", "--json", "last")
    assert shown.returncode == 0, shown.stderr
    (report,) = json.loads(shown.stdout)["jobs"]
    return report


def test_recorded_programs_are_recorded_whole(job, bypassing):
    profile = profiled(job, f"{bypassing} written a {16 * MIB}; cat a | cat > b; cp a c; {bypassing} written d 9")
    coverage = profile["coverage"]
    assert coverage["recorded_bytes"] == (16 + 2 * 16 + 2 * 16) * MIB
    assert 2 * 16 * MIB <= coverage["elsewhere_bytes"] <= 33 * MIB, "the pipe between two programs"
    assert coverage["share"] > 0.99 and profile["unread"] == []
    shown = job.command("report", "last").stdout
    assert "recorded: > 99 % of 80" in shown or "recorded: 100 % of 80" in shown, shown


def test_bytes_that_only_pass_pipes_are_not_missed(job, bypassing):
    profile = profiled(job, f"{bypassing} written a {8 * MIB}; {bypassing} piped b {64 * MIB} | tail -c 1 > /dev/null")
    assert profile["coverage"]["share"] > 0.9, profile["coverage"]


@pytest.mark.soak
def test_static_program_is_named_and_its_bytes_are_missed(job, bypassing, static):
    profile = profiled(job, f"{static} written a {32 * MIB}; {bypassing} written b {8 * MIB}")
    coverage = profile["coverage"]
    assert coverage["recorded_bytes"] == 8 * MIB
    assert 32 * MIB <= coverage["missing_bytes"] < 33 * MIB
    assert coverage["share"] == pytest.approx(0.2, abs=0.01)
    assert profile["bypassed"] == [{"program": str(static), "how": "static"}]
    assert len(profile["unread"]) == 1
    assert any("bypassing_static" in note for note in profile["notes"])
    report = reported(job)
    assert "not known: 32" in report["verdict"] and "storage did not hold" not in report["verdict"]
    assert [finding["code"] for finding in report["findings"] if finding["code"] == "little-io"] == []
    assert "not recorded: 32" in job.command("report", "last").stdout


@pytest.mark.soak
def test_job_of_static_programs_alone_is_not_called_without_io(job, static):
    profiled(job, f"{static} written a {16 * MIB}")
    verdict = reported(job)["verdict"]
    assert verdict.startswith("No I/O was recorded, and 16"), verdict


def test_static_program_found_through_path_is_named(job, static):
    profile = profiled(job, f"PATH={static.parent}:$PATH; env {static.name} written a 1")
    assert [one["program"] for one in profile["bypassed"]] == [str(static)]


def test_mappings_are_counted_as_bounds(job, bypassing):
    script = f"{bypassing} mapped_to_write a {16 * MIB}; {bypassing} mapped_to_read a {16 * MIB}"
    profile = profiled(job, script)
    layers = {
        program["arguments"][0]: file["layers"]["POSIX"] for program in profile["programs"] for file in program["files"]
    }
    bounds = {how: (layer["mapped_bytes"], layer["mapped_to_write_bytes"]) for how, layer in layers.items()}
    assert bounds == {"mapped_to_write": (16 * MIB, 16 * MIB), "mapped_to_read": (16 * MIB, 0)}
    assert profile["unread"] == ["up to 32 MiB of files were read and written through mappings"]
    assert any(
        "2 files were mapped into memory: up to 32 MiB were read and up to 16 MiB written" in note
        for note in profile["notes"]
    )


def test_io_uring_is_named(job, bypassing):
    need_io_uring()
    profile = profiled(job, f"{bypassing} ring a {2 * MIB}")
    assert (job.directory / "a").stat().st_size == 2 * MIB
    assert profile["bypassed"] == [{"program": str(bypassing), "how": "io_uring"}]
    assert "bypassing used io_uring" in profile["unread"]


@pytest.mark.soak
@pytest.mark.parametrize(
    "how, options, library", [("io_uring", (), "liburing.so.2"), ("kernel_aio", ("-DKERNEL_AIO",), "libaio.so.1")]
)
def test_libraries_of_asynchronous_io_are_named(job, compiled, how, options, library):
    if how == "io_uring":
        need_io_uring()
    program = built(compiled / how, *options, source="asynchronous.c", libraries=[f"-l:{library}"])
    assert profiled(job, str(program))["bypassed"] == [{"program": str(program), "how": how}]


@pytest.mark.skipif(os.getuid() != 0, reason="only root can make a setuid program of root")
def test_setuid_program_of_an_ordinary_user_is_named_and_its_bytes_are_missed(job, bypassing):
    own, setuid = job.directory / "own", job.directory / "of root"
    for copy in (own, setuid):
        shutil.copy(bypassing, copy)
    setuid.chmod(0o4755)
    if os.statvfs(setuid).f_flag & os.ST_NOSUID:
        pytest.skip("setuid has no effect in the directory of the test")
    job.as_nobody()
    script = f"'{setuid}' written a {8 * MIB}; '{own}' written b {16 * MIB}"
    done = job.command("profile", "--", "sh", "-c", f"set -e; {script}\nsleep {ENOUGH_S}")
    assert done.returncode == 0, done.stderr
    job.user = None  # the report's Python may not be for all
    profile = reported(job)["profile"]
    assert (job.directory / "a").stat().st_uid == 0, "the program ran as root"
    assert profile["bypassed"] == [{"program": str(setuid), "how": "setuid"}]
    coverage = profile["coverage"]
    assert coverage["recorded_bytes"] == 16 * MIB and 8 * MIB <= coverage["missing_bytes"] < 9 * MIB


@pytest.mark.skipif(platform.machine() != "x86_64", reason="of a processor that has no 32-bit programs of this kind")
def test_32_bit_program_is_named_and_its_bytes_are_missed(job, compiled, bypassing):
    options = ("-m32", "-nostdlib", "-static", "-ffreestanding", "-fno-pic", "-no-pie")
    program = built(compiled / "bypassing_32bit", *options, source="bypassing_32bit.c")
    try:
        subprocess.run([program], cwd=job.temporary, check=True)
    except OSError as error:
        pytest.skip(f"the kernel runs no 32-bit programs: {error}")
    profile = profiled(job, f"{program}; {bypassing} written a {MIB}")
    assert (job.directory / "b").stat().st_size == 5 * MIB
    assert profile["bypassed"] == [{"program": str(program), "how": "32-bit"}]
    assert 5 * MIB <= profile["coverage"]["missing_bytes"] < 6 * MIB


def test_spliced_bytes_are_recorded_and_hide_no_missing_ones(job, bypassing, static):
    profile = profiled(job, f"{bypassing} spliced a {16 * MIB}; {static} written b {8 * MIB}")
    assert (job.directory / "a").stat().st_size == 16 * MIB
    coverage = profile["coverage"]
    assert coverage["recorded_bytes"] == 16 * MIB
    assert 8 * MIB <= coverage["missing_bytes"] < 9 * MIB, "the kernel does not count what was spliced"


@pytest.mark.parametrize("family, library", [("openmpi", "libmpi.so.40"), ("mpich", "libmpich.so.12")])
def test_mpi_that_a_program_looks_up_is_named(job, compiled, family, library):
    program = built(compiled / "looked_up", source="looked_up.c")
    job.settings |= launching()
    launch = f"mpiexec.{family} -n 2 {'--oversubscribe ' if family == 'openmpi' else ''}"
    profile = profiled(job, f"{launch}{program} {library} a {8 * MIB}")
    assert profile["bypassed"] == [{"program": str(program), "how": "mpi"}]
    assert profile["coverage"]["recorded_bytes"] == 2 * 8 * MIB
    assert any("of the MPI-IO of looked_up, only the system calls" in note for note in profile["notes"])


@pytest.mark.soak
def test_child_of_a_rank_is_not_taken_for_a_program_that_looks_up_mpi(job, mpi):
    job.settings |= launching()
    launch = f"{mpi.command('mpiexec')} -n 2 {'--oversubscribe ' if mpi.family == 'openmpi' else ''}"
    profile = profiled(job, f"{launch}{mpi.ending()} forking a")
    assert profile["bypassed"] == []


def test_job_on_a_burst_buffer_is_compared_as_well(job, bypassing):
    job.script(
        f"#DW jobdw type=scratch access_mode=striped capacity=100MiB\ncd $DW_JOB_STRIPED\n{bypassing} written a {16 * MIB}"
    )
    done = job.run()
    assert done.returncode == 0, done.stderr
    profile = reported(job)["profile"]
    assert profile["coverage"]["recorded_bytes"] == 16 * MIB and profile["coverage"]["share"] > 0.99
