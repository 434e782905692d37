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
    assert "warning: written by the job and named by no stage_out line: 2 files, 2.93 KiB; " in done.stderr
    assert "deleted with the allocation; the largest: striped/deep/large (2.93 KiB)" in done.stderr
    unnamed = json.loads(done.stdout)["unnamed"]
    largest = [["striped/deep/large", 3000], ["striped/b", 2]]
    assert unnamed == {"files": 2, "bytes": 3002, "largest": largest, "complete": True}


def test_no_message_where_directives_name_all_files(job):
    job.script(
        'cd "$DW_JOB_STRIPED"; mkdir out; echo a > out/a; echo b > b',
        DW,
        STAGE_OUT.format("b"),
        "#DW stage_out type=directory source=$DW_JOB_STRIPED/out/ destination=%d/out",
    )
    done = job.run("--json")
    assert done.returncode == 0 and "named by no" not in done.stderr, done.stderr
    assert json.loads(done.stdout)["unnamed"]["files"] == 0


def test_directive_with_a_typo_keeps_the_results_and_lists_them(job):
    job.script('cd "$DW_JOB_STRIPED"; echo result > result.dat', DW, STAGE_OUT.format("results.dat"))
    done = job.run()
    assert done.returncode == 123 and "the largest: striped/result.dat (7 B)" in done.stderr, done.stderr
    assert "kept with the allocation" in done.stderr and "--to DIR" in done.stderr
    assert "on this machine only: 7 B; " in done.stderr, done.stderr
    (allocation,) = job.allocations()
    id = allocation.name.rsplit("-", 1)[1]
    again = job.command("clean", id)
    assert again.returncode == 123 and f"forebay clean {id} --to DIR" in again.stderr, again.stderr
    assert job.command("clean", id, "--to", "rescued").returncode == 0
    assert (job.directory / "rescued" / "striped" / "result.dat").read_text() == "result\n"
    job.leaves_nothing()


def test_discard_names_files_that_no_directive_names(job):
    job.script('cd "$DW_JOB_STRIPED"; echo result > result.dat', DW, STAGE_OUT.format("results.dat"))
    assert job.run().returncode == 123
    (allocation,) = job.allocations()
    id = allocation.name.rsplit("-", 1)[1]
    done = job.command("clean", id, "--discard", "--json")
    assert f"job {id}: removed, and with it 1 file, 7 B\n" in done.stderr
    shown = json.loads(done.stdout)
    assert (shown["deleted_files"], shown["deleted_bytes"]) == (1, 7)
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


def test_discard_lists_what_it_deletes_and_asks_at_a_terminal(job):
    job.script('cd "$DW_JOB_STRIPED"; echo result > result.dat', DW, STAGE_OUT.format("results.dat"))
    assert job.run().returncode == 123
    (allocation,) = job.allocations()
    id = allocation.name.rsplit("-", 1)[1]
    status, said = at_a_terminal(job, "n\n", "clean", id, "--discard")
    assert status == 1 and "deletes 1 file, 7 B" in said and "nothing was deleted" in said, said
    assert (allocation / "striped" / "result.dat").exists()
    status, said = at_a_terminal(job, "y\n", "clean", id, "--discard")
    assert status == 0, said
    job.leaves_nothing()
    assert job.run().returncode == 123
    (allocation,) = job.allocations()
    status, said = at_a_terminal(job, "", "clean", allocation.name.rsplit("-", 1)[1], "--discard", "--yes")
    assert status == 0 and "[y/N]" not in said, said
    job.leaves_nothing()


@pytest.mark.parametrize("store", ["directory", "memory"])
@pytest.mark.parametrize("named", ["deep/result.dat", "striped/deep/result.dat", "{data}/striped/deep/result.dat"])
def test_stage_out_command_saves_a_file_of_a_job(job, store, named):
    if store == "memory":
        job.in_memory()
    job.script(
        'cd "$DW_JOB_STRIPED"; mkdir deep; echo result > deep/result.dat; echo "$PWD"', DW, STAGE_OUT.format("typo")
    )
    ran = job.run()
    assert ran.returncode == 123
    id = job.record()["id"]
    data = ran.stdout.strip().removesuffix("/striped")
    done = job.command("stage", "out", "--job", id, named.format(data=data), "rescued/")
    assert done.returncode == 0, done.stderr
    assert (job.directory / "rescued" / "result.dat").read_text() == "result\n"
    refused = job.command("stage", "out", "--job", id, "../../x", "rescued/")
    assert refused.returncode == 1 and "is not in the allocation of job" in refused.stderr
    assert "there is no job 1" in job.command("stage", "out", "--job", "1", "x", "rescued/").stderr
    assert job.command("clean", id, "--discard").returncode == 0
