"""A staging of one file that takes some seconds, so that a test can interrupt it."""

import contextlib
import os

from support.site_cluster import MIB, chown
from support.trees import named
from support.waiting import wait_until

SIZE = 12 * MIB
IN = "#DW stage_in type=file source=%d/big destination=$DW_JOB_STRIPED/big"
OUT = "#DW stage_out type=file source=$DW_JOB_STRIPED/big destination=%d/results/big"


def prepare(batch, size):
    content = os.urandom(size)
    (batch.directory / "big").write_bytes(content)
    batch.results.mkdir()
    chown(batch.results, batch.user)
    return content


def parts(directory):
    """Files of which a part is there; they get their names meanwhile."""
    found = []
    for path in named(directory, "*.part"):
        with contextlib.suppress(FileNotFoundError):
            if path.stat().st_size > 0:
                found.append(path)
    return found


def in_stage(batch, direction):
    """Waits until a part of the file is copied."""
    where = batch.cluster.top / "flash" / "slow" if direction == "in" else batch.results
    wait_until(lambda: parts(where), what=f"staging {direction}")


def arrives(batch, job, content):
    assert batch.wait(job) == "COMPLETED", (batch.reason(job), batch.log())
    batch.wait_until_freed(job)
    assert (batch.results / "big").read_bytes() == content
    assert batch.arrived() == ["big"] and batch.cluster.directories("slow") == []
