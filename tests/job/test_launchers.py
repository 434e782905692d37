"""The launchers in a script start local ranks where there is no scheduler."""

import os

import pytest

from support.job import DW

RANKS = "bash -c 'echo $SLURM_PROCID/$SLURM_NTASKS/$SLURM_LOCALID'"


def ranks(count: int) -> list[str]:
    return [f"{rank}/{count}/{rank}" for rank in range(count)]


def test_srun_starts_its_own_number_of_tasks_or_that_of_the_job(job):
    job.script(f"srun -n 3 --hint=nomultithread {RANKS}; srun {RANKS}; srun -N1 -n1 {RANKS}")
    done = job.run()
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.split()) == sorted(ranks(3) + ranks(2) + ranks(1))
    assert "warning" not in done.stderr


@pytest.mark.parametrize(
    ("header", "line", "count"),
    [
        ("-N 4", "srun", 4),
        ("-N 4", "srun -N 1", 1),
        ("-N 2", "srun --ntasks-per-node=2", 4),
        ("-N 2 -n 4", "srun --ntasks-per-node=1", 4),
        ("-N 2 --ntasks-per-node=2", "srun -N 1", 4),
        ("-J name", "srun -N 2", 2),
    ],
)
def test_srun_without_a_number_of_tasks_starts_as_many_as_in_slurm(job, header, line, count):
    job.script(f"{line} echo x")
    text = (job.directory / "job.sh").read_text()
    (job.directory / "job.sh").write_text(text.replace("--ntasks=2", header))
    done = job.run()
    assert (done.returncode, done.stdout.split()) == (0, ["x"] * count), done.stderr


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
    job.script(
        "srun -n 2 -D /tmp -o out.%j --export=ALL,COLOUR=green bash -c 'echo $PWD $COLOUR'; cat out.$SLURM_JOB_ID"
    )
    done = job.run()
    assert done.stdout.splitlines() == ["/tmp green"] * 2, done.stderr


def test_label_option_prefixes_each_line_with_its_rank(job):
    job.script("srun -l -n 2 echo said")
    done = job.run()
    lines = sorted(done.stdout.splitlines())
    assert len(lines) == 2 and all(line.endswith("said") and line != "said" for line in lines), done


def test_failed_rank_fails_the_launcher(job):
    job.script("srun -n 2 bash -c 'exit 9'")
    assert job.run().returncode == 9


def test_bad_count_and_missing_program_are_errors(job):
    for line, message in [
        ("srun -n two true", "srun: "),
        ("srun -n 2", "no program to start"),
        ("mpiexec -n 2", "no program to start"),
    ]:
        job.script(line)
        done = job.run()
        assert done.returncode == 2 and message in done.stderr, done.stderr


def test_srun_starts_ranks_when_the_version_query_of_mpiexec_hangs(job, tmp_path):
    """It would hang longer than a test may take."""
    programs = tmp_path / "bin"
    programs.mkdir()
    mpiexec = programs / "mpiexec"
    mpiexec.write_text('#!/bin/sh\n[ "$1" = --version ] && exec sleep 1000\necho started "$@"\n')
    mpiexec.chmod(0o755)
    job.script(f"PATH=${{PATH%%:*}}:{programs}:/bin srun -n 2 true")
    done = job.run()
    assert done.returncode == 0 and done.stdout.startswith("started -n 2"), done


def test_missing_mpi_is_named_with_a_remedy(job):
    job.script("PATH=${PATH%%:*}; srun -n 2 true")
    done = job.run()
    assert done.returncode == 127
    assert "no mpiexec in PATH" in done.stderr and "apt-get install" in done.stderr


def test_site_launcher_is_used_inside_a_slurm_job(job):
    job.script("echo $PATH; type -P srun mpiexec; echo ${BASH_ENV-none}; echo $SLURM_JOB_ID", "#SBATCH -J x")
    done = job.run(SLURM_JOB_ID="77")
    assert done.stdout.splitlines()[-2:] == ["none", "77"]
    assert "job 77 ended with status 0" in done.stderr
    assert str(job.temporary) not in done.stdout


