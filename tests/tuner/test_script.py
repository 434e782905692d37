"""What the tuner understands of a user's script. The header is read by the real `forebay run --dry-run`."""

import hashlib
import os
import shutil

import pytest

from support.users import SCRIPTS

from forebay.tune.errors import TuneError
from forebay.tune.job_script import script


@pytest.fixture(autouse=True)
def forebay(build, monkeypatch):
    monkeypatch.setenv("FOREBAY_PROGRAM", str(build / "bin" / "forebay"))
    for name in script.OWN_VARIABLES:
        monkeypatch.delenv(name, raising=False)


def read(tmp_path, text, *options):
    path = tmp_path / "job.sh"
    path.write_text(text)
    return script.read(path, options)


BASH = "#!/bin/bash\n"
KNOWN = {
    "slurm-lustre.sh": ("slurm", "btio", 4, 600, False, [(11, "srun", 4, "./btio")]),
    "lsf-gpfs.sh": ("lsf", "nas_btio", 1, 600, False, [(10, "jsrun", 4, "./btio")]),
    "lsf-nvme.sh": (
        "lsf",
        "nas_btio",
        1,
        600,
        True,
        [(7, "jsrun", 1, "cp"), (9, "jsrun", 4, None), (10, "jsrun", 1, "cp")],
    ),
    "pbs.sh": ("pbs", "btio", 4, 600, False, [(8, "aprun", 4, "./btio")]),
    "flux.sh": ("flux", "btio", 4, 600, False, [(5, "flux run", 4, "./btio")]),
    "slurm-edited-input.sh": ("slurm", "slurm-edited-input.sh", 4, None, True, [(7, "srun", 4, "./btio")]),
}


@pytest.mark.parametrize("name", KNOWN)
def test_foreign_scripts_are_understood(tmp_path, name):
    if name == "slurm-edited-input.sh" and os.getuid() != 0:
        pytest.skip("the script is refused where the user cannot make the target of its stage-out")
    shutil.copy(SCRIPTS / name, tmp_path)
    found = script.read(tmp_path / name)
    launches = [(one.line, one.launcher, one.ranks, one.program) for one in found.launches]
    asked = (found.scheduler, found.name, found.ranks, found.time_limit_s, found.burst_buffer, launches)
    assert asked == KNOWN[name] and found.nodes == 1
    assert found.digest == hashlib.sha256((SCRIPTS / name).read_bytes()).hexdigest()


LAUNCHES = {
    "mpiexec -n 4 ./a -n 8": ("mpiexec", 4, "./a"),
    "mpirun -np 16 --oversubscribe -x LD_PRELOAD --mca io romio321 ./a b": ("mpirun", 16, "./a"),
    "/opt/mpi/bin/mpiexec -genv A 1 -n $NP ./a": ("mpiexec", None, "./a"),
    "mpirun --map-by core --hostfile hosts ./a": ("mpirun", None, "./a"),
    "mpiexec -n 2 ./a : -n 3 ./b": ("mpiexec", None, "./a"),
    "time srun --ntasks=7 -c4 --hint=nomultithread -K ./a": ("srun", 7, "./a"),
    "srun \\\n  -n 9 \\\n  ./a": ("srun", 9, "./a"),
    "jsrun -n6 -a2 -g1 -c7 -r6 ./a": ("jsrun", 12, "./a"),
    "jsrun -p 5 -r 2 ./a": ("jsrun", 5, "./a"),
    "aprun -n 48 -N 24 -cc cpu -q ./a -n 2": ("aprun", 48, "./a"),
    "flux run -N1 -n4 ./a": ("flux run", 4, "./a"),
    "for i in 1 2; do OMP_NUM_THREADS=1 mpiexec -n 3 ./a $i; done": ("mpiexec", 3, "./a"),
    "if ! out=$(srun -n 3 ./a | tail -1); then exit 1; fi  # don't mind": ("srun", 3, "./a"),
    'srun -n 3 ./a "two\nlines" > log 2>&1 &': ("srun", 3, "./a"),
    "test -f x && srun -n 3 ${PROGRAM}": ("srun", 3, None),
}


@pytest.mark.parametrize("line", LAUNCHES)
def test_launch_lines_are_found(tmp_path, line):
    [launch] = read(tmp_path, BASH + "# mpiexec in a comment\n\n" + line + "\n").launches
    assert (launch.line, launch.launcher, launch.ranks, launch.program) == (4, *LAUNCHES[line])


@pytest.mark.parametrize(
    "body",
    [
        "echo srun -n 4 ./a",
        "LAUNCH='mpiexec -n 4'\n$LAUNCH ./a",
        "cat > other.sh <<'END'\nmpiexec -n 4 ./a\nEND\n./serial",
        "grep mpirun log",
        "# mpiexec -n 2 ./a",
        "flux jobs",
    ],
)
def test_profile_decides_where_no_launch_line_is_found(tmp_path, body):
    assert read(tmp_path, BASH + body + "\n").launches == ()


