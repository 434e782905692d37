"""How far a tuning is: a moving line on a terminal, one line a run otherwise."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Column

from forebay.tune.listener import PLACE_NAMES
from forebay.tune.model import Place, Run, Step, described

_STATUS = {
    "failed": "failed",
    "ineffective": "without effect",
    "contaminated": "disturbed, to be repeated",
}


class Lines:
    """One line for each run."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.number = 0
        self.step: Step | None = None

    def notify(self, text: str) -> None:
        """One sentence for the user."""
        self._print(f"forebay: {text}")

    def storage_started(self, place: Place) -> None:
        """From here on runs are those of this place."""
        self._print(f"forebay: on {PLACE_NAMES[place]}")

    def run_started(self, number: int, of: int, step: Step) -> None:
        """Remembers the step; the line follows when the run has ended."""
        self.number, self.of, self.step = number, of, step

    def run_ended(self, run: Run, ratio: float | None, best: float | None) -> None:
        """What was tried, how it went, the best until now."""
        kind = f"{run.phase}, replay" if run.replay else run.phase
        what = f"forebay: run {self.number} of {self.of} ({kind}): {described(run.configuration)}"
        said = [f"{what}: {_result(run)}"]
        if ratio is not None and run.configuration:
            said.append(f"{ratio:.2f} of the default")
        if best is not None:
            said.append(f"best so far {best:.2f}")
        self._print(", ".join(said))

    def _print(self, text: str) -> None:
        self.console.print(text, soft_wrap=True)


class Bar(Lines):
    """The same lines, and below them what is being run."""

    def __init__(self, console: Console, moving: Progress) -> None:
        super().__init__(console)
        self.moving = moving
        self.task = moving.add_task("", total=None)

    def run_started(self, number: int, of: int, step: Step) -> None:
        """Shows what is tried, and why."""
        super().run_started(number, of, step)
        tried = f"{described(step.configuration)}: {step.reason}" if step.configuration else step.reason
        self.moving.update(self.task, completed=number - 1, total=of, description=tried)


def _result(run: Run) -> str:
    seconds = f"I/O {run.io_s:.2f} s, " if run.io_s is not None else ""
    took = f"{seconds}{'replay' if run.replay else 'job'} {run.job_s:.2f} s" if run.job_s is not None else ""
    if run.status == "ok":
        return took
    why = f" ({run.reason})" if run.reason else ""
    return f"{_STATUS[run.status]}{why}" + (f", {took}" if run.status != "failed" and took else "")


@contextmanager
def progress() -> Iterator[Lines]:
    """A listener that tells on standard error."""
    console = Console(stderr=True, highlight=False, markup=False, emoji=False)
    if not console.is_terminal:
        yield Lines(console)
        return
    # What is tried has the room that is left: a long one must not push the numbers away.
    tried = TextColumn("{task.description}", table_column=Column(ratio=1, no_wrap=True, overflow="ellipsis"))
    columns = (MofNCompleteColumn(), BarColumn(bar_width=20), TimeElapsedColumn(), tried)
    with Progress(*columns, console=console, transient=True, expand=True) as moving:
        yield Bar(console, moving)
