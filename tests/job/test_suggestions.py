"""A misspelt word of a directive, or of a variable, is answered with the word that is probably meant."""

import pytest

from support.job import DW


@pytest.mark.parametrize(
    ("directive", "meant"),
    [
        (DW.replace("jobdw", "jobwd"), "jobdw"),
        (DW.replace("access_mode", "acces_mode"), "access_mode"),
        (DW.replace("scratch", "scrach"), "scratch"),
    ],
)
def test_misspelt_word_of_a_directive_gets_a_suggestion(job, directive, meant):
    job.script("true", directive)
    done = job.run()
    assert done.returncode == 125 and f"did you mean {meant}?" in done.stderr, done.stderr


def test_misspelt_variable_gets_a_suggestion(job):
    job.script("cd $DW_JOB_STRIPPED", DW)
    done = job.run()
    assert done.returncode == 125 and "did you mean $DW_JOB_STRIPED?" in done.stderr, done.stderr


def test_word_without_resemblance_gets_no_suggestion(job):
    job.script("true", DW.replace("jobdw", "mount"))
    done = job.run()
    assert done.returncode == 125 and "did you mean" not in done.stderr, done.stderr
