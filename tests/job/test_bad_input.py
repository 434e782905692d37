"""Scripts, paths, folders and neighbours as they should not be."""

import json
import os

import pytest

from support.job import DW, Job, PROFILES, finished
from support.slow_model import MODEL
from support.users import anyone, make, reachable, reachable_program, started  # noqa: F401 (a fixture)

STAGE_OUT = "#DW stage_out type=directory source=$DW_JOB_STRIPED/out destination=%d/results"
WRITES = 'mkdir "$DW_JOB_STRIPED/out"; echo x > "$DW_JOB_STRIPED/out/x"'
ONLY_ROOT = pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")


@pytest.fixture
def user(build):
    """A job of an ordinary user."""
    with reachable(build) as job:
        job.as_nobody()
        job.top = job.directory.parent
        yield job


@ONLY_ROOT
def test_unreadable_script_is_refused(user):
    user.script("touch started")
    (user.directory / "job.sh").chmod(0o600)
    done = user.run("--json")
    assert (
        done.returncode == 125
        and json.loads(done.stdout)["error"] == "cannot read job.sh: Permission denied (os error 13)"
    )
    user.leaves_nothing()


def test_file_that_is_no_script_is_refused(job):
    for make_it, message in [
        (lambda path: path.mkdir(), "cannot read job.sh: Is a directory"),
        (lambda path: path.write_text(""), "does not begin with #!"),
        (lambda path: path.write_text("#!\n"), "does not begin with #!"),
        (lambda path: path.write_bytes(b"#!/bin/bash\0\n"), "error: "),
        (lambda path: path.write_text("#!/bin/bash\r\n#SBATCH -n 2\r\n"), "carriage returns"),
    ]:
        path = job.directory / "job.sh"
        make_it(path)
        done = job.run()
        assert done.returncode == 125 and message in done.stderr, done.stderr
        path.rmdir() if path.is_dir() else path.unlink()
        job.leaves_nothing()


def test_script_with_bytes_that_are_not_utf8_runs_and_such_a_directive_is_named(job):
    text = "#!/bin/bash\n# Größe\n#DW jobdw type=scratch access_mode=striped capacity=1MiB\necho -n é | od -An -tx1\n"
    (job.directory / "job.sh").write_bytes(text.encode("latin-1"))
    done = job.run()
    assert (done.returncode, done.stdout.split()) == (0, ["e9"]), done.stderr
    wrong = text.replace("echo", "#DW stage_in type=file source=/é destination=$DW_JOB_STRIPED/e\necho")
    (job.directory / "job.sh").write_bytes(wrong.encode("latin-1"))
    done = job.run()
    assert done.returncode == 125 and "job.sh: line 4: the directive is not valid UTF-8" in done.stderr
    (job.directory / "job.sh").write_bytes("#!/bin/bash\n# é\ntouch ran; rm -rf $DW_JOB_STRIPED/*\n".encode("latin-1"))
    for words in (["run", "job.sh"], ["profile", "--", "bash", "job.sh"]):
        done = job.command(*words)
        assert done.returncode == 125 and "line 3, column 20: $DW_JOB_STRIPED is not set" in done.stderr, done.stderr
    assert not (job.directory / "ran").exists()
    job.leaves_nothing()


@pytest.mark.parametrize("store", ["memory", "directory"])
def test_blanks_and_quotes_in_all_paths_are_kept(build, store, tmp_path):
    top = tmp_path / 'it\'s "a" $HOME'
    top.mkdir()
    job = Job(build / "bin" / "forebay", top)
    if store == "memory":
        job.in_memory("--store", "memory")
    job.script(f'{WRITES}; srun -n 2 pwd; mpiexec -n 1 cat < /dev/null; echo "$0" | wc -l', DW, STAGE_OUT)
    name = "a 'job' \"$x\" #%j.sh"
    (job.directory / "job.sh").rename(job.directory / name)
    done = finished(job.forebay_starts("run", *job.where, name, "--", "two words"))
    assert (done.returncode, done.stdout.splitlines()) == (0, [str(job.directory)] * 2 + ["1"]), done.stderr
    assert (job.directory / "results" / "x").read_text() == "x\n"
    blanks = 0 if store == "memory" else 1  # in memory it is /mnt/forebay/ID
    assert done.stderr.count("warning: there are blanks in the allocation's path") == blanks
    job.leaves_nothing()


