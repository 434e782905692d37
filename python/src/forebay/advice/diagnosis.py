"""Why a run ended as it did, or what it waited for, and the next step."""

from __future__ import annotations

import re
import shlex
import signal
from collections.abc import Callable, Sequence
from typing import Literal

import msgspec

from forebay.advice.advise import findings, paragraph
from forebay.advice.model import Finding
from forebay.profiles import metrics
from forebay.profiles.model import Job, Profile
from forebay.quantities import count, duration, signal_name

State = Literal[
    "refused",
    "killed",
    "running",
    "time limit",
    "deadline",
    "signal",
    "failed",
    "write failed",
    "undelivered",
    "ended",
]

#: As the errors of directives come, several in one text: each has its hint in a line of its own.
_HINT_LINE = re.compile(r"\n\s*hint: (.*)(?:\n|$)")


class Reason(msgspec.Struct, frozen=True, kw_only=True):
    """One paragraph and one step: a command, or a line for the job script."""

    state: State
    paragraph: str
    next_step: str | None


def reason(profile: Profile, found: Sequence[Finding] | None = None) -> Reason:
    """Why the job ended as it did; of a job that succeeded, what it waited for. `found`: its findings."""
    job = profile.job
    found = findings(profile) if found is None else found
    if profile.source != "forebay" or (job.kind is None and job.exit_code is None and not job.killed):
        of_record = profile.source == "forebay" and job.id is not None
        unknown = f"How job {job.id} ended is not known: its job.json is missing or damaged. "
        return _io_reason(profile, unknown if of_record else "", found)
    explanation = next(tell(profile, found) for applies, tell in _CASES if applies(job))
    failed = failed_writes(job) if explanation.state not in ("refused", "write failed") else None
    before = _joined(failed_engine(job) or "", failed or "")
    return (
        msgspec.structs.replace(explanation, paragraph=f"{before} {explanation.paragraph}")
        if before
        else explanation
    )


def failed_engine(job: Job) -> str | None:
    """Why operations on the files of a job on several nodes failed; None if they did not."""
    used = job.allocation
    if used is None or used.failed is None:
        return None
    return f"The engine {used.engine} over {', '.join(used.nodes)} failed: {used.failed.rstrip('.')}."


def failed_writes(job: Job) -> str | None:
    """Which writes failed for lack of space or by an I/O error; None if none is known."""
    if not (job.failed_writes or job.store_was_full):
        return None
    full = "The burst buffer was full. " if job.store_was_full else ""
    if not job.failed_writes:
        return full.strip()
    first, more = job.failed_writes[0], len(job.failed_writes) - 1
    others = f", and so did one in {count(more)} more file{'s' if more > 1 else ''}" if more else ""
    return f"{full}A write of {first.path} failed with {first.error}{others}."


def _named(job: Job) -> str:
    what = job.name or (job.script or "").rpartition("/")[2] or (job.command or "").partition(" ")[0]
    return f"Job {job.id}" + (f" ({what})" if what else "")


def problems(job: Job) -> list[tuple[str, str]]:
    """Why it was not started: errors with their hints. Those of directives come together, in one text."""
    error = job.error or ""
    parts = [" ".join(part.split("\n")).strip() for part in _HINT_LINE.split(error)]
    found = list(zip(parts[::2], parts[1::2], strict=False))
    return found + [(parts[-1], job.hint or "")] if parts[-1] or not found else found


def _refused(profile: Profile, _found: Sequence[Finding]) -> Reason:
    job = profile.job
    found = problems(job)
    if len(found) == 1:
        ((error, hint),) = found
        sentence, step = f"{error.rstrip('.')}.", hint or None
    else:
        hinted = (
            f"({n}) {error}" + (f" (hint: {hint})" if hint else "")
            for n, (error, hint) in enumerate(found, 1)
        )
        sentence, step = (
            f"{len(found)} errors. {'. '.join(hinted)}.",
            "correct all of them, and start it again",
        )
    return Reason(state="refused", paragraph=f"{_named(job)} was not started: {sentence}", next_step=step)


