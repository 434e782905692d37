"""The Python side of `forebay` in the process of the test, where a start of Python for each call would take most of the time."""

import contextlib
import os
import subprocess

from click.testing import CliRunner
from forebay.cli import main

from support.job import Job


class JobInProcess(Job):
    """Its calls of `forebay plan` start no process. All others do, as those of a Job."""

    def command(self, *words: str, **environment: str) -> subprocess.CompletedProcess:
        if words[0] != "plan":
            return super().command(*words, **environment)
        given = self.environment(**environment) | {
            "FOREBAY_PROGRAM": str(self.forebay),
            "FOREBAY_MACHINES": str(self.forebay.parents[1] / "share" / "forebay" / "machines"),
        }
        variables = {name: given.get(name) for name in {*os.environ, *given}}  # None: not set
        called = [str(word) for word in words]
        with contextlib.chdir(self.directory):
            done = CliRunner().invoke(main, called, env=variables)
        if done.exception and not isinstance(done.exception, SystemExit):
            raise done.exception
        return subprocess.CompletedProcess(called, done.exit_code, done.stdout, done.stderr)
