"""The tuner as a job: what PSI/J renders of a script's header, and what becomes of a job that is submitted.

No scheduler is at hand. What would be submitted is read, checked by bash, and, by a command `sbatch`, `bsub` or
`qsub` that starts the script at once, executed.
"""

import dataclasses
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from forebay.tune.errors import TuneError
from forebay.tune.submitting import MARGIN_S, submit, wall_time_s
from support.waiting import wait_until

COMMAND = ["forebay", "tune", "--budget", "2h", "job.sh", "a b", "$x"]


@dataclasses.dataclass
class Script:
    text: str
    scheduler: str | None
    path: Path = Path("/jobs/job.sh")
    name: str = "ocean"
    nodes: int = 2
    ranks: int = 8
    time_limit_s: int | None = 1800


SLURM = Script(
    """#!/bin/bash -l
#SBATCH -J ocean -N 2 -n 8
#SBATCH --time=00:30:00 --partition=debug
#SBATCH -t20
#SBATCH -C "knl&nvme"    # of the site
#SBATCH --account proj-1 --licenses=lustre:1
#SBATCH --exclusive --array=1-4
#SBATCH -o out.%j
#SBATCH --bb="capacity=10GB"
#DW jobdw type=scratch capacity=10GiB access_mode=striped

srun ./ocean
#SBATCH --qos=too-late
""",
    "slurm",
)
LSF = Script(
    """#!/bin/sh
#BSUB -P CSC123 -W 2:00 -nnodes 2
#BSUB -R "select[type==any] span[ptile=4]"
#BSUB -alloc_flags nvme
#BSUB -J ocean -o out.%J -K
jsrun -n 8 ./ocean
""",
    "lsf",
)
PBS = Script(
    """#!/bin/sh
#PBS -N ocean_model
#PBS -l select=2:ncpus=4:mpiprocs=4,walltime=01:00:00
#PBS -lwalltime=2:00:00
#PBS -A NCAR0001 -j oe
#PBS -l place=scatter:excl
mpiexec ./ocean
""",
    "pbs",
)
SCRIPTS = {"slurm": SLURM, "lsf": LSF, "pbs": PBS}
SENTINELS = {"slurm": "#SBATCH", "lsf": "#BSUB", "pbs": "#PBS"}


def rendered(executor, script, study, **options):
    told = submit(
        executor, script, COMMAND, Path("/jobs/my runs"), study=study, render_only=True, wall_s=5400, **options
    )
    assert told.id is None and told.exit_code is None
    return told


def directives(text, sentinel):
    return [line.removeprefix(sentinel).strip() for line in text.splitlines() if line.startswith(sentinel)]


@pytest.fixture
def study(tmp_path):
    return tmp_path / "job.tune"


@pytest.mark.parametrize(
    ("executor", "expected", "left_out"),
    [
        (
            "slurm",
            [
                "-N 2 -n 8",
                "--partition=debug",
                '-C "knl&nvme"    # of the site',
                "--account proj-1 --licenses=lustre:1",
                "--exclusive",
                "--time=1:30:0",
                '--job-name="tune-ocean"',
            ],
            ["--array=1-4", "--bb=capacity=10GB"],
        ),
        (
            "lsf",
            [
                "-P CSC123 -nnodes 2",
                '-R "select[type==any] span[ptile=4]"',
                "-alloc_flags nvme",
                "-W 1:30",
                '-J "tune-ocean"',
            ],
            ["-K"],
        ),
        (
            "pbs",
            [
                "-l select=2:ncpus=4:mpiprocs=4",
                "-A NCAR0001",
                "-l place=scatter:excl",
                "-l walltime=1:30:0",
                '-N "tune-ocean"',
            ],
            [],
        ),
    ],
)
def test_tuner_requests_the_resources_of_the_script(study, executor, expected, left_out):
    told = rendered(executor, SCRIPTS[executor], study)
    found = directives(told.script, SENTINELS[executor])
    psij_own = {"-e /dev/null", "-o /dev/null", "--export=ALL", "-env all", "-V"}
    assert sorted(set(found) - psij_own) == sorted(expected)
    assert [note.split(": ")[1] for note in told.notes if note.startswith("left out")] == left_out
    assert told.notes[0] == "the job may take 90 min"


def test_user_lines_precede_the_time_limit(study):
    """The last of two equal options counts."""
    found = directives(rendered("slurm", SLURM, study).script, "#SBATCH")
    assert found.index("--time=1:30:0") > found.index("--exclusive")


