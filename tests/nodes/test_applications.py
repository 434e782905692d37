"""SQLite, git and tar on several nodes: every node sees the same, and it equals what a plain directory gives."""

import json

import pytest

from support.nodes import PYTHON, ended
from support.strace import EVERY_POINT

INSERTS = 25 if EVERY_POINT else 8

INSERT = """
import sqlite3, sys
path, journal, who, count = sys.argv[1:]
base = sqlite3.connect(path, timeout=150, isolation_level=None)
assert base.execute(f"pragma journal_mode = {journal}").fetchone() == (journal,)
for number in range(int(count)):
    base.execute("begin immediate")
    (total,) = base.execute("select count(*) from rows").fetchone()
    base.execute("insert into rows values (?, ?, ?)", (who, number, total))
    base.execute("commit")
"""
#: SQLite does not wait where two connections change the journal at the same time, so the first one does it alone.
CREATE = """
import sqlite3, sys
base = sqlite3.connect(sys.argv[1])
base.execute(f"pragma journal_mode = {sys.argv[2]}")
base.execute("create table rows (who, number, total)")
"""
DUMP = """
import json, sqlite3, sys
base = sqlite3.connect(sys.argv[1])
print(json.dumps([base.execute("pragma integrity_check").fetchone()[0],
                  base.execute("select who, number, total from rows order by total").fetchall()]))
"""


def insert_from(namespace, path, journal, places):
    """Writers at the same time; each row says how many rows were there before it."""
    namespace.run(namespace.nodes[0], [PYTHON, "-c", CREATE, path, journal])
    names = [f"{place}-{node}" for place, node in enumerate(places)]
    runs = [
        namespace.popen(node, [PYTHON, "-c", INSERT, path, journal, name, INSERTS]) for name, node in zip(names, places)
    ]
    for run in runs:
        ended(run)
    for node in set(places):
        check, rows = json.loads(namespace.run(node, [PYTHON, "-c", DUMP, path]).stdout)
        assert check == "ok"
        # No transaction is lost, none sees an older state than its own.
        assert [total for _, _, total in rows] == list(range(len(places) * INSERTS))
        for name in names:
            assert [number for who, number, _ in rows if who == name] == list(range(INSERTS))


@pytest.mark.promise("locks")
def test_sqlite_keeps_the_transactions_of_all_nodes(namespace):
    places = namespace.nodes if len(namespace.nodes) > 1 else namespace.nodes * 2
    insert_from(namespace, namespace.directory / "rows.db", "delete", places)


@pytest.mark.promise("shared_mmap")
def test_sqlite_keeps_a_write_ahead_log_of_one_node(namespace):
    insert_from(namespace, namespace.directory / "log.db", "wal", [namespace.nodes[0]] * 2)


GIT = {
    f"GIT_{who}_{part}": value
    for who in ("AUTHOR", "COMMITTER")
    for part, value in [("NAME", "ada"), ("EMAIL", "ada@n1"), ("DATE", "2026-01-01T00:00:00Z")]
} | {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}


def git(namespace, node, directory, script):
    return namespace.run(node, ["sh", "-ec", script], directory=directory, **GIT).stdout


def exchange_commits(namespace, directory):
    """Commits pushed by turns from all nodes into one repository; returns its history."""
    first = namespace.nodes[0]
    namespace.run(first, ["mkdir", directory])
    git(namespace, first, directory, "git init -q --bare -b main all")
    git(namespace, first, directory, "git clone -q all work0 2>/dev/null; cd work0; git checkout -q -b main")
    for turn in range(4):
        node = namespace.nodes[turn % len(namespace.nodes)]
        script = f"""cd work{turn}
            mkdir part{turn}; for file in 1 2 3 4 5 6 7 8; do echo {turn} $file >part{turn}/$file; done
            ln -s part{turn} last; git add .; git commit -qm 'turn {turn}'; git push -q origin HEAD:main"""
        git(namespace, node, directory, script)
        git(namespace, namespace.other(node), directory, f"git clone -q all work{turn + 1}; rm work{turn + 1}/last")
    git(namespace, first, directory, "cd all; git gc -q --prune=now; git fsck --strict")
    return git(namespace, namespace.nodes[-1], directory, "cd all; git fsck --strict; git log --format='%H %s' --stat")


@pytest.mark.soak
def test_git_has_the_same_history_on_all_nodes(namespace):
    ours = exchange_commits(namespace, namespace.directory / "git")
    assert ours.count("turn ") == 4
    assert ours == exchange_commits(namespace, namespace.reference / "git")


TREE = """
umask 022; mkdir -p tree/deep/er tree/empty; cd tree
for file in 1 2 3 4 5 6 7 8 9; do echo text of $file >deep/$file; done
head -c 300001 /dev/zero | tr '\\0' x >large; truncate -s 1000000 sparse; printf end >>sparse
ln -s deep/1 link; ln -s nowhere dangling; ln deep/2 hard; chmod 600 deep/3; chmod 755 deep/4; mkfifo pipe
touch -d 2001-02-03T04:05:06.789 deep/5; chmod 700 empty; touch -d 2001-02-03 deep empty
"""
PACK = "tar --create --sort=name --mtime=2026-01-01 --file=/tmp/tree.tar tree; sha256sum </tmp/tree.tar"


def test_tar_packs_and_unpacks_what_another_node_wrote(namespace):
    directory = namespace.make_directory("tar")
    packed = set()
    for place in (namespace.reference, directory):
        namespace.run(namespace.nodes[0], ["sh", "-ec", TREE], directory=place)
        for node in namespace.nodes:
            packed.add(namespace.run(node, ["sh", "-ec", PACK], directory=place).stdout)
    assert len(packed) == 1, packed
    last = namespace.nodes[-1]
    namespace.run(last, ["sh", "-ec", "tar cf all.tar tree; mkdir out; tar xpf all.tar -C out"], directory=directory)
    for node in namespace.nodes:
        compared = namespace.run(node, ["tar", "--compare", "--file=all.tar", "-C", "out"], directory=directory)
        assert compared.stdout == ""
        listed = namespace.run(
            node, ["stat", "-c", "%h %s %a", "out/tree/hard", "out/tree/sparse"], directory=directory
        )
        assert listed.stdout == "2 10 644\n1 1000003 644\n"
