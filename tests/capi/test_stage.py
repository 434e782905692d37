"""What C programs ask of the burst buffer while their job runs, and what becomes of it (docs/reference/libdatawarp.md)."""

import errno
import json
import os
import subprocess

import pytest

from support.capi import compiled
from support.job import DW, KILL
from support.slow_model import MODEL
from support.strace import EVERY_POINT

DONE, PENDING, DEFERRED, FAILED = "0 1 0 0 0", "0 0 1 0 0", "0 0 0 1 0", "0 0 0 0 1"
INVALID = str(-errno.EINVAL)
MISSING = str(-errno.ENOENT)
BUSY = str(-errno.EBUSY)


def test_immediate_stage_out_arrives_while_the_job_runs(asking):
    said = asking.output_lines(
        "echo result > $S/f; ask out $S/f pfs/f now; ask poll $S/f; ask wait $S/f; cat pfs/f; ask query $S/f"
    )
    assert said == ["0", DONE, "0", "result", DONE]
    assert not any(name.name.startswith(".forebay") for name in asking.pfs.iterdir())
    asking.job.leaves_nothing()


def test_stage_in_accepts_relative_paths_and_links(asking):
    (asking.pfs / "f").write_text("input\n")
    said = asking.output_lines(
        "ln -s $S link; ask in link/f pfs/f; ask wait link/f; cat $S/f; cd $S; ask query ./f; ask query $S/../striped/f"
    )
    assert said == ["0", "0", "input", DONE, DONE]


def test_directories_are_staged_both_ways_with_all_their_contents(asking):
    (asking.pfs / "in" / "empty").mkdir(parents=True)
    (asking.pfs / "in" / "deep").mkdir(mode=0o750)
    (asking.pfs / "in" / "deep" / "a").write_text("a")
    (asking.pfs / "in" / "b").write_text("b")
    (asking.pfs / "in" / "link").symlink_to("nowhere")
    (asking.pfs / "out").mkdir()
    said = asking.output_lines(
        "mkdir $S/d; ask in-directory $S/d pfs/in; ask wait-directory $S/d; ask query-directory $S/d\n"
        "ask query $S/d/deep/a; ask out-directory $S/d pfs/out now; ask wait-directory $S/d; ask query-directory $S/d"
    )
    assert said == ["0", "0", "0 2 0 0 0", DONE, "0", "0", "0 2 0 0 0"]
    out = asking.pfs / "out"
    assert sorted(str(path.relative_to(out)) for path in out.rglob("*")) == ["b", "deep", "deep/a", "empty", "link"]
    assert (out / "deep").stat().st_mode & 0o777 == 0o750 and os.readlink(out / "link") == "nowhere"


def test_lists_are_staged_both_ways(asking):
    for name in ("a", "b"):
        (asking.pfs / name).write_text(name)
    (asking.pfs / "out").mkdir()
    said = asking.output_lines(
        "ask in-list $S pfs/a pfs/b; ask wait-list $S/a $S/b; ask query-list $S/a $S/b\n"
        "ask out-list pfs/out end $S/a $S/b; ask query-list $S/a $S/b\n"
        "ask out-list - activate $S/a; ask wait-list $S/a $S/b; ask query-list $S/a $S/b; ls pfs/out\n"
        "ask in-list $S pfs/a pfs; ask query-list $S/a $S/never"
    )
    wrong = [str(-errno.EISDIR), MISSING]
    assert said == ["0", "0", "0 2 0 0 0", "0", "0 0 0 2 0", "0", "0", "0 1 0 1 0", "a", *wrong]
    assert sorted(path.name for path in (asking.pfs / "out").iterdir()) == ["a", "b"]


def test_deferred_request_is_staged_at_the_end_unless_revoked_or_activated(asking):
    said = asking.output_lines(
        "for f in kept revoked active; do echo $f > $S/$f; ask out $S/$f pfs/$f end; done; ask query $S/kept\n"
        "ask out $S/revoked - revoke; ask query $S/revoked; ask out $S/revoked - revoke\n"
        "ask out $S/active - activate; ask wait $S/active; ask query $S/active; ls pfs"
    )
    assert said == ["0", "0", "0", DEFERRED, "0", INVALID, INVALID, "0", "0", DONE, "active"]
    assert sorted(path.name for path in asking.pfs.iterdir()) == ["active", "kept"]
    assert "1 out; 1 were left" in asking.err
    asking.job.leaves_nothing()


