"""Descriptors that a program was started with, or that were turned into a file: they count as any other."""

import json
import os
import subprocess
import sys

import pytest

from support.mpi import PROGRAMS

LINES = 2000
LINE = "line of text"
BYTES = LINES * (len(LINE) + 1)


@pytest.fixture(scope="session")
def printing(compiled):
    """Prints and reads by the functions that name no stream."""
    program = compiled / "printing"
    subprocess.run(["gcc", "-O1", PROGRAMS / "printing.c", "-o", program], check=True)
    return program


def run(mpi, record, *command: object, cwd) -> subprocess.CompletedProcess:
    environment = {"PATH": "/usr/bin:/bin", "LD_PRELOAD": str(mpi.library), "FOREBAY_PROFILE": str(record)}
    words = [str(word) for word in command]
    done = subprocess.run(words, env=environment, cwd=cwd, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stderr) == (0, "")
    return done


def files_by_program(record) -> dict[str, list[dict]]:
    """Files by the program that used them."""
    processes = [json.loads(path.read_text()) for path in record.glob("process-*.json")]
    return {os.path.basename(process["program"]): process["files"] for process in processes}


def brief(file: dict, direction: str) -> tuple:
    traffic = file[direction]
    return (os.path.basename(file["path"]), file["layer"], file["opens"], file["inherited"], traffic["system_bytes"])


@pytest.mark.parametrize("how", ["printf", "puts", "putchar"])
def test_output_that_the_shell_redirected_is_counted_for_the_program(openmpi, printing, record, tmp_path, how):
    run(openmpi, record, "sh", "-c", f"{printing} {how} {LINES} > out", cwd=tmp_path)
    assert (tmp_path / "out").stat().st_size == BYTES
    [file] = files_by_program(record)["printing"]
    assert brief(file, "write") == ("out", "stdio", 0, 1, BYTES)
    assert (file["not_closed"], file["write"]["end_bytes"], file["write"]["gaps"]) == (0, BYTES, 0)
    assert file["moments"]["open"] is None


@pytest.mark.parametrize("how", ["scanf", "getchar"])
def test_input_that_the_shell_redirected_is_counted_for_the_program(openmpi, printing, record, tmp_path, how):
    (tmp_path / "in").write_text(f"{LINE}\n" * LINES)
    run(openmpi, record, printing.parent / "printing", how, LINES, cwd=tmp_path)
    assert files_by_program(record) == {}, "of /dev/null and pipes nothing is counted"
    run(openmpi, record, "sh", "-c", f"{printing} {how} {LINES} < in", cwd=tmp_path)
    [file] = files_by_program(record)["printing"]
    assert brief(file, "read") == ("in", "stdio", 0, 1, BYTES)


def test_descriptors_of_one_file_share_a_position(openmpi, printing, record, tmp_path):
    run(openmpi, record, "sh", "-c", f"{printing} both {LINES} > out 2>&1", cwd=tmp_path)
    [file] = files_by_program(record)["printing"]
    assert (file["inherited"], file["opens"]) == (2, 0)
    written = file["write"]
    assert (written["system_bytes"], written["end_bytes"]) == (BYTES, BYTES)
    assert (written["consecutive"], written["gaps"], written["steps_back"]) == (LINES - 1, 0, 0)


def test_appending_begins_at_the_end_of_the_file(openmpi, printing, record, tmp_path):
    (tmp_path / "log").write_text("x" * 1000)
    run(openmpi, record, "sh", "-c", f"{printing} both {LINES} >> log 2>&1", cwd=tmp_path)
    [file] = files_by_program(record)["printing"]
    assert file["write"]["end_bytes"] == 1000 + BYTES


def test_descriptor_passes_through_programs_between(openmpi, printing, record, tmp_path):
    """A shell opens descriptor 5, env passes it on, and the program's shell makes it its output."""
    script = f"exec 5> out; exec env sh -c 'exec {printing} printf {LINES} >&5'"
    run(openmpi, record, "sh", "-c", script, cwd=tmp_path)
    [file] = files_by_program(record)["printing"]
    assert brief(file, "write")[0] == "out" and file["write"]["system_bytes"] == BYTES


@pytest.mark.parametrize("shell", ["bash", "dash"])
def test_output_of_a_builtin_is_counted_for_the_shell(openmpi, record, tmp_path, shell):
    loop = f"i=0; while [ $i -lt {LINES} ]; do echo {LINE}; i=$((i + 1)); done > out"
    run(openmpi, record, shell, "-c", loop, cwd=tmp_path)
    [file] = files_by_program(record)[shell]
    assert (file["path"], file["opens"], file["inherited"]) == (str(tmp_path / "out"), 1, 0)
    assert file["write"]["system_bytes"] == BYTES == (tmp_path / "out").stat().st_size


def test_output_that_python_turned_into_a_file_is_counted(openmpi, record, tmp_path):
    script = (
        "import os; file = os.open('out', os.O_WRONLY | os.O_CREAT); os.dup2(file, 1)\n"
        f"for _ in range({LINES}): print({LINE!r}, flush=True)"
    )
    run(openmpi, record, os.path.realpath(sys.executable), "-I", "-S", "-c", script, cwd=tmp_path)
    [files] = files_by_program(record).values()
    [file] = [file for file in files if file["path"] == str(tmp_path / "out")]
    assert (file["opens"], file["inherited"], file["write"]["system_bytes"]) == (1, 0, BYTES)


def test_files_without_a_name_and_pipes_are_not_counted(openmpi, printing, record, tmp_path):
    run(openmpi, record, "bash", "-c", f"{printing} printf {LINES} | cat > /dev/null", cwd=tmp_path)
    document = f"{printing} getchar 50 <<END\n" + f"{LINE}\n" * LINES + "END\n"
    run(openmpi, record, "bash", "-c", document, cwd=tmp_path)
    assert files_by_program(record).get("printing", []) == []
