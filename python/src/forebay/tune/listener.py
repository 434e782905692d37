"""What the tuner tells while it works. It prints nothing itself."""

from __future__ import annotations

from typing import Protocol

from forebay.tune.model import Place, Run, Step

#: As one says it to the user.
PLACE_NAMES: dict[Place, str] = {"file-system": "the file system", "burst-buffer": "the burst buffer"}


class Listener(Protocol):
    """Hears how far the tuning is."""

    def notify(self, text: str) -> None:
        """One sentence for the user."""

    def storage_started(self, place: Place) -> None:
        """From here on runs are those of this place."""

    def run_started(self, number: int, of: int, step: Step) -> None:
        """Run `number` of this place's at most `of`."""

    def run_ended(self, run: Run, ratio: float | None, best: float | None) -> None:
        """Its time, and the shortest until now, relative to the default's."""