@pytest.mark.parametrize(
    ("text", "before"),
    [
        (
            "#!/bin/bash\n#SBATCH -n 2\n#DW jobdw type=scratch access_mode=striped capacity=1MiB\n\nsrun ./a\n",
            "srun ./a",
        ),
        ("#!/bin/bash\n# a\nset -eu\nset -o pipefail\n# b\ncd x\n", "# b"),
        ("#!/bin/bash\n#DW jobdw capacity=1MB \\\n  access_mode=striped type=scratch\n#SBATCH -n 2\nls\n", "ls"),
        ("#!/bin/bash\nset -- a b\nls\n", "ls"),
        ("#!/bin/tcsh\n#SBATCH -n 2\nsetenv A b\n", "setenv A b"),
        ("#!/bin/bash\nls", "ls"),
    ],
)
def test_lines_are_added_after_the_header_and_its_set_options(tmp_path, text, before):
    found = read(tmp_path, text)
    assert text.split("\n")[found.begin] == before


@pytest.mark.parametrize(
    ("line", "numbers"),
    [
        ("lfs setstripe -c 4 out", (4, None, "out")),
        ("lfs setstripe -S 1M --stripe-count=-1 $OUT/x", (-1, 1 << 20, "$OUT/x")),
        ("if command -v lfs > /dev/null; then lfs setstripe -c8 -s 64k . || echo no >&2; fi", (8, 65536, ".")),
        ("lfs setstripe -c $N out", (None, None, "out")),
        ("lfs setstripe --stripe-size 2m out > log", (None, 2 << 20, "out")),
    ],
)
def test_striping_commands_are_found(tmp_path, line, numbers):
    [own] = read(tmp_path, f"{BASH}mkdir out\n{line}\n").stripe_lines
    assert (own.line, own.end, own.count, own.unit, own.directory) == (3, 3, *numbers)


def test_forebay_variables_that_the_script_sets_are_found(tmp_path):
    body = 'export MPICH_MPIIO_HINTS="*.nc:cb_nodes=2,\\\n*:romio_cb_write=enable"\nif x; then\n  ROMIO_HINTS=$PWD/h\nfi\nexport ROMIO_HINTS\n'
    hints, romio = read(tmp_path, BASH + body).assignments
    assert (hints.line, hints.end, hints.is_nested, hints.value) == (
        2,
        3,
        False,
        "*.nc:cb_nodes=2,*:romio_cb_write=enable",
    )
    assert (romio.variable, romio.line, romio.is_nested, romio.value) == ("ROMIO_HINTS", 5, True, "$PWD/h")
    [csh] = read(tmp_path, "#!/bin/csh\nsetenv PNETCDF_HINTS 'a=1'\n").assignments
    assert (csh.variable, csh.value) == ("PNETCDF_HINTS", "a=1")


def test_forebay_variables_of_the_environment_are_found(tmp_path, monkeypatch):
    monkeypatch.setenv("MPICH_MPIIO_HINTS", "*:cb_nodes=2")
    assert read(tmp_path, BASH + "ls\n").inherited == {"MPICH_MPIIO_HINTS": "*:cb_nodes=2"}


def test_hints_for_one_command_alone_are_refused_with_their_line(tmp_path):
    with pytest.raises(TuneError, match="line 3 sets MPICH_MPIIO_HINTS for one command") as told:
        read(tmp_path, BASH + "ls\nMPICH_MPIIO_HINTS='*:cb_nodes=2' srun ./a\n")
    assert "line of its own" in told.value.hint


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("export MPICH_MPIIO_HINTS='*:cb_nodes=2'; srun ./a", "sets MPICH_MPIIO_HINTS and starts ranks"),
        ("mpirun -x MPICH_MPIIO_HINTS='*:cb_nodes=2' ./a", "gives MPICH_MPIIO_HINTS to mpirun alone"),
        ("mpiexec -genv ROMIO_HINTS $PWD/hints -n 4 ./a", "gives ROMIO_HINTS to mpiexec alone"),
        ("srun --export=ALL,PNETCDF_HINTS=a=b ./a", "gives PNETCDF_HINTS to srun alone"),
        ("hints() { export MPICH_MPIIO_HINTS='*:cb_nodes=2'; }", "in a function of one line"),
        ("case a in\na) export ROMIO_HINTS=h ;;\nesac", "sets ROMIO_HINTS in the last line of a case"),
        ("srun -n 2 --export=NONE ./a", "variables \\(--export=NONE\\)"),
        ("srun --export PATH,HOME ./a", "variables \\(--export=PATH,HOME\\)"),
        ("export SLURM_EXPORT_ENV=NONE; srun ./a", "variables \\(SLURM_EXPORT_ENV=NONE\\)"),
        ("mpiexec -genvlist PATH,HOME -n 4 ./a", "variables \\(-genvlist\\)"),
        ("flux run --env=-* -n 4 ./a", "variables \\(--env=-\\*\\)"),
    ],
)
def test_hints_that_cannot_be_overridden_are_refused(tmp_path, line, what):
    with pytest.raises(TuneError, match=f"line [34] .*{what}"):
        read(tmp_path, BASH + f"ls\n{line}\n")


