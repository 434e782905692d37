"""The environment of a job, for calls of Forebay in the process of the test."""

import os

import pytest


@pytest.fixture
def here(job, build, monkeypatch):
    """The job's environment, for calls in this process."""
    monkeypatch.chdir(job.directory)
    for name in [name for name in os.environ if name.startswith(("SLURM", "FOREBAY", "DW_"))]:
        monkeypatch.delenv(name)
    for name, value in job.environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("PATH", f"{build / 'bin'}:{os.environ['PATH']}")
    return job
