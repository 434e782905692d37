"""Calls on names and directories: counted with their time, also of files that are never opened."""

import json

import pytest

from support.mpi import Mpi

TIMES = 300
MANY = 3000
OWN_FILES_MAX = 1024


def recorded(mpi: Mpi, record, *words: object) -> dict:
    done = mpi.alone(*words, FOREBAY_PROFILE=record)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    [process] = [json.loads(path.read_text()) for path in record.glob("process-*.json")]
    return process


def test_calls_on_names_are_counted_without_any_open(mpi, direct, record, tmp_path):
    process = recorded(mpi, record, direct, "metadata", tmp_path / "d")
    assert process["files"] == []
    [others] = process["other_files"]
    assert (others["path"], others["layer"], others["opens"]) == ("[other files]", "posix", 0)
    assert others["name_calls"] == {
        "access": 2 * TIMES,
        "unlink": TIMES,
        "mkdir": TIMES + 1,
        "rmdir": TIMES + 1,
        "rename": TIMES,
        "link": TIMES,
        "attributes": TIMES,
        "opendir": 1,
        "readdir": TIMES + 3,
    }
    assert others["stats"] == 2 * TIMES
    assert 0 < others["seconds"]["sum"]["metadata"] <= process["io_s"]["sum"]
    assert process["io_s"]["sum"] > 0.2 * process["wall_s"]


def test_calls_on_names_of_opened_files_are_theirs(mpi, direct, record, tmp_path):
    process = recorded(mpi, record, direct, "create_many", tmp_path / "d")
    assert (len(process["files"]), process["files_joined"]) == (OWN_FILES_MAX, MANY - OWN_FILES_MAX)
    assert all((file["stats"], file["name_calls"]) == (1, {"unlink": 1}) for file in process["files"])
    [others] = process["other_files"]
    rest = MANY - OWN_FILES_MAX
    assert (others["opens"], others["stats"], others["name_calls"]["unlink"]) == (rest, rest, rest)
    assert others["name_calls"]["mkdir"] == 1
    assert process["files_dropped"] == 0


@pytest.mark.soak
@pytest.mark.parametrize("case, names", [("metadata", {"getcwd": 1}), ("create_many", {"getcwd": 1})])
def test_relative_names_take_no_system_call_each(openmpi, direct, record, tmp_path, case, names):
    """The current directory is asked for once for each chdir."""
    trace = tmp_path / "trace"
    preload = f"LD_PRELOAD={openmpi.library}"
    words = ["strace", "-f", "-o", trace, "-e", "trace=getcwd", "env", preload, direct, case, tmp_path / "d"]
    done = openmpi.alone(*words, preload="", FOREBAY_PROFILE=record)
    assert done.returncode == 0, done.stderr
    assert trace.read_text().count("getcwd(") <= 3 * names["getcwd"]


def test_changed_directory_is_noticed(openmpi, record, tmp_path):
    program = (
        "import os, sys\n"
        "for folder in ('one', 'two'):\n"
        "    os.mkdir(folder)\n"
        "for folder in ('one', '../two', '..'):\n"
        "    os.chdir(folder)\n"
        "    with open('data', 'wb', buffering=0) as file:\n"
        "        file.write(bytes(1 << 20))\n"
        "pid = os.fork()\n"
        "if pid == 0:\n"
        "    os.chdir('one')\n"
        "    with open('child', 'wb', buffering=0) as file:\n"
        "        file.write(bytes(1 << 20))\n"
        "    os._exit(0)\n"
        "os.waitpid(pid, 0)\n"
    )
    (tmp_path / "work").mkdir()
    script = f'cd {tmp_path}/work && exec python3 -c "$PROGRAM"'
    done = openmpi.alone("sh", "-c", script, FOREBAY_PROFILE=record, PROGRAM=program)
    assert done.returncode == 0, done.stderr
    written = {
        file["path"]: file["write"]["system_bytes"]
        for path in record.glob("process-*.json")
        for file in json.loads(path.read_text())["files"]
        if file["write"]["system_bytes"]
    }
    work = tmp_path / "work"
    names = ("one/data", "two/data", "data", "one/child")
    assert written == {str(work / name): 1 << 20 for name in names}


def test_killed_program_keeps_its_calls_on_names(openmpi, record, tmp_path):
    program = (
        "import os, signal\n"
        "for number in range(2000):\n"
        f"    os.access('{tmp_path}/missing', os.R_OK)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    openmpi.alone("python3", "-c", program, FOREBAY_PROFILE=record)
    assert openmpi.collect(record).returncode == 0
    [process] = [json.loads(path.read_text()) for path in record.glob("process-*.json")]
    assert not process["finished"]
    assert process["other_files"][0]["name_calls"]["access"] >= 2000


def test_killed_program_keeps_files_beyond_the_limit(openmpi, record, tmp_path):
    program = (
        "import os, signal\n"
        f"for number in range({MANY}):\n"
        f"    os.close(os.open(f'{tmp_path}/f{{number}}', os.O_CREAT | os.O_WRONLY))\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    openmpi.alone("python3", "-c", program, FOREBAY_PROFILE=record)
    assert openmpi.collect(record).returncode == 0
    [process] = [json.loads(path.read_text()) for path in record.glob("process-*.json")]
    assert process["files_joined"] == MANY - OWN_FILES_MAX + sum(
        not file["path"].startswith(str(tmp_path)) for file in process["files"]
    )
    assert sum(file["opens"] for file in [*process["files"], *process["other_files"]]) >= MANY


@pytest.mark.soak
def test_metadata_counts_in_the_verdict(job, direct):
    """Nothing is written, and all of the time goes into names."""
    job.script(f"exec {direct} create_many d")
    done = job.run()
    assert done.returncode == 0, done.stderr
    [record] = job.records()
    shown = job.command("report", record.name)
    assert shown.returncode == 0, shown.stderr
    assert "nothing to gain" not in shown.stdout.lower()
    [process] = [json.loads(path.read_text()) for path in record.glob("process-*.json")]
    assert process["io_s"]["slowest"] > 0.3 * process["wall_s"], shown.stdout
