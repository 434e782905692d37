"""Jobs whose directives are of NNF's dialect: their allocation, and what is copied in and out."""

import json

import pytest
from support.job import KILL
from support.persistent import assert_job_allocations_removed, ran, refused, root
from support.waiting import wait_until

JOBDW = "#DW jobdw type=xfs capacity=64MiB name=my-data"
HERE = "$DW_JOB_my_data"
USE = "#DW persistentdw name=proj-1"
PERSISTENT = "$DW_PERSISTENT_proj_1"


@pytest.fixture(params=["directory", "memory"])
def any_store(job, request):
    if request.param == "memory":
        job.in_memory()
    yield job
    job.command("clean", "--discard", "--kill")


def tree(directory) -> dict[str, str]:
    """The files below a directory, and what is in them."""
    return {str(path.relative_to(directory)): path.read_text() for path in directory.rglob("*") if path.is_file()}


def inputs(job) -> None:
    (job.directory / "in" / "deep").mkdir(parents=True)
    (job.directory / "in" / "a.dat").write_text("a")
    (job.directory / "in" / "deep" / "b.dat").write_text("b")


def copy_in(source: str, destination: str) -> str:
    return f"#DW copy_in source={source} destination={destination}"


def copy_out(source: str, destination: str) -> str:
    return f"#DW copy_out source={source} destination={destination}"


def test_nnf_allocation_is_known_by_its_name_only(job):
    body = 'ls -d "${DW_JOB_my_data}."; env | grep -o "^DW_JOB_[^=]*"'
    job.script(body, JOBDW)
    done = job.run(DW_JOB_outer="/outer")
    assert done.returncode == 0, done.stderr
    listed, *names = done.stdout.splitlines()
    assert listed.startswith(str(job.store)) and listed.endswith("/striped/.")
    assert names == ["DW_JOB_my_data"]
    job.leaves_nothing()


def test_nnf_files_and_directories_are_copied_in_and_out(any_store):
    job = any_store
    inputs(job)
    (job.directory / "there").mkdir()
    ran(
        job,
        f"(cd {HERE}; find . -type f | sort) > seen; mkdir -p {HERE}/out/deep; echo -n c > {HERE}/out/c.dat; "
        f"echo -n d > {HERE}/out/deep/d.dat",
        JOBDW,
        copy_in("%d/in/a.dat", f"{HERE}/renamed.dat"),
        copy_in("%d/in/a.dat", f"{HERE}/file/"),
        copy_in("%d/in", f"{HERE}/tree"),
        copy_in("%d/in/", f"{HERE}/contents"),
        copy_out(f"{HERE}/out/c.dat", "%d/renamed.dat"),
        copy_out(f"{HERE}/out/c.dat", "%d/there"),
        copy_out(f"{HERE}/out", "%d/there"),
        copy_out(f"{HERE}/out", "%d/new"),
        copy_out(f"{HERE}/out/", "%d/contents"),
        copy_out(HERE, "%d/all"),
    )
    seen = (job.directory / "seen").read_text().split()
    assert seen == [
        "./contents/a.dat",
        "./contents/deep/b.dat",
        "./file/a.dat",
        "./renamed.dat",
        "./tree/in/a.dat",
        "./tree/in/deep/b.dat",
    ]
    out = {"c.dat": "c", "deep/d.dat": "d"}
    below = {f"out/{name}": text for name, text in out.items()}
    assert (job.directory / "renamed.dat").read_text() == "c"
    assert tree(job.directory / "there") == {"c.dat": "c"} | below
    assert tree(job.directory / "new") == below
    assert tree(job.directory / "contents") == out
    everything = tree(job.directory / "all")
    assert below.items() <= everything.items() and len(everything) == len(seen) + len(out)
    job.leaves_nothing()


def test_copy_out_is_planned_after_the_script_for_the_same_destination(job):
    job.script(f"mkdir {HERE}/made; echo -n $RANDOM > {HERE}/made/x", JOBDW, copy_out(f"{HERE}/made", "%d/out"))
    for _ in range(2):
        done = job.run("--json", "--stage-verify", "end")
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["stage_out"]["files"] == 1
        assert list(tree(job.directory / "out")) == ["made/x"]
    job.leaves_nothing()


