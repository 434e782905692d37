"""What a log with very many records costs: no work is done for each record that each rank, or each file, can share."""

import subprocess
import sys

from darshan.log_utils import get_log_path

from forebay.profiles import darshan_log
from forebay.profiles.darshan_messages import Binned, Module
from forebay.profiles.darshan_ranks import RankAttribution
from support.raw_logs import raw_log

COUNTED = """import sys
from forebay.profiles import darshan_worker
calls, real = [], darshan_worker._bytes_until
darshan_worker._bytes_until = lambda *arguments: calls.append(1) or real(*arguments)
modules = [module for module in darshan_worker.log(sys.argv[1]).modules.values() if module.traced]
for module in modules:
    moved = [sum(getattr(one, way).bytes for one in module.traced) for way in ("read", "write")]
    assert moved == [sum(sum(getattr(one, way)) for one in module.binned) for way in ("read", "write")]
print(len(calls), sum(len(module.traced) for module in modules), sum(len(module.binned) for module in modules))
"""


def test_trace_is_binned_once_for_each_rank_and_direction(tmp_path):
    command = [sys.executable, "-c", COUNTED, get_log_path("dxt.darshan")]
    with (tmp_path / "messages").open("w+") as messages:  # the reader looks back into it
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=messages, text=True, timeout=300)
    assert done.returncode == 0, (tmp_path / "messages").read_text()
    calls, records, ranks = map(int, done.stdout.split())
    assert records > 2 * ranks and 0 < calls <= 2 * ranks


class Once(list):
    """A list that is gone through at most once."""

    walks = 0

    def __iter__(self):
        self.walks += 1
        assert self.walks <= 1
        return super().__iter__()


def test_heat_map_is_listed_for_the_file_that_it_accounts_for_only():
    sizes = [1000] * 50 + [4000]
    files = [("POSIX", f"/lus/m{n}", -1, {"READS": 4, "BYTES_READ": size}) for n, size in enumerate(sizes)]
    raw = raw_log(*files)
    raw.modules["HEATMAP"] = Module(1, False, binned=[Binned("POSIX", n, 1.0, [1000], [0]) for n in range(4)])
    found = {
        file.path: file.layers["POSIX"].read.ranks for file in darshan_log.profile("/nowhere", raw).programs[0].files
    }
    assert found == {f"/lus/m{n}": 4 if size == 4000 else None for n, size in enumerate(sizes)}
    who = RankAttribution(raw)
    who.heated["POSIX", "read"] = (4000, Once(who.heated["POSIX", "read"][1]))
    for file in darshan_log.profile("/nowhere", raw_log(*files)).programs[0].files:
        who.fill(file, 0, {})
