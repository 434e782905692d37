"""What recording adds to calls on files in memory. DARSHAN_LIBRARY=libdarshan.so compares with Darshan's runtime."""

import os
import pathlib
import subprocess

from measure import Compared, Line, in_turn
from place import Place

ROUNDS = 15
CALLS = 40_000
WHAT = ("open, write, fstat, close, stat", "pwrite of 8 bytes")


def run(place: Place) -> list[Line]:
    library = place.build / "lib" / "forebay" / "openmpi" / "libforebay_mpi.so"
    darshan = os.environ.get("DARSHAN_LIBRARY")
    with place.in_shared_memory() as scratch:
        program = scratch / "record_loop"
        subprocess.run(["gcc", "-O1", pathlib.Path(__file__).with_name("record_loop.c"), "-o", program], check=True)
        (scratch / "record").mkdir()
        plain = lambda: figures(program, scratch)
        recorded = lambda: figures(program, scratch, LD_PRELOAD=library, FOREBAY_PROFILE=scratch / "record")
        log = scratch / "log"
        logged = lambda: figures(program, scratch, LD_PRELOAD=darshan, DARSHAN_ENABLE_NONMPI="1", DARSHAN_LOGFILE=log)
        lines = compared("without", plain, "recorded", recorded)
        return [*lines, *compared("Darshan", logged, "recorded", recorded)] if darshan else lines


def figures(program: pathlib.Path, scratch: pathlib.Path, **variables: object) -> list[float]:
    environment = {"PATH": os.environ["PATH"]} | {name: str(value) for name, value in variables.items()}
    words = [program, scratch / "file", str(CALLS)]
    done = subprocess.run(words, env=environment, check=True, capture_output=True, text=True)
    return [float(figure) for figure in done.stdout.split()]


def compared(a_is: str, a, b_is: str, b) -> list[Line]:
    of_a, of_b, again = in_turn(ROUNDS, a, b)
    column = lambda rows, at: [row[at] for row in rows]
    return [
        Compared(what, a_is, b_is, "ns", column(of_a, at), column(of_b, at), column(again, at))
        for at, what in enumerate(WHAT)
    ]
