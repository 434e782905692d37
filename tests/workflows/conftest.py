"""The example pipeline, and the workflow systems that run it."""

import pytest

from support.workflows import Workflow


@pytest.fixture
def workflow(job, build):
    return Workflow(job, build)


@pytest.fixture(scope="session")
def tools(build):
    """The environment with Snakemake and Parsl."""
    home = build / "wheels" / "workflows"
    assert (home / "made").exists(), f"{home} is missing: make {home}/made"
    return home


@pytest.fixture(scope="session")
def nextflow(build):
    """The command that starts Nextflow."""
    home = build / "nextflow"
    assert (home / "made").exists(), f"{home} is missing: make {home}/made"
    # It runs too short for the second compiler of Java to pay.
    return ["java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", home / "lib" / "*", "nextflow.cli.Launcher"]