def test_deferred_directory_is_staged_as_it_is_at_the_job_end(asking):
    said = asking.output_lines(
        "mkdir $S/d $S/r; echo 1 > $S/d/a; echo 1 > $S/r/a; for d in d r; do ask out-directory $S/$d pfs end; done\n"
        "ask query-directory $S/d; ask query $S/d/a; ask query $S/d/no; ask out-directory $S/r - revoke\n"
        "ask query-directory $S/r; rm $S/d/a; echo 2 > $S/d/b"
    )
    assert said == ["0", "0", DEFERRED, DEFERRED, MISSING, "0", INVALID]
    assert [path.name for path in asking.pfs.iterdir()] == ["b"]


def test_only_the_newest_checkpoint_is_drained(asking):
    asking.output_lines("checkpoints $S pfs 200")
    assert [(path.name, path.read_text()) for path in asking.pfs.iterdir()] == [("checkpoint.199", "step 199\n")]
    asking.job.leaves_nothing()


def test_removing_a_file_drops_its_request(asking):
    said = asking.output_lines("for f in a b; do echo > $S/$f; ask out $S/$f pfs/$f end; done; rm $S/a; ask query $S/a")
    assert said == ["0", "0", MISSING]
    assert [path.name for path in asking.pfs.iterdir()] == ["b"] and "note" not in asking.err


@pytest.mark.parametrize("is_killed", [False, True])
def test_request_of_a_renamed_file_is_dropped_with_a_note(asking, is_killed):
    job = asking.job
    body = "for f in a b; do echo > $S/$f.tmp; ask out $S/$f.tmp pfs/$f end; mv $S/$f.tmp $S/$f; done"
    if is_killed:
        asking.script(f"{body}; touch asked; sleep 600")
        job.stop_when(job.start(), (job.directory / "asked").exists, KILL)
        told = job.command("clean", "--kill").stderr
    else:
        asking.output_lines(body)
        told = asking.err
    assert "/a.tmp: removed or renamed after its stage-out was requested, so it is not staged out: 2 times" in told
    assert list(asking.pfs.iterdir()) == []
    job.leaves_nothing()


def test_requests_of_a_killed_job_are_drained(asking):
    asking.output_lines("checkpoints $S pfs -3", "--time", "0:03", status=124)
    assert [path.name for path in asking.pfs.iterdir()] == ["checkpoint.2"]
    asking.job.leaves_nothing()


# Each file's directory becomes a file before its stage begins.
SPOILED = """for f in a b c; do
echo $f > $S/$f; mkdir pfs/$f; ask out $S/$f pfs/$f/$f end; rmdir pfs/$f; touch pfs/$f
ask out $S/$f - activate; ask wait $S/$f; ask query $S/$f; done > said; sort -u said
"""


def test_failures_are_listed_until_fixed_or_revoked(asking):
    said = asking.output_lines(
        f"{SPOILED} ask failed $S; rm $S/b pfs/a; mkdir pfs/a; ask out $S/a pfs/a/a now; ask wait $S/a\n"
        "ask failed $S; ask terminate $S/c; ask failed $S; ask query $S/c; ask query $S/b"
    )
    shown = [line.rsplit("/", 1)[1] if "/" in line else line for line in said]
    assert shown == ["0", FAILED, "a", "b", "c", "0", "0", "0", "c", "0", "0", "0", INVALID, MISSING]
    assert {line.split()[0] for line in said if "/" in line} == {str(errno.ENOTDIR)}
    assert (asking.pfs / "a" / "a").read_text() == "a\n"
    asking.job.leaves_nothing()


def test_failed_request_keeps_the_allocation_until_it_is_drained(asking):
    asking.output_lines(SPOILED, status=123)
    assert asking.err.count("error: stage out: ") == 3 and "nothing was deleted" in asking.err
    for name in "abc":
        (asking.pfs / name).unlink()
        (asking.pfs / name).mkdir()
    cleaned = asking.job.command("clean")
    assert cleaned.returncode == 0, cleaned.stderr
    assert [(asking.pfs / name / name).read_text() for name in "abc"] == ["a\n", "b\n", "c\n"]
    asking.job.leaves_nothing()


