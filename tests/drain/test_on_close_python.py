"""Python functions on close (`forebay.watch`): next to any program, and in a job."""

import os
import shutil
import signal
import subprocess
import sys
import threading
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest

from forebay.errors import ForebayError
from forebay.watch import Watch
from support.job import DW
from support.waiting import wait_until


@pytest.fixture
def top(build, tmp_path, monkeypatch):
    monkeypatch.setenv("FOREBAY_PROGRAM", str(build / "bin" / "forebay"))
    (tmp_path / "data").mkdir()
    return tmp_path / "data"


def test_each_version_calls_its_function_once_before_the_watch_ends(top):
    watch = Watch(top)
    seen, others, second = [], [], threading.Event()

    @watch.on_close("*.nc", "deep/*.h5")
    def note(closed):
        seen.append((closed.path, closed.version, closed.path.read_text()))
        second.set()

    watch.on_close("*.png")(lambda closed: others.append(closed.path.name))
    odd = top / os.fsdecode(b"not UTF-8 \xff;'$HOME.nc")
    with watch as same:
        assert same is watch
        odd.write_text("one")
        assert second.wait(60)
        with odd.open("a") as file:
            file.write("+two")
        (top / "other").write_text("no")
        (top / "deep").mkdir()
        (top / "deep" / "a.h5").write_text("three")
        (top / "a.png").touch()
    assert sorted(seen) == sorted([(odd, 1, "one"), (odd, 2, "one+two"), (top / "deep" / "a.h5", 1, "three")])
    assert others == ["a.png"]
    assert (watch.account.closed, watch.account.done, watch.account.failures) == (4, 4, [])


def test_functions_at_a_time_are_limited_and_later_files_are_handled(top):
    watch = Watch(top, at_most=2)
    met, running, most = threading.Barrier(2), [], []

    @watch.on_close("?")
    def meet(closed):
        running.append(closed)
        most.append(len(running))
        met.wait(60)  # alone it would never end
        running.remove(closed)
        closed.path.with_suffix(".follows").touch()

    followed = []
    watch.on_close("*.follows")(lambda closed: followed.append(closed.path.name))
    with watch:
        for name in "abcd":
            (top / name).touch()
    assert max(most) == 2 and sorted(followed) == [f"{name}.follows" for name in "abcd"]
    assert watch.account.done == 8


def test_failed_function_is_retried_then_listed_and_logged(top, tmp_path, capfd):
    log = tmp_path / "log"
    watch = Watch(top, retries=2, log=log)
    calls = []

    @watch.on_close("twice")
    def twice(closed):
        calls.append(closed.version)
        if len(calls) < 3:
            raise KeyError("not yet")

    @watch.on_close("never")
    def never(closed):
        raise ValueError(f"no variable v in {closed.path.name}")

    with watch:
        (top / "twice").touch()
        (top / "never").touch()
    account = watch.account
    assert (calls, account.done, account.failed) == ([1, 1, 1], 1, 1)
    (failure,) = account.failures
    assert (failure.path, failure.version) == (str(top / "never"), 1)
    assert failure.reason == "ValueError: no variable v in never"
    said = capfd.readouterr().err
    assert "on close: 1 calls succeeded, 1 failed" in said
    assert f"error: on close: {top}/never, version 1: ValueError: no variable v in never" in said
    text = log.read_text()
    assert text.count("KeyError: 'not yet'\n") == 2 and text.count("ValueError: no variable") == 3
    assert text.count("in never\n    raise ValueError(") == 3  # the lines of a traceback
    assert "twice returned\n" in text


def test_traceback_is_printed_where_there_is_no_log(top, capfd):
    watch = Watch(top)
    watch.on_close("*")(lambda closed: 1 / 0)
    with watch:
        (top / "a").touch()
    said = capfd.readouterr().err
    assert "Traceback (most recent call last)" in said and "ZeroDivisionError" in said


class Odd(Exception):
    @property
    def __notes__(self):
        raise RuntimeError("not even this")


