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
    job.script("echo $PATH; type -P srun mpiexec; echo ${BASH_ENV-none}; echo $SLURM_JOB_ID", "#SBATCH -J x")
    done = job.run(SLURM_JOB_ID="77")
    assert done.stdout.splitlines()[-2:] == ["none", "77"]
    assert "job 77 ended with status 0" in done.stderr
    assert str(job.temporary) not in done.stdout


def test_without_a_number_mpirun_starts_the_jobs_tasks(job):
    job.script("mpirun echo x; mpirun -N 3 --host elsewhere echo y; mpiexec -n 1 --host a echo z : -n 2 --host b echo z")
    done = job.run()
    assert sorted(done.stdout.split()) == ["x"] * 2 + ["y"] * 3 + ["z"] * 3, done.stderr


def test_a_login_shell_finds_the_launchers_too(job):
    (job.directory / "job.sh").write_text("#!/bin/bash -l\necho $own; exec srun -n 2 echo x\n")
    (job.directory / "own").write_text("own=mine\n")
    done = job.run(BASH_ENV=str(job.directory / "own"))
    assert (done.returncode, done.stdout.split()) == (0, ["mine", "x", "x"]), done.stderr


def test_srun_in_the_background_is_one_process_to_be_ended(job):
    job.script("srun -n 1 sh -c 'touch running; exec sleep 300' & until [ -e running ]; do sleep 0.01; done; kill $!; wait $!; pgrep -s 0 sleep; exit 0")
    done = job.run()
    assert done.returncode == 0 and "left behind" not in done.stderr, done.stderr


def test_the_launchers_say_who_they_are(job):
    job.script("mpiexec --version | head -1; srun --version; srun --help | head -1")
    done = job.run()
    lines = done.stdout.splitlines()
    assert "OpenRTE" in lines[0] or "MPI" in lines[0] or "HYDRA" in lines[0]
    assert lines[1].startswith("srun of forebay") and lines[2].startswith("usage: srun"), done.stderr


def test_the_streams_of_tasks(job):
    job.script(
        "echo from the file > in\n"
        "srun -n 2 -i in -o out.%t bash -c 'cat; echo error of $SLURM_PROCID >&2'\n"
        "cat out.0 out.1\n"
        "srun -n 1 -o both -e both bash -c 'echo one; echo two >&2'; sort both\n"
        "srun -n 1 -o none echo nothing\n"
        "srun -n 1 -D /no/such true; echo $?\n"
        "srun -n 1 -c 2 bash -c 'echo $SLURM_CPUS_PER_TASK'; srun -n 1 --export=NONE true"
    )
    done = job.run()
    assert done.stdout.splitlines() == [
        "from the file", "error of 0", "from the file", "error of 1", "one", "two", "1", "2",
    ], done.stderr
    assert "warning: srun: --export=NONE is not honoured" in done.stderr
    assert "srun: --chdir=/no/such is not a directory" in done.stderr
    assert not (job.directory / "none").exists()
