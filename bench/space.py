"""Memory that many small files take."""

import subprocess
import sys

from measure import Counted, Line
from place import Place, last_object, succeeded

FILES = 100_000
BYTES = 4096
PROGRAM = """
import os, sys
directory, files, size = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
def used():
    space = os.statvfs(directory)
    return (space.f_blocks - space.f_bfree) * space.f_frsize
before = used()
for number in range(files):
    with open(f"{directory}/{number}", "wb") as file:
        file.write(b"x" * size)
print('{"used": %d}' % (used() - before))
"""


def run(place: Place) -> list[Line]:
    words = [sys.executable, "small.py"]
    numbers = [str(FILES), str(BYTES)]
    with place.job() as job, place.in_shared_memory() as plain:
        (job.directory / "small.py").write_text(PROGRAM)
        job.script(
            " ".join([*words, "$DW_JOB_STRIPED", *numbers]), "#DW jobdw type=scratch access_mode=striped capacity=2GiB"
        )
        through = last_object(succeeded(job.run()).stdout)["used"]
        beside = last_object(
            succeeded(
                subprocess.run([*words, plain, *numbers], cwd=job.directory, capture_output=True, text=True)
            ).stdout
        )["used"]
    ratio = through / beside
    verdict = "the same" if through == beside else f"{ratio:.3f} times"
    mib = 1 << 20
    return [
        Counted(
            f"space of {FILES:,} files of {BYTES} bytes",
            "/dev/shm",
            "memory",
            "MiB",
            beside / mib,
            through / mib,
            verdict,
        )
    ]
