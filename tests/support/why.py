"""`forebay why` of a job with a burst buffer, as its user calls it."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import sysconfig

import pytest

from support.schemas import complaints

#: Other users may not reach the Python of this build.
PYTHON = shutil.which("python3", path=os.defpath)
FOREBAY = pathlib.Path(__file__).parents[2] / "python" / "src"


def need_python():
    """Skips where the user cannot run this Forebay."""
    said = subprocess.run([PYTHON, "-V"], capture_output=True, text=True).stdout.split()[-1] if PYTHON else ""
    if said.split(".")[:2] != [str(part) for part in sys.version_info[:2]]:
        pytest.skip("the Python of the system is missing, or of another version")


def ask(batch, *words):
    path = f"{FOREBAY}:{sysconfig.get_paths()['purelib']}"
    return batch.run(PYTHON, "-m", "forebay", "why", *words, PYTHONPATH=path).stdout


def why(batch, job, state):
    """What `forebay why` prints for the user of the batch, once it is of this state."""
    seen = []

    def reached():
        seen.append(json.loads(ask(batch, "--json", job)))
        return seen[-1]["state"] == state

    batch.cluster.wait(reached, lambda: (job, state, seen[-1], batch.reason(job), batch.log()))
    assert complaints("why", seen[-1]) == []
    return seen[-1]
