"""The example pipeline under Nextflow."""

import pytest

from support.workflows import SECONDS


@pytest.mark.long
def test_a_step_that_times_out_resumes(workflow, nextflow):
    workflow.slow_down_first_attempts()
    words = [*nextflow, "run", workflow.example / "nextflow" / "main.nf", "--seconds", SECONDS]
    # No plugin is needed, and Nextflow would load the default ones from the network.
    own = {
        "NXF_HOME": str(workflow.job.directory / "home"),
        "NXF_OFFLINE": "true",
        "NXF_PLUGINS_DEFAULT": "false",
        "NXF_ANSI_LOG": "false",
    }
    done = workflow.run(*words, **own)
    assert done.returncode == 0, done.stdout + done.stderr
    workflow.assert_resumed_and_analysed()
