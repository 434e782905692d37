"""Lazy I/O of single files, as programs without MPI ask for it: what is seen when, and that all else stays strict."""

import errno
import itertools
import json
import signal

import pytest

from support.engines import ENGINES, SMALL, make_directory, namespace_of
from support.node_jobs import STRIPED, node_job
from support.node_programs import PROGRAM, NodeProgram, lazily
from support.nodes import PYTHON, nodes
from support.strace import EVERY_POINT
from support.waiting import wait_until

ROUNDS = 200 if EVERY_POINT else 20
COUNTS = 500 if EVERY_POINT else 60


@pytest.fixture(scope="module")
def two(build):
    with nodes(2, build) as bed, namespace_of(bed, SMALL) as namespace:
        yield namespace


numbers = itertools.count()


@pytest.fixture
def path(two):
    """A file of 8192 bytes."""
    path = two.directory / f"lazy-{next(numbers)}"
    two.run("n1", ["sh", "-c", f"head -c 8192 /dev/zero | tr '\\0' 0 >{path}"])
    return path


def both_lazily(programs, path):
    """As one after the other opens it, so that both have asked in the end."""
    return [lazily(program, path) for program in programs]


def test_lazy_writes_are_seen_after_both_have_synced(programs, path):
    first, second = programs
    one, other = both_lazily(programs, path)
    assert second.call("read", other, 0, 4) == "0000"
    assert first.call("write", one, 0, "new!") == 4
    assert second.call("read", other, 0, 4) == "0000", "the file is not lazy: what was read is not cached"
    assert first.call("sync", one) == 1
    assert second.call("sync", other) == 1
    assert second.call("read", other, 0, 4) == "new!"


def test_what_is_synced_is_read_in_both_directions(programs, path):
    files = both_lazily(programs, path)
    for number in range(ROUNDS):
        for writer, reader in ((0, 1), (1, 0)):
            text, offset = f"{number:08d}{writer}", 37 * number % 8000
            programs[writer].call("write", files[writer], offset, text)
            assert programs[writer].call("sync", files[writer]) == 1
            assert programs[reader].call("sync", files[reader]) == 1
            assert programs[reader].call("read", files[reader], offset, 9) == text


def test_writes_into_one_page_lose_no_byte(programs, path):
    files = both_lazily(programs, path)
    for number in range(ROUNDS):
        letters = [chr(ord("A") + number % 20), chr(ord("a") + number % 20)]
        for offset in range(0, 4000, 100):
            for program, file, letter, shift in zip(programs, files, letters, (0, 50)):
                program.start("fill", file, offset + shift, letter, 50)
        for program, file in zip(programs, files):
            assert [program.answer() for _ in range(40)] == [50] * 40
            assert program.call("sync", file) == 1
        for program, file in zip(programs, files):
            assert program.call("sync", file) == 1
            found = program.call("read", file, 0, 4000)
            assert found == (letters[0] * 50 + letters[1] * 50) * 40


@pytest.mark.parametrize("node", [0, 1], ids=["same-node", "other-node"])
def test_posix_open_sees_what_is_buffered_and_makes_the_file_strict(programs, path, node):
    files = both_lazily(programs, path)
    programs[0].call("write", files[0], 100, "lazy")
    programs[1].call("write", files[1], 200, "idle")
    strict = programs[node].call("open", path)
    assert programs[node].call("read", strict, 100, 4) == "lazy"
    assert programs[node].call("read", strict, 200, 4) == "idle"
    for number in range(ROUNDS):
        for program, file in zip(programs, files):
            program.call("write", file, number, "x")
            assert programs[node].call("read", strict, number, 1) == "x"
            programs[node].call("write", strict, number, "y")
            assert program.call("read", file, number, 1) == "y"
    assert [program.call("sync", file) for program, file in zip(programs, files)] == [0, 0]
    programs[node].call("close", strict)
    wait_until_lazy(programs, files)


def wait_until_lazy(programs, files):
    """The kernel reports a close after it has returned."""
    is_lazy = lambda: all(program.call("sync", file) == 1 for program, file in zip(programs, files))  # noqa: E731
    wait_until(is_lazy, what="lazy I/O of the file")


