"""The example of plots beside a simulation, as it stands."""

import json
import shutil

import pytest

from views import PROJECT

STEPS = 2


@pytest.mark.parametrize("store", ["directory", "memory"])
def test_the_pictures_and_nothing_else_come_out(job, build, store):
    if store == "memory":
        job.in_memory()
    shutil.copytree(PROJECT / "examples" / "insitu", job.directory, dirs_exist_ok=True)
    python = str(build / "venv" / "bin" / "python")
    real, job.forebay = job.forebay, job.directory / "run.sh"
    done = job.command(*job.where, "--json", FOREBAY=str(real), PYTHON=python, STEPS=str(STEPS))
    job.forebay = real
    assert done.returncode == 0, done.stderr
    pictures = sorted((job.directory / "pictures").iterdir())
    assert [picture.name for picture in pictures] == [f"step-{step:03}.png" for step in (1, 2)]
    assert all(picture.read_bytes().startswith(b"\x89PNG") for picture in pictures)
    assert list(job.directory.glob("**/*.nc")) == []
    account = json.loads(done.stdout)
    assert [account["on_close"][name] for name in ("closed", "done", "failures")] == [STEPS, STEPS, []]
    assert account["drain"]["enqueued"] == STEPS
    job.leaves_nothing()