def _killed(profile: Profile, _found: Sequence[Finding]) -> Reason:
    job = profile.job
    text = (
        f"{_named(job)} did not end by itself: the forebay that ran it was killed, or the machine went down. "
        "Or there was no room to write down how it ended.",
        _failed_programs(profile),
    )
    if job.kind == "profile":
        return Reason(state="killed", paragraph=_joined(*text), next_step="start it again")
    if job.cleaned:
        return Reason(
            state="killed",
            paragraph=_joined(*text, "What it had left has been cleaned up."),
            next_step="submit it again",
        )
    if not job.left:
        return Reason(
            state="killed", paragraph=_joined(*text, "It has left nothing."), next_step="submit it again"
        )
    left = "What it has left is still there: processes, perhaps, or data that were to be staged out."
    return Reason(state="killed", paragraph=_joined(*text, left), next_step=f"forebay clean {job.id}")


def _joined(*sentences: str) -> str:
    return " ".join(sentence.strip() for sentence in sentences if sentence.strip())


def _running(profile: Profile, found: Sequence[Finding]) -> Reason:
    job, worth = profile.job, _significant(found)
    text = f"{_named(job)} is still running."
    where = f" on {job.host}" if job.unseen and job.host else ""
    if job.unseen:
        text = f"{_named(job)} still runs{where}, or was killed there: that cannot be seen from here."
    so_far = f"So far: {worth[0].title}. {worth[0].action}" if worth else ""
    return Reason(
        state="running",
        paragraph=_joined(text, _failed_programs(profile), so_far),
        next_step=_next(profile, worth) or f"forebay status{where}",
    )


def _time_limit(profile: Profile, _found: Sequence[Finding]) -> Reason:
    text = f"{_named(profile.job)} was ended at its time limit"
    ran_s = profile.job.wall_s
    text += f" after {duration(ran_s)}. " if ran_s is not None else ". "
    return _failure_reason(
        profile, "time limit", text, "raise the limit: --time, or the option of the scheduler"
    )


def _deadline(profile: Profile, _found: Sequence[Finding]) -> Reason:
    job = profile.job
    when = "" if job.wall_s is None else f" after {duration(job.wall_s)}"
    text = (
        f"{_named(job)} was ended by Forebay{when}, before the end that {job.deadline_told_by} tells, "
        "so that its stage-out had time. "
    )
    return _failure_reason(
        profile, "deadline", text, "ask for more time, or write checkpoints and go on from them"
    )


def _signal(profile: Profile, _found: Sequence[Finding]) -> Reason:
    number = profile.job.ended_by_signal or 0
    name = signal_name(number)
    status = profile.job.job_status
    text = f"{_named(profile.job)} ended with status {status}: it, or a program in it, was ended by {name}. "
    if number in (signal.SIGUSR1, signal.SIGUSR2) and profile.job.deadline_told_by:
        text += (
            f"Forebay sent it before the end that {profile.job.deadline_told_by} tells, as the job "
            "asked for, and the program does not handle it. "
        )
    elif number == signal.SIGKILL:
        text += "Nobody but the system, the scheduler or a user sends it: often memory ran out. "
    elif number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        text += "A user, the scheduler or a terminal that was closed sends it. "
    elif number in (signal.SIGSEGV, signal.SIGBUS, signal.SIGABRT, signal.SIGFPE, signal.SIGILL):
        text += "The program itself went wrong. "
    return _failure_reason(profile, "signal", text, "look at the end of the job's own output")


def _failed(profile: Profile, _found: Sequence[Finding]) -> Reason:
    job = profile.job
    status = job.job_status if job.job_status is not None else job.exit_code
    text = f"{_named(job)} ended with status {status}. "
    return _failure_reason(profile, "failed", text, "look at the end of the job's own output")


def _failure_reason(profile: Profile, state: State, text: str, step: str) -> Reason:
    """A job that went wrong: what is known of its programs, and of data that did not arrive."""
    job = profile.job
    if not (job.kept or job.failures):
        return Reason(state=state, paragraph=_joined(text, _failed_programs(profile)), next_step=step)
    return Reason(
        state=state,
        paragraph=_joined(text, _failed_programs(profile), _data_location(job)),
        next_step=f"forebay clean {job.id}" if job.kept and job.left else step,
    )