def test_nnf_copies_into_and_out_of_a_persistent_allocation(job):
    inputs(job)
    create = "#DW create_persistent type=lustre name=proj-1 capacity=1MiB"
    ran(job, "true", create, USE, copy_in("%d/in", PERSISTENT))
    assert sorted(tree(root(job, "proj-1") / "striped")) == ["in/a.dat", "in/deep/b.dat"]
    ran(job, f"rm {PERSISTENT}/in/a.dat", USE, copy_out(f"{PERSISTENT}/in", "%d/out/"))
    assert tree(job.directory / "out") == {"in/deep/b.dat": "b"}
    assert_job_allocations_removed(job, "proj-1")


def test_older_nnf_types_and_lists_are_accepted(job):
    inputs(job)
    (job.directory / "list").write_text(f"{PERSISTENT}/p '{job.directory}/p'\n{HERE}/tree/a.dat '{job.directory}/'\n")
    ran(
        job,
        f"echo -n p > {PERSISTENT}/p",
        "#DW create_persistent type=xfs name=proj-1 capacity=1MiB",
        USE,
        JOBDW,
        copy_in("%d/in", f"{HERE}/tree") + " type=directory",
        "#DW copy_out type=list source=%d/list",
    )
    assert [(job.directory / name).read_text() for name in ("p", "a.dat")] == ["p", "a"]
    error = refused(job, JOBDW, copy_in("%d/in", f"{HERE}/tree") + " type=file")
    assert f"error: job.sh: line 4: copy_in: the source {job.directory}/in is not a file" in error


def test_missing_nnf_source_fails_or_is_named_and_the_rest_arrives(job):
    missing = copy_in("%d/none", HERE)
    for options in ((), ("--dry-run",)):
        error = refused(job, JOBDW, missing, options=options)
        assert f"error: job.sh: line 4: copy_in: the source {job.directory}/none does not exist" in error
    job.leaves_nothing()
    job.script(f"echo -n x > {HERE}/x", JOBDW, copy_out(f"{HERE}/y", "%d"), copy_out(f"{HERE}/x", "%d"))
    done = job.run()
    assert done.returncode == 123 and "/striped/y does not exist" in done.stderr, done.stderr
    assert (job.directory / "x").read_text() == "x"
    # What it is, is told by what is found the next time.
    (allocation,) = job.allocations()
    (allocation / "striped" / "y").mkdir()
    (allocation / "striped" / "y" / "z").write_text("z")
    assert job.command("clean").returncode == 0
    assert tree(job.directory / "y") == {"z": "z"}
    job.leaves_nothing()


def test_dry_run_uses_nnf_names(job):
    inputs(job)
    job.script("true", JOBDW, copy_in("%d/in", f"{HERE}/tree"), copy_out(f"{HERE}/out", "%d/out"))
    done = job.run("--dry-run")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert f"variables   {HERE}" in lines
    submit = job.directory
    assert f"stage in    path {submit}/in -> {HERE}/tree: 2 file(s), 2 B (line 4)" in lines
    assert f"stage out   path {HERE}/out -> {submit}/out (line 5)" in lines


def test_nnf_files_are_drained_to_their_copy_out_destination(job):
    wait = f"until [ -e {job.directory.name!r}/../out/made/x ] || [ $SECONDS -gt 60 ]; do sleep 0.02; done"
    job.script(
        f"mkdir {HERE}/made; echo -n x > {HERE}/made/x; cd ..; {wait}; cp -a {job.directory.name!r}/../out copy",
        JOBDW,
        copy_out(f"{HERE}/made", f"{str(job.directory.parent)}/out"),
    )
    done = job.run("--json", "--drain", "*")
    assert done.returncode == 0, done.stderr
    assert tree(job.directory.parent / "copy") == tree(job.directory.parent / "out") == {"made/x": "x"}
    assert json.loads(done.stdout)["stage_out"]["unchanged_files"] == 1
    job.leaves_nothing()


def test_killed_nnf_job_is_cleaned_and_its_copy_out_arrives(any_store):
    job = any_store
    wait = 'until [ -e go ] || ! [ -d "$PWD" ]; do sleep 0.02; done'
    job.script(
        f"mkdir {HERE}/out; echo -n x > {HERE}/out/x; echo -n y > {HERE}/y; touch wrote; {wait}",
        JOBDW,
        copy_out(f"{HERE}/out", "%d/home"),
        copy_out(f"{HERE}/y", "%d/home/"),
    )
    job.stop_when(job.start(), (job.directory / "wrote").exists, KILL)
    (job.directory / "go").touch()
    wait_until(lambda: not json.loads(job.command("status", "--json").stdout)[0]["processes"])
    done = job.command("clean")
    assert done.returncode == 0, done.stderr
    assert tree(job.directory / "home") == {"out/x": "x", "y": "y"}
    job.leaves_nothing()