def test_terminate_stops_a_copy_at_once_and_leaves_no_partial_file(asking):
    (asking.job.directory / "slow.toml").write_text(MODEL)
    said = asking.output_lines(
        "head -c 50M /dev/zero > $S/f; ask out $S/f pfs/f now; ask query $S/f; ask out $S/f pfs/f now\n"
        "ask in $S/f slow.toml; ask terminate $S/f; ask query $S/f; ls -A pfs | wc -l\n"
        "ask out $S/f pfs/f end; ask terminate $S/f; ask query $S/f",
        *("--pfs-model", "slow.toml", "--pfs-root", str(asking.pfs)),
    )
    assert said == ["0", PENDING, BUSY, BUSY, "0", INVALID, "0", "0", "0", INVALID]
    assert list(asking.pfs.iterdir()) == []
    asking.job.leaves_nothing()


def test_bad_arguments_are_refused(asking):
    asking.with_private = True
    outside = asking.pfs / "outside"
    outside.write_text("outside\n")
    assert asking.output_lines("echo > $DW_JOB_PRIVATE/p; arguments $S $DW_JOB_PRIVATE/p pfs/outside") == []
    assert outside.read_text() == "outside\n"


def test_every_call_outside_a_job_is_refused_at_once(programs, tmp_path):
    here = {name: value for name, value in os.environ.items() if name != "FOREBAY_REQUESTS"}

    def ask(*words, **more):
        return subprocess.run(
            [programs / "ask", *words], env=here | more, capture_output=True, text=True
        ).stdout.strip()

    file = tmp_path / "f"
    file.write_text("")
    assert [ask("out", file, file, "now"), ask("query", file), ask("query", tmp_path / "no")] == [
        INVALID,
        INVALID,
        MISSING,
    ]
    assert ask("query", file, FOREBAY_REQUESTS=str(tmp_path / "gone")) == str(-errno.ENOTCONN)


def test_requests_work_with_threads_children_and_signals(asking):
    assert asking.output_lines("together $S pfs") == []
    assert len(list(asking.pfs.iterdir())) == 8 * 20 + 2
    assert all(path.read_text() for path in asking.pfs.iterdir())


def test_cancelled_thread_without_standard_streams_ends_after_its_call(asking):
    (asking.job.directory / "slow.toml").write_text(MODEL)
    said = asking.output_lines(
        "head -c 50M /dev/zero > $S/f; cancelled $S/f pfs/f; echo $?",
        *("--pfs-model", "slow.toml", "--pfs-root", str(asking.pfs)),
    )
    assert said == ["0"]


@pytest.mark.soak
def test_two_programs_stage_at_the_same_time(asking):
    asking.output_lines(
        "mkdir $S/a $S/b pfs/a pfs/b; for d in a b; do together $S/$d pfs/$d & done; wait -n && wait -n"
    )
    assert [len(list((asking.pfs / name).iterdir())) for name in "ab"] == [162, 162]


def test_layout_and_usage_calls_return_true_values(asking):
    said = asking.output_lines(
        "touch $S/empty; echo 1 > $S/full; ask stripes $S/empty; ask stripes $S; ask set-stripes $S/empty 1048576 1\n"
        "ask set-stripes $S/empty 2097152 1; ask set-stripes $S/empty 1048576 2; ask set-stripes $S/full 1048576 1\n"
        "ask mds $S; ask concurrency $S 4; ask out $S/full pfs/full now; ask wait $S/full; ask accounting $S; ask sync $S/full"
    )
    assert said[:6] == ["0 1048576 1 0", "0 1048576 1 0", "0", INVALID, INVALID, INVALID]
    assert said[6].startswith("0 /") and said[7:10] == ["0", "0", "0"] and said[11] == INVALID
    code, account = said[10].split(" ", 1)
    account = json.loads(account)
    assert code == "0" and account["realm"]["server_count"] == 1
    assert account["namespaces"] == [{"namespace_id": 0, "stage_bytes_read": 0, "stage_bytes_written": 2}]
    assert account["fragments"][0]["capacity_max"] == 64 << 20


