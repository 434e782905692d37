"""Many small jobs at the same time."""

from support.site_cluster import DW, chown
from support.strace import EVERY_POINT

JOBS = 50 if EVERY_POINT else 15
SMALL = DW.replace("16MiB", "1MiB") + " pool=small"

OUT = "#DW stage_out type=file source=$DW_JOB_STRIPED/result destination=%d/results/%A-%a"
IN = "#DW stage_in type=file source=%d/input.%a destination=$DW_JOB_STRIPED/input"


def test_array_of_jobs_loses_nothing_and_leaves_nothing(slurm_site, users):
    tasks = range(1, JOBS + 1)
    for task in tasks:
        (users.directory / f"input.{task}").write_text(f"{task}\n")
    users.results.mkdir()
    chown(users.results, users.user)
    users.script("cat $DW_JOB_STRIPED/input $DW_JOB_STRIPED/input > $DW_JOB_STRIPED/result", SMALL, IN, OUT)
    array = users.submit(f"--array=1-{JOBS}", "-o", "said-%a")
    # Until it is complete, a file has another name.
    expected = sorted(f"{array}-{task}" for task in tasks)
    slurm_site.wait(lambda: users.arrived() == expected, lambda: (users.arrived(), users.log()))
    for task in tasks:
        assert (users.results / f"{array}-{task}").read_text() == f"{task}\n{task}\n"
    slurm_site.wait(lambda: not slurm_site.status()["allocations"], users.log)
    assert slurm_site.directories("small") == []
    users.jobs.clear()
