"""The scripts of examples/scripts, unchanged, as the superuser and as an ordinary user."""

import array
import json
import os
import pwd
import shutil
import subprocess

import pytest

from support.users import SCRIPTS, anyone, make  # noqa: F401 (a fixture)

GRID, DUMPS = 8, 2
DECK = f"w\n0\n{DUMPS}\n{GRID} {GRID} {GRID}\n"
VALUES = 5 * GRID**3 * DUMPS


def btio(job, build, directory, deck=DECK + ".\n", deck_name="inputbt.data"):
    """The program and its deck in a directory of the job's user."""
    make(job, directory, **{deck_name.replace(".", "__"): deck})
    shutil.copy(build / "kernels" / "btio", directory)
    (directory / "btio").chmod(0o755)


def run(job, script, *options, **environment):
    shutil.copy(SCRIPTS / script, job.directory / "job.sh")
    done = job.run(*options, **environment)
    assert job.allocations() == [], done.stderr
    job.leaves_nothing()
    return done


def is_right(directory):
    """BTIO's result: the numbers 1, 2, 3, ... as doubles."""
    found = (directory / "btio.full.out").read_bytes()
    return found == array.array("d", range(1, VALUES + 1)).tobytes()


def ranks(done):
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    return [json.loads(line)["ranks"] for line in lines]


@pytest.mark.parametrize("script", ["slurm-lustre.sh", "lsf-gpfs.sh", "pbs.sh", "flux.sh"])
def test_foreign_scripts_without_a_burst_buffer_run(job, build, script):
    btio(job, build, job.directory)
    (job.directory / "romio_hints").write_text("romio_cb_write enable\n")
    done = run(job, script)
    assert (done.returncode, ranks(done)) == (0, [4]), done.stderr
    assert is_right(job.directory)


@pytest.mark.parametrize("store", ["memory", "directory"])
def test_foreign_datawarp_directories_are_staged(anyone, build, store):
    job = anyone
    if store == "memory":
        job.in_memory("--store", "memory")
    btio(job, build, job.pfs / "ada" / "for_bb")
    (job.pfs / "ada" / "for_bb" / "btio").chmod(0o644)  # the script's chmod is needed
    done = run(job, "slurm-datawarp.sh", "--map", f"/scratch={job.pfs}")
    assert (done.returncode, ranks(done)) == (0, [4]), done.stderr
    back_up = job.pfs / "ada" / "back_up"
    assert is_right(back_up) and (back_up / "btio").stat().st_mode & 0o111
    assert sorted(path.name for path in back_up.iterdir()) == ["btio", "btio.full.out", "inputbt.data"]


@pytest.mark.soak
def test_input_edited_in_the_script_is_used(anyone, build):
    job = anyone
    btio(job, build, job.directory, deck=DECK, deck_name="tmp_input")
    make(job, job.pfs / "ada")
    done = run(job, "slurm-edited-input.sh", "--map", f"/scratch={job.pfs}")
    assert (done.returncode, ranks(done)) == (0, [4]), done.stderr
    assert is_right(job.pfs / "ada" / "back_up")


def test_foreign_scripts_create_use_and_destroy_a_persistent_allocation(anyone, build):
    job = anyone
    btio(job, build, job.pfs / "ada" / "for_bb")
    for script in ("create", "use", "destroy"):
        shutil.copy(SCRIPTS / f"slurm-persistent-{script}.sh", job.directory / "job.sh")
        done = job.run("--map", f"/scratch={job.pfs}")
        assert done.returncode == 0, done.stderr
        if script == "use":
            assert ranks(done) == [4] and is_right(job.store / "forebay-persistent-george_test" / "striped")
    assert job.allocations() == []


@pytest.mark.soak
def test_interactive_job_reads_its_directives_file(anyone, build):
    job = anyone
    btio(job, build, job.directory)
    shutil.copy(SCRIPTS / "bbf.conf", job.directory)
    done = run(job, "slurm-interactive.sh", "--bbf=bbf.conf")
    assert (done.returncode, ranks(done)) == (0, [4]), done.stderr
    assert f" {8 * VALUES} " in done.stdout.splitlines()[-1]
    assert not (job.directory / "btio.full.out").exists()


PROGRAM = """#!/bin/bash
for word; do export "${word#--}"; done
cat "$indir/a" "$infile" > "$outdir/$SLURM_PROCID"
"""


