"""What Forebay adds to a job that does nothing: start, allocation, view, end."""

import statistics

from support.job import DW
from measure import Compared, Line, in_turn
from place import Place, seconds

ROUNDS = 15
PROMISED_S = 0.150


def run(place: Place) -> list[Line]:
    with place.job() as job:
        scripts = {"with #DW jobdw, in memory": [DW], "without directives": []}
        return [compared(place, job, name, directives) for name, directives in scripts.items()]


def compared(place: Place, job, name: str, directives: list[str]) -> Line:
    job.script("true", *directives)
    (job.directory / "job.sh").chmod(0o755)
    alone = lambda: seconds(job, "./job.sh") * 1000
    through = lambda: seconds(job, place.forebay, "run", "job.sh") * 1000
    alone(), through()
    a, b, again = in_turn(ROUNDS, alone, through)
    extra_ms = statistics.median(through - alone for alone, through in zip(a, b))
    promise = f"< {PROMISED_S * 1000:.0f} ms more, is {extra_ms:.0f} ms"
    return Compared(
        f"trivial job, {name}",
        "script",
        "forebay run",
        "ms",
        a,
        b,
        again,
        promise=promise,
        kept=extra_ms < PROMISED_S * 1000,
    )
