"""The Python side of `forebay` in the process of the test, where a start of Python for each call would take most of the time."""

import contextlib
import os
import pathlib
import subprocess

from click.testing import CliRunner
from forebay.cli import main

from support.job import Job


def in_process(forebay: pathlib.Path, words, directory: pathlib.Path, variables: dict) -> subprocess.CompletedProcess:
    """A verb of the Python side with these words, as this program `forebay` starts it. A variable that is None is not set."""
    variables = variables | {
        "FOREBAY_PROGRAM": str(forebay),
        "FOREBAY_MACHINES": str(forebay.parents[1] / "share" / "forebay" / "machines"),
    }
    called = [str(word) for word in words]
    with contextlib.chdir(directory):
        done = CliRunner().invoke(main, called, env=variables)
    if done.exception and not isinstance(done.exception, SystemExit):
        raise done.exception
    return subprocess.CompletedProcess(called, done.exit_code, done.stdout, done.stderr)


class JobInProcess(Job):
    """Its calls of `forebay plan` start no process. All others do, as those of a Job."""

    def command(self, *words: str, **environment: str) -> subprocess.CompletedProcess:
        if words[0] != "plan":
            return super().command(*words, **environment)
        given = self.environment(**environment)
        variables = {name: given.get(name) for name in {*os.environ, *given}}
        return in_process(self.forebay, words, self.directory, variables)
