"""Two nodes rename the same files at the same time, as programs do that take work from a queue."""

import pytest

from support.engines import ENGINES, namespace_of
from support.nodes import PYTHON, nodes
from support.strace import EVERY_POINT

FILES = 300
ROUNDS = 40 if EVERY_POINT else 4

# It makes files, renames as many of them as it can, or counts those that were renamed.
WORKER = """
import os, sys
for line in sys.stdin:
    verb, top, files = line.split()
    done = []
    if verb == "make":
        os.makedirs(f"{top}/queue")
        os.mkdir(f"{top}/taken")
    for number in range(int(files)):
        try:
            if verb == "make":
                open(f"{top}/queue/{number}", "w").close()
            elif verb == "take":
                os.rename(f"{top}/queue/{number}", f"{top}/taken/{number}")
            else:
                os.stat(f"{top}/taken/{number}")
            done.append(number)
        except FileNotFoundError:
            pass
    print(*done, flush=True)
"""


@pytest.mark.timeout(900 if EVERY_POINT else 180)
def test_file_that_two_nodes_rename_has_one_winner_and_no_name_hangs(build):
    with nodes(2, build) as bed, namespace_of(bed, ENGINES["ceph"]) as namespace:
        workers = [namespace.popen(node, [PYTHON, "-c", WORKER]) for node in namespace.nodes]

        def starts(worker, verb, number):
            worker.stdin.write(f"{verb} {namespace.directory / str(number)} {FILES}\n")
            worker.stdin.flush()

        def answer(worker):
            return [int(word) for word in worker.stdout.readline().split()]

        for number in range(ROUNDS):
            starts(workers[number % 2], "make", number)
            assert len(answer(workers[number % 2])) == FILES
            for worker in workers:
                starts(worker, "take", number)
            taken = sorted(answer(workers[0]) + answer(workers[1]))
            assert taken == list(range(FILES)), [one for one in taken if taken.count(one) > 1]
            for worker in workers:
                starts(worker, "look", number)
            assert [len(answer(worker)) for worker in workers] == [FILES, FILES]
        for worker in workers:
            worker.stdin.close()
            assert worker.wait(timeout=60) == 0
