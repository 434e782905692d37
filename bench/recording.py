"""What recording adds to calls on files in memory. DARSHAN_LIBRARY=libdarshan.so compares with Darshan's runtime."""

import os
import pathlib
import subprocess
import tempfile

from measure import Compared, Line, in_turn
from place import Place, last_object, succeeded

ROUNDS = 15
CALLS = 40_000
WHAT = ("open, write, fstat, close, stat", "pwrite of 8 bytes")


def run(place: Place) -> list[Line]:
    library = place.build / "lib" / "forebay" / "openmpi" / "libforebay_mpi.so"
    darshan = os.environ.get("DARSHAN_LIBRARY")
    with place.in_shared_memory() as scratch, tempfile.TemporaryDirectory() as outside:
        file = pathlib.Path(outside, "memory") / "file"  # Darshan leaves out what is named below /dev
        file.parent.symlink_to(scratch)
        program = scratch / "record_loop"
        subprocess.run(["gcc", "-O1", pathlib.Path(__file__).with_name("record_loop.c"), "-o", program], check=True)
        (scratch / "record").mkdir()
        plain = lambda: figures(program, file)
        recorded = lambda: figures(program, file, LD_PRELOAD=library, FOREBAY_PROFILE=scratch / "record")
        log = scratch / "log"
        logged = lambda: figures(program, file, LD_PRELOAD=darshan, DARSHAN_ENABLE_NONMPI="1", DARSHAN_LOGFILE=log)
        lines = compared("without", plain, "recorded", recorded)
        if darshan:
            lines += compared("Darshan", logged, "recorded", recorded)
            check_log(place, log)
        return lines


def check_log(place: Place, log: pathlib.Path) -> None:
    """A runtime that leaves the file out would be compared for nothing."""
    report = succeeded(subprocess.run([place.forebay, "report", "--json", log], capture_output=True, text=True))
    (job,) = last_object(report.stdout)["jobs"]
    assert job["totals"]["POSIX"]["write"]["calls"] == 2 * CALLS, job["totals"]


def figures(program: pathlib.Path, file: pathlib.Path, **variables: object) -> list[float]:
    environment = {"PATH": os.environ["PATH"]} | {name: str(value) for name, value in variables.items()}
    words = [program, file, str(CALLS)]
    done = subprocess.run(words, env=environment, check=True, capture_output=True, text=True)
    return [float(figure) for figure in done.stdout.split()]


def compared(a_is: str, a, b_is: str, b) -> list[Line]:
    of_a, of_b, again = in_turn(ROUNDS, a, b)
    column = lambda rows, at: [row[at] for row in rows]
    return [
        Compared(what, a_is, b_is, "ns", column(of_a, at), column(of_b, at), column(again, at))
        for at, what in enumerate(WHAT)
    ]
