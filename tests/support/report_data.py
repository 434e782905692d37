"""Profiles made up for cases that no log at hand has, and the page of any profile."""

import functools
import pathlib

from forebay.advice.advise import findings
from forebay.advice.diagnosis import reason
from forebay.profiles.model import (
    Collective, Extreme, File, Heat, Hints, Job, Layer, Profile, Program, Staging, Traffic, WithoutEffect, Writer,
)  # fmt: skip
from forebay.profiles.sources import open_path
from forebay.report import page
from forebay.report.assembly import Advised, job_reports
from forebay.report.comparison import compare
from forebay.report.verdict import verdict

LOGS = pathlib.Path(__file__).parent.parent / "profiles" / "logs"
LOG_NAMES = sorted(path.stem for path in LOGS.glob("*.darshan"))


@functools.cache
def log(name: str) -> Profile:
    """Read once. Nobody may change it."""
    return open_path(LOGS / f"{name}.darshan")


def advised(profile: Profile) -> Advised:
    return Advised(profile, verdict(profile), reason(profile).paragraph, findings(profile))


def html(*profiles: Profile, machine=None, paper: bool = False) -> str:
    reports = job_reports([advised(profile) for profile in profiles], machine)
    title = " and ".join(report.name for report in reports)
    return page.html(title, reports, compare(list(profiles)) if len(profiles) > 1 else None, advice=True, paper=paper)


@functools.cache
def html_of_log(name: str) -> str:
    return html(log(name))


def shown(browser, folder: pathlib.Path, text: str):
    """The browser, with the page open."""
    page = folder / "page.html"
    page.write_text(text)
    browser.open(page)
    return browser


def posix(written: int = 0, calls: int = 0, seconds: float = 0.0) -> Layer:
    return Layer(
        read=Traffic(calls=0, bytes=0, seconds=0.0), write=Traffic(calls=calls, bytes=written, seconds=seconds)
    )


def profile_of(*files: File, wall_s: float | None = 10.0, ranks: int = 4, **job) -> Profile:
    program = Program(files=list(files), name="/home/ada/app", ranks=ranks, wall_s=wall_s, uses_mpi=True)
    return Profile(source="forebay", path="/nowhere", job=Job(id="7", wall_s=wall_s, **job), programs=[program])


def file_of(path: str, **layer) -> File:
    return File(path=path, ranks=1, layers={"POSIX": posix(**layer)})


def rich_profile() -> Profile:
    """A job with everything a report can tell: hints, writers, staging, a heat map of rows that ranks share."""
    shared = File(
        path="/scratch/ada/wrfout_d01",
        ranks=1024,
        stripe_count=4,
        stripe_bytes=1 << 20,
        layers={
            "MPI-IO": Layer(
                read=Traffic(calls=0, bytes=0, seconds=0.0),
                write=Traffic(
                    calls=2048, bytes=1 << 30, seconds=4096.0, slowest_rank_s=5.0, collective=2048, independent=0,
                    data_s=40.0, other_system_s=10.0, rest_s=4046.0, sizes=[0, 0, 0, 0, 2048, 0, 0, 0, 0, 0],
                ),
                opens=1024,
                metadata_s=51.2,
            ),
            "POSIX": Layer(
                read=Traffic(calls=3, bytes=300, seconds=0.1),
                write=Traffic(calls=1024, bytes=1 << 30, seconds=40.0, stripe_sized=512, ranks=2, sequential=1000, consecutive=900),
                opens=1024,
            ),
        },
        hints=Hints(
            environment={"cb_nodes": "2", "striping_unit": "1048576"},
            in_force={"striping_unit": "1048576", "romio_cb_write": "automatic"},
            without_effect=[WithoutEffect(key="cb_nodes", asked="2", seen="1 rank wrote")],
        ),
        collective=Collective(aggregators_write=2, active=[0, 0, 0, 2], rmw_calls=3, rmw_bytes=300),
        writers=[Writer(rank=0, bytes=1 << 29, calls=512, aggregator=True), Writer(rank=512, bytes=1 << 29, calls=512, aggregator=True)],
        fastest=Extreme(rank=3, seconds=4.0, bytes=1 << 20),
        slowest=Extreme(rank=0, seconds=5.0, bytes=1 << 20),
    )  # fmt: skip
    heat = [
        Heat(
            layer=layer, bin_s=0.1, ranks_per_row=4,
            read=[[0] * 128 for _ in range(256)],
            write=[[(row * at) % 977 * 1000 for at in range(128)] for row in range(256)],
        )
        for layer in ("MPI-IO", "POSIX")
    ]  # fmt: skip
    made = profile_of(shared, wall_s=12.8, ranks=1024)
    made.programs[0].heat = heat
    made.job.stage_in = Staging(files=3, bytes=1 << 20, seconds=0.5)
    made.job.stage_out = Staging(files=2, bytes=1 << 30, seconds=2.0, failures=1)
    made.job.failures = ["/scratch/ada/lost: No space left on device"]
    made.job.store = "/nvme/ada"
    made.job.environment = {"MPICH_MPIIO_HINTS": "*:cb_nodes=2"}
    made.notes = ["The loss of rank 5 is not told."]
    return made
