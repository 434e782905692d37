"""Requests that touch the files or destinations of other requests, and what each then reports."""

import errno

import pytest

from support.slow_model import MODEL

DONE, PENDING, FAILED = "0 1 0 0 0", "0 0 1 0 0", "0 0 0 0 1"
INVALID, MISSING = str(-errno.EINVAL), str(-errno.ENOENT)
BUSY, IS_DIRECTORY, NOT_DIRECTORY = str(-errno.EBUSY), str(-errno.EISDIR), str(-errno.ENOTDIR)
# Requests wait behind a slow copy until it is terminated.
HOLD = "ask concurrency $S 1; head -c 50M /dev/zero > $S/large; ask out $S/large pfs/large now; exec 3>&1 > said\n"
RELEASE = "exec >&3; ask terminate $S/large\n"


def slow(asking):
    (asking.job.directory / "slow.toml").write_text(MODEL)
    return "--pfs-model", "slow.toml", "--pfs-root", str(asking.pfs)


# A directory with an input, and a directory of results; r is the name of the result.
FAILED_OUT = (
    "mkdir pfs/r; ask out $S/d/r pfs/r/r end; rmdir pfs/r; touch pfs/r; ask out $S/d/r - activate; ask wait $S/d/r"
)


@pytest.mark.parametrize(
    ("request_out", "request_in"),
    [
        ("ask out $S/d/r pfs/out/r end", "ask in-directory $S/d pfs/in"),
        ("ask out $S/d/r pfs/out/r end", "ask in $S/d/r pfs/in/r"),
        ("ask out-directory $S/d pfs/out end; echo result > $S/d/r", "ask in $S/d/r pfs/in/r"),
        ("ask out-directory $S/d pfs/out end", "ask in-directory $S/d/e pfs/in"),
        ("ask out-directory $S/d/e pfs/out end", "ask in-directory $S/d pfs/in"),
    ],
)
def test_stage_in_over_a_deferred_stage_out_is_refused(asking, request_out, request_in):
    said = asking.output_lines(
        "mkdir -p $S/d/e pfs/in pfs/out; echo input > pfs/in/r; echo result > $S/d/r; echo result > $S/d/e/r\n"
        f"{request_out}; {request_in}; ask wait-directory $S/d; cat $S/d/r $S/d/e/r"
    )
    assert said == ["0", BUSY, "0", "result", "result"]
    delivered = [path.read_text() for path in (asking.pfs / "out").rglob("r")]
    assert delivered and set(delivered) == {"result\n"}


def test_stage_in_over_a_failed_stage_out_is_refused(asking):
    said = asking.output_lines(
        f"mkdir $S/d pfs/in; echo input > pfs/in/r; echo result > $S/d/r; {FAILED_OUT}\n"
        "ask in $S/d/r pfs/in/r; ask in-directory $S/d pfs/in; rm pfs/r; mkdir pfs/r"
    )
    assert said == ["0", "0", "0", BUSY, BUSY]
    assert (asking.pfs / "r" / "r").read_text() == "result\n"


def test_stage_in_over_a_removed_file_drops_its_stage_out(asking):
    said = asking.output_lines(
        "mkdir $S/d pfs/in; echo input > pfs/in/r; echo result > $S/d/r; ask out $S/d/r pfs/r end; rm $S/d/r\n"
        "ask in-directory $S/d pfs/in; ask wait-directory $S/d; cat $S/d/r"
    )
    assert said == ["0", "0", "0", "input"]
    assert [path.name for path in asking.pfs.iterdir()] == ["in"]


def test_second_file_with_the_same_destination_is_refused(asking):
    said = asking.output_lines(
        "echo old > $S/1; echo new > $S/2; ln -s pfs link; ask out $S/1 pfs/latest end; ask out $S/2 link/latest end\n"
        "ask out $S/1 pfs/latest now; ask wait $S/1; ask out $S/2 pfs/latest end; ask out $S/1 pfs/other end\n"
        "mv $S/1 $S/3; ask out $S/3 pfs/other end; ln -s $S/2 $S/4; ask out-list pfs now $S/2 $S/4"
    )
    assert said == ["0", BUSY, "0", "0", "0", "0", "0", str(-errno.EEXIST)]
    assert {path.name: path.read_text() for path in asking.pfs.iterdir()} == {"latest": "new\n", "other": "old\n"}