def test_run_summary_counts_what_was_staged_by_request(asking):
    (asking.pfs / "in").write_text("12345")
    asking.script(
        "exec > /dev/null; ask in $S/in pfs/in; ask wait $S/in; ask out $S/in pfs/now now; ask wait $S/in\n"
        "echo 1 > $S/last; ask out $S/last pfs/last end"
    )
    done = asking.job.run("--json")
    account = json.loads(done.stdout)
    assert account["requested"] == {
        **{"files_in": 1, "bytes_in": 5, "files_out": 1, "bytes_out": 5, "failed": 0, "left_to_stage_out": 1}
    }
    assert (account["stage_out"]["files"], account["exit_code"]) == (1, 0)


def test_stage_ins_dropped_at_the_job_end_do_not_count_as_failed(asking):
    (asking.job.directory / "slow.toml").write_text(MODEL)
    (asking.pfs / "in").write_bytes(bytes(20 << 20))
    asking.script("exec > /dev/null; ask concurrency $S 2; for f in 1 2 3; do ask in $S/$f pfs/in; done")
    done = asking.job.run("--json", "--pfs-model", "slow.toml", "--pfs-root", str(asking.pfs))
    assert json.loads(done.stdout)["requested"] is None, done.stderr


def test_immediate_requests_queued_at_the_job_end_are_carried_out(asking):
    asking.output_lines("for i in $(seq 100); do echo $i > $S/$i; done; exec > /dev/null; ask out-list pfs now $S/*")
    assert sorted(int(path.read_text()) for path in asking.pfs.iterdir()) == list(range(1, 101))
    asking.job.leaves_nothing()


@pytest.mark.parametrize("where", ["directory", "memory"])
def test_clean_drains_requests_after_forebay_run_is_killed(asking, where):
    job = asking.job
    if where == "memory":
        job.in_memory()
    asking.script("checkpoints $S pfs -5")
    process = job.start()
    job.stop_when(process, (job.directory / "said").exists, KILL)
    assert list(asking.pfs.iterdir()) == []
    cleaned = job.command("clean", "--kill")
    assert cleaned.returncode == 0, cleaned.stderr
    assert [path.name for path in asking.pfs.iterdir()] == ["checkpoint.4"]
    job.leaves_nothing()


def test_clean_removes_partial_files_of_a_killed_request_copy(asking):
    job = asking.job
    (job.directory / "slow.toml").write_text(MODEL)
    job.where += ["--pfs-model", "slow.toml", "--pfs-root", asking.pfs]
    asking.script("head -c 20M /dev/zero > $S/f; ask out $S/f pfs/f now; ask wait $S/f")
    parts = lambda: [path for path in asking.pfs.iterdir() if path.name.startswith(".forebay")]  # noqa: E731
    job.stop_when(job.start(), parts, KILL)
    assert parts()
    cleaned = job.command("clean", "--kill")
    assert cleaned.returncode == 0, cleaned.stderr
    assert [(path.name, path.stat().st_size) for path in asking.pfs.iterdir()] == [("f", 20 << 20)]
    job.leaves_nothing()


def test_requests_of_a_killed_program_are_carried_out(asking):
    asking.output_lines(
        "checkpoints $S pfs -3 & while ! [ -e said ]; do sleep 0.01; done; kill -9 $!; wait; ask query $S/checkpoint.2"
    )
    assert [path.name for path in asking.pfs.iterdir()] == ["checkpoint.2"]


def test_job_without_striped_namespace_has_no_request_server(asking):
    directive = DW.replace("striped", "private")
    asking.job.script(
        f'PATH={asking.programs}:$PATH; cd "$SLURM_SUBMIT_DIR"\necho > $DW_JOB_PRIVATE/f; ask query $DW_JOB_PRIVATE/f',
        directive,
    )
    assert asking.job.run(FOREBAY_REQUESTS="/outer").stdout == f"{INVALID}\n"


