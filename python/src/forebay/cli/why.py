"""`forebay why`: one paragraph on the last run, or a named one, and the next step."""

import os
import time

import click
import msgspec

from forebay.advice.diagnosis import State, reason
from forebay.profiles import records, sources
from forebay.profiles.model import Allocation
from forebay.quantities import printable
from forebay.site import facts
from forebay.site.explain import SiteExplanation, explain


class Explanation(msgspec.Struct, kw_only=True):
    """What `forebay why` says of a run."""

    job: str | None  # its id
    path: str  # of its record
    notes: list[str]  # what is missing from the record
    allocation: Allocation | None  # of a job on several nodes
    state: State
    paragraph: str  # why it ended as it did, or what it waited for
    next_step: str | None  # a command, or a line for the job script


@click.command(
    "why",
    epilog="""\b
Examples:
  forebay why               the last run
  forebay why 4711          the job with this id, Forebay's or the scheduler's;
                            also what a job with a burst buffer of the site waits for
  forebay why ada.darshan   a Darshan log""",
)
@click.argument("job", required=False, metavar="[JOBID|RECORD]")
@click.option(
    "--json", "as_json", is_flag=True, help="Print one object: job, state, paragraph, next_step, notes."
)
def command(job: str | None, as_json: bool) -> None:
    """Explain in one paragraph why a run was slow or failed, and name the next step.

    Without JOBID, or with `last`, it explains the last recorded run. JOBID is an id, or at least 3 digits of
    its beginning or end. RECORD is a record, a Darshan log, or another source that `forebay report` reads.
    The job may still be running, or waiting: for a job with a burst buffer of the site, Forebay asks Slurm.
    """
    if job is not None and (of_site := facts.job_of(job)):
        show_site(explain(facts.facts_of(of_site), time.time()), as_json)
        return
    state = records.state_directory(os.environ)
    (profile,) = sources.open_profiles([] if job is None else [job], state)
    found = reason(profile)
    if as_json:
        why = Explanation(
            job=profile.job.id,
            path=profile.path,
            notes=profile.notes,
            allocation=profile.job.allocation,
            **msgspec.structs.asdict(found),
        )
        click.echo(msgspec.json.encode(why).decode())
        return
    click.echo(printable(found.paragraph))
    if used := profile.job.allocation:
        copies = "one copy" if used.redundancy == 1 else f"{used.redundancy} copies"
        click.echo(printable(f"Nodes: {', '.join(used.nodes)}; engine {used.engine}, {copies}."))
    if found.next_step:
        click.echo(f"Next: {printable(found.next_step)}")


def show_site(found: SiteExplanation, as_json: bool) -> None:
    """Prints what a job with a burst buffer of the site waits for."""
    if as_json:
        click.echo(msgspec.json.encode(found).decode())
        return
    click.echo(printable(found.paragraph))
    if found.next_step:
        click.echo(f"Next: {printable(found.next_step)}")
