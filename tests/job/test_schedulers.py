"""Scripts written for Slurm, LSF, PBS and Flux: what their headers ask for, what their jobs see."""

import json
import platform

import pytest

from support.job import DW

HOST = platform.node()


def run(job, text, **environment):
    (job.directory / "job.sh").write_text("#!/bin/bash\n" + text)
    done = job.run(**environment)
    assert job.allocations() == []
    return done


def values(job, header, names, **environment):
    """What the script of this header sees under these names, `-` for what is not set."""
    line = " ".join(f"${{{name}--}}" for name in names.split())
    done = run(job, f"{header}\necho {line}\n", **environment)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_slurm_script_gets_slurm_variables(job):
    header = "#SBATCH -J btio -n 4 -p workq -A k1267 -c 2"
    names = "SLURM_JOB_NAME SLURM_NTASKS SLURM_JOB_PARTITION SLURM_JOB_ACCOUNT SLURM_CPUS_PER_TASK LSB_JOBID PBS_JOBID FLUX_JOB_ID"
    assert values(job, header, names) == ["btio", "4", "workq", "k1267", "2", "-", "-", "-"]


def test_script_without_a_scheduler_gets_slurm_variables(job):
    assert values(job, "# nothing", "SLURM_NTASKS FOREBAY_NTASKS LSB_JOBID") == ["-", "1", "-"]


def test_lsf_script_gets_lsf_variables(job):
    header = "#BSUB -P projid -J nas_btio -W 10\n#BSUB -nnodes 1 -n 3 -q debug -o nas_btio.o%J"
    names = "LSB_JOBNAME LSB_QUEUE LSB_PROJECT_NAME LSB_JOBINDEX LSB_DJOB_NUMPROC LSB_HOSTS LSB_MCPU_HOSTS LSB_SUB_HOST FOREBAY_NTASKS SLURM_NTASKS"
    seen = values(job, header, names)
    assert seen == ["nas_btio", "debug", "projid", "0", "3", HOST, HOST, HOST, HOST, "3", HOST, "3", "-"]
    done = run(
        job,
        f"{header}\n" + '[ "$LS_SUBCWD" = "$PWD" ] && [ "$LSB_JOBID" = "$FOREBAY_JOB_ID" ] && cat $LSB_DJOB_HOSTFILE\n',
    )
    assert (done.returncode, done.stdout.split()) == (0, [HOST] * 3), done.stderr
    assert "#BSUB options without effect here: -o\n" in done.stderr


def test_pbs_script_gets_pbs_variables(job):
    header = (
        "#PBS -N wrf -q regular -A m123 -j oe\n#PBS -l select=2:ncpus=4:mpiprocs=2:ompthreads=2 -l walltime=0:10:00"
    )
    names = "PBS_JOBNAME PBS_QUEUE PBS_O_HOST PBS_ENVIRONMENT PBS_NP OMP_NUM_THREADS SLURM_NTASKS"
    assert values(job, header, names) == ["wrf", "regular", HOST, "PBS_BATCH", "4", "2", "-"]
    done = run(
        job,
        f"{header}\ncat $PBS_NODEFILE\n"
        + 'cd /tmp; cd "$PBS_O_WORKDIR"; ls; echo $NCPUS | grep -c "[1-9]"; echo $PBS_O_LOGNAME\n',
        LOGNAME="ada",
    )
    assert done.stdout.split() == [HOST] * 4 + ["job.sh", "1", "ada"], done.stderr


def test_pbs_script_can_pass_the_node_file_to_mpiexec(job):
    done = run(
        job,
        "#PBS -l nodes=1:ppn=3\nmpiexec -machinefile $PBS_NODEFILE -n $(wc -l < $PBS_NODEFILE) echo x; mpirun echo y\n",
    )
    assert done.stdout.split() == ["x"] * 3 + ["y"] * 3, done.stderr


