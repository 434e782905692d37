"""Precision and recall of what a report says, by finding."""

from collections import Counter
from dataclasses import dataclass, field


@dataclass
class Score:
    """Counts of findings, by code."""

    right: Counter = field(default_factory=Counter)  # said, and true
    wrong: Counter = field(default_factory=Counter)  # said, and not true
    found: Counter = field(default_factory=Counter)  # to be said, and said
    missed: Counter = field(default_factory=Counter)  # to be said, and not said
    failures: list[str] = field(default_factory=list)

    def add(self, case, said):
        """`said`: codes of the findings that are more than notes."""
        self.right.update(said & (case.expected | case.also))
        self.wrong.update(said - case.expected - case.also)
        self.found.update(said & case.expected)
        self.missed.update(case.expected - said)
        if said - case.expected - case.also or case.expected - said:
            self.failures.append(f"{case.name}: said {sorted(said)}, true is {sorted(case.expected)}")

    def codes(self):
        return sorted({*self.right, *self.wrong, *self.found, *self.missed})

    def precision(self, code=None):
        """Of all findings, or of one; None if nothing was said."""
        return _share(self.right, self.wrong, code)

    def recall(self, code=None):
        """Of what was to be said; None if that was nothing."""
        return _share(self.found, self.missed, code)


def _share(good, bad, code):
    number, others = (good.total(), bad.total()) if code is None else (good[code], bad[code])
    return number / (number + others) if number + others else None
