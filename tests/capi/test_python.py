"""`forebay.stage`: the same from Python."""

import subprocess
import sys

from asking import PATHS
from job import DW

PROGRAM = """
import errno, os
from pathlib import Path
from forebay import stage

buffer, pfs = Path(os.environ["DW_JOB_STRIPED"]), Path("pfs")
for name in ("a", "b", "c"):
    (buffer / name).write_text(name)
stage.stage_out(buffer / "a", pfs / "a")
stage.wait(buffer / "a")
assert stage.query(buffer / "a") == (1, 0, 0, 0) and (pfs / "a").read_text() == "a"
stage.stage_out([buffer / "b", str(buffer / "c")], pfs, when="job-end")
assert stage.query([buffer / "b", buffer / "c"]).deferred == 2
stage.revoke([buffer / "b"])
stage.activate(buffer / "c")
stage.wait([buffer / "c"])
(buffer / "d").mkdir()
stage.stage_in(buffer / "d", pfs)
stage.wait(buffer / "d")
assert sorted(os.listdir(buffer / "d")) == ["a", "c"] and stage.failures(buffer) == []
stage.stage_out(buffer / "b", pfs / "gone", "job-end")
stage.terminate(buffer / "b")
for refused, number in ((buffer / "b", errno.EINVAL), (buffer / "no", errno.ENOENT)):
    try:
        stage.query(refused)
    except OSError as error:
        assert (error.errno, error.filename) == (number, str(refused)), error
    else:
        raise AssertionError(refused)
"""


def test_the_same_can_be_asked_from_python(asking):
    (asking.job.directory / "program.py").write_text(PROGRAM)
    asking.job.script(f"{PATHS}; {sys.executable} program.py", DW)
    done = asking.job.run(PATH=f"{asking.job.forebay.parent}:/usr/bin:/bin")
    assert done.returncode == 0, done.stderr
    assert sorted(path.name for path in asking.pfs.iterdir()) == ["a", "c"]


def test_importing_it_is_light():
    heavy = "numpy", "msgspec", "click", "subprocess", "asyncio"
    check = f"import sys, forebay.stage; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