@pytest.mark.parametrize("sentinel", ["#FLUX:", "# flux:"])
def test_flux_script_gets_flux_variables(job, sentinel):
    header = f"{sentinel} -N1 -n 3 --job-name=app001 --queue=batch # three\n{sentinel} -t 5m"
    assert values(job, header, "FOREBAY_NTASKS FLUX_JOB_ID FLUX_TASK_RANK SLURM_NTASKS") == ["3", "-", "-", "-"]
    done = run(
        job,
        f"{header}\nflux run -n2 bash -c 'echo $FLUX_TASK_RANK/$FLUX_JOB_SIZE/$FLUX_JOB_NNODES/$((FLUX_JOB_ID - FOREBAY_JOB_ID))'\n",
    )
    assert done.returncode == 0 and sorted(done.stdout.split()) == ["0/2/1/0", "1/2/1/0"], done.stderr


def test_mpi_in_a_flux_script_does_not_look_for_flux(job, build):
    """Alone, under mpiexec, under `flux run`. Open MPI 4 crashes where it takes the script for a task of Flux."""
    (job.directory / "deck").write_text("w\n0\n1\n8 8 8\n.\n")
    btio = build / "kernels" / "btio"
    done = run(job, f"# flux: -n 4\n{btio} deck; mpirun {btio} deck; flux run -n 4 {btio} deck\n")
    ranks = [json.loads(line)["ranks"] for line in done.stdout.splitlines()]
    assert (done.returncode, ranks) == (0, [1, 4, 4]), done.stderr


def test_first_component_of_a_heterogeneous_job_applies_and_the_others_are_named(job):
    done = run(job, "#SBATCH -n 3\n  # ranks\n#SBATCH hetjob\n#SBATCH -n 1\necho $SLURM_NTASKS\n")
    assert (done.returncode, done.stdout) == (0, "3\n"), done.stderr
    assert "#SBATCH options without effect here: hetjob and the lines after it" in done.stderr


def test_one_of_two_schedulers_applies_and_the_other_is_named(job):
    done = run(job, "#PBS -l walltime=never\n#SBATCH -n 2\nsrun echo x; echo ${PBS_JOBID-none}\n")
    assert done.stdout.split() == ["x", "x", "none"], done.stderr
    assert "#PBS lines have no effect, since the script has #SBATCH lines too" in done.stderr


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("#SBATCH -t soon", "-t needs a time, such as 30, 1:30:00 or 1-12"),
        ("#BSUB -nnodes two", '-nnodes needs a whole number above 0, not "two"'),
        ("#BSUB -W 1h", '-W needs a time, [hours:]minutes, not "1h"'),
        ("#PBS -l nodes=1:ppn=x", '-l nodes, ppn needs a whole number above 0, not "x"'),
        ("#PBS -N 'x", "a quote is not closed"),
        ("# flux: -t 5x", "-t needs a time, minutes or such as 30s, 1.5h, 2d"),
    ],
)
def test_bad_value_is_named_with_its_line_and_nothing_starts(job, line, message):
    done = run(job, f"# a comment\n{line}\ntouch started\n")
    assert done.returncode == 125 and f"job.sh: line 3: {message}" in done.stderr, done.stderr
    assert not (job.directory / "started").exists()


@pytest.mark.parametrize(
    "line", ["#BSUB -cwd sub", "#PBS -d sub", "# flux: --cwd=sub", "#SBATCH -D sub", "#SBATCH --workdir=sub"]
)
def test_job_runs_in_the_directory_of_its_header(job, line):
    done = run(job, f"{line}\npwd\n")
    assert done.returncode == 125 and "submit dir/sub" in done.stderr
    (job.directory / "sub").mkdir()
    assert run(job, f"{line}\npwd\n").stdout == f"{job.directory}/sub\n"


@pytest.mark.parametrize("name", ["LSB_JOBID", "PBS_JOBID", "FLUX_JOB_ID"])
def test_job_of_a_real_scheduler_gets_no_launcher_shims(job, name):
    done = run(
        job,
        "#BSUB -n 3\necho ${FOREBAY_SHIMS-none} ${LSB_DJOB_NUMPROC-none}; type -P jsrun flux module\n",
        **{name: "77.server"},
    )
    assert done.stdout.split() == ["none", "none"], done.stderr
    assert "job 77.server ended" in done.stderr
    done = run(job, "echo ${FOREBAY_SHIMS-none}\n", FLUX_URI="local:///run/flux/local")
    assert done.stdout == "none\n"


