"""From a profile to its findings, and to one paragraph."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from forebay.advice import (  # noqa: F401  the rules register themselves
    rules_access,
    rules_collective,
    rules_job,
    rules_layout,
    rules_metadata,
    rules_ranks,
    thresholds,
)
from forebay.advice.file_metrics import JobView
from forebay.advice.hint_lines import file_pattern
from forebay.advice.model import Finding
from forebay.advice.registry import FILE_RULES, JOB_RULES
from forebay.advice.script_lines import ScriptLines
from forebay.advice.unbound_finding import Draft
from forebay.profiles.machine import Machine
from forebay.profiles.metrics import IoShare, io_slowest_s, is_bound
from forebay.profiles.model import Profile
from forebay.quantities import at_most, count, duration, percent

LEVELS = ("problem", "suggestion", "note")
#: Findings about the job's end, which count however little I/O there was.
ALWAYS = frozenset({"aborted", "no-finalize", "not-closed", "little-io", "emulated"})


def findings(profile: Profile, machine: Machine | None = None) -> list[Finding]:
    """What is worth telling, by what is at stake; nothing where nothing is wrong.

    `seconds` of a finding is the time at stake: that of the slowest rank in what the finding is about, an
    upper bound of what can be gained, never more than the run. A finding about little time is a note.
    Findings of one kind about files of one pattern appear once.
    """
    view = JobView(profile, machine)
    drafts = [draft for rule in JOB_RULES for draft in rule(view)]
    drafts += [draft for file in view.files for rule in FILE_RULES for draft in rule(file)]
    if not view.is_worth_it:
        drafts = [draft for draft in drafts if draft.code in ALWAYS]
    drafts = [draft for draft in _merged_by_pattern(drafts, view) if _apply_thresholds(draft, view)]
    drafts.sort(key=_order)
    lines = ScriptLines(profile, drafts)
    return [_finding(draft, lines, profile) for draft in drafts]


def _apply_thresholds(draft: Draft, view: JobView) -> bool:
    """Whether what is at stake is worth a word; makes a note of what is worth little more."""
    run_s = view.io_share.run_s if view.io_share else None
    if draft.seconds is None or run_s is None:
        return True
    draft.seconds = min(draft.seconds, run_s)
    if draft.code in ALWAYS:
        return True
    if draft.seconds < thresholds.FINDING_SHARE_MIN * run_s:
        draft.level = "note"
    return draft.seconds >= thresholds.NOTE_SHARE_MIN * run_s


def _order(draft: Draft) -> tuple:
    """What broke the job, then by the time at stake; notes come last."""
    is_first = draft.code in ALWAYS and draft.level == "problem"
    return (
        not is_first,
        draft.level == "note",
        -(draft.seconds or 0.0),
        LEVELS.index(draft.level),
        draft.code,
    )


def _finding(draft: Draft, lines: ScriptLines, profile: Profile) -> Finding:
    names = [name for name in Finding.__struct_fields__ if name not in ("lines", "action")]
    kept = {name: getattr(draft, name) for name in names}
    action = " ".join([draft.action, *_hint_conditions(profile)]) if draft.hints else draft.action
    return Finding(lines=lines.of(draft), action=action, **kept)


def _hint_conditions(profile: Profile) -> list[str]:
    """What else it takes on an MPI that is not Cray's."""
    if profile.source == "cray":
        return []
    conditions = ["`forebay run` and `forebay profile` make any MPI obey the line."]
    if any((program.mpi or "").startswith("Open MPI") for program in profile.programs):
        conditions.append(
            "Open MPI before 6 does not tell which hints it uses: look at who writes in the next run."
        )
    return conditions


def _merged_by_pattern(drafts: Sequence[Draft], view: JobView) -> list[Draft]:
    """Of alike findings about alike files the one with most at stake, which says how many there are."""
    groups: dict[tuple[str, str], list[Draft]] = {}
    for draft in drafts:
        groups.setdefault((draft.code, file_pattern(draft.file) if draft.file else ""), []).append(draft)
    merged = []
    for (_, pattern), group in groups.items():
        worst = max(group, key=lambda draft: draft.seconds or 0.0)
        files = len({draft.file for draft in group})
        if files > 1:
            plural = "s" if files > 2 else ""
            worst.title += f" (and {count(files - 1)} more file{plural} like {pattern})"
            worst.seconds = _slowest_s(group, view)
        merged.append(worst) if pattern else merged.extend(group)
    return merged


def _slowest_s(group: Sequence[Draft], view: JobView) -> float | None:
    """At stake for the slowest rank: files that one rank alone used count for that rank only."""
    of_ranks: dict[int, float] = defaultdict(float)
    shared_s = 0.0
    for draft in group:
        rank = view.own_ranks.get(draft.file or "")
        if rank is None:
            shared_s += draft.seconds or 0.0
        else:
            of_ranks[rank] += draft.seconds or 0.0
    return shared_s + max(of_ranks.values(), default=0.0) or None


def paragraph(profile: Profile, found: Sequence[Finding]) -> str:
    """What to know and what to do first, in at most four sentences."""
    view = JobView(profile, None)
    sentences = [_first_sentence(view)]
    worth = [finding for finding in found if finding.level != "note"]
    if worth:
        first = worth[0]
        sentences.append(f"{first.title}. {first.action}")
        if len(worth) > 1:
            sentences.append(f"{count(len(worth) - 1)} more finding{'s' if len(worth) > 2 else ''}.")
    elif view.is_worth_it and has_io(profile):
        sentences.append("No rule finds anything wrong with it.")
    return " ".join(sentence for sentence in sentences if sentence)


def has_io(profile: Profile) -> bool:
    """Whether any file was recorded."""
    return any(program.files for program in profile.programs)


def no_io(profile: Profile) -> str:
    """Of a job without a recorded file."""
    if profile.unread:
        return f"No I/O was recorded, and {profile.unread[0]}."
    if profile.source != "forebay":
        return "No I/O was recorded."
    return "No I/O was recorded. Forebay records programs that transfer 1 MiB or make 1,000 calls."


def unknown_share(profile: Profile, share: IoShare | None) -> str:
    """Of a job of which the share of I/O in the run time is not known."""
    spent = [spent_s for program in profile.programs if (spent_s := io_slowest_s(program)) is not None]
    if share is None and spent:
        most = "at most " if any(map(is_bound, profile.programs)) else ""
        return f"I/O took {most}{duration(sum(spent))} on the slowest rank. The source has no run time."
    return "The source does not say how long its I/O took."


def recorded_share(profile: Profile, share: float) -> str:
    """Of a job of which some I/O is not known."""
    return (
        f"The recorded I/O took {percent(share)} of the run time. "
        f"How much more is not known: {profile.unread[0]}."
    )


def _first_sentence(view: JobView) -> str:
    share = view.io_share
    if not view.profile.programs or not (has_io(view.profile) or view.profile.unread):
        return no_io(view.profile)
    if share is None or share.slowest is None:
        return unknown_share(view.profile, share)
    part = percent(share.slowest)
    if not view.is_worth_it and view.profile.unread:
        return recorded_share(view.profile, share.slowest)
    if not view.is_worth_it:
        return f"I/O took {part} of the run time: there is nothing to gain."
    return f"I/O took {at_most(share.slowest, share.is_bound)} of the run time of the slowest rank."
