"""Results that no `stage_out` line names: refused before the job, counted and named after it, kept where a line failed."""

import json
import os
import pty
import select

import pytest

from support.job import DW

STAGE_OUT = "#DW stage_out type=file source=$DW_JOB_STRIPED/{} destination=%d/"


@pytest.mark.parametrize("source", ["*.dat", "run?.dat", "a[12]", "{a,b}"])
@pytest.mark.parametrize("options", [(), ("--dry-run",)])
def test_pattern_in_a_source_is_an_error_before_the_job(job, source, options):
    job.script("touch ran", DW, STAGE_OUT.format(source))
    done = job.run(*options)
    assert done.returncode == 125 and "has the pattern" in done.stderr and "type=directory" in done.stderr
    assert not (job.directory / "ran").exists()


def test_files_that_no_line_names_are_counted_and_the_largest_named(job):
    (job.directory / "in").mkdir()
    (job.directory / "in" / "old").write_text("staged in")
    job.script(
        'cd "$DW_JOB_STRIPED"; mkdir -p deep out; echo kept > out/a; head -c 3000 /dev/zero > deep/large; echo b > b',
        DW,
        "#DW stage_in type=directory source=%d/in destination=$DW_JOB_STRIPED/in",
        "#DW stage_out type=directory source=$DW_JOB_STRIPED/out destination=%d/out",
    )
    done = job.run("--json")
    assert done.returncode == 0, done.stderr
    assert "warning: 2 files, 2.93 KiB, that the job wrote are named by no stage_out line" in done.stderr
    assert "were deleted with the allocation; the largest: striped/deep/large (2.93 KiB)" in done.stderr
    unnamed = json.loads(done.stdout)["unnamed"]
    assert unnamed == {"files": 2, "bytes": 3002, "largest": [["striped/deep/large", 3000], ["striped/b", 2]]}


def test_nothing_is_said_where_lines_name_all_files(job):
    job.script(
        'cd "$DW_JOB_STRIPED"; mkdir out; echo a > out/a; echo b > b',
        DW,
        STAGE_OUT.format("b"),
        "#DW stage_out type=directory source=$DW_JOB_STRIPED/out/ destination=%d/out",
    )
    done = job.run("--json")
    assert done.returncode == 0 and "named by no" not in done.stderr, done.stderr
    assert json.loads(done.stdout)["unnamed"]["files"] == 0


def test_line_with_a_typo_keeps_the_results_and_says_what_is_there(job):
    job.script('cd "$DW_JOB_STRIPED"; echo result > result.dat', DW, STAGE_OUT.format("results.dat"))
    done = job.run()
    assert done.returncode == 123 and "the largest: striped/result.dat (7 B)" in done.stderr, done.stderr
    assert "are kept with the allocation" in done.stderr and "--to DIR" in done.stderr
    (allocation,) = job.allocations()
    id = allocation.name.rsplit("-", 1)[1]
    assert job.command("clean", id, "--to", "rescued").returncode == 0
    assert (job.directory / "rescued" / "striped" / "result.dat").read_text() == "result\n"
    job.leaves_nothing()


def at_a_terminal(job, answer: str, *words: str) -> tuple[int, str]:
    """What a command says whose standard streams are a terminal, where the user types an answer."""
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(job.directory)
        os.execve(job.forebay, [str(job.forebay), *words], job.environment())
    said = b""
    os.write(terminal, answer.encode())
    while select.select([terminal], [], [], 60)[0]:
        try:
            said += os.read(terminal, 4096)
        except OSError:  # its other end is closed
            break
    _, status = os.waitpid(child, 0)
    os.close(terminal)
    return os.waitstatus_to_exitcode(status), said.decode()


def test_discard_says_what_it_deletes_and_asks_at_a_terminal(job):
    job.script('cd "$DW_JOB_STRIPED"; echo result > result.dat', DW, STAGE_OUT.format("results.dat"))
    assert job.run().returncode == 123
    (allocation,) = job.allocations()
    id = allocation.name.rsplit("-", 1)[1]
    status, said = at_a_terminal(job, "n\n", "clean", id, "--discard")
    assert status == 1 and "deletes 1 files, 7 B" in said and "nothing was deleted" in said, said
    assert (allocation / "striped" / "result.dat").exists()
    status, said = at_a_terminal(job, "y\n", "clean", id, "--discard")
    assert status == 0, said
    job.leaves_nothing()
    assert job.run().returncode == 123
    (allocation,) = job.allocations()
    status, said = at_a_terminal(job, "", "clean", allocation.name.rsplit("-", 1)[1], "--discard", "--yes")
    assert status == 0 and "[y/N]" not in said, said
    job.leaves_nothing()
