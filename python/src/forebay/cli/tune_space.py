"""What a tuning would try, on the terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from rich.console import Console

from forebay.tune.listener import PLACE_NAMES
from forebay.tune.model import Plan, described
from forebay.tune.tuning import Preview


def print_space(found: Sequence[Preview]) -> None:
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
        console.print("Settings, with what they are now:")
    else:
        console.print("There is no setting that may be tried.")
    for one in plan.parameters:
        now = one.default or "not known"
        console.print(f"  {one.name}: {now}; to try: {' '.join(one.values)}", soft_wrap=True)
        why = textwrap.wrap(f"{one.reason} ({one.source})", max(40, console.width - 6))
        console.print(textwrap.indent("\n".join(why), " " * 6), soft_wrap=True)
    if plan.guesses:
        console.print("Tried first:")
    for guess in plan.guesses:
        console.print(f"  {described(guess.configuration)}: {guess.reason}", soft_wrap=True)
    if plan.refusals:
        console.print("Not tried:")
    for refusal in plan.refusals:
        pattern = f"{refusal.pattern}: " if refusal.pattern else ""
        console.print(f"  {pattern}{refusal.setting}: {refusal.reason}", soft_wrap=True)
