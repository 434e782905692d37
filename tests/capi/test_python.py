"""`forebay.stage`: the same from Python."""

import os
import subprocess
import sys

from support.isolation import WITHOUT_CONFIGURATION
from support.capi import PATHS
from support.job import DW

OUTSIDE = """
from forebay import stage
try:
    stage.stage_out("a", "b")
except stage.NotInJobError as error:
    assert isinstance(error, OSError) and "forebay run JOB.sh" in error.hint and "forebay run JOB.sh" in str(error)
else:
    raise SystemExit("nothing was raised")
"""
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
assert {"a", "c"} <= set(os.listdir(buffer / "d")) and stage.failures(buffer) == []
stage.stage_out(buffer / "b", pfs / "gone", "job-end")
stage.terminate(buffer / "b")
stage.stage_out(buffer / "d", pfs / "later", "job-end")
stage.revoke(buffer / "d" / "a")
stage.activate(buffer / "d" / "c")
stage.wait(buffer / "d" / "c")
assert stage.query(buffer / "d" / "c").complete == 1 and stage.query(buffer / "d").deferred == 0
stage.set_concurrency(buffer, 3)
with open(buffer / "empty", "w") as file:
    layout = stage.layout(file.fileno())
    assert layout == (1 << 20, 1, 0)
    stage.set_layout(file.fileno(), layout.stripe_bytes, layout.width)
assert stage.mds_path(buffer, 2**63) == buffer
assert stage.account(buffer)["namespaces"][0]["stage_bytes_read"] == 2
calls = {
    "set_layout": lambda: stage.set_layout(os.open(buffer, os.O_RDONLY), 1 << 20, 2),
    "layout": lambda: stage.layout(os.open("/", os.O_RDONLY)),
    "mds_path": lambda: stage.mds_path("/", 1),
    "set_concurrency": lambda: stage.set_concurrency(buffer, -1),
    "account": lambda: stage.account("/"),
    "wait_sync": lambda: stage.wait_sync(os.open(buffer, os.O_RDONLY)),
}
for name, call in calls.items():
    try:
        call()
    except OSError as error:
        assert error.errno == errno.EINVAL, (name, error)
    else:
        raise AssertionError(name)
for refused, number in ((buffer / "b", errno.EINVAL), (buffer / "no", errno.ENOENT)):
    try:
        stage.query(refused)
    except OSError as error:
        assert (error.errno, error.filename) == (number, str(refused)), error
    else:
        raise AssertionError(refused)
for call in (stage.query, lambda path: stage.stage_out([path], pfs), lambda path: stage.stage_in(buffer / "x", path)):
    try:
        call(str(buffer / "b") + "\\0d")
    except ValueError:
        pass
    else:
        raise AssertionError(call)
"""


def test_python_module_stages_like_the_c_library(asking):
    (asking.job.directory / "program.py").write_text(PROGRAM)
    (asking.pfs / "later").mkdir()
    asking.job.script(f"{PATHS}; {sys.executable} program.py", DW)
    done = asking.job.run(PATH=f"{asking.job.forebay.parent}:/usr/bin:/bin")
    assert done.returncode == 0, done.stderr
    assert sorted(path.name for path in asking.pfs.iterdir()) == ["a", "c", "later"]
    assert [path.name for path in (asking.pfs / "later").iterdir() if path.is_file()] == ["c"]


def test_stage_module_import_loads_little():
    heavy = "numpy", "msgspec", "click", "subprocess", "asyncio"
    check = f"import sys, forebay.stage; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_python_outside_a_job_raises_error_with_hint(build):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("FOREBAY")}
    environment |= WITHOUT_CONFIGURATION
    environment["LD_LIBRARY_PATH"] = str(build / "lib")
    done = subprocess.run([sys.executable, "-c", OUTSIDE], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
