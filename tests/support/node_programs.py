"""A program on a node that makes calls on files as a test says, one at a time."""

import contextlib
import json
from collections.abc import Iterator

from support.engines import Namespace
from support.mpi import PROJECT
from support.nodes import PYTHON

PROGRAM = PROJECT / "tests" / "programs" / "nodes" / "calls.py"


class NodeProgram:
    """It runs on a node of a namespace. `call` returns what its call returned, or the name of its error."""

    def __init__(self, namespace: Namespace, node: str):
        self.process = namespace.popen(node, [PYTHON, PROGRAM])

    def start(self, name: str, *arguments: object) -> None:
        self.process.stdin.write(json.dumps([name, *arguments]) + "\n")
        self.process.stdin.flush()

    def answer(self) -> object:
        line = self.process.stdout.readline()
        assert line, self.process.communicate()
        return json.loads(line)

    def call(self, name: str, *arguments: object) -> object:
        self.start(name, *(one if isinstance(one, (int, str)) else str(one) for one in arguments))
        return self.answer()


@contextlib.contextmanager
def program_on_each(namespace: Namespace) -> Iterator[list[NodeProgram]]:
    started = [NodeProgram(namespace, node) for node in namespace.nodes]
    try:
        yield started
    finally:
        for program in started:
            program.process.kill()
            program.process.communicate()


def lazily(program: NodeProgram, path: object, *flags: str) -> int:
    """The file's descriptor in the program, which has asked for lazy I/O."""
    file = program.call("open", path, *flags)
    assert isinstance(file, int), file
    assert program.call("begin", file) == 1
    return file