@pytest.mark.parametrize("executor", SCRIPTS)
def test_rendered_script_is_valid_bash_and_submits_nothing(study, executor):
    told = rendered(executor, SCRIPTS[executor], study)
    checked = subprocess.run(["bash", "-n"], input=told.script, capture_output=True, text=True)
    assert (checked.returncode, checked.stderr) == (0, "")
    assert told.script.startswith("#!/bin/bash\n#")
    assert f"{study}/submitted/" in told.script and "/tmp/forebay-" not in told.script
    assert not study.exists()


def test_burst_buffer_lines_are_omitted_with_a_message(study):
    told = rendered("slurm", SLURM, study)
    assert "#DW" not in told.script
    assert any("#DW and #BB lines are not repeated" in note for note in told.notes)
    assert not any("#DW" in note for note in rendered("lsf", LSF, study).notes)


def test_burst_buffer_line_over_two_lines_does_not_end_the_header(study):
    text = "#!/bin/sh\n#DW jobdw type=scratch \\\n  capacity=1GiB\n#SBATCH\t-p late\n./ocean\n#SBATCH -p no\n"
    found = directives(rendered("slurm", dataclasses.replace(SLURM, text=text), study).script, "#SBATCH")
    assert [line for line in found if line.startswith("-p")] == ["-p late"]


@pytest.mark.parametrize(
    ("executor", "expected"),
    [
        ("slurm", ["--nodes=2", "--ntasks=8", "--ntasks-per-node=4"]),
        ("lsf", ["-nnodes 2", "-n 8"]),
        ("pbs", ["-l select=2:ncpus=4:mpiprocs=4"]),
    ],
)
def test_nodes_and_ranks_are_read_from_a_script_of_another_scheduler(study, executor, expected):
    told = rendered(executor, dataclasses.replace(SLURM, scheduler="flux", text="#flux: -N2\n"), study)
    assert set(expected) <= set(directives(told.script, SENTINELS[executor]))
    assert any(f"has no lines for {executor}: 2 node(s) and 8 rank(s)" in note for note in told.notes)


def test_names_that_a_scheduler_refuses_are_changed(study):
    script = dataclasses.replace(PBS, name="north sea: a model")
    assert '-N "tune-north_sea_"' in directives(rendered("pbs", script, study).script, "#PBS")


def test_flux_gets_one_instance_with_the_command_in_it(study):
    """PSI/J renders nothing for it; what it would be given is told."""
    script = dataclasses.replace(SLURM, text="#!/bin/sh\n# flux: -N2 -n8 --queue=pdebug\n", scheduler="flux")
    told = rendered("flux", script, study)
    assert told.script is None
    assert any("queue, bank and other options are left out" in note for note in told.notes)
    assert told.notes[-1].endswith(
        "it would run: flux start /bin/sh -c 'cd \"$0\" && exec \"$@\"' '/jobs/my runs' forebay tune --budget 2h job.sh 'a b' '$x'"
    )


STAND_INS = {
    "slurm": ("sbatch", "SLURM_JOB_ID", "Submitted batch job 4711"),
    "lsf": ("bsub", "LSB_JOBID", "Job <4711> is submitted to queue <normal>."),
    "pbs": ("qsub", "PBS_JOBID", "4711"),
}


@pytest.fixture
def commands(tmp_path, monkeypatch):
    """A directory in front of PATH."""
    directory = tmp_path / "bin"
    directory.mkdir()
    monkeypatch.setenv("PATH", f"{directory}:{os.environ['PATH']}")

    def make(name, text):
        path = directory / name
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)

    return make


@pytest.mark.parametrize("executor", SCRIPTS)
def test_submitted_script_runs_the_command_once_in_the_directory(study, tmp_path, commands, executor):
    name, variable, answer = STAND_INS[executor]
    commands("scontrol", "echo this-node")
    commands(name, f'{variable}=4711 bash "$1" || exit\necho "{answer}"')
    directory = tmp_path / "my runs"
    directory.mkdir()
    command = ["sh", "-c", 'pwd; echo "$@"; echo bad >&2; exit 3', "sh", "a  b", "$x"]
    told = submit(executor, SCRIPTS[executor], command, directory, study=study, wall_s=600)
    assert told.id == "4711"
    assert told.output.read_text() == f"{directory}\na  b $x\n"
    assert told.output.with_suffix(".err").read_text() == "bad\n"
    assert (study / "submitted" / executor / "4711.ec").read_text() == "3\n"
    sentinel = SENTINELS[executor]
    before = submit(executor, SCRIPTS[executor], command, directory, study=study, wall_s=600, render_only=True)
    assert directives(told.script, sentinel) == directives(before.script, sentinel)


