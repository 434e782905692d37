"""One LD_PRELOAD for a whole job: in each process the library for its own MPI, and no process is harmed."""

import json
import os
import pathlib
import shutil
import subprocess

import pytest

from support.mpi import PROGRAMS, only_file, other_library, said

# What an exec may change: the name of the program, and what the loader was told.
OF_THE_EXCHANGE = ("LD_PRELOAD=", "_=")


@pytest.fixture
def environment_printer(mpi):
    return mpi.compiled("telling", PROGRAMS / "telling.c")


def run_printer(words, preload="", **options):
    """What telling.c prints, its LD_PRELOAD apart."""
    environment = {"PATH": os.environ["PATH"], "EMPTY": "", "WITH": "a=b c", "LD_PRELOAD": str(preload)}
    run = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=300, check=True, **options)
    assert run.stderr == ""
    lines = run.stdout.splitlines()
    preloads = [line.removeprefix("LD_PRELOAD=") for line in lines if line.startswith("LD_PRELOAD=")]
    return [line for line in lines if not line.startswith(OF_THE_EXCHANGE)], preloads


def test_program_gets_the_library_of_its_mpi(mpi, tmp_path):
    report, run = mpi.report(2, mpi.observed(), "independent", tmp_path / "f", preload=other_library(mpi))
    assert (run.stderr, run.stdout.count(" ok")) == ("", 2)
    assert only_file(report)["write"]["calls"]["independent"] == 8
    assert report["program"] == str(mpi.observed())
    assert report["arguments"] == ["independent", str(tmp_path / "f")]


def test_exchange_keeps_arguments_and_variables(mpi, environment_printer):
    words = [environment_printer, "", "two words", "--", "ü"]
    expected, _ = run_printer(words)
    lines, preloads = run_printer(words, other_library(mpi))
    assert lines == expected
    assert preloads == [str(mpi.library)]


def test_exchange_keeps_the_program_name(mpi, environment_printer, tmp_path):
    link = tmp_path / "another-name"
    link.symlink_to(environment_printer)
    lines, preloads = run_printer(
        ["bash", "-c", 'exec -a "zeroth word" ./another-name x'], other_library(mpi), cwd=tmp_path
    )
    assert lines[:3] == ["another-name", "[zeroth word]", "[x]"]
    assert preloads == [str(mpi.library)]


@pytest.mark.soak
@pytest.mark.parametrize("way", ["script", "loader", "memory"])
def test_exchange_works_for_other_ways_to_start_a_program(mpi, environment_printer, tmp_path, way):
    """As the interpreter of a script; by the loader's name; from a file that has no name any more."""
    script = tmp_path / "script"
    script.write_text(f"#!{environment_printer} option\n")
    script.chmod(0o755)
    in_memory = (
        "import os, sys\n"
        "file = os.memfd_create('program', 0)\n"
        "os.write(file, open(sys.argv[1], 'rb').read())\n"
        "os.execve(file, ['zero', 'one'], dict(os.environ))\n"
    )
    words = {
        "script": [script, "one"],
        "loader": ["/lib64/ld-linux-x86-64.so.2", environment_printer, "one"],
        "memory": ["python3", "-c", in_memory, environment_printer],
    }[way]
    expected, _ = run_printer(words)
    lines, preloads = run_printer(words, other_library(mpi))
    # Started by the loader's name, the program has that name; from memory, the exchange can only go by /proc.
    assert lines[1:] == expected[1:]
    assert preloads == [str(mpi.library)]


def test_script_with_both_mpis_is_recorded_completely(openmpi, mpich, tmp_path):
    record = tmp_path / "record"
    record.mkdir()
    script = tmp_path / "job.sh"
    lines = ["mkdir -p out; sed s/a/b/ job.sh | awk '{ n++ } END { print n > \"/dev/stderr\" }'"]
    for mpi in (openmpi, mpich, openmpi):
        lines.append(f"{mpi.command('mpiexec')} -n 2 {mpi.observed()} independent out/{mpi.family}")
        lines.append(f"{mpi.observed()} independent out/{mpi.family}")
    script.write_text("\n".join(lines))
    for preload in (openmpi.library, mpich.library):
        run = openmpi.alone("bash", "-c", f"cd {tmp_path} && bash job.sh", preload=preload, FOREBAY_PROFILE=record)
        assert (run.returncode, run.stderr, run.stdout.count(" ok")) == (0, "7\n", 9)
        steps = [json.loads(path.read_text()) for path in sorted(record.iterdir())]
        assert all(step["finished"] for step in steps)
        assert [(step["mpi"][:4], step["ranks"]) for step in steps] == [
            ("Open", 2), ("Open", 1), ("MPIC", 2), ("MPIC", 1), ("Open", 2), ("Open", 1),
        ]  # fmt: skip
        for path in record.iterdir():
            path.unlink()


@pytest.mark.parametrize("order", [1, -1])
def test_both_preloaded_libraries_become_one(mpi, environment_printer, order):
    both = [str(mpi.library), str(other_library(mpi))][::order]
    _, preloads = run_printer([environment_printer], ":".join(both))
    assert preloads == [f"{mpi.library}:{mpi.library}"]


