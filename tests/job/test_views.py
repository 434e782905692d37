"""--map and /mnt/bb: what the job sees, what the machine sees, what is refused."""

import json
import os
import pathlib

import pytest

from support.job import DW
from support.slow_model import MODEL
from support.users import anyone, make, names_outside, started  # noqa: F401 (a fixture)

NVME = "#SBATCH -C nvme"


def test_shown_paths_exist_in_the_view_only(anyone):
    job = anyone
    job.in_memory("--store", "memory")
    before, known = names_outside(), sorted(set(os.listdir("/")) | {"gpfs-of-tests"})
    job.script(
        "ls -A /mnt > mnt; ls -A / > root; ls -A /gpfs-of-tests > gpfs; id -u > /gpfs-of-tests/alpine/id\n"
        "echo local > /mnt/bb/$USER/x; srun -n 2 cat /mnt/bb/$USER/x\n"
        "touch running; until [ -e go ]; do sleep 0.01; done; cat '/gpfs-of-tests/a b/x'",
        NVME,
        DW,
    )
    make(job, job.top / "second", x="blank")
    process = job.start(
        "--map", f"/gpfs-of-tests/alpine={job.pfs}/made", "--map", f"/gpfs-of-tests/a b={job.top}/second"
    )
    started(job, process)
    during = names_outside()
    (job.directory / "go").touch()
    out, err = process.communicate(timeout=300)
    assert (process.returncode, out.split()) == (0, ["local", "local", "blank"]), err
    assert during == before == names_outside()
    seen = {name: (job.directory / name).read_text().splitlines() for name in ("mnt", "root", "gpfs")}
    old = os.listdir("/mnt") if os.path.isdir("/mnt") else []
    assert sorted(seen["mnt"]) == sorted({*old, "bb", "forebay"}) and sorted(seen["gpfs"]) == ["a b", "alpine"]
    assert sorted({*seen["root"], "mnt"}) == sorted({*known, "mnt"})
    user = os.getuid() if job.user is None else job.user
    assert int((job.pfs / "made" / "id").read_text()) == user == (job.pfs / "made" / "id").stat().st_uid
    job.leaves_nothing()


def test_new_name_next_to_a_mapped_path_is_an_error_and_loses_nothing(anyone):
    job = anyone
    job.script(
        "for d in / /mnt /gpfs-of-tests; do (: > $d/new) 2>/dev/null && echo $d; done; : > /gpfs-of-tests/alpine/new",
        NVME,
    )
    done = job.run("--map", f"/gpfs-of-tests/alpine={job.pfs}")
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert (job.pfs / "new").exists()


def test_staging_from_and_to_a_mapped_path_works(anyone):
    job = anyone
    make(job, job.pfs / "in", a="from the map")
    make(job, job.directory, list="/gpfs-of-tests/in/a $DW_JOB_STRIPED/b\n")
    job.script(
        "mkdir $DW_JOB_STRIPED/out; cat $DW_JOB_STRIPED/[ab] > $DW_JOB_STRIPED/out/both",
        DW,
        "#DW stage_in type=file source=/gpfs-of-tests/in/a destination=$DW_JOB_STRIPED/a",
        "#DW stage_in type=list source=%d/list",
        "#DW stage_out type=directory source=$DW_JOB_STRIPED/out destination=/gpfs-of-tests/out",
    )
    mapped = ("--map", f"/gpfs-of-tests/={job.pfs}")
    plan = job.run("--dry-run", "--json", *mapped)
    assert plan.returncode == 0, plan.stderr
    assert [stage["bytes"] for stage in json.loads(plan.stdout)["stage_in"]] == [12, 12]
    assert json.loads(plan.stdout)["shown"] == [{"path": "/gpfs-of-tests", "directory": str(job.pfs)}]
    done = job.run(*mapped)
    assert done.returncode == 0, done.stderr
    assert (job.pfs / "out" / "both").read_text() == "from the map" * 2
    assert job.run().returncode == 125 and job.run("--dry-run").returncode == 125
    job.leaves_nothing()


def test_existing_path_shows_the_mapped_directory(anyone):
    job = anyone
    there, other = make(job, job.top / "there", old="old"), make(job, job.top / "other", new="new")
    job.script(f"ls {there}; echo x > {there}/x; readlink -f {other}")
    done = job.run("--map", f"{there}={other}")
    assert (done.returncode, done.stdout.split()) == (0, ["new", str(other)]), done.stderr
    assert os.listdir(there) == ["old"] and (other / "x").read_text() == "x\n"


def test_mapped_directories_can_be_nested(anyone):
    job = anyone
    inner = make(job, job.top / "inner", x="inner")
    make(job, job.pfs / "deep")
    job.script("cat /gpfs-of-tests/deep/x; ls /gpfs-of-tests", DW)
    done = job.run("--map", f"/gpfs-of-tests={job.pfs}", "--map", f"/gpfs-of-tests/deep={inner}")
    assert (done.returncode, done.stdout) == (0, "innerdeep\n"), done.stderr
    done = job.run("--map", f"/gpfs-of-tests={job.pfs}", "--map", f"/gpfs-of-tests/new={inner}")
    assert done.returncode == 125 and f"mkdir -p '{job.pfs}/new'" in done.stderr
    assert not (job.pfs / "new").exists()
    job.leaves_nothing()