def test_mpirun_without_a_number_starts_the_tasks_of_the_job(job):
    job.script(
        "mpirun echo x; mpirun -N 3 --host elsewhere echo y; mpiexec -n 1 --host a echo z : -n 2 --host b echo z"
    )
    done = job.run()
    assert sorted(done.stdout.split()) == ["x"] * 2 + ["y"] * 3 + ["z"] * 3, done.stderr


def test_login_shell_finds_the_launchers(job):
    (job.directory / "job.sh").write_text("#!/bin/bash -l\necho $own; exec srun -n 2 echo x\n")
    (job.directory / "own").write_text("own=mine\n")
    done = job.run(BASH_ENV=str(job.directory / "own"))
    assert (done.returncode, done.stdout.split()) == (0, ["mine", "x", "x"]), done.stderr


@pytest.mark.parametrize("shell", ["/bin/bash -l", "/bin/sh -l", "/usr/bin/env -S bash --login -e"])
def test_login_shell_whose_profile_replaces_path_and_bash_env_finds_launchers(job, shell):
    # Lmod and Environment Modules set BASH_ENV in /etc/profile.d; a site's profile sets PATH.
    (job.directory / "modules.sh").write_text("")
    for profile in (".bash_profile", ".profile"):
        (job.directory / profile).write_text(
            f"export BASH_ENV='{job.directory}/modules.sh'\nPATH=/usr/bin:/bin\nexport OF_PROFILE=read\n"
        )
    (job.directory / "job.sh").write_text(
        f'#!{shell}\n[ $# = 2 ] && echo "$OF_PROFILE" "$2"\nsrun -n 2 echo x\nexit 7\n'
    )
    done = job.command("run", *job.where, "job.sh", "--", "one", "two words", HOME=str(job.directory))
    assert (done.returncode, done.stdout.split()) == (7, ["read", "two", "words", "x", "x"]), done.stderr


def test_background_srun_is_one_process(job):
    job.script(
        "srun -n 1 sh -c 'touch running; exec sleep 300' & until [ -e running ]; do sleep 0.01; done; kill $!; wait $!; pgrep -s 0 sleep; exit 0"
    )
    done = job.run()
    assert done.returncode == 0 and "left behind" not in done.stderr, done.stderr


def test_launchers_print_version_and_usage(job):
    job.script("mpiexec --version | head -1; srun --version; srun --help | head -1")
    done = job.run()
    lines = done.stdout.splitlines()
    assert "OpenRTE" in lines[0] or "MPI" in lines[0] or "HYDRA" in lines[0]
    assert lines[1].startswith("srun of forebay") and lines[2].startswith("usage: srun"), done.stderr


def test_srun_options_direct_the_streams_of_tasks(job):
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
        "from the file",
        "error of 0",
        "from the file",
        "error of 1",
        "one",
        "two",
        "1",
        "2",
    ], done.stderr
    assert "warning: srun: --export=NONE is not honoured" in done.stderr
    assert "srun: /no/such is not a directory" in done.stderr
    assert not (job.directory / "none").exists()


def test_srun_replaces_the_symbols_of_slurm_in_file_names(job):
    job.script(
        "#SBATCH -J name\n"
        "srun -n 2 -o %x.%3t -e none bash -c 'echo $SLURM_PROCID $SLURM_STEP_ID'; cat name.000 name.001\n"
        "srun -n 1 -o %u.%s.%%t echo second; cat ada.1.%t\n"
        "srun -n 1 -o %J echo third; cat $SLURM_JOB_ID.2; SLURM_ARRAY_JOB_ID=8 SLURM_ARRAY_TASK_ID=5 srun -n1 -o %A_%2a true\n"
        "ls 8_05"
    )
    done = job.run()
    assert done.stdout.splitlines() == ["0 0", "1 0", "second", "third", "8_05"], done.stderr


def test_redirected_input_of_several_ranks_is_a_warning(job):
    job.script(
        "echo a > in; srun -n 1 cat < in; srun -n 2 -i in cat; srun -n 2 -i 0 cat < in; srun -n 2 true < /dev/null; srun -n 2 true\n"
        "aprun -n 2 true < in; echo warned >&2; srun -n 2 -i all cat < in; echo b | flux run -n 2 cat"
    )
    done = job.run()
    assert (done.returncode, done.stdout.split()) == (0, ["a"] * 5 + ["b"]), done.stderr
    before, after = done.stderr.split("warned\n")
    assert "standard input" not in before
    for launcher in ("srun", "flux run"):
        assert f"warning: {launcher}: standard input reaches rank 0 only" in after