@pytest.mark.parametrize("other", ["same user", "another user"])
def test_two_runs_share_the_default_store(build, other):
    if other == "another user" and os.getuid() != 0:
        pytest.skip("only root can become another user")
    with reachable(build) as first, reachable(build) as second:
        jobs = [first, second]
        if other == "another user":
            second.as_nobody()
        shared = make(first, first.directory.parent / "shared tmp")
        shared.chmod(0o1777)
        for job in jobs:
            job.in_memory()
            job.script(
                f'{WRITES}; touch running; until [ -e go ]; do sleep 0.01; done; echo $FOREBAY_JOB_ID; ls "$DW_JOB_STRIPED/out"',
                DW,
                STAGE_OUT,
            )
        processes = [job.start(TMPDIR=str(shared)) for job in jobs]
        for job, process in zip(jobs, processes):
            started(job, process)
        for job in jobs:
            (job.directory / "go").touch()
        done = [finished(process) for process in processes]
        assert [ended.returncode for ended in done] == [0, 0], [ended.stderr for ended in done]
        ids = [ended.stdout.split()[0] for ended in done]
        assert ids[0] != ids[1] and all(ended.stdout.split()[1:] == ["x"] for ended in done)
        for job in jobs:
            assert (job.directory / "results" / "x").read_text() == "x\n"
            job.leaves_nothing()
        assert list(shared.iterdir()) == []


def test_missing_temporary_folder_is_reported(job):
    job.script("touch started", DW)
    done = job.run(TMPDIR="/no/such")
    assert (
        done.returncode == 125
        and "temporary files, /no/such, does not exist" in done.stderr
        and "hint: set TMPDIR" in done.stderr
    )
    assert not (job.directory / "started").exists()
    job.leaves_nothing()


@ONLY_ROOT
def test_unwritable_temporary_folder_is_reported(user):
    user.script("touch started", DW)
    user.temporary.chmod(0o555)
    done = user.run()
    assert (
        done.returncode == 125 and "temporary files cannot be used" in done.stderr and "hint: set TMPDIR" in done.stderr
    )
    user.leaves_nothing()


def without_state(job, **environment):
    """Runs with FOREBAY_STATE unset."""
    kept = job.environment
    job.environment = lambda **more: {
        name: value for name, value in kept(**more).items() if name not in ("FOREBAY_STATE", "XDG_STATE_HOME")
    }
    try:
        return job.start(**environment)
    finally:
        job.environment = kept


@ONLY_ROOT
@pytest.mark.parametrize("home", ["/proc", "/root", "", "not/absolute"])
def test_job_without_state_directory_is_recorded_in_the_temporary_folder(user, home):
    user.script("ls -l $TMPDIR/forebay-state-*/ | grep -c $FOREBAY_JOB_ID-.*json", DW)
    done = finished(without_state(user, HOME=home))
    assert (done.returncode, done.stdout) == (0, "1\n"), done.stderr
    (left,) = user.temporary.iterdir()
    assert (
        left.name == "forebay-state-65534"
        and [path.name for path in left.iterdir()] == [PROFILES]
        and left.stat().st_mode & 0o777 == 0o700
    )


@ONLY_ROOT
@pytest.mark.parametrize("how", ["owned by another", "a link", "open to all"])
def test_state_directory_of_another_user_is_not_used(user, how):
    """What its records call leftovers would be removed."""
    victim = make(user, user.top / "victim", precious="x")
    trap = user.temporary / "forebay-state-65534"
    target = user.top / "trap" if how == "a link" else trap
    target.mkdir()
    if how == "a link":
        os.symlink(target, trap)
        os.chown(target, 65534, 65534)
        os.lchown(trap, 1, 1)
    elif how == "open to all":
        os.chown(trap, 65534, 65534)
    target.chmod(0o777)
    record = {
        "id": "1",
        "script": "x",
        "began_unix_s": 1,
        "host": os.uname().nodename,
        "boot_id": "x",
        "process": {"pid": 1, "started_ticks": 1},
        "keeper": None,
        "phase": "preparing",
        "job_directory": str(victim),
        "place": None,
        "stage_out": [],
        "emulation": None,
    }
    (target / "1.json").write_text(json.dumps(record))
    (target / "1.json").chmod(0o666)
    done = user.command("clean")
    assert (victim / "precious").exists() and done.returncode == 0, done.stderr
    user.script("echo ran", DW)
    done = finished(without_state(user, HOME="/proc"))
    assert done.returncode == 125 and "hint: set FOREBAY_STATE" in done.stderr, done.stderr
    assert user.allocations() == []


@pytest.mark.parametrize(
    "wrong, named",
    [("20 MB", "targets.bandwidth"), ("20 furlongs", "targets.bandwidth"), ("fast", "targets.bandwidth")],
)
def test_model_file_with_a_wrong_unit_is_named_with_its_key(job, wrong, named):
    model = job.directory / "model.toml"
    model.write_text(MODEL.replace('bandwidth = { value = "20 MB/s"', f'bandwidth = {{ value = "{wrong}"', 1))
    job.script("touch started", DW)
    done = job.run("--pfs-model", "model.toml")
    assert done.returncode == 125 and "model.toml" in done.stderr and named in done.stderr and wrong in done.stderr
    assert "hint: docs/reference/machine-files.md" in done.stderr and not (job.directory / "started").exists()
    job.leaves_nothing()
