"""What a script sets by itself is predicted, and the answer says what would be better and which lines change."""

import json
import os
import re

import pytest

HEADER = ["#!/bin/bash", "#SBATCH --nodes=32", "#SBATCH --ntasks=1024"]
DW = "#DW jobdw type=scratch access_mode=striped capacity=2TiB pool=wlm_pool"
HINTS = 'export MPICH_MPIIO_HINTS="$DW_JOB_STRIPED/btio.mpi:cb_nodes=32:striping_unit=1048576:no_indep_rw=true"'
BTIO = "--access", "collective", "--size", "100GB", "--calls", "10", "--segment", "1280B"


def script(job, *lines, header=HEADER):
    (job.directory / "job.sh").write_text("\n".join([*header, *lines, ""]))


def plan_json(job, *words, machine="shaheen2", pattern=BTIO):
    done = job.command("plan", "job.sh", "--machine", machine, *pattern, *words, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def storage(plan, name):
    return next(one for one in plan["storages"] if one["storage"] == name)


def fixed(job, *words):
    """The same settings as options, without a script."""
    sizes = "--ranks", "1024", "--nodes", "32"
    done = job.command("plan", "--machine", "shaheen2", *BTIO, *sizes, *words, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def changed(job, found):
    """The script with the lines of the answer."""
    lines = (job.directory / "job.sh").read_text().splitlines()
    for change in sorted(found["changes"], key=lambda one: -(one["line"] or 0)):
        if change["line"] is None:
            lines.insert(len(HEADER), change["new"])
        else:
            lines[change["line"] - 1 : change["last_line"]] = [change["new"]]
    (job.directory / "job.sh").write_text("\n".join([*lines, ""]))


def test_allocation_and_hints_of_the_script_are_predicted_as_options_are(job):
    script(job, DW, HINTS, "srun ./btio")
    found = storage(plan_json(job), "datawarp")
    has = found["script"]
    assert (has["servers"], has["aggregators"], has["stripe_bytes"]) == (6, [32], [1 << 20])
    words = "--servers", "6", "--aggregators", "32", "--stripe-size", "1MiB"
    assert has["io_s"] == storage(fixed(job, *words), "datawarp")["given"]["io_s"]
    assert found["recommended"]["io_s"] < has["io_s"]


def test_answer_says_what_the_script_has_what_is_better_and_which_lines_change(job):
    script(job, DW, HINTS, "srun ./btio")
    text = job.command("plan", "job.sh", "--machine", "shaheen2", *BTIO).stdout
    assert re.search(r"the script has 6 DataWarp nodes, 32 aggregators, stripe unit 1 MiB \(predicted \S+ s, ", text)
    assert re.search(r"; better: 16 DataWarp nodes, 256 aggregators, stripe unit 8 MiB \(predicted \S+ s, ", text)
    assert "line 4 of the script becomes:" in text and "line 5 of the script becomes:" in text
    assert "the plan does not predict its effect" in text


def test_changed_script_has_what_was_recommended(job):
    script(job, DW, HINTS, "lfs setstripe -c 8 -S 1m out", "srun ./btio")
    before = plan_json(job)
    for name in ("datawarp", "lustre"):
        script(job, DW, HINTS, "lfs setstripe -c 8 -S 1m out", "srun ./btio")
        changed(job, storage(before, name))
        text = (job.directory / "job.sh").read_text()
        assert "no_indep_rw=true" in text and "btio.mpi:" in text
        after = storage(plan_json(job), name)
        assert after["script"] == after["recommended"] == storage(before, name)["recommended"]
        assert after["changes"] == []
        assert (
            "nothing that was tried costs less" in job.command("plan", "job.sh", "--machine", "shaheen2", *BTIO).stdout
        )


def test_stripes_of_lfs_setstripe_are_those_of_lustre_alone(job):
    script(job, DW, "lfs setstripe -c 16 -S 4M out", "srun ./btio")
    plan = plan_json(job)
    lustre, datawarp = storage(plan, "lustre"), storage(plan, "datawarp")
    assert (lustre["script"]["servers"], lustre["script"]["stripe_bytes"]) == (16, [4 << 20])
    assert datawarp["script"]["stripe_bytes"] == [8 << 20]
    best = lustre["recommended"]
    line = f"lfs setstripe -c {best['servers']} -S {best['stripe_bytes'][0]} out"
    assert [one["new"] for one in lustre["changes"] if one["line"] == 5] == [line]
    script(job, "lfs setstripe -c -1 out", "srun ./btio")
    assert storage(plan_json(job), "lustre")["script"]["servers"] == 144


def test_hints_of_each_file_are_those_of_its_rule(job):
    from forebay.cli.plan.script_settings import read_settings
    from forebay.plan.pattern import Pattern

    rules = "$BB/wrfinput*:cb_nodes=40:striping_unit=131072,wrfout*:cb_nodes=20,*:cb_nodes=10"
    script(job, f'export MPICH_MPIIO_HINTS="{rules}"')
    path = job.directory / "job.sh"
    found, notes, ranks, _ = read_settings(path, path.read_text(), None)

    def of(name):
        return found.for_pattern(
            Pattern(name=name, access="collective", ranks=8, nodes=1, total_bytes=8, transfer_bytes=1)
        )

    assert [of(name).aggregators for name in ("/a/wrfinput_d01", "/a/wrfout_d01", "/a/b")] == [40, 20, 10]
    assert of("/a/wrfinput_d01").stripe_bytes == 131072 and of("/a/b").stripe_bytes is None
    assert notes == [] and ranks is None


ROMIO = {
    "here-document": ["cat > romio_hints << EOF", "cb_nodes 4", "romio_ds_write disable", "EOF"],
    "printf": ["printf '%s\\n' 'cb_nodes 4' 'romio_ds_write disable' > romio_hints"],
    "one printf": ["printf 'cb_nodes 4\\nromio_ds_write disable\\n' > romio_hints"],
    "echo": ["echo cb_nodes 4 > romio_hints", "echo 'romio_ds_write disable' >> romio_hints"],
}
LSF = ["#!/bin/bash", "#BSUB -nnodes 8", "#BSUB -P project"]


@pytest.mark.parametrize("form", ROMIO)
def test_hints_in_a_file_that_the_script_writes_are_read(job, form):
    last = "export ROMIO_HINTS=$PWD/romio_hints", "jsrun -n 8 -a 16 -c 16 -r 1 ./btio"
    script(job, *ROMIO[form], *last, header=LSF)
    plan = plan_json(job, machine="summit")
    found = storage(plan, "alpine")
    assert plan["ranks"] == 128 and found["script"]["aggregators"] == [4]
    (change,) = found["changes"]
    assert change["line"] == 4 and change["new"].startswith("printf ") and "> romio_hints" in change["new"]
    if form == "here-document":
        assert change["last_line"] == 7


def test_file_of_hints_that_exists_is_not_opened_and_named(job):
    (job.directory / "romio_hints").write_text("cb_nodes 4\n")
    script(job, "export ROMIO_HINTS=$PWD/romio_hints", "jsrun -n 8 -a 16 ./btio", header=LSF)
    plan = plan_json(job, machine="summit")
    assert storage(plan, "alpine")["script"] is None
    assert any("line 4 of the script names $PWD/romio_hints" in note for note in plan["notes"])


def test_value_of_a_variable_is_named_and_the_default_is_predicted(job):
    script(job, DW, 'export MPICH_MPIIO_HINTS="*:cb_nodes=$N:striping_unit=1048576"', "srun ./btio")
    plan = plan_json(job)
    assert any("line 5 of the script: cb_nodes=$N is known only when the job runs" in note for note in plan["notes"])
    has = storage(plan, "datawarp")["script"]
    assert (has["aggregators"], has["stripe_bytes"]) == ([6], [1 << 20])
    script(job, DW, "lfs setstripe -c $COUNT out", "export MPICH_MPIIO_CB_ALIGN=$A", "srun ./btio")
    notes = plan_json(job)["notes"]
    assert any("line 5 of the script: lfs setstripe -c $COUNT out is known only" in note for note in notes)
    assert any("line 6 of the script: MPICH_MPIIO_CB_ALIGN=$A is known only" in note for note in notes)


def test_options_win_over_the_script_with_a_note(job):
    script(job, DW, HINTS, "srun ./btio")
    plan = plan_json(job, "--aggregators", "64", "--nodes", "16", "--servers", "4")
    has = storage(plan, "datawarp")["script"]
    assert (has["servers"], has["aggregators"], has["stripe_bytes"], plan["nodes"]) == (4, [64], [1 << 20], 16)
    for note in (
        "--aggregators 64 is taken, and not the 32 of the script",
        "--nodes 16 is taken, and not the 32 of the script",
        "--servers 4 is taken, and not the capacity of the script",
    ):
        assert note in plan["notes"]
    assert not any("is taken" in note for note in plan_json(job, "--aggregators", "32")["notes"])


def test_settings_that_are_not_searched_stay_and_are_predicted(job):
    small = HINTS.replace("no_indep_rw=true", "cb_buffer_size=65536")
    script(job, DW, small, "srun ./btio")
    found = storage(plan_json(job), "datawarp")
    script(job, DW, HINTS, "srun ./btio")
    assert (
        found["recommended"]["synchronisation_s"]
        > 5 * storage(plan_json(job), "datawarp")["recommended"]["synchronisation_s"]
    )
    assert any("cb_buffer_size=65536" in one["new"] for one in found["changes"])


def test_allocation_that_is_smaller_than_asked_is_said(job):
    script(job, DW.replace("2TiB", "94208GiB"), "srun ./btio")
    found = storage(plan_json(job), "datawarp")
    assert found["script"]["servers"] == 256 and found["recommended"]["servers"] == 16
    assert any("keep the capacity if the job stores more" in reason for reason in found["reasons"])
    at_least = storage(plan_json(job, "--capacity", "94208GiB"), "datawarp")
    assert at_least["recommended"]["servers"] == 256


def test_files_of_unknown_size_that_are_staged_in_keep_the_capacity(job):
    stage = "#DW stage_in type=directory source=/no/such/place destination=$DW_JOB_STRIPED/in"
    script(job, DW.replace("2TiB", "94208GiB"), stage, "srun ./btio")
    assert storage(plan_json(job), "datawarp")["recommended"]["servers"] == 256
    assert storage(plan_json(job, "--stage-in", "1GB"), "datawarp")["recommended"]["servers"] == 16


def test_private_namespace_and_another_pool_are_noted(job):
    script(job, DW.replace("striped", "private").replace("wlm_pool", "sm_pool"), "srun ./btio")
    plan = plan_json(job)
    assert any("access_mode=private" in note and "striped" in note for note in plan["notes"])
    assert any("the pool sm_pool; the machine file has wlm_pool" in note for note in plan["notes"])
    (change,) = (one for one in storage(plan, "datawarp")["changes"] if one["line"] == 4)
    assert "access_mode=striped" in change["new"] and "pool=sm_pool" in change["new"]


def test_settings_that_the_storage_does_not_have_are_named(job):
    script(job, "lfs setstripe -c 500 out", "srun ./btio")
    found = storage(plan_json(job), "lustre")
    assert found["script"] is None and found["recommended"]
    assert any("cannot be predicted here" in reason and "144" in reason for reason in found["reasons"])


@pytest.mark.soak
@pytest.mark.parametrize(
    "line",
    [
        "export MPICH_MPIIO_HINTS=",
        "export MPICH_MPIIO_HINTS=':::,,::'",
        "export MPICH_MPIIO_HINTS='*:cb_nodes=99999999999999999999'",
        "export MPICH_MPIIO_HINTS='*:cb_nodes=-3:striping_unit=0'",
        'export MPICH_MPIIO_HINTS="\x1b[31m$(rm -rf x):cb_nodes=`id`"',
        "export ROMIO_HINTS=",
        "lfs setstripe -c -7 -S 0 out",
        "lfs setstripe",
        "cat > < >",
        "export MPICH_MPIIO_CB_ALIGN=٣",
        "export MPICH_MPIIO_HINTS='*:cb_nodes=٣'",
    ],
)
def test_script_that_is_odd_gets_an_answer_without_traceback(job, line):
    script(job, DW, line, "srun ./btio")
    done = job.command("plan", "job.sh", "--machine", "shaheen2", *BTIO)
    assert "Traceback" not in done.stderr and done.returncode == 0, done.stderr
    assert "\x1b" not in done.stdout


def test_nodes_follow_from_tasks_of_a_node_and_else_from_cores(job):
    header = ["#!/bin/bash", "#SBATCH --ntasks=1024", "#SBATCH -A k1 --ntasks-per-node=16"]
    script(job, "srun -n 1024 ./btio", header=header)
    assert plan_json(job)["nodes"] == 64
    script(job, "srun -n 1024 ./btio", header=header[:2])
    plan = plan_json(job)
    assert plan["nodes"] == 32 and any("nothing says the number of nodes" in note for note in plan["notes"])
    assert plan_json(job, "--nodes", "128")["nodes"] == 128


def test_line_for_local_storage_is_not_repeated(job):
    own = "--access", "file-per-process", "--size", "100GB"
    for asked, lines in ((['#BSUB -alloc_flags "nvme"'], []), ([], ["#BSUB -alloc_flags nvme"])):
        script(job, "jsrun -n 8 -a 16 ./btio", header=[*LSF, *asked])
        assert storage(plan_json(job, machine="summit", pattern=own), "nvme")["lines"] == lines


def test_hints_of_several_kinds_of_files_and_a_persistent_allocation_are_noted(job):
    hints = "export MPICH_MPIIO_HINTS='$DW_PERSISTENT_STRIPED_a/wrfinput*:cb_nodes=40,wrfout*:cb_nodes=20'"
    script(job, "#DW persistentdw name=a", hints, "srun wrf.exe")
    plan = plan_json(job)
    assert any("2 kinds of files" in note and "wrfinput*" in note for note in plan["notes"])
    assert any("persistent allocation" in note and "--servers" in note for note in plan["notes"])
    (change,) = storage(plan, "datawarp")["changes"]
    assert "wrfinput*:cb_nodes=" in change["new"] and ",wrfout*:cb_nodes=20'" in change["new"]


def new_lines(job, name="lustre", **words):
    return {one["line"]: one["new"] for one in storage(plan_json(job, **words), name)["changes"]}


def test_what_else_is_on_a_line_that_changes_stays(job):
    lines = ("  mkdir out; lfs setstripe -c 2 out && echo done", 'export A=1 MPICH_MPIIO_HINTS="*:cb_nodes=2" B=2')
    script(job, *lines, "srun ./btio")
    new = new_lines(job)
    assert re.fullmatch(r"  mkdir out; lfs setstripe -c 32 -S \d+ out ?&& echo done", new[4])
    assert re.fullmatch(r"export A=1 MPICH_MPIIO_HINTS='\*:cb_nodes=32:[^']*' B=2", new[5])
    script(job, 'MPICH_MPIIO_HINTS="*:cb_nodes=2" srun ./btio')
    assert re.fullmatch(r"MPICH_MPIIO_HINTS='\*:cb_nodes=32:[^']*' srun ./btio", new_lines(job)[4])


def test_csh_script_gets_lines_of_csh(job):
    header = ["#!/bin/csh", "#SBATCH --nodes=32", "#SBATCH --ntasks=1024"]
    script(job, 'setenv MPICH_MPIIO_HINTS "out*:cb_nodes=8"', "srun ./btio", header=header)
    assert new_lines(job)[4].startswith("setenv MPICH_MPIIO_HINTS 'out*:cb_nodes=32")
    script(job, "srun ./btio", header=header)
    assert any(line.startswith("setenv MPICH_MPIIO_HINTS '") for line in storage(plan_json(job), "lustre")["lines"])


def test_hints_in_an_option_of_the_launcher_are_named(job):
    script(job, "srun --export=ALL,MPICH_MPIIO_HINTS=*:cb_nodes=4 ./btio")
    plan = plan_json(job)
    assert storage(plan, "lustre")["script"] is None
    assert any("line 4 of the script gives MPICH_MPIIO_HINTS in an option of srun" in note for note in plan["notes"])


def test_script_that_is_no_regular_file_is_refused_and_not_waited_for(job):
    os.mkfifo(job.directory / "job.sh")
    done = job.command("plan", "job.sh", "--machine", "shaheen2", *BTIO)
    assert done.returncode == 1 and "job.sh: not a regular file\nhint: name a job script" in done.stderr


def test_files_of_one_rule_that_need_different_hints_get_rules_of_their_own():
    from forebay.plan import cases
    from forebay.plan.in_script import Hints, ScriptSettings, Line
    from forebay.plan.job_lines import changes
    from forebay.plan.pattern import Pattern, Settings

    rules = (("*", {"cb_nodes": "2", "romio_ds_write": "disable"}),)
    text = "export MPICH_MPIIO_HINTS='*:cb_nodes=2:romio_ds_write=disable'"
    hints = Hints(line=Line(number=2, end=2, text=text), variable="MPICH_MPIIO_HINTS", rules=rules)
    files = [
        Pattern(name=f"/run/{name}", access="collective", ranks=8, nodes=1, total_bytes=8, transfer_bytes=1)
        for name in ("a.nc", "b.nc")
    ]

    def new(*aggregators):
        settings = [Settings(servers=1, stripe_bytes=65536, aggregators=one) for one in aggregators]
        storage = cases.machine("shaheen2").storage["datawarp"]
        (change,) = changes(ScriptSettings(hints=hints), storage, files, settings, None)
        return change.new.partition("=")[2]

    kept = "romio_ds_write=disable:striping_unit=65536"
    assert new(4, 4) == f"'*:cb_nodes=4:{kept}'"
    assert new(4, 8) == f"'a.nc:cb_nodes=4:{kept},b.nc:cb_nodes=8:{kept},*:cb_nodes=2:romio_ds_write=disable'"
