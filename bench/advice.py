"""How much of what the advice says is true, and how much of what is true it says, on the labelled cases; Drishti's too.

Notes do not count. Drishti has other findings: `MEANS` has those of ours that each of its own may stand for, with the
most favourable reading, and a finding of its own that stands for none is wrong. Its levels INFO and OK do not count.
"""

import csv
import os
import pathlib
import subprocess
import sys
import tempfile
import venv
from collections import Counter

from forebay.advice.advise import findings
from forebay.profiles import sources
from support.labelled.cases import CASES
from support.labelled.judge import Score

DRISHTI = "drishti-io==0.8"
DRISHTI_SECONDS_MAX = 300
SMALL = {
    "small-independent",
    "independent-pieces",
    "collective-buffering-off",
    "small-collective",
    "small-calls",
    "single-rank-mpiio",
    "many-small-files",
}
BALANCE = {"straggler", "one-rank", "slow-target"}
#: Drishti's HIGH and WARN -> ours.
MEANS = {
    "S01": set(),
    "P05": SMALL,
    "P06": SMALL,
    "P07": set(),
    "P08": {"not-aligned", "data-sieving"},
    "P09": {"read-again"},
    "P10": {"data-sieving"},
    "P11": {"small-calls", "small-independent"},
    "P13": {"small-calls", "small-independent"},
    "P15": SMALL,
    "P16": SMALL,
    "P17": {"metadata-heavy", "stat-storm", "blocked-open", "many-small-files", "import-storm", "opened-by-all"},
    "P18": BALANCE,
    "P19": BALANCE,
    "P21": BALANCE,
    "P22": BALANCE,
    "M01": set(),
    "M02": {"small-independent", "independent-pieces", "data-sieving", "single-rank-mpiio"},
    "M03": {"small-independent", "independent-pieces", "data-sieving", "single-rank-mpiio"},
    "M06": set(),
    "M07": set(),
    "M09": set(),
}
HEAD = ["finding", "precision", "recall", "held out: precision", "recall", "Drishti: recall"]


def drishti_program(build):
    """Drishti in an environment of its own; None, and why, if it cannot be had."""
    home = build / "bench" / "drishti"
    program = home / "bin" / "drishti"
    if not program.exists():
        venv.create(home, with_pip=True)
        done = subprocess.run([home / "bin" / "pip", "install", "--quiet", DRISHTI], capture_output=True, text=True)
        if done.returncode != 0:
            return None, (done.stderr.strip().splitlines() or ["pip failed"])[-1]
    return program, ""


def drishti_codes(program, log, folder):
    """What it says of a log; nothing if it fails on it."""
    command = [program, "--csv", "--export_dir", folder, log]
    # Its own packages, not those of this interpreter.
    alone = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(command, capture_output=True, timeout=DRISHTI_SECONDS_MAX, env=alone, cwd=folder)
    table = folder / f"{log.stem}.csv"
    if done.returncode != 0 or not table.exists():
        return None
    with table.open() as file:
        (row,) = csv.DictReader(file)
    return {code for code in MEANS if row.get(code) == "True"}


class DrishtiScore:
    """Its findings, right or wrong; and ours that they found."""

    def __init__(self):
        self.right, self.wrong, self.failed, self.score = Counter(), Counter(), [], Score()

    def add(self, case, said):
        if said is None:
            self.failed.append(case.name)
            said = set()
        true = case.told | case.also
        self.right.update(code for code in said if MEANS[code] & true)
        self.wrong.update(code for code in said if not MEANS[code] & true)
        self.score.add(case, {ours for code in said for ours in MEANS[code] & true})


def percent(share):
    return "-" if share is None else f"{100 * share:.0f} %"


def line(name, code, whole, held_out, drishti):
    shares = [whole.precision(code), whole.recall(code), held_out.precision(code), held_out.recall(code)]
    return [name, *map(percent, [*shares, drishti.score.recall(code) if drishti else None])]


def table(rows):
    widths = [max(len(row[column]) for row in [HEAD, *rows]) for column in range(len(HEAD))]
    cells = lambda row: "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths)) + " |"
    return "\n".join([cells(HEAD), cells(["-" * width for width in widths]), *map(cells, rows)])


def main() -> int:
    whole, held_out = Score(), Score()
    program, reason = drishti_program(pathlib.Path(os.environ["FOREBAY_BUILD"]))
    drishti = DrishtiScore() if program else None
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for case in CASES:
            log = case.log(folder)
            said = {one.code for one in findings(sources.open_path(log)) if one.level != "note"}
            for score in [whole, held_out] if case.kind == "held out" else [whole]:
                score.add(case, said)
            if drishti:
                drishti.add(case, drishti_codes(program, log, folder))
    rows = [line(code, code, whole, held_out, drishti) for code in whole.codes()]
    print(table([*rows, line("all", None, whole, held_out, drishti)]))
    kinds = {kind: sum(case.kind == kind for case in CASES) for kind in ("genuine", "chosen", "held out")}
    healthy = sum(not case.told for case in CASES)
    print(f"\n{len(CASES)} cases: {', '.join(f'{count} {kind}' for kind, count in kinds.items())}; {healthy} healthy")
    for failure in whole.failures:
        print(f"not as labelled: {failure}")
    if drishti is None:
        print(f"Drishti ({DRISHTI}) could not be installed: {reason}")
        return 0
    right, said = drishti.right.total(), drishti.right.total() + drishti.wrong.total()
    print(f"Drishti ({DRISHTI}): {right} of {said} findings are right ({percent(right / said)})")
    print("of the others: " + ", ".join(f"{count} {code}" for code, count in drishti.wrong.most_common()))
    if drishti.failed:
        print(f"Drishti failed on {', '.join(drishti.failed)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
