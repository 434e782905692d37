"""Files that processes of any node close: commands on close run, and they are drained, while the job runs."""

import pytest

from support.node_jobs import STRIPED, node_job
from support.nodes import nodes

STAGE_OUT = "#DW stage_out type=directory source=$DW_JOB_STRIPED/out destination=HERE/out"
#: Waits in the script until a file on the shared file system is there; a command of a job needs a limit.
AWAIT = "await() { for _ in $(seq 300); do [ -e $1 ] && return; sleep 0.1; done; echo $1 is not there; exit 1; }"


@pytest.fixture(scope="module")
def some_nodes(build):
    with nodes(2, build, 1 << 30) as bed:
        yield bed


@pytest.fixture
def bed(some_nodes):
    yield some_nodes
    some_nodes.wait_until_clean()


def test_command_runs_for_files_of_every_node_while_the_script_runs(bed):
    script = f"""{STRIPED}
{AWAIT}
cd $DW_JOB_STRIPED
mkdir here
echo 1 >here/first
ssh n2 "mkdir $DW_JOB_STRIPED/there; echo 2 >$DW_JOB_STRIPED/there/second; echo 3 >$DW_JOB_STRIPED/here/third"
await HERE/seen-second
await HERE/seen-third
echo 4 >there/fourth
await HERE/seen-fourth
ssh n2 "echo 5 >>$DW_JOB_STRIPED/here/first"
for _ in $(seq 300); do [ "$(cat HERE/seen-first)" = "1
5" ] && exit; sleep 0.1; done
exit 1"""
    job = node_job(bed, script, "--on-close", "*=cp $FOREBAY_FILE HERE/seen-${FOREBAY_FILE##*/}", name="commands")
    job.options = tuple(str(option).replace("HERE", str(job.folder)) for option in job.options)
    done = job.run()
    assert "on close: 5 commands succeeded, 0 failed" in done.stderr, done.stderr
    assert job.text("seen-second") == "2\n" and job.text("seen-third") == "3\n" and job.text("seen-fourth") == "4\n"
    assert job.leftovers() == []


@pytest.mark.soak
def test_file_of_another_node_has_one_version_for_each_close(bed):
    script = f"""{STRIPED}
{AWAIT}
for number in 1 2 3; do ssh n2 "echo $number >$DW_JOB_STRIPED/file"; await HERE/seen-$number; done"""
    on_close = "**/file=cat $FOREBAY_FILE >>HERE/log; touch HERE/seen-$FOREBAY_VERSION"
    job = node_job(bed, script, "--on-close", on_close, name="versions")
    job.options = tuple(str(option).replace("HERE", str(job.folder)) for option in job.options)
    job.run()
    assert job.text("log") == "1\n2\n3\n"


def test_files_of_every_node_are_drained_while_the_script_runs(bed):
    script = f"""{STRIPED}
{STAGE_OUT}
{AWAIT}
mkdir $DW_JOB_STRIPED/out
echo 1 >$DW_JOB_STRIPED/out/first
ssh n2 "echo 2 >$DW_JOB_STRIPED/out/second; mkdir $DW_JOB_STRIPED/out/deep; echo 3 >$DW_JOB_STRIPED/out/deep/third"
await HERE/out/first
await HERE/out/second
await HERE/out/deep/third
ssh n2 "echo 4 >$DW_JOB_STRIPED/out/fourth"
forebay drain wait
[ -e HERE/out/fourth ]"""
    job = node_job(bed, script, "--drain", "*", name="drain")
    done = job.run()
    assert "4 of them were there already" in done.stderr, done.stderr
    for number, name in enumerate(["first", "second", "deep/third", "fourth"], 1):
        assert job.text(f"out/{name}") == f"{number}\n"
    assert job.leftovers() == []


def test_file_counts_as_closed_when_its_writer_on_another_node_has_closed_it(bed):
    script = f"""{STRIPED}
ssh n2 "mkdir $DW_JOB_STRIPED/new; exec >$DW_JOB_STRIPED/new/file; echo 1; sleep 3; echo 2"
sleep 2"""
    job = node_job(bed, script, "--on-close", "**/file=cat $FOREBAY_FILE >>LOG", name="open")
    job.options = tuple(str(option).replace("LOG", str(job.path("log"))) for option in job.options)
    job.run()
    assert job.text("log") == "1\n2\n"