def test_header_can_name_a_mapped_working_directory(anyone):
    job = anyone
    job.script("pwd; echo x > y", "#SBATCH -D /gpfs-of-tests/ada", DW)
    for options in ([], ["--dry-run"]):
        done = job.run("--map", f"/gpfs-of-tests/ada={job.pfs}", *options)
        assert done.returncode == 0, done.stderr
    assert (job.pfs / "y").read_text() == "x\n"


def test_impossible_maps_are_refused_before_anything_is_created(anyone):
    job = anyone
    make(job, job.directory, file="x")
    job.script("touch started", DW)
    directory, state = job.directory, job.state
    for given, code, message in [
        (f"/gpfs-of-tests={directory}/file", 125, f"--map: {directory}/file is no directory"),
        (f"{directory}/file={job.pfs}", 125, f"--map: {directory}/file is no directory"),
        (f"{directory}/new={job.pfs}", 125, f"mkdir -p '{directory}/new'"),
        (f"/tmp/no-such-path={job.pfs}", 125, "mkdir -p '/tmp/no-such-path'"),
        (f"{state}={job.pfs}", 125, f"it would hide {state}/"),
        (f"{job.temporary}={job.pfs}", 125, f"it would hide {job.temporary}/"),
        (f"/={job.pfs}", 2, "PATH must be below /"),
        (f"/a/../b={job.pfs}", 2, "without .."),
        (f"/proc={job.pfs}", 2, "not be in /proc"),
        (f"/dev/shm={job.pfs}", 2, "not be in /proc, /dev or /sys"),
        (f"relative={job.pfs}", 2, "PATH must be absolute"),
        ("/gpfs-of-tests=", 2, "DIR not empty"),
        ("/gpfs-of-tests", 2, "write PATH=DIR"),
    ]:
        done = job.run("--map", given)
        assert done.returncode == code and message in done.stderr, done.stderr
        job.leaves_nothing()
    assert not (directory / "started").exists() and not (directory / "new").exists()


def test_options_that_need_a_view_are_refused_without_one(anyone):
    job = anyone
    job.script("touch started", NVME)
    for options in (["--no-userns"], ["--no-userns", "--dry-run"]):
        done = job.run(*options)
        assert done.returncode == 125 and "this needs a private view of the file system: --no-userns" in done.stderr
        assert "hint: forebay doctor" in done.stderr
    job.script("touch started", DW)
    done = job.run("--no-userns", "--map", f"/gpfs-of-tests={job.pfs}")
    assert done.returncode == 125 and "hint: " in done.stderr and "allocated" not in done.stderr, done.stderr
    done = job.run("--map", f"/gpfs-of-tests={job.pfs}", SLURM_JOB_ID="7")
    assert done.returncode == 125 and "scheduler" in done.stderr
    assert not (job.directory / "started").exists()
    job.leaves_nothing()


@pytest.mark.parametrize("whole", [True, False])
def test_mapped_paths_of_the_emulated_file_system_are_emulated(job, whole):
    """The map's directory lies in the root, or the root in the map's directory."""
    pfs = job.directory.parent / "pfs"
    (pfs / "slow").mkdir(parents=True)
    (pfs / "slow" / "in").write_bytes(b"i" * 5000)
    (job.directory / "model.toml").write_text(MODEL)
    job.script(
        f"dd if=/dev/zero of={'/gpfs-of-tests' if whole else '/gpfs-of-tests/slow'}/x bs=1000 count=3 2>/dev/null\n"
        "mkdir $DW_JOB_STRIPED/out; echo 4567 > $DW_JOB_STRIPED/out/y; echo fast > /mnt/bb/$USER/z",
        NVME,
        DW,
        f"#DW stage_in type=file source={'/gpfs-of-tests' if whole else '/gpfs-of-tests/slow'}/in destination=$DW_JOB_STRIPED/in",
        f"#DW stage_out type=directory source=$DW_JOB_STRIPED/out destination={'/gpfs-of-tests' if whole else '/gpfs-of-tests/slow'}/out",
    )
    mapped = f"/gpfs-of-tests={pfs / 'slow' if whole else pfs}"
    done = job.run("--json", "--pfs-model", "model.toml", "--pfs-root", str(pfs / "slow"), "--map", mapped)
    assert done.returncode == 0, done.stderr
    counters = json.loads(done.stdout)["emulated"]["counters"]
    assert (counters["bytes_read"], counters["bytes_written"]) == (5000, 3005)
    assert (pfs / "slow" / "out" / "y").read_text() == "4567\n" and (pfs / "slow" / "x").stat().st_size == 3000
    job.leaves_nothing()
    assert not list(pathlib.Path("/gpfs-of-tests").parent.glob("gpfs-of-tests"))