@pytest.mark.parametrize("name", ["not UTF-8", "not to be shown"])
def test_any_exception_of_a_function_is_recorded_as_failure(top, name, capfd):
    watch = Watch(top)

    @watch.on_close("*")
    def plot(closed):
        raise ValueError(f"cannot plot {closed.path.name}") if name == "not UTF-8" else Odd

    with watch:
        limit = threading.Timer(60, watch._process.kill)  # without an answer it would wait for ever
        limit.start()
        (top / os.fsdecode(b"\xff.nc")).touch()
    limit.cancel()
    (failure,) = watch.account.failures
    assert failure.reason.startswith("ValueError: cannot plot \\udcff.nc" if name == "not UTF-8" else "Odd")
    assert watch.account.failed == 1 and failure.reason in capfd.readouterr().err


def copy(closed):
    target = closed.path.parent.parent / f"{closed.path.name}.{os.getpid()}"
    shutil.copyfile(closed.path, target)


def test_functions_can_run_in_a_process_pool(top, tmp_path):
    # Each in a process of its own, for libraries that threads must not share.
    with ProcessPoolExecutor(2, mp_context=get_context("spawn"), max_tasks_per_child=1) as executor:
        watch = Watch(top, at_most=2, executor=executor)
        watch.on_close("*.nc")(copy)
        with watch:
            for name in "ab":
                (top / f"{name}.nc").write_text(name)
    made = {path.name[0]: path for path in tmp_path.glob("*.nc.*")}
    assert {name: path.read_text() for name, path in made.items()} == {"a": "a", "b": "b"}
    processes = {path.suffix for path in made.values()}
    assert len(processes) == 2 and f".{os.getpid()}" not in processes


def test_broken_executor_fails_its_files(top):
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as executor:
        watch = Watch(top, executor=executor)
        watch.on_close("*")(leave)
        with watch:
            (top / "a").touch()
    (failure,) = watch.account.failures
    assert "BrokenProcessPool" in failure.reason


def leave(closed):
    os._exit(3)


def test_exception_ends_running_functions_and_starts_no_more(top):
    watch = Watch(top)
    begun, go_on = threading.Event(), threading.Event()
    ended = []

    @watch.on_close("*")
    def wait_for_go(closed):
        begun.set()
        assert go_on.wait(60)
        ended.append(closed.path.name)

    with pytest.raises(KeyboardInterrupt), watch:
        (top / "a").touch()
        assert begun.wait(60)
        (top / "b").touch()
        say = watch._send
        # Ends right after `forebay watch` got the stop: one of its threads reads it, and others act on it.
        watch._send = lambda line: (say(line), go_on.set())
        raise KeyboardInterrupt
    assert ended == ["a"] and watch.account.done == 1
    assert watch.account.not_run + 1 == watch.account.closed


def test_watch_waits_until_its_directory_is_removed(top):
    watch = Watch(top)
    seen = []
    watch.on_close("*")(lambda closed: seen.append(closed.path.name))
    with watch:
        (top / "a").touch()
        wait_until(lambda: seen)
        shutil.rmtree(top)
        watch.wait()
        assert watch.account.done == 1


ALONE = """
import sys, time
from pathlib import Path
from forebay.watch import Watch
watch = Watch("data")
@watch.on_close("*")
def hold(closed):
    Path("begun").touch()
    time.sleep(float(sys.argv[1]))
    Path("ended").touch()
with watch:
    print(watch._process.pid, flush=True)
    watch.wait()
"""


FORKING = """
import os, sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from forebay.watch import Watch
def name_itself(closed):
    print(os.getpid(), flush=True)
with ProcessPoolExecutor(1, mp_context=get_context("fork")) as executor:
    watch = Watch("data", executor=executor)
    watch.on_close("*")(name_itself)
    with watch:
        print(watch._process.pid, flush=True)
        watch.wait()
"""


