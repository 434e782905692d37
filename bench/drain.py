"""Drain while the job computes, against the same job with stage-out at its end only, on the emulated Lustre.

BTIO closes its file when it ends, so the job is a sequence of BTIO runs, as of a simulation that is continued from
its last output: each computes, and writes a file per process. Between two runs there is nothing but their start. How
much each computes is measured first, so that the whole job takes as long as its stage-out: half of the time is I/O.
"""

import os
import pathlib
import shutil
import statistics

from grid_kernels import LAUNCHING
from measure import Compared, Line, in_turn
from place import Place, last_object, succeeded

ROUNDS = 5
#: What the last run writes cannot be drained while the job computes.
RUNS = int(os.environ.get("DRAIN_RUNS") or 16)
DUMPS = 80 // RUNS
#: 1 leaves a processor to the system, as nodes of Summit did; 4 fill two.
RANKS = int(os.environ.get("DRAIN_RANKS") or 1)
BYTES = RUNS * DUMPS * 64**3 * 5 * 8
MODEL = pathlib.Path(__file__).resolve().parent.parent / "machines" / "lustre-small.toml"
#: Job times of more than this, and times until all is safe of less, were promised: with drain over without.
JOB_MOST, SAFE_MOST = 1.05, 0.70

SCRIPT = """set -e
mkdir "$DW_JOB_STRIPED/out"
for run in $(seq {runs}); do
  mkdir "$DW_JOB_STRIPED/out/$run"
  printf 'w\\n0\\n{dumps}\\n64 64 64\\n%s\\n' "$DW_JOB_STRIPED/out/$run" > "$DW_JOB_STRIPED/deck"
  mpiexec --oversubscribe -n {ranks} {btio} --variant epio --sweeps {sweeps} "$DW_JOB_STRIPED/deck"
done"""


def run(place: Place) -> list[Line]:
    with place.job() as job, place.in_shared_memory() as memory:
        ran = Ran(place, job, memory / "out")
        sweeps = ran.sweeps_for_half_the_time()
        ran.write(sweeps)
        a, b, again = in_turn(ROUNDS, ran.once, lambda: ran.once("--drain", "*"))
    what = f"BTIO, {RUNS} times {RANKS} files of {BYTES // RUNS // RANKS >> 20} MiB, {sweeps} sweeps"
    most = {"job": JOB_MOST, "all safe": SAFE_MOST}
    return [
        compared(f"{what}: {name}", [[times[number] for times in way] for way in (a, b, again)], most[name])
        for number, name in enumerate(most)
    ]


def compared(what: str, times: list[list[float]], most: float) -> Line:
    a, b, again = times
    ratio = statistics.median(y / x for x, y in zip(a, b))
    promise = f"at most {most:.2f}, is {ratio:.2f}"
    return Compared(what, "stage-out", "drain", "s", a, b, again, promise=promise, kept=ratio <= most)


class Ran:
    """The job, run with and without a drain."""

    def __init__(self, place: Place, job, out: pathlib.Path):
        self.place, self.job, self.out = place, job, out

    def write(self, sweeps: int) -> None:
        btio = self.place.build / "kernels" / "btio"
        body = SCRIPT.format(runs=RUNS, dumps=DUMPS, ranks=RANKS, btio=btio, sweeps=sweeps)
        dw = f"#DW jobdw type=scratch access_mode=striped capacity={2 * BYTES >> 20}MiB"
        stage_out = "#DW stage_out type=directory source=$DW_JOB_STRIPED/out destination="
        self.job.script(body, dw, f"{stage_out}{self.out}")

    def once(self, *options: str) -> tuple[float, float]:
        """Seconds of the job, and until all of its data are safe, both from its beginning."""
        told = self.account(*options)
        safe = told["drain"]["last_safe_s"] if told["drain"] else told["job_s"] + told["stage_out"]["seconds"]
        return told["job_s"], safe

    def account(self, *options: str) -> dict:
        shutil.rmtree(self.out, ignore_errors=True)
        emulated = ["--pfs-model", MODEL, "--pfs-root", self.out.parent]
        done = succeeded(self.job.run("--json", *emulated, *options, **LAUNCHING))
        told = last_object(done.stdout)
        arrived = [path.stat().st_size for path in self.out.rglob("*") if path.is_file()]
        if len(arrived) != RUNS * RANKS or sum(arrived) < BYTES:
            raise SystemExit(f"error: {len(arrived)} files arrived with {sum(arrived)} bytes: {done.stderr}")
        return told

    def sweeps_for_half_the_time(self) -> int:
        """How much is to be computed so that the job takes as long as its stage-out."""
        job_s = {}
        for sweeps in (1, 9):
            self.write(sweeps)
            told = self.account()
            job_s[sweeps] = told["job_s"]
        each_s = max((job_s[9] - job_s[1]) / 8, 0.001)
        return max(1, 1 + round((told["stage_out"]["seconds"] - job_s[1]) / each_s))
