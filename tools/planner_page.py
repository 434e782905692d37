"""Writes the figures of docs/explanation/planner.md: its tables, and a picture of each machine in docs/pictures.

Usage: tools/planner_page.py [--check]

The tables stand between comments in the page. With --check, only says whether they are as the planner has them.
"""

import pathlib
import re
import sys

from forebay.plan.calibration import Judged, cross_validate
from forebay.plan.parameters import DESCRIPTIONS, fitted
from forebay.plan.published import rows
from forebay.plan.unpredicted import UNPREDICTED
from forebay.report.planning import tables
from forebay.report.planning.page import calibration_charts

DOCS = pathlib.Path(__file__).resolve().parents[1] / "docs"
PAGE = DOCS / "explanation" / "planner.md"


def parameters() -> list[str]:
    """A row for each parameter."""
    lines = ["| parameter | value | prior | meaning |", "|---|---|---|---|"]
    for name, one in DESCRIPTIONS.items():
        value = f"{getattr(fitted().parameters, name):.3g} {one.unit}".removesuffix(" 1")
        prior = f"{one.prior:.3g}, within a factor of {one.factor:g}: {one.source}"
        lines.append(f"| `{name}` | {value} | {prior} | {one.meaning} |")
    return lines


def summary(judged: list[Judged]) -> list[str]:
    """How good the model is."""
    return [f"* {text}" for text in tables.summary(judged)]


def figures(judged: list[Judged]) -> list[str]:
    """A row for each published figure."""
    table = tables.calibration(judged)
    lines = ["| " + " | ".join(column.name for column in table.columns) + " |", "|---" * len(table.columns) + "|"]
    return lines + ["| " + " | ".join(cell.text for cell in row) + " |" for row in table.rows]


def unpredicted() -> list[str]:
    """The rows without a prediction, by reason."""
    reasons: dict[str, list[str]] = {}
    for row, reason in UNPREDICTED.items():
        reasons.setdefault(reason, []).append(row)
    lines = ["| reason | rows |", "|---|---|"]
    return lines + [f"| {reason} | {', '.join(found)} |" for reason, found in reasons.items()]


def filled(page: str, judged: list[Judged]) -> str:
    """The page with its tables."""
    parts = {
        "parameters": parameters(),
        "summary": summary(judged),
        "figures": figures(judged),
        "unpredicted": unpredicted(),
    }
    for name, lines in parts.items():
        pattern = re.compile(rf"(<!-- {name} -->\n).*?(<!-- end -->)", re.DOTALL)
        text = "\n".join(lines)
        page = pattern.sub(lambda found, text=text: f"{found[1]}\n{text}\n\n{found[2]}", page)
    return page


def main(is_check: bool) -> int:
    """Returns the exit code."""
    judged = cross_validate(rows(), fitted().parameters)
    old = PAGE.read_text()
    new = filled(old, judged)
    if is_check:
        if new != old:
            print(f"error: {PAGE} is not as the planner has it", file=sys.stderr)
            print("hint: tools/planner_page.py writes it", file=sys.stderr)
        return int(new != old)
    PAGE.write_text(new)
    for chart in calibration_charts(judged):
        name = re.sub(r"[^a-z0-9]+", "-", chart.title.partition(" (")[0].partition("/")[0].lower()).strip("-")
        (DOCS / "pictures" / f"planner-{name}.svg").write_text(chart.on_paper())
    return 0


if __name__ == "__main__":
    sys.exit(main("--check" in sys.argv[1:]))
