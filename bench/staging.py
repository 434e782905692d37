"""Staging in and out against cp -r and sync, from and to the same places on the real disk."""

import json
import random
import shutil

from measure import Compared, Line, in_turn
from place import Place, forget, seconds, succeeded

ROUNDS = 3
SHAPES = {"1 file of 1 GiB": (1, 1 << 30), "20,000 files of 4 KiB": (20_000, 4096)}
DIRECTIVES = [
    "#DW jobdw type=scratch access_mode=striped capacity=3GiB",
    "#DW stage_in type=directory source=%d/input destination=$DW_JOB_STRIPED/data",
    "#DW stage_out type=directory source=$DW_JOB_STRIPED/data destination=%d/results",
]


def run(place: Place) -> list[Line]:
    return [line for name, (files, size) in SHAPES.items() for line in compared(place, name, files, size)]


def compared(place: Place, name: str, files: int, size: int) -> list[Line]:
    with place.job() as job, place.in_shared_memory() as memory:
        source, results = job.directory / "input", job.directory / "results"
        source.mkdir()
        draw = random.Random(place.seed)
        block = draw.randbytes(min(size, 1 << 20))
        for number in range(files):
            with open(source / str(number), "wb") as file:
                for _ in range(size // len(block)):
                    file.write(block)
        job.script("true", *DIRECTIVES)

        def fresh() -> None:
            shutil.rmtree(results, ignore_errors=True)
            forget(source)

        def copied() -> tuple[float, float]:
            fresh()
            into = seconds(job, "cp", "-r", source, memory / "data")
            out = seconds(job, "sh", "-c", 'cp -r "$1" "$2" && sync', "sh", memory / "data", results)
            shutil.rmtree(memory / "data")
            return into, out

        def staged() -> tuple[float, float]:
            fresh()
            account = json.loads(succeeded(job.run("--json")).stdout)
            return account["stage_in"]["seconds"], account["stage_out"]["seconds"]

        a, b, again = in_turn(ROUNDS, copied, staged)
    part = lambda runs, index: [run[index] for run in runs]
    ways = [("stage in", "cp -r"), ("stage out", "cp -r, sync")]
    return [
        Compared(f"{way}, {name}", by, "forebay", "s", part(a, index), part(b, index), part(again, index))
        for index, (way, by) in enumerate(ways)
    ]