@pytest.mark.soak
@pytest.mark.parametrize(("script", "warned"), [("slurm-continued.sh", 0), ("slurm-bare-continuation.sh", 1)])
def test_directive_over_two_lines_is_read(anyone, script, warned):
    job = anyone
    make(job, job.pfs / "inputs", a="input ")
    make(job, job.pfs, file__dat="data")
    make(job, job.directory, my__x=PROGRAM)
    (job.directory / "my.x").chmod(0o755)
    done = run(job, script, "--json", "--map", f"/lustre={job.pfs}")
    assert done.returncode == 0, done.stderr
    # Two tasks: what stands behind the bare line was read. Bash took that line for assignments.
    assert {path.name: path.read_text() for path in (job.pfs / "outputs").iterdir()} == {
        "0": "input data",
        "1": "input data",
    }
    assert (
        done.stderr.count(
            "the continued line does not begin with #DW: taken here, ignored by Slurm; put #DW in front of it"
        )
        == warned
    )
    assert "job.sh: line 3, column 1" in done.stderr or not warned
    plan = run(job, script, "--dry-run", "--json", "--map", f"/lustre={job.pfs}")
    plan = json.loads(plan.stdout)
    assert (plan["tasks"], plan["time_limit_s"], plan["store"]["asked_bytes"]) == (2, 600, 1000 * 10**9)


def test_readme_path_is_shown_where_user_is_not_set(anyone, build):
    """As in containers."""
    job = anyone
    btio(job, build, job.directory)
    make(job, job.pfs / "scratch" / pwd.getpwuid(os.getuid() if job.user is None else job.user).pw_name)
    environment = job.environment()
    del environment["USER"]
    environment.pop("LOGNAME", None)
    job.environment = lambda: environment
    done = run(job, "lsf-nvme.sh", "--map", f"/gpfs/alpine={job.pfs}")
    assert (done.returncode, ranks(done)) == (0, [4]), done.stderr
    assert is_right(next((job.pfs / "scratch").iterdir()))


def test_readme_command_runs_a_continued_script(job):
    job.pfs = job.directory.parent / "pfs"
    commands = (SCRIPTS / "README.md").read_text().split("```")[1].replace("DIR/", f"{job.pfs}/")
    subprocess.run(["bash", "-e", "-c", commands], cwd=job.directory, check=True)
    for script in ("slurm-continued.sh", "slurm-bare-continuation.sh"):
        done = run(job, script, "--map", f"/lustre={job.pfs}")
        assert done.returncode == 0, done.stderr
        assert {path.name: path.read_text() for path in (job.pfs / "outputs").iterdir()} == {
            "0": "data\n",
            "1": "data\n",
        }
        shutil.rmtree(job.pfs / "outputs")


def test_output_of_the_examples_is_ignored_by_git():
    names = ["scripts/btio", "scripts/inputbt.data", "scripts/tmp_input", "scripts/btio.full.out", "scripts/my.x"]
    names += ["slurm/results/host", "slurm/checkpoints/step-0001/rank0"]
    for name in names:
        assert subprocess.run(["git", "check-ignore", "-q", name], cwd=SCRIPTS.parent).returncode == 0, name


def test_script_without_a_size_gets_no_message_about_its_size(job):
    (job.directory / "job.sh").write_text("#!/bin/bash\n#BSUB -alloc_flags nvme\ndf /mnt/bb/$USER > /dev/null\n")
    job.in_memory()
    done = job.run("--json", "--strict-capacity")
    assert done.returncode == 0 and "asks for" not in done.stderr, done.stderr
    assert json.loads(done.stdout)["store"]["asked_bytes"] is None
    assert "no size asked" in job.run("--dry-run").stdout
    asked = json.loads(job.run("--dry-run", "--json", "--capacity", "3MiB").stdout)["store"]
    assert (asked["asked_bytes"], asked["capacity_bytes"]) == (3 << 20, 3 << 20)


def test_readme_names_every_script():
    text = (SCRIPTS / "README.md").read_text()
    named = [word.strip("`") for word in text.split() if word.strip("`,").endswith((".sh", ".conf"))]
    for path in SCRIPTS.iterdir():
        known = any(path.match(name.strip("`,")) for name in named)
        assert known or path.name.startswith((".", "README")), path


@pytest.mark.soak
@pytest.mark.parametrize("store", ["memory", "directory"])
def test_lsf_script_gets_node_local_storage(anyone, build, store):
    job = anyone
    if store == "memory":
        job.in_memory("--store", "memory")
    btio(job, build, job.directory)
    make(job, job.pfs / "scratch" / "ada")
    done = run(job, "lsf-nvme.sh", "--map", f"/gpfs/alpine={job.pfs}")
    assert (done.returncode, ranks(done)) == (0, [4]), done.stderr
    assert is_right(job.pfs / "scratch" / "ada")
    assert not (job.directory / "btio.full.out").exists()
