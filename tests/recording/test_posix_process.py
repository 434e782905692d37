"""Programs without MPI that carry the library: those worth telling of leave a record, none is harmed."""

import json
import os
import re
import subprocess

import pytest

from support.mpi import PROJECT

RUN_SECONDS_MAX = 300


def run(mpi, *command: object, record: object = None, **more: str):
    environment = {"PATH": "/usr/bin:/bin", "LD_PRELOAD": str(mpi.library), **more}
    if record is not None:
        environment["FOREBAY_PROFILE"] = str(record)
    return subprocess.run(
        [str(word) for word in command], env=environment, capture_output=True, text=True, timeout=RUN_SECONDS_MAX
    )


def process_records(record) -> list[dict]:
    return [json.loads(path.read_text()) for path in sorted(record.glob("process-*.json"))]


def test_process_without_mpi_writes_a_record(mpi, direct, record, tmp_path):
    done = run(mpi, direct, "large", tmp_path / "f", record=record)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    [process] = process_records(record)
    [path] = record.glob("process-*.json")
    milliseconds = int(process["started_unix_s"] * 1000)
    assert abs(int(re.fullmatch(rf"process-(\d+)-{process['pid']}\.json", path.name)[1]) - milliseconds) <= 1
    assert (process["forebay_mpi"], process["mpi"], process["ranks"], process["finished"]) == (2, None, 1, True)
    assert (process["program"], process["arguments"]) == (str(direct), ["large", str(tmp_path / "f")])
    [file] = process["files"]
    assert (file["path"], file["layer"], file["not_closed"]) == (str(tmp_path / "f"), "posix", 1)
    assert (file["write"]["system_calls"], file["write"]["system_bytes"]) == (2000, 2_000_000)
    assert 0 < process["io_s"]["sum"] == process["io_s"]["slowest"] <= process["wall_s"]
    assert (record / "processes").read_text() == "."


@pytest.mark.parametrize("case", ["few", "all_closed"])
def test_process_with_little_io_writes_no_record(mpi, direct, record, tmp_path, case):
    done = run(mpi, direct, case, tmp_path / "f", record=record)
    assert (done.returncode, done.stderr) == (0, "")
    assert list(record.iterdir()) == []


@pytest.mark.parametrize("launched", [{}, {"SLURM_PROCID": "0"}], ids=["alone", "by a launcher"])
def test_exit_in_a_signal_handler_does_not_hang(mpi, direct, record, tmp_path, launched):
    """Whatever it interrupted, malloc mostly: it must not wait for ever."""
    done = run(mpi, direct, "exit_in_handler", tmp_path / "f", record=record, **launched)
    assert (done.returncode, done.stderr) == (0, "")
    [process] = process_records(record)
    assert process["files"][0]["write"]["system_bytes"] == 2_000_000


def test_process_without_the_variables_writes_nothing(mpi, direct, record, tmp_path):
    done = run(mpi, direct, "large", tmp_path / "f")
    assert (done.returncode, done.stderr) == (0, "")
    assert list(record.iterdir()) == []


SCRIPT = """
exec 3>out.$$ 4>&1 1>&3
for i in 1 2 3; do echo line $i; done
(exec 5>sub; echo in a subshell >&5; exec 5>&-)
exec 1>&4 4>&- 3>&-
dd if=/dev/zero of=zeros bs=64k count=20 status=none
cp zeros copy
cat copy | wc -c
sort -o sorted out.$$
head -c 5 < copy | od -An -c
exit 7
"""


def test_shell_script_behaves_as_without_the_library(mpi, record, tmp_path):
    with_library, without = tmp_path / "with", tmp_path / "without"
    with_library.mkdir()
    without.mkdir()
    runs = [
        run(mpi, "bash", "-c", f"cd {with_library}; {SCRIPT}", record=record),
        run(mpi, "bash", "-c", f"cd {without}; {SCRIPT}", LD_PRELOAD=""),
    ]
    assert [(done.returncode, done.stdout, done.stderr) for done in runs] == [(7, runs[1].stdout, "")] * 2
    assert [len(list(path.iterdir())) for path in (with_library, without)] == [5, 5]
    by_name = {os.path.basename(process["program"]): process for process in process_records(record)}
    assert set(by_name) == {"dd", "cp", "cat"}
    assert [(file["path"], file["write"]["system_bytes"]) for file in by_name["dd"]["files"]] == [
        (f"{with_library}/zeros", 20 * 65536)
    ]
    assert {
        file["path"]: (file["read"]["system_bytes"], file["write"]["system_bytes"]) for file in by_name["cp"]["files"]
    } == {f"{with_library}/zeros": (20 * 65536, 0), f"{with_library}/copy": (0, 20 * 65536)}


@pytest.mark.soak
def test_record_has_at_most_64_processes(mpi, direct, record, tmp_path):
    loop = f"for i in $(seq 70); do {direct} large {tmp_path}/f; done"
    assert run(mpi, "bash", "-c", loop, record=record).returncode == 0
    assert len(process_records(record)) == 64
    assert len((record / "processes").read_text()) == 70


def test_removed_record_does_not_affect_the_program(mpi, direct, tmp_path):
    done = run(mpi, direct, "large", tmp_path / "f", record=tmp_path / "nowhere")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert (tmp_path / "f").stat().st_size == 2_000_000


@pytest.mark.skipif(os.getuid() != 0, reason="mounts a small file system")
def test_full_record_does_not_affect_the_program(mpi, direct, record, tmp_path):
    script = f"mount -t tmpfs -o size=4k none {record} && {direct} large {tmp_path}/f; echo $?; ls {record}"
    done = run(mpi, "unshare", "-m", "bash", "-c", script, record=record)
    assert (done.stdout, done.stderr) == ("0\nprocesses\n", "")


PATHS = r"""
#include "base/path.h"
#include <stdio.h>
int main(int argc, char **argv) {
  for (int i = 1; i < argc; i++)
    printf("%d", path_is_excluded(argv[i]));
  return 0;
}
"""
OF_INTERPRETERS = [
    "/home/me/venv/pyvenv.cfg",
    "/home/me/venv/lib/python3.11/site-packages/numpy/core.py",
    "/home/me/conda/lib/python3.11/os.py",
    "/home/me/python/python311._pth",
    "/home/me/libx.so.1.2",
    "/home/me/__pycache__/model.cpython-311.pyc",
    "/home/me/conda/share/locale/de/LC_MESSAGES/x.mo",
    "/home/me/spack/share/zoneinfo/UTC",
    "/home/me/app/model.jar",
    "/home/me/R/lib/R/library/stats/R/stats.rdb",
    "/usr/share/anything",
]
OF_USERS = [
    "/home/me/model.py",
    "/home/me/lib/data.nc",
    "/home/me/share/wrfinput_d01",
    "/home/me/pyvenv.cfg.nc",
    "/home/me/out.sof",
    "/var/tmp/x",
    "/dev/shm/x",
]


def test_reads_of_interpreters_for_themselves_are_not_counted(tmp_path):
    (tmp_path / "paths.c").write_text(PATHS)
    mpi = PROJECT / "mpi"
    subprocess.run(
        ["gcc", f"-I{mpi}", tmp_path / "paths.c", mpi / "base" / "path.c", "-ldl", "-o", tmp_path / "paths"], check=True
    )
    out = subprocess.run(
        [tmp_path / "paths", *OF_INTERPRETERS, *OF_USERS], capture_output=True, text=True, check=True
    ).stdout
    assert out == "1" * len(OF_INTERPRETERS) + "0" * len(OF_USERS)