def test_published_example_scripts_run_a_real_mpi_program(job, build):
    """Jobs of our own in the shapes of OLCF (LSF, jsrun), KAUST (Slurm), NERSC (PBS, aprun), and one for Flux."""
    job.directory.joinpath("btio").symlink_to(build / "kernels" / "btio")
    (job.directory / "deck").write_text("w\n0\n1\n8 8 8\n.\n")
    olcf = (
        "#BSUB -P projid\n#BSUB -J nas_btio\n#BSUB -o nas_btio.o%J\n#BSUB -W 10\n#BSUB -nnodes 1\n"
        '#BSUB -alloc_flags "smt4 maximizegpfs"\nmodule load spectrum-mpi\njsrun -n 1 -a 4 -c 4 -r 1 LINE\n'
    )
    kaust = (
        "#SBATCH --partition=workq\n#SBATCH -t 10\n#SBATCH -A k1267\n#SBATCH --ntasks=4\n#SBATCH --ntasks-per-node=4\n"
        "#SBATCH --ntasks-per-socket=2\n#SBATCH -J btio\n#SBATCH -o out_%j\nsrun -n 4 --hint=nomultithread LINE\n"
    )
    nersc = "#PBS -q debug\n#PBS -l mppwidth=4\n#PBS -l walltime=00:10:00\n#PBS -N btio\n#PBS -V\ncd $PBS_O_WORKDIR\naprun -n 4 LINE\n"
    flux = "# flux: -N1 -n4\n# flux: -t 10m\nflux run -n4 LINE\n"
    for script in (olcf, kaust, nersc, flux):
        done = run(job, script.replace("LINE", "./btio --verify deck"))
        assert done.returncode == 0, done.stderr
        [line] = done.stdout.splitlines()
        assert json.loads(line)["ranks"] == 4


def test_moab_lines_are_read_as_pbs_lines(job):
    script = "#!/bin/bash\n#MSUB -l nodes=1:ppn=3\n#MSUB -N moab\necho $PBS_JOBNAME; wc -l < $PBS_NODEFILE\n"
    (job.directory / "job.sh").write_text(script)
    done = job.run()
    assert done.returncode == 0 and done.stdout.split() == ["moab", "3"], done.stderr


def test_directive_after_the_header_is_a_warning_and_the_job_runs(job):
    (job.directory / "job.sh").write_text(
        "#!/bin/bash\necho ran\n#DW jobdw type=scratch access_mode=striped capacity=1MiB\n"
    )
    done = job.run()
    assert (done.returncode, done.stdout) == (0, "ran\n"), done.stderr
    assert "warning: job.sh: line 3, column 1: #DW behind the header" in done.stderr


@pytest.mark.parametrize("options", [(), ("--dry-run",)])
@pytest.mark.parametrize(
    "given",
    [
        {"SLURM_JOB_ID": "7", "SLURM_JOB_NUM_NODES": "2"},
        {"LSB_JOBID": "7", "LSB_MCPU_HOSTS": "a 4 b 4"},
        {"PBS_JOBID": "7", "PBS_NODEFILE": "nodes"},
    ],
    ids=["slurm", "lsf", "pbs"],
)
def test_allocation_on_nodes_that_cannot_be_named_is_refused_before_the_script(job, given, options):
    (job.directory / "nodes").write_text("a\na\nb\n")
    job.script("touch ran", DW)
    done = job.run(*options, **given)
    said = "does not list them" if "SLURM_JOB_ID" in given else "is none of the nodes a, b"
    assert done.returncode == 125 and said in done.stderr, done.stderr
    assert "--nodes" in done.stderr or "hint:" in done.stderr
    assert not (job.directory / "ran").exists()
    job.leaves_nothing()


def test_requested_nodes_are_named_outside_a_scheduler(job):
    (job.directory / "job.sh").write_text("#!/bin/bash\n#SBATCH --nodes=4\necho ran\n")
    done = job.run()
    assert done.stdout == "ran\n" and "ask for 4 nodes: all tasks run on this one" in done.stderr
    assert "ask for 4 nodes" not in job.run(SLURM_JOB_ID="7", SLURM_JOB_NUM_NODES="4").stderr