def test_file_that_was_open_before_stays_strict(programs, path):
    first, second = programs
    strict = second.call("open", path)
    assert second.call("read", strict, 0, 1) == "0"
    for number in range(ROUNDS):
        lazy = first.call("open", path)
        first.call("begin", lazy)
        first.call("write", lazy, 5, f"{number:04d}")
        assert second.call("read", strict, 5, 4) == f"{number:04d}"
        assert second.call("write", strict, 5, "back") == 4
        assert first.call("read", lazy, 5, 4) == "back"
        first.call("close", lazy)


def test_mapping_of_another_program_sees_what_is_buffered(programs, path):
    (one, _), second = both_lazily(programs, path), programs[1]
    programs[0].call("fill", one, 0, "m", 4096)
    assert second.call("mapped", second.call("open", path), 4096) == "m" * 4096


def test_each_owner_of_a_lock_reads_what_the_last_one_wrote(programs, path):
    files = both_lazily(programs, path)
    for program, file in zip(programs, files):
        program.start("count", file, COUNTS)
    for program in programs:
        assert program.answer() is None
    assert programs[0].call("sync", files[0]) == 1
    assert int(programs[0].call("read", files[0], 0, 16)) == 2 * COUNTS


@pytest.mark.parametrize("end", ["close", "kill"])
def test_closed_and_killed_programs_leave_what_they_wrote(two, programs, path, end):
    first, second = programs
    one, other = both_lazily(programs, path)
    assert second.call("read", other, 0, 1) == "0"
    first.call("fill", one, 0, "w", 8192)
    if end == "close":
        assert first.call("close", one) is None
    else:
        first.process.send_signal(signal.SIGKILL)
        first.process.wait(timeout=60)
    if end == "kill":  # the kernel closes its files a moment later, but what is strict sees them at once
        assert two.run("n2", ["cat", path]).stdout == "w" * 8192
        wait_until_lazy([second], [other])
    else:
        assert second.call("sync", other) == 1
    assert second.call("read", other, 0, 8192) == "w" * 8192


@pytest.mark.soak
def test_sync_leaves_nothing_old_that_was_read_ahead(programs, path):
    """libcephfs forgets nothing of an inode that it is reading, and it must not read ahead then. A busy machine shows
    it: one round of 200 read old bytes."""
    first, second = programs
    for number in range(ROUNDS * 3):
        one, other = both_lazily(programs, path)
        letter = chr(ord("a") + number % 26)
        second.call("read", other, 0, 1)
        assert first.call("fill", one, 0, letter, 8192) == 8192
        assert first.call("close", one) is None
        assert second.call("sync", other) == 1
        assert second.call("read", other, 0, 8192) == letter * 8192, number
        second.call("close", other)


def test_what_was_cached_lazily_is_not_read_later(two, programs, path):
    first, second = programs
    for number in range(ROUNDS):
        one, other = lazily(first, path), lazily(second, path)
        assert first.call("read", one, 0, 4096) == ("0" if number == 0 else chr(ord("a") + number % 26)) * 4096
        second.call("fill", other, 0, chr(ord("a") + (number + 1) % 26), 4096)
        assert [second.call("close", other), first.call("close", one)] == [None, None]
        strict = first.call("open", path)
        assert first.call("read", strict, 0, 4096) == chr(ord("a") + (number + 1) % 26) * 4096
        assert first.call("close", strict) is None


def test_lazy_io_ends_and_begins_again(programs, path):
    files = both_lazily(programs, path)
    for number in range(ROUNDS):
        for program, file in zip(programs, files):
            assert program.call("end", file) == 0
        programs[number % 2].call("write", files[number % 2], number, "s")
        assert programs[1 - number % 2].call("read", files[1 - number % 2], number, 1) == "s"
        for program, file in zip(programs, files):
            program.call("begin", file)
        wait_until_lazy(programs, files)
        reader, writer = (number % 2, 1 - number % 2)
        assert programs[reader].call("read", files[reader], 4000, 4) == ("0000" if number == 0 else "lazy")
        programs[writer].call("write", files[writer], 4000, "lazy")


