"""Writes the figures of docs/explanation/planner.md: its tables, and a picture of each machine in docs/pictures.

Usage: tools/planner_page.py [--check]

The tables stand between comments in the page. With --check, only says whether they are as the planner has them.
"""

import math
import pathlib
import re
import statistics
import sys

import msgspec

from forebay.plan.band import band
from forebay.plan.calibration import Judged, cross_validate
from forebay.plan.cases import machine
from forebay.plan.model import predict
from forebay.plan.parameters import DESCRIPTIONS, fitted
from forebay.plan.pattern import Pattern, Settings
from forebay.plan.published import rows
from forebay.plan.unpredicted import UNPREDICTED
from forebay.report.planning import tables
from forebay.report.planning.page import calibration_charts

DOCS = pathlib.Path(__file__).resolve().parents[1] / "docs"
PAGE = DOCS / "explanation" / "planner.md"
#: Published figures that no fit and no choice of the model's structure used.
HELD_OUT = pathlib.Path(__file__).with_name("held_out.json")


class HeldOut(msgspec.Struct, frozen=True, kw_only=True):
    """A published figure that was not used, as a question to the planner."""

    place: str  # MACHINE.STORAGE
    what: str
    published: float
    unit: str  # GB/s or s
    source: str  # as in the page's list of sources
    pattern: Pattern
    settings: Settings

    @property
    def predicted(self) -> float:
        """In the published unit."""
        of, storage = self.place.split(".")
        found = predict(self.pattern, machine(of), machine(of).storage[storage], self.settings, fitted().parameters)
        return found.seconds if self.unit == "s" else found.bytes_per_s / 1e9

    @property
    def ratio(self) -> float:
        """Predicted over published."""
        return self.predicted / self.published

    @property
    def is_in_band(self) -> bool:
        """Whether the factor of the band, either way, holds the published figure."""
        of, storage = self.place.split(".")
        kind = machine(of).storage[storage].kind
        return abs(math.log(self.ratio)) <= math.log(band(kind, self.pattern, self.settings, fitted()).factor)


def held_out() -> list[HeldOut]:
    """All figures that were not used."""
    return msgspec.json.decode(HELD_OUT.read_bytes(), type=list[HeldOut])


def held_out_summary(found: list[HeldOut]) -> list[str]:
    """How good the model is on them."""
    errors = [abs(math.log(one.ratio)) for one in found]
    median = 100 * (math.exp(statistics.median(errors)) - 1)
    shares = [sum(error <= math.log(factor) for error in errors) for factor in (1.5, 2)]
    return [
        f"* median error {median:.0f} %; of {len(found)} figures, {shares[0]} are within a factor of 1.5 "
        f"and {shares[1]} within 2",
        f"* the factor of the band holds {sum(one.is_in_band for one in found)} of {len(found)}",
    ]


def held_out_table(found: list[HeldOut]) -> list[str]:
    """A row for each."""
    lines = ["| storage | what | published | predicted | ratio | in the band | source |", "|---" * 7 + "|"]
    return lines + [
        f"| {one.place} | {one.what} | {one.published:.4g} {one.unit} | {one.predicted:.4g} | {one.ratio:.2f} | "
        f"{'yes' if one.is_in_band else 'no'} | {one.source} |"
        for one in found
    ]


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
        "held out": held_out_table(held_out()),
        "held out summary": held_out_summary(held_out()),
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
