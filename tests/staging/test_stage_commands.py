"""What `forebay stage` makes of its words: lists, sources that cannot be staged, and its help."""

import os
import subprocess

import pytest

from support.trees import stage_list, refused, stage


def listed(job, content):
    (job.directory / "list").write_bytes(content)
    return stage(job, "out", "--list", "list")


def test_name_in_a_list_can_begin_with_a_number_sign(job):
    for name in ("#first", "# second", "third"):
        (job.directory / name).write_text(name)
    done = listed(job, b"#first #1\n'# second' 2#\nthird \"# 3\"\n")
    assert done.returncode == 0, done.stderr
    for source, target in (("#first", "#1"), ("# second", "2#"), ("third", "# 3")):
        assert (job.directory / target).read_text() == source


def test_comment_in_a_list_is_refused(job):
    (job.directory / "a").touch()
    for line in ("# these are the results", "#a"):
        done = listed(job, f"a b\n{line}\n".encode())
        assert done.returncode == 1
        refused(done, "list: line 2: ", "hint: ", "there are no comments")
    assert not (job.directory / "b").exists() and stage_list(job) == []


def test_list_with_windows_line_ends_names_the_same_files(job):
    for name in ("a", "c", "e\r"):
        (job.directory / name).write_text(name)
    done = listed(job, b"a b\r\n\r\n'c' 'd'\r\n'e\r' 'f\r'\n")
    assert done.returncode == 0, done.stderr
    assert {path.name for path in job.directory.iterdir()} >= {"b", "d", "f\r"}
    assert not (job.directory / "b\r").exists() and not (job.directory / "d\r").exists()


def test_zero_byte_in_a_list_is_refused(job):
    (job.directory / "#").touch()
    done = listed(job, b"\0 b\n")
    assert done.returncode == 1
    refused(done, "list: line 1: a zero byte", "hint: ")


def test_special_file_as_source_is_refused_with_a_usable_hint(job):
    os.mkfifo(job.directory / "fifo")
    for source in ("fifo", "/dev/null"):
        done = stage(job, "out", source, "copy")
        assert done.returncode == 1
        refused(done, f"the source {source} is not a file", "hint: pipes, sockets and devices are not staged")
    (job.directory / "loop").symlink_to("loop")
    done = stage(job, "out", "loop", "copy")
    assert done.returncode == 1
    refused(done, "loop", "symbolic links", "hint: correct the symbolic links")
    assert stage_list(job) == [] and not (job.directory / "copy").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts a file system of 64 KiB")
@pytest.mark.parametrize("kib", [64, 100])
def test_full_state_directory_is_reported_with_a_hint_and_left_empty(job, kib):
    (job.directory / "one").touch()
    stagings = job.state / "stagings"
    stagings.mkdir(parents=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={kib}K", "none", stagings], check=True)
    try:
        done = stage(job, "out", "one", "copy")
        assert done.returncode == 1
        refused(done, f"the journal {stagings}", "hint: ", "free space")
        assert list(stagings.iterdir()) == [] and not (job.directory / "copy").exists()
    finally:
        subprocess.run(["umount", stagings], check=True)


@pytest.mark.parametrize("verb", ["status", "wait", "cancel", "retry", "list"])
def test_help_names_jobs_as_selection(job, verb):
    assert "job" in stage(job, verb, "--help").stdout.partition("ID")[2].partition("Options:")[0]


@pytest.mark.parametrize("words", [["stage", "forget"], ["drain", "status"], ["drain", "wait"]], ids=" ".join)
def test_help_has_an_example(job, words):
    assert f"Example:\n  forebay {' '.join(words)}" in job.command(*words, "--help").stdout
