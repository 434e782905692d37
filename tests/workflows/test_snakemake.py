"""The example pipeline under Snakemake."""

from support.workflows import SECONDS


def test_a_step_that_times_out_resumes_and_finished_steps_do_not_run_again(workflow, tools):
    workflow.slow_down_first_attempts()
    snakefile = workflow.example / "snakemake" / "Snakefile"
    words = ["snakemake", "--snakefile", snakefile, "--cores", "2", "--config", f"seconds={SECONDS}"]
    # Snakemake keeps its caches there.
    own = {"XDG_CACHE_HOME": str(workflow.job.directory / "cache")}
    done = workflow.run(*words, tools=tools, **own)
    assert done.returncode == 0, done.stderr
    workflow.assert_resumed_and_analysed()
    jobs = workflow.jobs()
    again = workflow.run(*words, tools=tools, **own)
    assert again.returncode == 0 and "Nothing to be done" in again.stderr, again.stderr
    assert workflow.jobs() == jobs