def test_exchange_keeps_the_position_between_other_preloads(mpi, environment_printer):
    beneath = mpi.compiled("beneath", "-shared", "-fPIC", PROGRAMS / "beneath.c")
    tool = mpi.compiled("tool", "-shared", "-fPIC", PROGRAMS / "tool.c")
    _, preloads = run_printer([environment_printer], f"{beneath} {other_library(mpi)}:{tool}")
    assert preloads == [f"{beneath}:{mpi.library}:{tool}"]


@pytest.fixture
def lonely(mpi, tmp_path):
    """The library of the other family, installed without that of the program's."""
    library = tmp_path / "installed" / other_library(mpi).parent.name / mpi.library.name
    library.parent.mkdir(parents=True)
    shutil.copy(other_library(mpi), library)
    return library


def test_program_without_the_other_library_runs_unrecorded(mpi, lonely, tmp_path):
    path = tmp_path / "report.json"
    run = mpi.run(2, mpi.observed(), "independent", tmp_path / "f", preload=lonely, FOREBAY_MPI_STATS=path)
    assert (run.returncode, run.stdout.count(" ok")) == (0, 2)
    assert said(run) == [
        f"forebay: {lonely.parents[1] / mpi.family / lonely.name} is missing, so the files of this program are not recorded"
    ]
    assert not path.exists()


def test_program_that_cannot_be_exchanged_runs_unrecorded(mpi, tmp_path):
    """Given to the loader itself, the library is in no variable that could be changed."""
    words = [
        "/lib64/ld-linux-x86-64.so.2",
        "--preload",
        other_library(mpi),
        mpi.observed(),
        "independent",
        tmp_path / "f",
    ]
    run = mpi.alone(*words, preload="", FOREBAY_MPI_STATS=tmp_path / "report.json")
    assert (run.returncode, run.stdout) == (0, "rank 0 ok\n")
    [line] = said(run)
    assert line.endswith("the program has loaded another MPI; its files are not recorded")
    assert not (tmp_path / "report.json").exists()


def test_preload_of_the_user_works_behind_ours(mpi, tmp_path):
    beneath = mpi.compiled("beneath", "-shared", "-fPIC", PROGRAMS / "beneath.c")
    for preload in (f"{mpi.library}:{beneath}", f"{other_library(mpi)}:{beneath}"):
        report, run = mpi.report(1, mpi.observed(), "independent", tmp_path / "f", preload=preload)
        assert run.stderr == "beneath: 4 writes\n"
        assert only_file(report)["write"]["system_calls"] == 4


@pytest.mark.soak
def test_programs_without_mpi_run_unchanged(mpi, tmp_path):
    (tmp_path / "static.c").write_text('#include <stdio.h>\nint main(void) { return puts("static") < 0; }\n')
    subprocess.run(["cc", "-static", "static.c", "-o", "static"], cwd=tmp_path, check=True)
    script = (
        "set -e; echo one | cat; (exit 3) || echo $?; sed -n 1p static.c; awk 'BEGIN { print 1 + 1 }'; perl -e 'print qq(perl\\n)';"
        "python3 -c 'import subprocess; print(subprocess.run([\"true\"]).returncode)'; tar cf - static.c | tar tf -;"
        "./static; find . -name static.c | xargs grep -c main; mount --version | cut -c1-5; exec 2>&- 1>&-; true"
    )

    def ran(preload, **more):
        environment = {
            "LD_PRELOAD": str(preload),
            "LD_BIND_NOW": "1",
            "MPICH_MPIIO_STATS": "1",
            "PATH": "/usr/bin:/bin",
        } | more
        run = subprocess.run(
            ["bash", "-c", script], env=environment, cwd=tmp_path, capture_output=True, text=True, check=True
        )
        return run.stdout, run.stderr

    launched = {"openmpi": {"OMPI_COMM_WORLD_SIZE": "1"}, "mpich": {"HYDI_CONTROL_FD": "9", "PMI_RANK": "0"}}[
        mpi.family
    ]
    expected = ran("")
    assert "static" in expected[0] and "mount" in expected[0]
    assert ran(mpi.library) == expected
    assert ran(mpi.library, **launched) == expected
    assert ran(other_library(mpi), **launched) == expected, "each is exchanged, for it might load an MPI later"


@pytest.mark.skipif(os.getuid() != 0, reason="only root can make a setuid program of root")
def test_setuid_programs_run_unchanged(mpi, tmp_path):
    """The loader gives them no library from a path, whoever asks."""
    scratch = pathlib.Path("/tmp") / f"forebay-setuid-{os.getpid()}"  # below a directory that others may enter
    scratch.mkdir(mode=0o755)
    try:
        program = scratch / "id"
        shutil.copy("/usr/bin/id", program)
        program.chmod(0o4755)
        environment = {"LD_PRELOAD": str(other_library(mpi)), "OMPI_COMM_WORLD_SIZE": "1"}
        run = subprocess.run(
            [program, "-u"], env=environment, user=65534, group=65534, extra_groups=[], capture_output=True, text=True
        )
        assert (run.returncode, run.stdout) == (0, "0\n"), run.stderr
        assert "forebay" not in run.stderr
    finally:
        shutil.rmtree(scratch)
