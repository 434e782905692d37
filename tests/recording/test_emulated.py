"""Together with the emulated parallel file system, in both orders of LD_PRELOAD."""

import json

import pytest

from support.mpi import PROJECT, only_file

LUSTRE = PROJECT / "machines" / "lustre-small.toml"
DUMPS, DUMP_BYTES = 3, 48**3 * 5 * 8
TARGET_BYTES_PER_S = 62.5e6  # of one target in lustre-small; the default layout has one
BOTH = {"ours-first": "$OURS:$LD_PRELOAD", "ours-last": "$LD_PRELOAD:$OURS"}


@pytest.mark.parametrize("order", BOTH)
def test_both_preload_orders_count_alike_and_one_includes_the_delays(job, openmpi, build, order):
    data = job.directory / "data"
    data.mkdir()
    (job.directory / "deck").write_text(f"w\n0\n{DUMPS}\n48 48 48\n{data}\n")
    report = job.directory / "report.json"
    job.script(
        "export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1\n"
        f"OURS={openmpi.library}\n"
        f"LD_PRELOAD={BOTH[order]} FOREBAY_MPI_STATS={str(report)!r} mpiexec -n 4 {build}/kernels/btio --sweeps 0 deck"
    )
    # A recorded job has the library in front already.
    done = job.run("--no-profile", "--json", "--pfs-model", str(LUSTRE), "--pfs-root", str(data))
    assert done.returncode == 0, done.stderr
    emulated = json.loads(done.stdout)["emulated"]["counters"]
    file = only_file(json.loads(report.read_text()))
    assert file["write"]["system_calls"] == 3
    assert file["write"]["system_bytes"] == emulated["bytes_written"] == DUMPS * DUMP_BYTES
    assert (file["stripe_count"], file["stripe_bytes"]) == (1, 1 << 20), "the layout of the emulated file"
    if order == "ours-first":
        assert file["seconds"]["sum"]["write"]["data"] >= 0.9 * DUMPS * DUMP_BYTES / TARGET_BYTES_PER_S
        assert "LD_PRELOAD" not in done.stderr
    else:
        assert "the emulation stands before this library in LD_PRELOAD" in done.stderr
