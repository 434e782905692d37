"""Journals of `forebay stage` that are damaged, and two processes for one of them."""

import json
import os
import random
import sqlite3

import pytest

from support.job import NOBODY
from support.strace import kill_at_syscall
from support.trees import CAREFUL, SEED, file_states, stage_list, parts, refused, tree_state, stage, tree  # noqa: F401
from support.waiting import wait_until


def killed(job):
    """The journal of a staging that was killed with a half file in hand; its log is next to it."""
    assert kill_at_syscall(job, "utimensat", 1, "stage", "out", *CAREFUL, "in", "out", threads=True) and parts(job)
    (journal,) = (job.state / "stagings").glob("*.journal")
    assert journal.with_name(journal.name + "-wal").stat().st_size > 0
    return journal


def recover_as_the_hint_says(job, tree, journal):
    """Done as the hint says: the damaged one is removed, and staging begins again."""
    for path in journal.parent.iterdir():
        path.unlink()
    assert stage(job, "out", "in", "out").returncode == 0
    for part in parts(job):  # nobody knows of it any more
        part.unlink()
    assert file_states(job.directory / "out") == file_states(tree)


def other_version(journal):
    with sqlite3.connect(journal) as connection:
        connection.execute("PRAGMA user_version = 99")


def another_database(journal):
    journal.unlink()
    with sqlite3.connect(journal) as connection:
        connection.execute("CREATE TABLE x (y)")


def shorter(share):
    def cut(journal):
        content = journal.read_bytes()
        journal.write_bytes(content[: int(len(content) * share)])

    return cut


def garbage_within(journal):
    content = bytearray(journal.read_bytes())
    content[4096 : 4096 * 3] = random.Random(SEED).randbytes(8192)
    journal.write_bytes(content)


DAMAGES = {
    "empty": shorter(0),
    "a few bytes": shorter(0.001),
    "half": shorter(0.5),
    "most": shorter(0.75),
    "garbage": lambda journal: journal.write_bytes(random.Random(SEED).randbytes(100_000)),
    "garbage within": garbage_within,
    "another version": other_version,
    "another database": another_database,
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_journal_is_named_and_never_recreated(job, tree, damage):
    journal = killed(job)
    # Its log would mend it: what is tested is the journal without it.
    with sqlite3.connect(journal) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    for end in ("-wal", "-shm"):
        journal.with_name(journal.name + end).unlink(missing_ok=True)
    DAMAGES[damage](journal)
    before = tree_state(job.directory / "out")
    for verb in ("status", "retry", "cancel"):
        done = stage(job, verb, journal.stem)
        assert done.returncode == 1, (verb, done.stdout)
        refused(done, str(journal), "hint: files at the destinations are complete", "stage again")
    assert tree_state(job.directory / "out") == before, "nothing was touched"
    # The list goes on with the others, and so does a new staging.
    assert stage(job, "list").returncode == 1
    recover_as_the_hint_says(job, tree, journal)


@pytest.mark.parametrize("end", ["-wal", "-shm"])
@pytest.mark.parametrize("damage", ["gone", "empty", "half", "garbage"])
def test_damaged_write_ahead_log_loses_steps_and_no_data(job, tree, end, damage):
    """What the log alone held is done again; if the journal is no journal without it, that is said."""
    journal = killed(job)
    beside = journal.with_name(journal.name + end)
    if damage == "gone":
        beside.unlink(missing_ok=True)
    elif damage == "garbage":
        beside.write_bytes(random.Random(SEED).randbytes(50_000))
    else:
        content = beside.read_bytes()
        beside.write_bytes(content[: len(content) // 2] if damage == "half" else b"")
    done = stage(job, "retry", journal.stem)
    if done.returncode == 0:
        assert file_states(job.directory / "out") == file_states(tree)
    else:
        assert done.returncode == 1, done.stderr
        assert "is damaged" in done.stderr or "there is no staging" in done.stderr, done.stderr
        recover_as_the_hint_says(job, tree, journal)


def test_journal_removed_meanwhile_does_not_affect_files(job, tree):
    (tree / "slow").write_bytes(bytes(2 << 20))
    process = job.forebay_starts("stage", "out", "--rate", "2MiB", "in", "out")
    wait_until(lambda: parts(job), process=process)
    for path in (job.state / "stagings").iterdir():
        path.unlink(missing_ok=True)
    _, err = process.communicate(timeout=300)
    assert process.returncode in (0, 1, 123), err
    if process.returncode != 0:
        refused_text = err.lower()
        assert "journal" in refused_text, err
        for part in parts(job):
            part.unlink()
        assert stage(job, "out", "in", "out").returncode == 0
    assert file_states(job.directory / "out") == file_states(tree)
    assert parts(job) == []


def test_unwritable_journals_are_reported_before_anything_is_created(job, tree):
    if os.geteuid() == 0:
        job.as_nobody()
        for path in [tree, *tree.rglob("*")]:
            os.lchown(path, NOBODY, NOBODY)
    (job.state / "stagings").mkdir()
    os.chmod(job.state / "stagings", 0o555)
    done = stage(job, "out", "in", "out")
    os.chmod(job.state / "stagings", 0o755)
    assert done.returncode == 1
    refused(done, str(job.state / "stagings"), "Permission denied")
    assert not (job.directory / "out").exists()


def test_read_only_journal_is_an_error_that_names_it(job, tree):
    if os.geteuid() == 0:
        job.as_nobody()
        for path in [tree, *tree.rglob("*")]:
            os.lchown(path, NOBODY, NOBODY)
    (job.directory / "out" / "large").mkdir(parents=True)
    os.chown(job.directory / "out", job.user or -1, -1)
    assert stage(job, "out", "in", "out").returncode == 123
    (one,) = stage_list(job)
    journal = job.state / "stagings" / f"{one['id']}.journal"
    journal.chmod(0o400)
    done = stage(job, "retry", one["id"])
    assert done.returncode == 1
    refused(done, str(journal), "hint: get write permission")
    for path in journal.parent.iterdir():
        path.chmod(0o600)
    (job.directory / "out" / "large").rmdir()
    assert stage(job, "retry", one["id"]).returncode == 0
    assert json.loads(stage(job, "list", "--json").stdout) == []