@pytest.mark.parametrize(
    ("line", "count"),
    [
        ("jsrun -n 1 -a 4 -c 4 -r 1 echo x", 4),
        ("jsrun -n2 -a3 -g0 -c1 -l gpu-cpu -d packed -b packed:1 --smpiargs=-gpu -X 1 -k err echo x", 6),
        ("jsrun -p 3 echo x", 3),
        ("jsrun echo x", 2),
        ("aprun -n 3 -N 2 -d 1 -S 1 -cc cpu -ss -j 1 echo x", 3),
        ("aprun -B -q echo x", 2),
        ("aprun echo x", 1),
        ("srun --jobid $SLURM_JOB_ID --signal USR1@60 --uid 0 --pty -n 3 echo x", 3),
        ("flux run -n 3 -N 1 -c 1 -t 5m -o mpibind=off echo x", 3),
        ("flux mini run -N2 --tasks-per-node=2 echo x", 4),
        ("flux run echo x", 1),
    ],
)
def test_each_launcher_starts_the_number_of_tasks_of_its_options(job, line, count):
    job.script(line)
    done = job.run()
    assert (done.returncode, done.stdout.split()) == (0, ["x"] * count), done.stderr
    warnings = [text for text in done.stderr.splitlines() if text.startswith("warning")]
    # A machine with one processor has fewer than these ranks want.
    assert [text for text in warnings if "processors of this machine" not in text] == []


@pytest.mark.parametrize(
    ("launcher", "names"),
    [
        ("jsrun -p 2", "$JSM_NAMESPACE_RANK/$JSM_NAMESPACE_SIZE/$JSM_NAMESPACE_LOCAL_RANK"),
        ("flux run -n 2", "$FLUX_TASK_RANK/$FLUX_JOB_SIZE/$FLUX_TASK_LOCAL_ID"),
        ("aprun -n 2", "$ALPS_APP_PE/2/$ALPS_APP_PE"),
    ],
)
def test_each_launcher_sets_its_own_rank_variables(job, launcher, names):
    job.script(f"{launcher} bash -c 'echo {names}$FOREBAY_NAMES_OF_RANK'")
    done = job.run()
    assert sorted(done.stdout.split()) == ranks(2), done.stderr
    job.script(f"{launcher} bash -c 'echo $SLURM_LOCALID'")  # the batch script's own
    assert job.run().stdout.split() == ["0", "0"]


def test_jsrun_runs_a_program_without_mpi(job):
    job.script("echo data > a; jsrun -n 1 cp a b; cat b; jsrun -n 1 false; echo $?")
    done = job.run()
    assert done.stdout.split() == ["data", "1"], done.stderr


def test_jsrun_sets_directory_variables_and_streams(job):
    job.script(
        "echo input > in\n"
        'jsrun -n 2 -h /tmp -E COLOUR=green -o "$PWD"/out.%h.%t -t "$PWD"/in bash -c \'cat; echo $PWD $COLOUR; echo bad >&2\'\n'
        "cat out.$HOSTNAME.0 out.$HOSTNAME.1\n"
        "jsrun -p 1 -o both.%j -k both.%j bash -c 'echo one; echo two >&2'; sort both.$FOREBAY_JOB_ID"
    )
    done = job.run()
    assert done.stdout.splitlines() == ["input", "/tmp green"] * 2 + ["one", "two"], done.stderr
    assert done.stderr.count("bad") == 2


