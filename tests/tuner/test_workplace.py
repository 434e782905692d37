"""The directory of runs: a faithful copy, and the same one before each run."""

import os
import shutil
import signal
import stat
import subprocess
import sys
import time

import pytest

from forebay.tune.runs import run_directory
from forebay.tune.errors import TuneError
from forebay.tune.runs.run_directory import RunDirectory
from support.mpi import PROJECT
from support.trees import remove_tree
from support.waiting import wait_until

MACHINE = PROJECT / "machines" / "lustre-small.toml"


@pytest.fixture
def source(tmp_path):
    """A job's directory with all that there may be in one."""
    source = tmp_path / "a job"
    (source / "data" / "deep").mkdir(parents=True)
    (source / "job.sh").write_text("#!/bin/bash\n")
    (source / "job.sh").chmod(0o750)
    (source / "data" / "deep" / "in.dat").write_bytes(b"x" * 5000)
    (source / "data" / "second").write_text("two names")
    os.link(source / "data" / "second", source / "first")
    (source / "link").symlink_to("data/deep/in.dat")
    (source / "inside").symlink_to(source / "data")
    (tmp_path / "beside").write_text("beside")
    (source / "outside").symlink_to("../beside")
    (source / "nowhere").symlink_to("not there")
    (source / "closed").mkdir()
    (source / "closed" / "file").write_text("closed")
    (source / "closed").chmod(0o555)
    os.mkfifo(source / "pipe")
    (source / "other.tune" / "work").mkdir(parents=True)
    for number, path in enumerate(sorted(source.rglob("*"))):
        if not path.is_symlink():
            os.utime(path, ns=(10**18 + number, 10**18 + number * 1000))
    yield source
    (source / "closed").chmod(0o755)


def seen(directory):
    """Path -> mode, time, content or target, for all that lies there; and which paths are one file."""
    found, names = {}, {}
    for path in sorted(directory.rglob("*")):
        what = path.lstat()
        content = os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else None
        found[str(path.relative_to(directory))] = (oct(what.st_mode), what.st_mtime_ns, content)
        if path.is_file() and not path.is_symlink():
            names.setdefault(what.st_ino, []).append(str(path.relative_to(directory)))
    return found, sorted(names.values())


def prepared(source, *exclude, **options):
    place = RunDirectory(source, source / "job.tune", exclude, **options)
    place.prepare()
    return place


def test_copy_keeps_modes_times_links_and_names(source):
    work = prepared(source).directory
    (copied, names), (original, _) = seen(work), seen(source)
    expected = {
        name: what
        for name, what in original.items()
        if not name.startswith(("other.tune", "job.tune")) and name != "pipe"
    }
    changed = {name for name in expected if copied[name] != expected[name]}
    assert copied.keys() == expected.keys() and changed == {"inside", "outside"}
    assert names == [["closed/file"], ["data/deep/in.dat"], ["data/second", "first"], ["job.sh"], ["outside"]]
    assert os.readlink(work / "inside") == "data"
    assert not (work / "outside").is_symlink() and (work / "outside").read_text() == "beside"
    assert sorted(path.name for path in (source / "job.tune").iterdir()) == ["inputs.json", "work"]


def write_new(work):
    (work / "out" / "deep").mkdir(parents=True)
    (work / "out" / "deep" / "file").touch()
    (work / "out").chmod(0)
    (work / "data" / "new").symlink_to("second")


def overwrite_in_place(work):
    """Same size, and the time put back."""
    path = work / "data" / "deep" / "in.dat"
    when = path.stat().st_mtime_ns
    path.write_bytes(b"y" * 5000)
    os.utime(path, ns=(when, when))


def replace_by_rename(work):
    (work / "fresh").write_text("two names")
    os.rename(work / "fresh", work / "data" / "second")


def swap_kinds(work):
    shutil.rmtree(work / "data" / "deep")
    (work / "data" / "deep").write_text("a file now")
    (work / "job.sh").unlink()
    (work / "job.sh").mkdir()
    (work / "link").unlink()
    (work / "link").symlink_to("/etc")


CHANGES = {
    "nothing": lambda work: None,
    "new": write_new,
    "overwritten": overwrite_in_place,
    "appended through one of two names": lambda work: (work / "first").open("a").write("more"),
    "one of two names removed": lambda work: (work / "first").unlink(),
    "replaced": replace_by_rename,
    "mode": lambda work: (work / "job.sh").chmod(0o600),
    "mode of a directory": lambda work: (work / "data").chmod(0),
    "written where nothing may be": lambda work: (
        (work / "closed").chmod(0o700),
        (work / "closed" / "file").write_text("no"),
    ),
    "kinds": swap_kinds,
    "all gone": lambda work: [
        remove_tree(p) if p.is_dir() and not p.is_symlink() else p.unlink() for p in list(work.iterdir())
    ],
}


