"""The system calls of BTIO's ranks on the files of a directory, one by one, as strace saw them."""

import collections
import os
import pathlib
import re
import subprocess

# Runs in a job and without one alike: all it needs is a directory in DW_JOB_STRIPED. What starts the
# program is not looked at: strace stands between the launcher and the program.
# The deck names the directory, whose name has another length, so it lies elsewhere.
SCRIPT = """mkdir "${DW_JOB_STRIPED}out"
{ cat deck; echo "${DW_JOB_STRIPED}out"; } > deck.data
mpiexec -n 4 ./rank.sh deck.data
echo "data in $DW_JOB_STRIPED"
"""
RANK = """#!/bin/bash
exec strace -ff -y -s 0 -e trace=%file,%desc -o "$TRACES/$OMPI_COMM_WORLD_RANK" "$BTIO" --sync --sweeps 0 "$1"
"""
WITHOUT_FOREBAY = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
}


class Traced:
    """BTIO in a submit directory, traced."""

    def __init__(self, job, btio: pathlib.Path, dumps: int, points: int):
        self.job = job
        self.traces = job.directory.parent / "traces"
        self.more = {"TRACES": str(self.traces), "BTIO": str(btio)}
        (job.directory / "deck").write_text(f"w\n0\n{dumps}\n{points} {points} {points}\n")
        rank = job.directory / "rank.sh"
        rank.write_text(RANK)
        rank.chmod(0o755)

    def through_forebay(self, *directives: str, options: tuple[str, ...] = ()) -> dict[int, list[str]]:
        self.traces.mkdir()
        self.job.script(SCRIPT, *directives)
        return self._calls(self.job.run(*options, **self.more))

    def bare(self, directory: pathlib.Path) -> dict[int, list[str]]:
        self.traces.mkdir()
        directory.mkdir()
        self.job.script(SCRIPT)
        environment = self.job.environment(**self.more, **WITHOUT_FOREBAY, DW_JOB_STRIPED=f"{directory}/")
        return self._calls(
            subprocess.run(
                ["bash", "-e", "job.sh"], cwd=self.job.directory, env=environment, capture_output=True, text=True
            )
        )

    def _calls(self, done: subprocess.CompletedProcess) -> dict[int, list[str]]:
        assert done.returncode == 0, done.stderr
        (directory,) = re.findall(r"^data in (.*)/$", done.stdout, re.MULTILINE)
        calls = collections.defaultdict(list)
        for trace in sorted(self.traces.iterdir()):
            rank = int(trace.name.split(".")[0])
            for line in trace.read_text().splitlines():
                if directory in line:
                    calls[rank].append(plain(line, directory))
            os.unlink(trace)
        self.traces.rmdir()
        return dict(calls)


def plain(line: str, directory: str) -> str:
    """A call without what differs from run to run: numbers of files, addresses, free space."""
    line = line.replace(directory, "STORE")
    line = re.sub(r"\b\d+<", "<", line)
    line = re.sub(r"0x[0-9a-f]+", "ADDRESS", line)
    return re.sub(r"(f_type=\w+).*\}", r"\1}", line)


def names(calls: list[str]) -> collections.Counter:
    return collections.Counter(call.split("(")[0] for call in calls)
