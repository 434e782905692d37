"""Two nodes that write one file at the same time: both writes return."""

from support.mpi import PROJECT
from support.nodes import PYTHON, ended
from support.strace import EVERY_POINT

FILES = 100 if EVERY_POINT else 10
LIMIT_S = 300  # a hang, not a slow machine


def test_write_returns_while_another_node_begins_to_write_the_file(namespace):
    program = PROJECT / "tests" / "programs" / "nodes" / "two_writers.py"
    directory = namespace.make_directory("writers")
    places = {"first": namespace.nodes[0], "second": namespace.nodes[-1]}
    writers = [
        namespace.popen(node, [PYTHON, program, directory, role, FILES], directory=directory)
        for role, node in places.items()
    ]
    try:
        for writer in writers:
            ended(writer, seconds=LIMIT_S)
    finally:
        for writer in writers:
            writer.kill()