@pytest.mark.parametrize("change", CHANGES)
def test_run_directory_is_restored_before_each_run(source, change):
    place = prepared(source)
    before = seen(place.directory)
    inode = place.directory.stat().st_ino
    for _ in range(2):
        CHANGES[change](place.directory)
        if change not in ("nothing", "mode of a directory"):
            assert seen(place.directory) != before or change == "overwritten"
        place.reset()
        assert seen(place.directory) == before
    assert place.directory.stat().st_ino == inode, "what is mounted or worked in stays the same"


def test_unchanged_files_are_not_copied_again(source):
    place = prepared(source)
    inodes = {path: path.lstat().st_ino for path in place.directory.rglob("*")}
    (place.directory / "job.sh").write_text("changed")
    place.reset()
    again = {path for path, inode in inodes.items() if path.lstat().st_ino != inode}
    assert again <= {place.directory / "job.sh"}


def test_user_without_a_home_directory_has_a_run_directory(source, monkeypatch):
    """As with a user number that nobody knows, in a container."""

    def home():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(run_directory.Path, "home", home)
    assert (prepared(source).directory / "job.sh").exists()


def test_links_out_of_the_copy_are_not_followed_on_removal(source, tmp_path):
    place = prepared(source)
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "file").write_text("precious")
    (place.directory / "to precious").symlink_to(tmp_path / "precious")
    shutil.rmtree(place.directory / "data")
    (place.directory / "data").symlink_to(tmp_path / "precious")
    place.reset()
    assert (tmp_path / "precious" / "file").read_text() == "precious"
    assert (place.directory / "data" / "second").read_text() == "two names"


def test_links_to_directories_outside_become_copies(source, tmp_path):
    """With the links in them; what the job may not write, and what holds the directory itself, stays a link."""
    results = tmp_path / "results"
    (results / "sub").mkdir(parents=True)
    (results / "sub" / "file").write_text("mine")
    (results / "self").symlink_to(".")
    (results / "near").symlink_to(results / "sub" / "file")
    (results / "back").symlink_to(source / "first")
    (source / "results").symlink_to(results)
    (source / "part").symlink_to("results/sub")
    (source / "later").symlink_to(results / "later")
    (source / "above").symlink_to("..")
    (source / "null").symlink_to("/dev/null")
    (tmp_path / "alias").symlink_to(source)
    (source / "mine").symlink_to(tmp_path / "alias" / "job.sh")
    place = prepared(source)
    work = place.directory
    links = {str(path.relative_to(work)): os.readlink(path) for path in work.rglob("*") if path.is_symlink()}
    assert links == {
        "link": "data/deep/in.dat",
        "inside": "data",
        "nowhere": "not there",
        "above": str(tmp_path),
        "null": "/dev/null",
        "mine": "job.sh",
        "part": "results/sub",
        "results/self": ".",
        "results/near": "sub/file",
        "results/back": "../first",
    }
    assert [told.split()[0] for told in place.warnings()] == ["outside", "results"]
    before = seen(work)
    for name in ("results/sub/file", "part/file", "results/self/self/sub/file", "results/near"):
        (work / name).write_text("changed")
        assert (results / "sub" / "file").read_text() == "mine"
        place.reset()
        assert seen(work) == before


def test_changed_original_is_reported(source):
    place = prepared(source)
    (source / "job.sh").write_text("edited meanwhile")
    place.reset()
    (place.directory / "job.sh").unlink()
    with pytest.raises(TuneError, match=r"job\.sh was changed since the tuning began") as told:
        place.reset()
    assert told.value.hint == "begin a new study"


@pytest.mark.parametrize("change", ["nothing", "new", "modified", "removed", "linked"])
def test_study_that_is_begun_keeps_its_inputs(source, change):
    before = seen(prepared(source).directory)
    path = source / "data" / "deep" / "in.dat"
    if change == "new":
        when = (source / "data").stat().st_mtime_ns
        (source / "data" / "slurm-1.out").write_text("new")
        os.utime(source / "data", ns=(when, when))
    elif change == "modified":
        path.write_text("another mesh")
    elif change != "nothing":
        path.unlink()
        if change == "linked":
            path.symlink_to("elsewhere")
    place = RunDirectory(source, source / "job.tune")
    if change in ("nothing", "new"):
        place.prepare(is_begun=True)
        assert seen(place.directory) == before
    else:
        with pytest.raises(TuneError, match=r"in\.dat was changed or removed since the study began"):
            place.prepare(is_begun=True)
        place.prepare()


def test_patterns_exclude_names_and_paths(source):
    work = prepared(source, "*.dat", "closed/", "data/second").directory
    assert not (work / "data" / "deep" / "in.dat").exists() and not (work / "closed").exists()
    assert (work / "first").read_text() == "two names" and not (work / "data" / "second").exists()


