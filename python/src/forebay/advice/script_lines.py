"""The lines for the job script: of all findings together, each thing is set once."""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence

from forebay.advice import thresholds
from forebay.advice.hint_lines import file_pattern, hints_line
from forebay.advice.unbound_finding import Draft
from forebay.profiles.model import Profile


class ScriptLines:
    """What all findings propose. The first finding that proposes a value for something decides."""

    def __init__(self, profile: Profile, drafts: Sequence[Draft]) -> None:
        self.hints: dict[str, dict[str, str]] = {}
        for draft in drafts:
            self._settle_hints(draft)
        if self.hints:
            self._keep_hints_of_job(profile)
        needed = [draft.allocation_bytes for draft in drafts if draft.allocation_bytes]
        self.allocation = allocation_line(max(needed)) if needed else None
        self.stripes: dict[str, int] = {}
        for folder, count in (draft.stripes for draft in drafts if draft.stripes):
            self.stripes[folder] = max(count, self.stripes.get(folder, 0))

    def _settle_hints(self, draft: Draft) -> None:
        """A finding that would set a hint otherwise than an earlier one does not set it, and says so."""
        if not draft.hints or not draft.file:
            return
        of_pattern = self.hints.setdefault(file_pattern(draft.file), {})
        other = [key for key, value in draft.hints.items() if of_pattern.get(key, value) != value]
        if other:
            draft.hints = {}
            draft.action += f" Take the line of the finding above first, which sets {', '.join(other)}."
            return
        of_pattern.update(draft.hints)

    def _keep_hints_of_job(self, profile: Profile) -> None:
        """Those that the job sets already, and that have an effect: the line replaces theirs."""
        for file in (file for program in profile.programs for file in program.files if file.hints):
            ignored = {hint.key for hint in file.hints.without_effect}
            for key, value in file.hints.environment.items():
                if key not in ignored:
                    self.hints.setdefault(file_pattern(file.path), {}).setdefault(key, value)

    def of(self, draft: Draft) -> tuple[str, ...]:
        """The lines to show with a finding."""
        lines = [hints_line(self.hints)] if draft.hints else []
        if draft.stripes:
            folder = draft.stripes[0]
            lines.append(f"lfs setstripe -c {self.stripes[folder]} {shlex.quote(folder)}")
        if draft.allocation_bytes and self.allocation:
            lines.append(self.allocation)
        return (*lines, *draft.lines)


def allocation_line(needed_bytes: float) -> str:
    """An allocation of a quarter more than is needed, in whole GiB."""
    capacity_gib = max(1, math.ceil(1.25 * needed_bytes / thresholds.GIB))
    return f"#DW jobdw type=scratch access_mode=striped capacity={capacity_gib}GiB"
