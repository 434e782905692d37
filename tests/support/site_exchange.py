"""An MPI program on the four nodes of a site, whose ranks read what those of other nodes wrote."""

import json
import shutil

from support.mpi import PROJECT, Mpi


def exchange_over_four_nodes(batch, build, *directives):
    """Runs it as a job with these directives, to its end; its two files are staged out."""
    program = PROJECT / "tests" / "programs" / "nodes" / "exchange.c"
    shutil.copy(Mpi("openmpi", build).compiled("exchange", program), batch.directory / "exchange")
    rank = "read name </proc/sys/kernel/hostname; FOREBAY_BED_NODE=${name#n} exec ./exchange $DW_JOB_STRIPED/out/shared"
    mpirun = f"mpirun --map-by node -n 4 sh -c '{rank} 8 400000 1 posix collective'"
    body = f"export OMPI_MCA_mpi_yield_when_idle=1\nmkdir $DW_JOB_STRIPED/out\n{mpirun}"
    batch.script(body, *directives)
    job = batch.submit("--nodes=4", "--ntasks-per-node=1")
    assert batch.wait(job) == "COMPLETED", batch.stderr_text()
    exchanged = [json.loads(line) for line in batch.stdout_text().splitlines() if line.startswith("{")]
    assert exchanged and all(one["mismatches"] == 0 for one in exchanged), batch.stdout_text()
    assert all(one["bytes_of_other_nodes"] > 0 for one in exchanged), batch.stdout_text()
    batch.wait_until_freed(job)
    assert batch.arrived() == ["shared.collective", "shared.posix"]
