"""The first job of the README is the one in examples, and gives the output that the README shows."""

import pathlib
import re
import shutil

import pytest

PROJECT = pathlib.Path(__file__).resolve().parents[2]
EXAMPLE = PROJECT / "examples" / "first-job"
PAGES = ("README.md", "docs/start/first-job.md")


def blocks(page: str) -> list[str]:
    return re.findall(r"^```\n(.*?)^```", (PROJECT / page).read_text(), re.MULTILINE | re.DOTALL)


def without_measurements(text: str) -> list[str]:
    """Lines sorted, for the script's own come between Forebay's; ids, times, shares and sizes on disk become N."""
    varying = r"\b\d{13}\b|\d+\.\d\d s|[\d.]+M\b|less than 1 %|\d+ %"
    return sorted(re.sub(varying, "N", line) for line in text.splitlines())


@pytest.mark.parametrize("page", PAGES)
def test_first_job_page_shows_the_script_of_the_example(page):
    assert (EXAMPLE / "job.sh").read_text() in blocks(page)


def test_example_runs_with_the_output_that_the_readme_shows(job):
    shutil.copytree(EXAMPLE, job.directory, dirs_exist_ok=True)
    job.where = ["--store", "memory"]
    done = job.run()
    (shown,) = [block for block in blocks("README.md") if "$ forebay run job.sh\nforebay: " in block]
    assert done.returncode == 0, done.stderr
    assert without_measurements(done.stderr + done.stdout) == without_measurements(shown.partition("job.sh\n")[2])
    assert len(list((job.directory / "out").iterdir())) == 10
    job.leaves_nothing()
