"""Traces of programs, and their replays."""

import json
import pathlib
import subprocess

from support.mpi import said

ROMIO = {"OMPI_MCA_io": "romio321"}
# Bytes before the end of a file that other ranks extend at the same time are read or not, as it happens.
BY_CHANCE = {"rmw_bytes"}
# Whose turn it is decides where the next call of a rank or of a thread begins.
ORDER_BY_CHANCE = BY_CHANCE | {"gaps", "gap_bytes", "steps_back", "consecutive"}


def replay_program(mpi) -> pathlib.Path:
    return mpi.library.parent / "forebay-replay"


def printed(mpi, trace) -> list[str]:
    run = subprocess.run([replay_program(mpi), "--print", trace], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return run.stdout.splitlines()


def counters(report: dict, top: object = "", by_chance=BY_CHANCE) -> dict:
    """All that a report counts, by the file's path behind `top` and its layer; without times."""
    untold = by_chance | {"path", "seconds", "moments", "system_moments", "rank_seconds"}
    files = {}
    for file in report["files"]:
        kept = {key: value for key, value in file.items() if key not in untold}
        for direction in ("write", "read"):
            kept[direction] = {key: value for key, value in file[direction].items() if key not in untold}
        files[file["path"].removeprefix(str(top)), file["layer"]] = kept
    return files


def replayed(mpi, ranks, trace, *options, **environment):
    report, run = mpi.report(ranks, replay_program(mpi), *options, trace, **environment)
    return report, json.loads(run.stdout), run


def assert_complete(mpi, tmp_path, ranks, *command, by_chance=BY_CHANCE, **environment):
    """Runs the command with a trace, replays it elsewhere, and compares all counters of all files."""
    trace, elsewhere = tmp_path / "trace", tmp_path / "elsewhere"
    before, run = mpi.report(ranks, *command, FOREBAY_MPI_TRACE=trace, **environment)
    assert said(run) == []
    after, summary, _ = replayed(mpi, ranks, trace, "--directory", elsewhere, **environment)
    assert before["files"], "a program without files proves nothing"
    assert counters(after, elsewhere, by_chance) == counters(before, by_chance=by_chance)
    assert (summary["skipped"], summary["differences"]) == (0, 0)
    return before, summary
