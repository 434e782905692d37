"""Simulates the members of an ensemble, then analyses them: python pipeline.py [MEMBERS] [SECONDS]"""

import sys
from pathlib import Path

import parsl
from parsl.config import Config
from parsl.data_provider.files import File
from parsl.executors import HighThroughputExecutor
from parsl.providers import LocalProvider

import forebay

STEPS = Path(__file__).resolve().parents[1] / "steps"
ATTEMPTS = 5


@parsl.python_app
def step(script, *arguments, cwd, inputs=(), outputs=(), **options):
    """Runs a job script in the directory `cwd`. After exit code 123 it repeats the stage-out, not the job."""
    import os
    import subprocess
    import time

    import forebay

    try:
        return forebay.run(script, *arguments, cwd=cwd, **options)
    except forebay.JobError as error:
        if error.result.exit_code != 123:
            raise
        for pause_s in os.environ.get("PAUSES_S", "10 60 300").split():
            time.sleep(int(pause_s))
            if subprocess.run(["forebay", "clean", error.result.run_id]).returncode == 0:
                return error.result
        raise


def cost_of_retry(error, task):
    """Retries a step that its time limit ended, since it resumes. Any other failure costs all attempts."""
    timed_out = isinstance(error, forebay.JobError) and error.result.exit_code == 124
    return 1 if timed_out else ATTEMPTS


def main(members=2, seconds=60):
    """Runs the pipeline in the current directory."""
    here = Path.cwd()
    results = []
    for member in range(1, members + 1):
        # A directory for each member, because %d of the directives is the directory in which the job starts.
        folder = here / "members" / str(member)
        (folder / "checkpoint").mkdir(parents=True, exist_ok=True)
        result = File(str(folder / "result" / f"heat-{member}.txt"))
        simulated = step(
            STEPS / "simulate.sh",
            STEPS / "simulate.py",
            member,
            cwd=folder,
            time=f"0:0:{seconds}",
            outputs=[result],
        )
        results += simulated.outputs
    lines = [f'"{result.filepath}" $DW_JOB_STRIPED/members/\n' for result in results]
    (here / "inputs.list").write_text("".join(lines))
    analysed = step(STEPS / "analyse.sh", STEPS / "analyse.py", cwd=here, inputs=results)
    print(f"summary.csv: {analysed.result().stage_out.bytes} bytes")


if __name__ == "__main__":
    workers = HighThroughputExecutor(
        address="127.0.0.1", max_workers_per_node=2, provider=LocalProvider(init_blocks=1, max_blocks=1)
    )
    with parsl.load(Config(executors=[workers], retries=ATTEMPTS - 1, retry_handler=cost_of_retry)):
        main(*map(int, sys.argv[1:]))