def test_refused_job_leaves_nothing_and_quotes_the_scheduler(study, commands):
    commands("sbatch", "echo 'sbatch: error: invalid partition specified: debug' >&2; exit 1")
    with pytest.raises(TuneError, match="the job was refused: .*invalid partition specified: debug"):
        submit("slurm", SLURM, COMMAND, Path("/jobs"), study=study, wall_s=600)
    assert not study.exists()


def test_refused_job_does_not_change_the_study(study, commands):
    commands("qsub", "exit 1")
    study.mkdir()
    (study / "study.jsonl").write_text("{}\n")
    with pytest.raises(TuneError, match="refused"):
        submit("pbs", PBS, COMMAND, Path("/jobs"), study=study, wall_s=600)
    assert [path.name for path in study.iterdir()] == ["study.jsonl"]


@pytest.mark.parametrize(
    ("executor", "command"), [("slurm", "sbatch"), ("lsf", "bsub"), ("pbs", "qsub"), ("flux", "flux")]
)
def test_missing_scheduler_is_named(study, monkeypatch, tmp_path, executor, command):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(TuneError, match=f"the command {command} is not in PATH") as refused:
        submit(executor, SLURM, COMMAND, Path("/jobs"), study=study, wall_s=600)
    assert "without --submit" in refused.value.hint
    assert not study.exists()


@pytest.mark.parametrize("status", [0, 7])
def test_local_runs_the_command_and_waits(study, tmp_path, status):
    command = ["sh", "-c", f'pwd; echo "$1"; exit {status}', "sh", "a  b"]
    script = dataclasses.replace(SLURM, path=tmp_path / "job.sh")
    told = submit("local", script, command, tmp_path, study=study, wall_s=600)
    assert told.exit_code == status
    assert int(told.id) > 0
    assert told.output.read_text() == f"{tmp_path}\na  b\n"


INTERRUPTED = """
import pathlib, sys
sys.path.insert(0, sys.argv[1])
from tuner.test_submitting import SLURM, submit
# A signal ends the shell of PSI/J's launcher, which starts this, before it waits for this.
trap = "trap 'sleep 1; echo ended; exit 130' INT; sleep 3; "
command = ["sh", "-c", trap + "echo ready; while :; do sleep 0.1; done"]
submit("local", SLURM, command, pathlib.Path("/"), study=pathlib.Path(sys.argv[2]), wall_s=600)
"""


def test_ctrl_c_waits_for_the_local_command_to_end(study):
    words = [sys.executable, "-c", INTERRUPTED, str(Path(__file__).parents[1]), str(study)]
    process = subprocess.Popen(words, start_new_session=True, stderr=subprocess.PIPE, text=True)
    output = study / "submitted" / "tune.out"
    try:
        wait_until(lambda: output.exists() and output.read_text() == "ready\n", what="the command", process=process)
        os.killpg(process.pid, signal.SIGINT)
        assert "KeyboardInterrupt" in process.communicate(timeout=180)[1]
        assert output.read_text() == "ready\nended\n"
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)


def test_study_that_psij_cannot_write_to_is_refused(tmp_path):
    with pytest.raises(TuneError, match="blanks or other special characters"):
        submit("local", SLURM, COMMAND, tmp_path, study=tmp_path / "my job.tune", wall_s=600)
    assert list(tmp_path.iterdir()) == []


def test_unclosed_quote_in_a_directive_is_named(study):
    with pytest.raises(TuneError, match="-C 'nvme"):
        rendered("slurm", dataclasses.replace(SLURM, text="#SBATCH -C 'nvme\n"), study)


def test_requested_time_is_the_budget_or_that_of_all_runs():
    assert wall_time_s(SLURM, 20, 3600.0) == 3600 + MARGIN_S
    assert wall_time_s(SLURM, 20, None) == 20 * 1800 + MARGIN_S
    with pytest.raises(TuneError, match="neither a budget in minutes nor a limit"):
        wall_time_s(dataclasses.replace(SLURM, time_limit_s=None), 20, None)