def _write_failed(profile: Profile, _found: Sequence[Finding]) -> Reason:
    job = profile.job
    staged = ""
    if job.incomplete:
        number, first = count(len(job.incomplete)), job.incomplete[0]
        staged = f"Staged files that may be incomplete: {number}, the first: {first}."
    text = _joined(
        f"{_named(job)} ended with status 0, but not all it wrote was stored.",
        failed_writes(job) or "",
        staged,
    )
    step = None
    if job.store_was_full:
        step = "give the jobdw line more capacity, or stage out while the job runs: forebay run --drain"
    return Reason(state="write failed", paragraph=text, next_step=step)


def _undelivered(profile: Profile, _found: Sequence[Finding]) -> Reason:
    job = profile.job
    text = f"{_named(job)} itself succeeded. {_data_location(job)}"
    step = f"forebay clean {job.id}" if job.left else None
    return Reason(state="undelivered", paragraph=text, next_step=step)


def _data_location(job: Job) -> str:
    first = f": {job.failures[0]}" if job.failures else ""
    more = f" (and {count(len(job.failures) - 1)} more)" if len(job.failures) > 1 else ""
    where = f" Nothing was deleted: the data are in {job.kept}." if job.kept else ""
    if job.kept and not job.left:
        where = " `forebay clean` has staged the rest out or discarded it since."
    return f"Not all data were staged out{first}{more}.{where}"


def _failed_programs(profile: Profile) -> str:
    """Programs that did not end as they should."""
    sentences = []
    for program in metrics.not_ended_properly(profile):
        name = (program.name or "a program").rpartition("/")[2]
        if program.aborted_code is not None:
            sentences.append(
                f"Rank {program.aborted_rank} of {name} called MPI_Abort with code {program.aborted_code}."
            )
            continue
        verb = "ended without MPI_Finalize" if program.uses_mpi else "was killed"
        if profile.job.running and not profile.job.unseen:
            verb = "is running"
        elif profile.job.unseen or (profile.job.killed and profile.job.left):
            verb = f"is running, or {verb}"
        sentences.append(f"{name} {verb}.")
    return " ".join(dict.fromkeys(sentences))


def _ended(profile: Profile, found: Sequence[Finding]) -> Reason:
    if metrics.not_ended_properly(profile):
        text = f"{_named(profile.job)} ended with status 0, but some of its programs did not exit properly."
        step = "look at the job's own output for what they say; `set -e` ends a script where a program fails"
        return Reason(state="failed", paragraph=_joined(text, _failed_programs(profile)), next_step=step)
    return _io_reason(profile, f"{_named(profile.job)} succeeded. ", found)


def _io_reason(profile: Profile, before: str, found: Sequence[Finding]) -> Reason:
    return Reason(
        state="ended",
        paragraph=before + paragraph(profile, found),
        next_step=_next(profile, _significant(found)),
    )


def _significant(found: Sequence[Finding]) -> list[Finding]:
    return [finding for finding in found if finding.level != "note"]


def _next(profile: Profile, worth: Sequence[Finding]) -> str | None:
    """The line to change for the finding that the paragraph names."""
    if worth and worth[0].lines:
        return worth[0].lines[0]
    return f"forebay report {profile.job.id or shlex.quote(profile.path)}" if len(worth) > 1 else None


#: The first that applies tells.
_CASES: tuple[tuple[Callable[[Job], bool], Callable[[Profile, Sequence[Finding]], Reason]], ...] = (
    (lambda job: job.error is not None, _refused),
    (lambda job: job.killed, _killed),
    (lambda job: job.running, _running),
    (lambda job: job.ended_for_stage_out, _deadline),
    (lambda job: job.over_time_limit, _time_limit),
    (lambda job: job.ended_by_signal is not None, _signal),
    (lambda job: bool(job.job_status), _failed),
    (lambda job: failed_writes(job) is not None and not job.undelivered, _write_failed),
    (lambda job: job.undelivered or bool(job.exit_code), _undelivered),
    (lambda job: True, _ended),
)