def test_aprun_and_flux_set_variables_and_streams(job):
    job.script(
        "aprun -n 1 -e COLOUR=red -e SIZE=a,b bash -c 'echo $COLOUR $SIZE'\n"
        "flux run -n 1 --env=COLOUR=blue --cwd=/tmp bash -c 'echo $COLOUR $PWD'\n"
        "flux run -n 2 --output=out.{{id}} bash -c 'echo said; echo complained >&2'; sort out.$FOREBAY_JOB_ID\n"
        "flux run -l -n 1 echo labelled"
    )
    done = job.run()
    lines = done.stdout.splitlines()
    assert lines[:6] == ["red a,b", "blue /tmp", "complained", "complained", "said", "said"], done.stderr
    assert lines[6].endswith("labelled") and lines[6] != "labelled"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("jsrun --erf_input layout ./a", "error: jsrun: --erf_input is not supported"),
        ("jsrun -n many ./a", "error: jsrun: "),
        ("jsrun -n 2", "no program to start"),
        ("aprun -n 1 ./a : -n 2 ./b", "error: aprun: several programs in one step"),
        ("srun --test-only ./a", "error: srun: --test-only is not supported"),
        ("srun -n 1 ./a : -n 2 ./b", "error: srun: several programs in one step"),
        ("flux submit -n 1 ./a", "there is only flux run"),
        ("flux run --dry-run ./a", "error: flux run: --dry-run is not supported"),
    ],
)
def test_unsupported_launcher_options_are_errors(job, line, message):
    job.script(line)
    done = job.run()
    assert done.returncode == 2 and message in done.stderr, done.stderr


def test_unknown_options_of_each_launcher_are_named(job):
    job.script(
        "jsrun -p 1 -Y true; aprun -n 1 -cq --never true; flux run --ever=3 true; jsrun --help | head -1; flux run --version"
    )
    done = job.run()
    for option in (
        "jsrun: unknown option -Y",
        "aprun: unknown option -cq",
        "aprun: unknown option --never",
        "flux run: unknown option --ever",
    ):
        assert f"warning: {option} has no effect" in done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].startswith("usage: jsrun") and lines[1].startswith("flux run of forebay")


def test_module_command_reports_no_modules_unless_the_shell_has_its_own(job):
    job.script("set -e; module load gcc/12 hdf5; module purge; module() { echo real $*; }; module load x")
    done = job.run()
    assert (done.returncode, done.stdout) == (0, "real load x\n"), done.stderr
    said = [line for line in done.stderr.splitlines() if "there are no modules here" in line]
    assert [line.split(":")[1] for line in said] == [" module load gcc/12 hdf5", " module purge"]


@pytest.mark.parametrize("launch", ["srun -n 2", "mpiexec -n 2", "jsrun -n 2"])
def test_rank_killed_by_signal_fails_the_job_and_written_data_is_staged_out(job, launch):
    (job.directory / "die.sh").write_text(
        "#!/bin/bash\nrank=${OMPI_COMM_WORLD_RANK:-$PMI_RANK}\necho $rank > $DW_JOB_STRIPED/out/$rank\n"
        "until [ -e $DW_JOB_STRIPED/out/0 ] && [ -e $DW_JOB_STRIPED/out/1 ]; do sleep 0.01; done\n"
        "[ $rank = 1 ] && kill -KILL $$; sleep 300\n"
    )
    (job.directory / "die.sh").chmod(0o755)
    job.script(
        f"set -e; mkdir $DW_JOB_STRIPED/out; {launch} ./die.sh; touch not-reached",
        DW,
        "#DW stage_out type=directory source=$DW_JOB_STRIPED/out destination=%d/results",
    )
    done = job.run()
    assert done.returncode not in (0, 123, 124, 125), done.stderr
    assert sorted(path.name for path in (job.directory / "results").iterdir()) == ["0", "1"]
    assert not (job.directory / "not-reached").exists()
    job.leaves_nothing()


@pytest.mark.parametrize("launch", ["srun", "mpiexec", "mpirun -np 4800", "srun -n 4800"])
def test_thousands_of_local_ranks_are_refused_with_a_hint(job, launch):
    job.script(f"{launch} touch ran")
    text = (job.directory / "job.sh").read_text()
    (job.directory / "job.sh").write_text(text.replace("--ntasks=2", "--nodes=150 --ntasks-per-node=32"))
    done = job.run()
    assert done.returncode == 127 and "4800 ranks on the" in done.stderr, done.stderr
    assert "FOREBAY_RANKS_MAX=4800" in done.stderr and not (job.directory / "ran").exists()


def test_ranks_beyond_a_multiple_of_the_processors_are_a_warning(job):
    number = 4 * os.cpu_count() + 1
    job.script(f"mpiexec -n {number} true")
    done = job.run()
    assert done.returncode == 0 and f"warning: {number} ranks share the" in done.stderr, done.stderr