def test_size_and_truncation_reach_the_other_node(programs, path):
    first, second = programs
    one, other = both_lazily(programs, path)
    first.call("fill", one, 8192, "e", 100)
    assert second.call("size", other) == 8292
    assert [first.call("sync", one), second.call("sync", other)] == [1, 1]
    assert second.call("read", other, 8192, 200) == "e" * 100
    assert second.call("cut", other, 10) is None
    assert first.call("size", one) == 10
    assert [second.call("sync", other), first.call("sync", one)] == [1, 1]
    assert first.call("read", one, 0, 100) == "0" * 10


def test_quota_is_an_error_of_write_or_sync_or_close(two, programs):
    (first, _), path = programs, two.make_directory("full") / "file"
    two.run("n1", ["touch", path])
    file = lazily(first, path)
    answers = [first.call("fill", file, number << 22, "q" * 1024, 4096) for number in range(20)]
    answers += [first.call("sync", file), first.call("close", file)]
    two.run("n1", ["rm", path])
    # The servers sum up the sizes some time later.
    fits = ["sh", "-c", f"head -c 4194304 /dev/zero >{path} && sync {path}"]
    wait_until(lambda: two.run("n2", fits, check=False).returncode == 0, what="room after the removal")
    two.run("n1", ["rm", path])
    assert "EDQUOT" in answers, answers
    assert {answer for answer in answers if isinstance(answer, str)} == {"EDQUOT"}, answers


def test_appending_descriptors_and_other_file_systems_refuse(two, programs, path):
    first, _ = programs
    appending = first.call("open", path, "O_WRONLY|O_APPEND")
    assert first.call("begin", appending) == errno.errorcode[errno.EOPNOTSUPP]
    plain = make_directory(two.bed.shared / "no-namespace", "ada") / "file"
    two.run("n1", ["touch", plain])
    other = first.call("open", plain)
    assert [first.call(name, other) for name in ("begin", "sync", "end")] == ["ENOTTY"] * 3


def test_path_of_another_file_leaves_the_file_strict(two, programs, path):
    first, second = programs
    other = f"{path}-other"
    two.run("n1", ["cp", path, other])
    file, strict = first.call("open", path), second.call("open", path)
    assert first.call("begin", file, other) == 0
    assert first.call("begin", file, "/nowhere/at/all") == 0
    first.call("write", file, 0, "mine")
    assert second.call("read", strict, 0, 4) == "mine"
    assert two.run("n2", ["head", "-c", "4", other]).stdout == "0000"


def test_names_of_announcements_are_hidden(two, programs, path):
    lazily(programs[0], path)
    listed = two.run("n2", ["getfattr", "--absolute-names", "-d", "-m", "-", two.directory]).stdout
    assert "forebay" not in listed


def test_death_of_the_mount_is_an_error_of_sync_and_close(build):
    with nodes(2, build, clean_s=20) as bed, namespace_of(bed, ENGINES["ceph"]) as two:
        path = two.directory / "file"
        two.run("n1", ["touch", path])
        program = NodeProgram(two, "n2")
        file = lazily(program, path)
        assert program.call("fill", file, 0, "l", 4096) == 4096
        assert bed.kill("n2", "__mount")
        answers = [program.call(name, file) for name in ("sync", "fsync", "close")]
        assert set(answers) <= {"ENOTCONN", "ECONNABORTED"}, answers
        program.process.kill()
        program.process.communicate()


def test_stage_out_has_what_a_killed_program_wrote(build):
    with nodes(2, build) as bed:
        target = make_directory(bed.shared / "results", "ada")
        lines = ["open", "$DW_JOB_STRIPED/out"], ["begin", 3], ["fill", 3, 0, "r", 100000]
        script = (
            f"{STRIPED}\n#DW stage_out type=file source=$DW_JOB_STRIPED/out destination={target}/out\n"
            "touch $DW_JOB_STRIPED/out; mkfifo calls\n"
            f"{PYTHON} {PROGRAM} <calls &\nexec 9>calls\n"
            f"cat >&9 <<END\n{chr(10).join(map(json.dumps, lines))}\nEND\n"
            "until [ $(stat -c %s $DW_JOB_STRIPED/out) = 100000 ]; do sleep 0.05; done\nkill -9 $!\n"
        )
        node_job(bed, script, "--engine", "ceph", name="killed").run()
        assert (target / "out").read_text() == "r" * 100000
