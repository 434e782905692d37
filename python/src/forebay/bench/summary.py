"""The text files of a result, in the layout of IO500."""

from __future__ import annotations

from datetime import datetime

from forebay.bench.result import Io500, PhaseResult

MARK = "reduced, not an official submission"
MARK_WITH_PROGRAMS = "not an official submission"


def version_line(run: Io500) -> str:
    """The first line of result_summary.txt: what made the result, and that it is no submission."""
    mark = MARK if run.reduced else MARK_WITH_PROGRAMS
    return f"IO500 version forebay-{run.version} ({mark})"


def phase_line(phase: PhaseResult) -> str:
    """`[RESULT]       ior-easy-write      352.803032 GiB/s : time 386.698 seconds`."""
    head = "RESULT" if phase.scored else "      "
    end = " [INVALID]" if phase.invalid_because else ""
    score = f"{phase.score:15.6f}"
    return f"[{head}] {phase.name:>20} {score} {phase.unit} : time {phase.time_s:.3f} seconds{end}"


def score_line(run: Io500) -> str:
    """The last line."""
    scores, end = run.scores, "" if run.valid else " [INVALID]"
    return (
        f"[SCORE ] Bandwidth {scores.bandwidth_gib_per_s:.6f} GiB/s : IOPS {scores.metadata_kiops:.6f} kiops"
        f" : TOTAL {scores.total:.6f}{end}"
    )


def summary(run: Io500) -> str:
    """result_summary.txt."""
    return "\n".join([version_line(run), *map(phase_line, run.phases), score_line(run), ""])


def _moment(unix_s: float) -> str:
    return datetime.fromtimestamp(unix_s).strftime("%F %T")


def details(run: Io500) -> str:
    """result.txt: INI, a section for each phase. It has no hash: only the program of IO500 signs a result."""
    mode = MARK if run.reduced else MARK_WITH_PROGRAMS
    lines = ["[run]", f"procs = {run.ranks}", f"version = forebay-{run.version}", f"mode = {mode}", ""]
    for phase in run.phases:
        lines += [f"[{phase.name}]", f"t_start = {_moment(phase.started_unix_s)}", f"exe = {phase.command}"]
        if phase.name == "find":
            lines += [f"found = {phase.found}", f"total-files = {phase.operations}"]
        lines += [f"; {why}" for why in phase.invalid_because]
        lines += [f"score = {phase.score:.6f}", f"t_delta = {phase.time_s:.4f}"]
        lines += [f"t_end = {_moment(phase.started_unix_s + phase.time_s)}", ""]
    scores = run.scores
    lines += ["[SCORE]", f"MD = {scores.metadata_kiops:.6f}", f"BW = {scores.bandwidth_gib_per_s:.6f}"]
    return "\n".join([*lines, f"SCORE = {scores.total:.6f}{'' if run.valid else ' [INVALID]'}", ""])


def configuration(run: Io500, limits: dict[str, int]) -> str:
    """config.ini: the parameters in force, by the names of IO500. `limits`: of each rank, by folder."""
    lines = ["[global]", f"datadir = {run.directory}", "api = POSIX", "drop-caches = FALSE", ""]
    lines += ["[debug]", f"stonewall-time = {run.stonewall_s}", ""]
    lines += [
        "[ior-easy]",
        "transferSize = 2m",
        f"blockSize = {2 * limits['ior-easy']}m",
        "filePerProc = TRUE",
        "",
    ]
    lines += ["[ior-hard]", f"segmentCount = {limits['ior-hard']}", "collective = FALSE", ""]
    for folder in ("mdtest-easy", "mdtest-hard"):
        lines += [f"[{folder}]", f"n = {limits[folder]}", ""]
    return "\n".join(lines)