def test_variables_that_slurm_keeps_from_ranks_are_seen_in_header_and_environment(tmp_path, monkeypatch):
    header, own = "#!/bin/bash\n#SBATCH --export=NONE\n", "srun --export=ALL,A=b ./a\n"
    for text in (own, "unset SLURM_EXPORT_ENV\nsrun ./a\n", "export SLURM_EXPORT_ENV=ALL\nsrun ./a\n", "mpirun ./a\n"):
        assert read(tmp_path, header + text).launches
    with pytest.raises(TuneError, match="SLURM_EXPORT_ENV=NONE"):
        read(tmp_path, header + "srun ./a\n")
    monkeypatch.setenv("SLURM_EXPORT_ENV", "NONE")
    with pytest.raises(TuneError, match="SLURM_EXPORT_ENV=NONE"):
        read(tmp_path, BASH + "srun ./a\n")


@pytest.mark.parametrize(
    ("shell", "before", "after", "is_nested"),
    [
        ("bash", "", "", False),
        ("bash", "if x; then", "fi", True),
        ("bash", "if x; then\nls\nfi", "", False),
        ("bash", "if x; then ls; fi; echo if; for a in b; do ls; done", "", False),
        ("bash", "for a in if fi; do", "done", True),
        ("bash", "while x\ndo", "done", True),
        ("bash", "f() {\nls\n}", "", False),
        ("bash", "f()\n{", "}", True),
        ("bash", "case $x in\na)", ";;\nesac", True),
        ("bash", "case $x in\na) ls ;;\nb) ls ;;\nesac\ny=$(ls)", "", False),
        ("bash", "( cd x; ls )", "", False),
        ("bash", "(", ")", True),
        ("bash", "x && \\", "", True),
        ("csh", "if (-e x) then", "endif", True),
        ("csh", "if (-e x) ls", "", False),
        ("csh", "foreach a (b c)\nls\nend", "", False),
        ("csh", "if (-e x) \\", "", True),
    ],
)
def test_assignment_in_a_branch_is_nested_whatever_its_indentation(tmp_path, shell, before, after, is_nested):
    own = "setenv ROMIO_HINTS h" if shell == "csh" else "export ROMIO_HINTS=h"
    job = read(tmp_path, f"#!/bin/{shell}\n{before}\n{own}\n{after}\nls\n")
    assert [one.is_nested for one in job.assignments] == [is_nested]


def test_variables_that_are_only_exported_are_no_error(tmp_path):
    job = read(tmp_path, BASH + "declare -x MPICH_MPIIO_HINTS='*:cb_nodes=2'\nmpirun -x MPICH_MPIIO_HINTS ./a\n")
    assert [one.value for one in job.assignments] == ["*:cb_nodes=2"]


@pytest.mark.parametrize(
    ("header", "nodes"),
    [
        ("#SBATCH -N 3 -n 6", 3),
        ("#SBATCH --nodes=2-4", 2),
        ("#BSUB -nnodes 5", 5),
        ("#PBS -l select=2:ncpus=4:mpiprocs=2+1:ncpus=4", 3),
        ("#PBS -l nodes=4:ppn=2,walltime=1:00:00", 4),
        ("# flux: -N2 -n4", 2),
        ("#PBS -l select=7\n#SBATCH -N 2", 2),
        ("# none", 1),
    ],
)
def test_number_of_nodes_is_read(tmp_path, header, nodes):
    assert read(tmp_path, f"{BASH}{header}\nls\n").nodes == nodes


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        (
            "#!/usr/bin/python3\nprint()\n",
            "it is run by python3; lines can be added to scripts of sh, bash",
            "from a shell script",
        ),
        ("#!/usr/bin/env -S perl -w\nexit;\n", "it is run by perl", "from a shell script"),
        ("ls\n", "#!", None),
        ("#!/bin/bash\r\nls\r\n", "DOS", None),
        ("#!/bin/bash\n#SBATCH -t soon\n", "line 2: -t needs a time", None),
        (
            "#!/bin/bash\n#DW jobdw capacity=1MB access_mode=striped type=scratch\n#DW stage_in type=file source=/no destination=$DW_JOB_STRIPED/x\n",
            "line 3: stage_in: the source /no does not exist",
            "correct",
        ),
    ],
)
def test_unusable_script_is_reported(tmp_path, text, message, hint):
    with pytest.raises(TuneError) as told:
        read(tmp_path, text)
    assert message in str(told.value) and (hint is None or hint in told.value.hint)


def test_missing_script_is_reported(tmp_path):
    with pytest.raises(TuneError, match="No such file"):
        script.read(tmp_path / "nowhere.sh")


def test_options_of_forebay_run_are_considered(tmp_path):
    text = BASH + "#DW jobdw type=scratch access_mode=striped,private capacity=1MiB\nls\n"
    assert read(tmp_path, text).variables == ("DW_JOB_STRIPED", "DW_JOB_PRIVATE")
    assert read(tmp_path, text, "--no-burst-buffer").variables == ("DW_JOB_STRIPED", "DW_JOB_PRIVATE")