def test_request_for_a_file_keeps_its_exact_destination(asking):
    said = asking.output_lines(
        "echo 1 > $S/a; ask out $S/a pfs/new/ now; ask in $S/new/ pfs/x; ask in $S/no/x job.sh\n"
        "for f in b c; do echo > $S/$f; ask out $S/$f pfs/$f end; mkdir pfs/$f; done\n"
        "ask out $S/b - activate; ask wait $S/b; ask query $S/b; ask failed $S | head -n 1 | cut -d ' ' -f 1",
        status=123,
    )
    wrong = [IS_DIRECTORY, IS_DIRECTORY, MISSING]
    assert said == [*wrong, "0", "0", "0", "0", FAILED, str(errno.EISDIR)]
    assert sorted(path.name for path in asking.pfs.rglob("*")) == ["b", "c"]
    assert asking.err.count("error: stage out: ") == 2


def test_linked_files_of_a_list_keep_the_names_of_the_links(asking):
    asking.output_lines("echo 1 > $S/a; ln -s a $S/b; ask out-list pfs end $S/b")
    assert [path.name for path in asking.pfs.iterdir()] == ["b"]


def test_files_of_a_failed_directory_have_failed(asking):
    said = asking.output_lines(
        f"mkdir -p pfs/in/e $S/d; touch pfs/in/1 pfs/in/e/2; {HOLD} ask in-directory $S/d pfs/in; rm -r pfs/in\n"
        f"{RELEASE} ask wait-directory $S/d; ask query-directory $S/d; ask query $S/d/1; ask query $S/d/e/2; ls $S/d\n"
        "ask terminate $S/d/1; ask query $S/d/1; ask query-directory $S/d",
        *slow(asking),
    )
    assert said[:2] == ["0", "0"]
    assert said[2:] == ["0", "0", "0 0 0 0 2", FAILED, FAILED, "0", MISSING, FAILED]


def test_pending_stage_in_below_a_directory_that_is_not_created_yet_is_known(asking):
    said = asking.output_lines(
        f"mkdir -p pfs/in/e $S/d; touch pfs/in/1 pfs/in/e/2 pfs/in/e/3; {HOLD} ask in-directory $S/d pfs/in; exec >&3\n"
        "ask query $S/d/e/2; ask query-directory $S/d/e; ask terminate $S/d/e/3; ask terminate $S/large\n"
        "ask wait $S/d/e/2; ls $S/d/e; ask query $S/d/e/2; rm $S/d/e/2; ask query $S/d/e/2; ask query-directory $S/d",
        *slow(asking),
    )
    assert said == ["0", "0", PENDING, "0 0 2 0 0", "0", "0", "0", "2", DONE, MISSING, DONE]


def test_directory_calls_include_requests_below_it(asking):
    said = asking.output_lines(
        "mkdir -p $S/d/e pfs/d; touch $S/d/1; ask out-directory $S/d pfs/d now; ask wait-directory $S/d\n"
        f"echo > $S/d/e/2; ask out $S/d/e/2 pfs/2 end; {HOLD} ask out $S/d/1 pfs/1 now; exec >&3\n"
        "ask query-directory $S/d; ask query-directory $S/d/e; ask out-directory $S/d - revoke; ask query-directory $S/d\n"
        "ask terminate-directory $S/d; ask query $S/d/1; ask terminate $S/large; ask wait-list $S/d/1",
        *slow(asking),
    )
    assert said[:5] == ["0", "0", "0", "0", "0"]
    assert said[5:] == ["0 0 1 1 0", "0 0 0 1 0", "0", PENDING, "0", INVALID, "0", INVALID]
    assert sorted(path.name for path in asking.pfs.iterdir()) == ["d"]


def test_calls_refuse_the_other_kind_and_missing_roots(asking):
    said = asking.output_lines(
        "mkdir $S/d; touch $S/f; ask out $S/f pfs/f end; for call in query wait terminate; do\n"
        "ask $call-directory $S/f; ask $call $S/d; done; ask query $S/f; ask failed $S/no; ask concurrency $S/no 1"
    )
    assert said == ["0", *[NOT_DIRECTORY, IS_DIRECTORY] * 3, "0 0 0 1 0", MISSING, MISSING]
