"""What a tuning would try, on the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from forebay.tune.model import Plan
from forebay.tune.running import described
from forebay.tune.telling import PLACE_NAMES
from forebay.tune.tuning import Looked


def print_space(found: Sequence[Looked]) -> None:
    """Settings with their values and reasons; what is not tried, and why; what would be tried first."""
    console = Console(highlight=False, markup=False, emoji=False)
    for looked in found:
        console.print(f"On {PLACE_NAMES[looked.place]}:", style="bold")
        if looked.verdict:
            console.print(looked.verdict.reason)
        if looked.plan:
            _print_plan(console, looked.plan)
        console.print()


def _print_plan(console: Console, plan: Plan) -> None:
    if plan.parameters:
        console.print(_parameters(plan))
    else:
        console.print("There is no setting that may be tried.")
    if plan.guesses:
        console.print("Tried first:")
    for guess in plan.guesses:
        console.print(f"  {described(guess.configuration)}: {guess.reason}", soft_wrap=True)
    if plan.refusals:
        console.print("Not tried:")
    for refusal in plan.refusals:
        pattern = f"{refusal.pattern}: " if refusal.pattern else ""
        console.print(f"  {pattern}{refusal.setting}: {refusal.reason}", soft_wrap=True)


def _parameters(plan: Plan) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0))
    for name in ("setting", "now", "values"):
        table.add_column(name, no_wrap=True)
    table.add_column("why")
    for one in plan.parameters:
        table.add_row(
            one.name, one.default or "not known", " ".join(one.values), f"{one.reason} ({one.source})"
        )
    return table