def test_forked_workers_do_not_keep_the_watch_alive(top, tmp_path):
    words, worker = [sys.executable, "-c", FORKING], None
    process = subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        child = int(process.stdout.readline())
        (top / "a").touch()
        worker = int(process.stdout.readline())
        process.kill()
        process.wait(timeout=300)
        wait_until(lambda: not alive(child), what="the end of forebay watch")
    finally:
        if worker and alive(worker):  # of the test's own, which no executor ends any more
            os.kill(worker, signal.SIGKILL)
        process.kill()
        process.communicate()


@pytest.mark.parametrize("how", ["Ctrl-C", "kill -9"])
def test_stopped_python_watch_leaves_no_process(top, tmp_path, how):
    held_s = "0.5" if how == "Ctrl-C" else "600"
    words = [sys.executable, "-c", ALONE, held_s]
    process = subprocess.Popen(
        words, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        child = int(process.stdout.readline())
        (top / "a").touch()
        wait_until((tmp_path / "begun").exists, process=process)
        # As a terminal does: all of the foreground.
        number = signal.SIGINT if how == "Ctrl-C" else signal.SIGKILL
        os.killpg(process.pid, number)
        process.communicate(timeout=300)
        assert process.returncode == -number
        assert (tmp_path / "ended").exists() == (how == "Ctrl-C")
        wait_until(lambda: not alive(child), what="the end of forebay watch")
    finally:
        process.kill()
        process.wait()


def alive(process_id):
    try:
        with open(f"/proc/{process_id}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_killed_watch_raises_an_error(top):
    watch = Watch(top)
    watch.on_close("*")(print)
    with pytest.raises(ForebayError, match="status -9"), watch:
        os.kill(watch._process.pid, signal.SIGKILL)


def test_bad_watch_arguments_raise_errors(top, capfd):
    with pytest.raises(ForebayError, match="no directory"):
        Watch()
    with pytest.raises(ForebayError, match="comma"):
        Watch(top).on_close("a=b")
    for watch, part in (
        (Watch(top / "no"), "cannot find"),
        (Watch(top, at_most=0), "--jobs"),
        (Watch(top, log=top / "no" / "log"), "no/log"),
        (Watch(top), "--on-close"),
    ):
        if part != "--on-close":
            watch.on_close("*")(print)
        with pytest.raises(ForebayError, match="nothing can be watched"), watch:
            raise AssertionError("it watches")
        assert part in capfd.readouterr().err
    begun = Watch(top)
    begun.on_close("*")(print)
    with begun, pytest.raises(ForebayError, match="has begun"):
        begun.on_close("*")


IN_JOB = """
import os, subprocess
from pathlib import Path
from forebay import stage
from forebay.watch import Watch
buffer = Path(os.environ["DW_JOB_STRIPED"])
watch = Watch(buffer)
@watch.on_close("step-*.nc")
def plot(closed):
    picture = closed.path.with_suffix(".png")
    picture.write_text("picture of " + closed.path.read_text())
    stage.stage_out(picture, Path("pictures") / picture.name)
with watch:
    subprocess.run(["sh", "-c", 'for i in 1 2 3; do echo $i > "$DW_JOB_STRIPED/step-$i.nc"; done'], check=True)
assert watch.account.done == 3, watch.account
"""


@pytest.mark.parametrize("where", ["directory", "memory"])
def test_function_in_a_job_can_stage_out_its_output(job, where):
    if where == "memory":
        job.in_memory()
    (job.directory / "program.py").write_text(IN_JOB)
    pictures = job.directory / "pictures"
    pictures.mkdir()
    job.script(f'cd "$SLURM_SUBMIT_DIR"; {sys.executable} program.py', DW)
    done = job.run(PATH=f"{job.forebay.parent}:/usr/bin:/bin")
    assert done.returncode == 0, done.stderr
    texts = {path.name: path.read_text() for path in pictures.iterdir()}
    assert texts == {f"step-{step}.png": f"picture of {step}\n" for step in (1, 2, 3)}
    job.leaves_nothing()
