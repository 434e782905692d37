"""Studies as `forebay tune` writes them, with runs made up by a seeded cost model; records and scripts on request."""

import json
import math
import pathlib
import random

from forebay.tune.model import Guess, Machine, Pairing, Place, Plan, Refusal, Run, Verdict
from forebay.tune.study import Head, Study

from support.plans import parameter

CB_NODES = parameter(
    "*.out:cb_nodes", "1", "2", "4", ordered=True, default="1", source="MPICH, ROMIO users guide, 2.3",
    reason="1 of 4 ranks wrote 200 MiB of btio.full.out (aggregators_write = 1)",
)  # fmt: skip
STRIPES = parameter(
    "out:striping", "1 x 1 MiB", "4 x 1 MiB", "8 x 4 MiB", reason="8 targets, 1 stripe in use", source="Lustre manual, 19.2"
)  # fmt: skip
BUFFERING = parameter(
    "*.out:romio_cb_write", "enable", "disable", setting="romio_cb", default="automatic", reason="80 collective writes",
    source="ROMIO users guide",
)  # fmt: skip
PARAMETERS = (CB_NODES, STRIPES, BUFFERING)
BEST = {"*.out:cb_nodes": "4", "out:striping": "4 x 1 MiB"}
EFFECTS = {
    "*.out:cb_nodes=1": 1.05, "*.out:cb_nodes=2": 0.85, "*.out:cb_nodes=4": 0.8, "out:striping=1 x 1 MiB": 1.02,
    "out:striping=4 x 1 MiB": 0.9, "out:striping=8 x 4 MiB": 1.3, "*.out:romio_cb_write=disable": 2.4,
}  # fmt: skip
#: Of runs of a search, by their number in it, what makes them no fair ones.
SPOILT = {
    6: {"status": "failed", "reason": "its output is wrong: out/btio.full.out differs from byte 4096 on"},
    8: {"status": "contaminated", "reason": "others used 60 % of the processors", "foreign_cpu": 0.6},
}
WITHOUT_EFFECT = {"status": "ineffective", "reason": "1 rank wrote", "without_effect": [CB_NODES.name]}


def head(**members) -> Head:
    return Head(
        **{
            "script": "/home/ada/btio.sh", "script_digest": "0" * 64, "objective": "job", "started_unix_s": 1_700_000_000.0,
            "emulated": "lustre-small", "host": "node1", "seed": 7,
        }
        | members
    )  # fmt: skip


def plan(parameters=PARAMETERS, runs_max=30, nodes=1) -> Plan:
    return Plan(
        parameters=parameters,
        refusals=(
            Refusal(setting="cb_buffer_size", pattern="*.out", reason="ROMIO's Lustre driver takes the stripe size in its place"),
            Refusal(setting="HDF5 alignment", pattern=None, reason="no HDF5 file was written"),
        ),
        guesses=(Guess(configuration=BEST, reason="as many aggregators as ranks can keep busy"),),
        machine=Machine(ranks=4, nodes=nodes, mpi="Open MPI v4.1.4"),
        strategy="tpe", seed=7, runs_max=runs_max,
    )  # fmt: skip


def job_s(configuration: dict[str, str], default_s: float, noise: random.Random) -> float:
    factor = math.prod(EFFECTS.get(f"{k}={v}", 1.0) for k, v in configuration.items())
    return default_s * factor * math.exp(noise.gauss(0, 0.03))


class Writer:
    """Runs of a study, one after the other; `records` copies these directories for (default, other) runs."""

    def __init__(self, study: Study, records: tuple[pathlib.Path, pathlib.Path] | None = None) -> None:
        self.study, self.records, self.noise = study, records, random.Random(3)

    def run(self, place: Place, phase: str, configuration=None, default_s=1.62, **members) -> Run:
        configuration = configuration or {}
        number = len(self.study.runs) + 1
        spent_s = job_s(configuration, default_s, self.noise)
        counted = members.get("status", "ok") != "failed"
        told = {
            "status": "ok", "seconds": spent_s if counted else None, "job_s": spent_s, "io_s": 0.6 * spent_s,
            "record": f"runs/{number:04d}",
        } | members  # fmt: skip
        one = Run(number=number, place=place, phase=phase, configuration=configuration, **told)
        self._keep(one)
        self.study.append_run(one)
        return one

    def _keep(self, run: Run) -> None:
        directory = self.study.run_directory(run.number)
        directory.mkdir(parents=True)
        hints = ":".join(f"{k.split(':')[-1]}={v}" for k, v in run.configuration.items())
        added = f"export MPICH_MPIIO_HINTS='*.out:{hints}'\n" if hints else ""
        (directory / "script.sh").write_text(f"#!/bin/bash\n#SBATCH -n 4\n{added}srun ./btio deck.data\n")
        for file in self.records[bool(run.configuration)].iterdir() if self.records else ():
            (directory / file.name).write_bytes(file.read_bytes())

    def search(self, place: Place, runs: int, default_s=1.62) -> None:
        """A default, a guess, then runs of random settings with anchors, a failure and a disturbance in between."""
        self.run(place, "default", None, default_s, checked="the same bytes")
        self.study.append_plan(place, plan())
        self.run(place, "probe", BEST, default_s)
        for at in range(runs - 2):
            chosen = {one.name: self.noise.choice(one.values) for one in PARAMETERS if self.noise.random() < 0.7}
            if at % 5 == 4:
                self.run(place, "anchor", None, default_s)
            elif at == 11:
                self.run(place, "search", {CB_NODES.name: "1"}, default_s, **WITHOUT_EFFECT)
            else:
                self.run(place, "repeat" if at == 9 else "search", chosen, default_s, **SPOILT.get(at, {}))

    def final(self, place: Place, pairs: int, default_s=1.62, best=BEST) -> Pairing:
        """Default and best in turn; the pairing of what came out."""
        taken: list[tuple[float, float]] = []
        for _ in range(pairs):
            one, other = (self.run(place, "final", None, default_s), self.run(place, "final", best, default_s))
            taken.append((one.seconds, other.seconds))
        ratios = sorted(one / other for one, other in taken)
        return Pairing(
            pairs=pairs, ratio=ratios[pairs // 2], low=ratios[0], high=ratios[-1], confidence=0.95,
            default_s=sorted(one for one, _ in taken)[pairs // 2], tuned_s=sorted(other for _, other in taken)[pairs // 2],
        )  # fmt: skip


def whole(directory: pathlib.Path, records=None, runs: int = 20, **members) -> Study:
    """Both places: on the file system the best is proven, with the burst buffer the default is kept."""
    study = Study.create(directory, head(**members))
    writer = Writer(study, records)
    writer.search("file-system", runs)
    proof = writer.final("file-system", 6)
    study.append_verdict("file-system", Verdict(recommended=BEST, reason="the interval lies above 1", pairing=proof))
    writer.search("burst-buffer", runs // 2, 0.62)
    near = writer.final("burst-buffer", 4, 0.62, {BUFFERING.name: "enable"})
    kept = Verdict(
        recommended={}, reason="the best that was tried is not shown to be quicker than the default", pairing=near
    )
    study.append_verdict("burst-buffer", kept)
    study.append_end("done", "each place has its verdict")
    return study


def torn(directory: pathlib.Path) -> None:
    """As a killed tuner leaves it: half of a line at the end."""
    with (directory / "study.jsonl").open("a") as file:
        file.write(json.dumps({"run": {"number": 9999, "place": "file-"}})[:30])