def test_header_compiles_as_c99_and_cplusplus_and_works_under_mpi(asking, build, tmp_path):
    compiled(build, tmp_path / "c", "ask.c", "cc", "-std=c99", "-Wpedantic", "-D_XOPEN_SOURCE=700")
    (tmp_path / "plain.cc").write_text('#include <datawarp.h>\nint main() { return dw_wait_file_stage("/") == 0; }\n')
    include, library = build / "include", build / "lib"
    plain = ["-Wall", "-Wextra", "-Werror", "-I", include, tmp_path / "plain.cc", f"-L{library}", "-ldatawarp"]
    subprocess.run(["c++", "-std=c++98", *plain, "-o", tmp_path / "plain", f"-Wl,-rpath,{library}"], check=True)
    assert subprocess.run([tmp_path / "plain"]).returncode == 0
    compiled(build, tmp_path / "ranks", "ranks.c", "mpicc")
    asking.output_lines(f"mpiexec --oversubscribe -n 3 {tmp_path}/ranks $S pfs")
    assert sorted(path.read_text() for path in asking.pfs.iterdir()) == ["rank 0\n", "rank 1\n", "rank 2\n"]


def test_header_and_the_library_have_the_same_functions(build):
    header = (build / "include" / "datawarp.h").read_text()
    declared = {
        line.split("dw_", 1)[1].split("(")[0] for line in header.splitlines() if line.startswith(("int dw", "char *dw"))
    }
    symbols = subprocess.run(
        ["nm", "-D", "--defined-only", build / "lib" / "libdatawarp.so"], check=True, capture_output=True, text=True
    )
    exported = {line.split()[-1] for line in symbols.stdout.splitlines()}
    assert exported == {f"dw_{name}" for name in declared} and len(exported) == 24


def test_requested_staging_is_verified_where_verification_is_on(asking):
    job, own = asking.job, asking.job.forebay
    asking.script("echo x > $S/x; ask out $S/x pfs/x now; ask wait $S/x; ask query $S/x")
    job.forebay, calls = "strace", job.directory / "calls"
    traced = ["-D", "-f", "-qq", "-o", str(calls), "-e", "trace=fadvise64"]
    for options, times in (([], 0), (["--stage-verify", "end"], 1)):
        (asking.pfs / "x").unlink(missing_ok=True)
        ran = job.command(*traced, own, "run", *job.where, *options, "job.sh")
        assert ran.returncode == 0 and (asking.pfs / "x").read_text() == "x\n", ran.stderr
        assert calls.read_text().count("POSIX_FADV_DONTNEED") == times, calls.read_text()


def test_request_during_terminate_is_carried_out_if_it_is_listed(asking):
    said = asking.output_lines(f"contend $S pfs {3000 if EVERY_POINT else 500}")
    assert sorted(said) == sorted(path.name for path in asking.pfs.iterdir())
    asking.job.leaves_nothing()


PARTS = "$(ls -A pfs | grep -c part)"


@pytest.mark.parametrize("most", [1, 3])
def test_concurrent_requests_are_limited_to_the_option(asking, most):
    (asking.job.directory / "slow.toml").write_text(MODEL)
    said = asking.output_lines(
        f"ask concurrency $S {most}; for n in 1 2 3 4 5; do head -c 4M /dev/zero > $S/$n; ask out $S/$n pfs/$n now; done\n"
        f"seen=0; until [ -e pfs/5 ]; do now={PARTS}; [ $now -le $seen ] || seen=$now; done\n"
        "echo $seen; exec > /dev/null; ask wait-list $S/*",
        *("--pfs-model", "slow.toml", "--pfs-root", str(asking.pfs)),
    )
    assert said[:-1] == ["0"] * 6
    # On a busy machine the script may miss the moment with all of them.
    assert min(most, 2) <= int(said[-1]) <= most
    assert sorted(path.name for path in asking.pfs.iterdir()) == ["1", "2", "3", "4", "5"]


def test_rate_limit_covers_all_requests_together(asking):
    """A block of the first one takes for ever; the second one, of one byte, would take a second by itself."""
    said = asking.output_lines(
        "head -c 5M /dev/zero > $S/large; echo -n 1 > $S/small; ask out $S/large pfs/large now\n"
        "until [ -n \"$(find pfs -name '*large' -o -size +4000000c)\" ]; do sleep 0.01; done; sleep 0.1\n"
        "ask out $S/small pfs/small now; sleep 3; ask query-list $S/large $S/small; ls pfs\n"
        "ask terminate-list $S/large $S/small; ls -A pfs; ask in $S/in job.sh; sleep 2; ask query $S/in",
        *("--stage-rate", "1"),
    )
    assert said == ["0", "0", "0 0 2 0 0", "0", "0", PENDING]
    asking.job.leaves_nothing()
