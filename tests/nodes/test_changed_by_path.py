"""A node writes files, another one changes their times or sizes by path, and a third one reads them at that moment."""

import pytest

from support.engines import ENGINES, namespace_of
from support.nodes import PYTHON, nodes
from support.strace import EVERY_POINT

FILES = 40
ROUNDS = 100 if EVERY_POINT else 4

# It writes files and keeps them open, changes them by path, or reads them. Each answer is the files that are wrong.
WORKER = """
import os, sys
held = []
for line in sys.stdin:
    verb, directory, files = line.split()
    wrong = []
    for path in (f"{directory}/{number}" for number in range(int(files))):
        if verb == "write":
            held.append(os.open(path, os.O_CREAT | os.O_RDWR))
            os.pwrite(held[-1], b"A" * 100, 0)
        elif verb == "times":
            os.utime(path, (1000, 1000))
        elif verb == "sizes":
            os.truncate(path, 200)
        else:
            with open(path, "rb") as file:
                found = file.read(100)
            if found != b"A" * 100:
                wrong.append((path, found[:8]))
    if verb == "read":
        while held:
            os.close(held.pop())
    print(wrong, flush=True)
"""


@pytest.mark.timeout(1200 if EVERY_POINT else 180)
@pytest.mark.parametrize("change", ["times", "sizes"])
def test_reader_sees_what_was_written_before_another_node_changed_the_file(build, change):
    with nodes(3, build) as bed, namespace_of(bed, ENGINES["ceph"]) as namespace:
        workers = [namespace.popen(node, [PYTHON, "-c", WORKER]) for node in namespace.nodes]
        writer, changer, reader = workers

        def starts(worker, verb, directory):
            worker.stdin.write(f"{verb} {directory} {FILES}\n")
            worker.stdin.flush()

        def assert_nothing_wrong(worker):
            assert worker.stdout.readline() == "[]\n"

        for number in range(ROUNDS):
            directory = namespace.directory / str(number)
            namespace.run("n1", ["mkdir", directory])
            starts(writer, "write", directory)
            assert_nothing_wrong(writer)
            starts(changer, change, directory)
            starts(reader, "read", directory)
            for worker in (changer, reader):
                assert_nothing_wrong(worker)
            starts(writer, "read", directory)
            assert_nothing_wrong(writer)
        for worker in workers:
            worker.stdin.close()
            assert worker.wait(timeout=60) == 0
