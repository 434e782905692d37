"""The example of plots next to a simulation, as it stands."""

import json
import shutil

import pytest

from support.users import PROJECT

STEPS = 2
PICTURES = [f"step-{step:03}.png" for step in range(1, STEPS + 1)]


def pictures(job):
    """Those of the job's directory, whole, and next to them no step."""
    found = sorted((job.directory / "pictures").iterdir())
    assert all(picture.read_bytes().startswith(b"\x89PNG") for picture in found)
    assert list(job.directory.glob("**/*.nc")) == []
    return [picture.name for picture in found]


@pytest.mark.soak
@pytest.mark.parametrize("store", ["directory", "memory"])
def test_only_the_pictures_are_staged_out(job, build, store):
    if store == "memory":
        job.in_memory()
    shutil.copytree(PROJECT / "examples" / "insitu", job.directory, dirs_exist_ok=True)
    python = str(build / "venv" / "bin" / "python")
    real, job.forebay = job.forebay, job.directory / "run.sh"
    done = job.command(*job.where, "--json", FOREBAY=str(real), PYTHON=python, STEPS=str(STEPS))
    job.forebay = real
    assert done.returncode == 0, done.stderr
    assert pictures(job) == PICTURES
    account = json.loads(done.stdout)
    assert [account["on_close"][name] for name in ("closed", "done", "failures")] == [STEPS, STEPS, []]
    assert account["drain"]["enqueued"] == STEPS
    job.leaves_nothing()


def test_python_function_on_close_stages_out_only_the_pictures(job, build):
    shutil.copytree(PROJECT / "examples" / "insitu", job.directory, dirs_exist_ok=True)
    python = str(build / "venv" / "bin" / "python")
    path = f"{job.forebay.parent}:/usr/bin:/bin"
    process = job.forebay_starts("run", *job.where, "--json", "beside.sh", PYTHON=python, STEPS=str(STEPS), PATH=path)
    out, said = process.communicate(timeout=300)
    assert process.returncode == 0, said
    assert pictures(job) == PICTURES
    account = json.loads(out)
    assert (account["requested"]["files_out"], account["requested"]["failed"]) == (STEPS, 0)
    assert f"on close: {STEPS} calls succeeded, 0 failed" in said
    job.leaves_nothing()
