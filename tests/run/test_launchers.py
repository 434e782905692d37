"""`mpiexec`, `mpirun` and `srun` in a script start local ranks where there is no scheduler."""

RANKS = "bash -c 'echo $SLURM_PROCID/$SLURM_NTASKS/$SLURM_LOCALID'"


def ranks(count: int) -> list[str]:
    return [f"{rank}/{count}/{rank}" for rank in range(count)]


def test_srun_takes_its_own_number_of_tasks_or_the_jobs(job):
    job.script(f"srun -n 3 --hint=nomultithread {RANKS}; srun {RANKS}; srun -N1 --ntasks-per-node=1 {RANKS}")
    done = job.run()
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.split()) == sorted(ranks(3) + ranks(2) + ranks(1))
    assert "warning" not in done.stderr


def test_mpiexec_starts_more_ranks_than_there_are_processors(job):
    job.script("mpiexec -np 6 --map-by ppr:2:node --hostfile none echo x; mpirun -n 1 echo y")
    done = job.run()
    assert done.stdout.split() == ["x"] * 6 + ["y"], done.stderr


def test_unknown_options_are_named(job):
    job.script("srun -n 1 --no-such-thing=7 echo ran")
    done = job.run()
    assert (done.returncode, done.stdout) == (0, "ran\n")
    assert "warning: srun: unknown option --no-such-thing has no effect" in done.stderr


def test_options_that_matter_are_honoured(job):
    job.script("srun -n 2 -D /tmp -o out.%j --export=ALL,COLOUR=green bash -c 'echo $PWD $COLOUR'; cat out.$SLURM_JOB_ID")
    done = job.run()
    assert done.stdout.splitlines() == ["/tmp green"] * 2, done.stderr


def test_a_label_names_the_rank_in_each_line(job):
    job.script("srun -l -n 2 echo said")
    done = job.run()
    lines = sorted(done.stdout.splitlines())
    assert len(lines) == 2 and all(line.endswith("said") and line != "said" for line in lines), done


def test_a_rank_that_fails_fails_the_launcher(job):
    job.script("srun -n 2 bash -c 'exit 9'")
    assert job.run().returncode == 9


def test_a_bad_count_and_a_missing_program_are_errors(job):
    for line, message in [("srun -n two true", "srun: "), ("srun -n 2", "no program to start"), ("mpiexec -n 2", "no program to start")]:
        job.script(line)
        done = job.run()
        assert done.returncode == 2 and message in done.stderr, done.stderr


def test_without_an_mpi_the_remedy_is_named(job):
    job.script("PATH=${PATH%%:*}; srun -n 2 true")
    done = job.run()
    assert done.returncode == 127
    assert "no mpiexec in PATH" in done.stderr and "apt-get install" in done.stderr


def test_inside_a_slurm_job_the_sites_own_launcher_is_used(job):
    job.script("command -v srun || echo no srun; echo $SLURM_JOB_ID", "#SBATCH -J x")
    done = job.run(SLURM_JOB_ID="77")
    assert done.stdout.splitlines()[-1] == "77"
    assert str(job.temporary) not in done.stdout
