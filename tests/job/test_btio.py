"""The example: what was staged out is what the program writes without Forebay."""

import os
import pathlib
import shutil
import subprocess

import pytest

EXAMPLE = pathlib.Path(__file__).resolve().parents[2] / "examples" / "btio"
SIZE = 40 * 64**3 * 20


@pytest.mark.soak
def test_btio_output_equals_that_of_a_run_without_forebay(build, job):
    example = job.directory.parent / "btio"
    shutil.copytree(EXAMPLE, example, ignore=shutil.ignore_patterns("out", "btio"))
    shutil.copy(build / "kernels" / "btio", example)
    done = subprocess.run(
        [job.forebay, "run", "btio.sh"], cwd=example, env=job.environment(), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert '"verified":true' in done.stdout.replace(" ", "")

    plain = example / "plain"
    plain.mkdir()
    (example / "plain.data").write_text((example / "inputbt.data").read_text() + f"{plain}\n")
    alone = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    command = ["mpiexec", "--oversubscribe", "-n", "4", "./btio", "plain.data"]
    subprocess.run(command, cwd=example, env=os.environ | alone, check=True, capture_output=True)

    staged, written = example / "out" / "btio.full.out", plain / "btio.full.out"
    assert staged.stat().st_size == written.stat().st_size == SIZE
    with open(staged, "rb") as a, open(written, "rb") as b:
        while block := a.read(8 << 20):
            assert block == b.read(8 << 20)
    assert sorted(path.name for path in (example / "out").iterdir()) == ["btio.full.out"]