def test_too_large_directory_is_named_and_leaves_nothing(source, tmp_path):
    with pytest.raises(TuneError) as told:
        prepared(source, bytes_max=5000)
    message = str(told.value)
    assert (
        "has 4.92 KiB; at most 4.88 KiB" in message
        and "data 4.89 KiB" in message
        and "--exclude data" in told.value.hint
    ), message
    assert not (source / "job.tune").exists()
    assert prepared(source, "data", bytes_max=5000).directory.exists()
    (tmp_path / "large").write_bytes(b"x" * 9000)
    (source / "linked").symlink_to(tmp_path / "large")
    with pytest.raises(TuneError, match=r"linked \(a link to .*/large\) 8.79 KiB"):
        prepared(source, bytes_max=5000)


def test_directory_with_too_many_files_is_reported(source, monkeypatch):
    monkeypatch.setattr(run_directory, "ENTRIES_MAX", 5)
    with pytest.raises(TuneError, match="more than 5 files"):
        prepared(source)
    assert not (source / "job.tune").exists()


def test_copy_that_fails_leaves_nothing(source, monkeypatch):
    monkeypatch.setattr(run_directory, "copy_entry", lambda *_: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        prepared(source)
    assert list((source / "job.tune").iterdir()) == []


KILLED = """
import sys, pathlib, time
from forebay.tune.runs import run_directory
copy_entry = run_directory.copy_entry
def copy_one(*arguments):
    copy_entry(*arguments)
    print("copying", flush=True)
    time.sleep(60)
run_directory.copy_entry = copy_one
source = pathlib.Path(sys.argv[1])
run_directory.RunDirectory(source, source / "job.tune").prepare()
"""


def test_killed_tuner_leaves_no_partial_copy_in_use(source):
    process = subprocess.Popen([sys.executable, "-c", KILLED, source], stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"copying\n"
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    assert not (source / "job.tune" / "work").exists()
    place = prepared(source)
    assert sorted(path.name for path in place.study.iterdir()) == ["inputs.json", "work"]


def test_leftovers_of_an_earlier_tuner_are_not_copied(source):
    old = prepared(source)
    command = "while :; do mkdir -p d; for n in 1 2 3 4 5 6 7 8 9; do : > d/$n; done; done"
    orphan = subprocess.Popen(["bash", "-c", command], cwd=old.directory, stderr=subprocess.DEVNULL)
    try:
        wait_until((old.directory / "d" / "9").exists, what="what the orphan writes")
        new = prepared(source)
        before = seen(new.directory)
        time.sleep(0.05)
        assert seen(new.directory) == before and not (new.directory / "d").exists()
    finally:
        orphan.kill()
        orphan.wait()
    prepared(source)
    assert sorted(path.name for path in new.study.iterdir()) == ["inputs.json", "work"]


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("cd {source}\n", True),
        ("./a --in=../b\n", True),
        ("cp ../x .\n", True),
        ("cd ..\n", True),
        ("cd data; ls a..b\n", False),
        ("./a\n", False),
    ],
)
def test_scripts_that_need_the_map_are_detected(source, text, named):
    assert RunDirectory(source, source / "job.tune").is_named_in(text.format(source=source)) == named


@pytest.mark.parametrize("emulated", [False, True])
def test_mapped_job_uses_the_copy_under_its_own_name(job, tmp_path, emulated):
    (job.directory / "in").write_text("input")
    striped = "lfs getstripe -c out" if emulated else ""
    job.script(f'pwd; cat in; echo result > "{job.directory}/out"; ls\n{striped}')
    place = RunDirectory(job.directory, tmp_path / "job.tune")
    place.prepare()
    options = ["--pfs-model", MACHINE, "--pfs-root", job.directory] if emulated else []
    done = job.run(*place.map_options, *options)
    said = done.stdout.splitlines()
    assert done.returncode == 0 and said[:4] == [str(job.directory), "inputin", "job.sh", "out"], done
    assert said[4:] == (["1"] if emulated else []), "what lies there is emulated under the name that is seen"
    assert (place.directory / "out").read_text() == "result\n" and not (job.directory / "out").exists()
    place.reset()
    assert not (place.directory / "out").exists()
    assert stat.S_IMODE((place.directory / "job.sh").stat().st_mode) == 0o644


def test_script_that_names_its_directory_by_a_link_or_its_home_needs_the_map(source, tmp_path, monkeypatch):
    link = tmp_path / "link"
    link.symlink_to(source)
    workplace = RunDirectory(link, link / "job.tune")
    assert workplace.is_named_in(f"cd {link}") and workplace.is_named_in(f"cd {source}")
    assert not workplace.is_named_in("cd ~/elsewhere")
    monkeypatch.setenv("HOME", str(source.parent))
    workplace = RunDirectory(source, source / "job.tune")
    assert workplace.is_named_in(f"cd ~/{source.name}") and workplace.is_named_in(f"cd $HOME/{source.name}")
