"""Lists of past jobs: our own columns, those of sacct, and what cannot be read."""

import json

import pytest

from forebay.simulate.errors import SimulationError
from forebay.simulate.past_jobs import read_past_jobs
from forebay.simulate.site import Past

GIB = 1 << 30


@pytest.fixture
def read(tmp_path):
    def of(text, **shares):
        path = tmp_path / "jobs"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return read_past_jobs(path, Past(**shares))

    return of


def test_own_columns_in_any_order_with_units(read):
    found = read(
        "io,nodes,run_s,submit_s,capacity,stage_in,stage_out,limit_s,comment\n"
        "3GiB,4,600,1000,10GiB,1GiB,2147483648,1200,ours\n"
        "0,1,60,400,,,,,x\n"
    )
    of = found.jobs
    assert of.submit_s.tolist() == [0, 600]  # sorted, from the first one on
    assert of.nodes.tolist() == [1, 4] and of.run_s.tolist() == [60, 600] and of.limit_s.tolist() == [60, 1200]
    assert of.capacity_bytes.tolist() == [0, 10 * GIB] and of.stage_in_bytes.tolist() == [0, GIB]
    assert of.stage_out_bytes.tolist() == [0, 2 * GIB] and of.io_bytes.tolist() == [0, 3 * GIB]
    assert (found.left_out, found.stages) == (0, True)


SACCT = """JobID|Submit|NNodes|ElapsedRaw|Elapsed|Timelimit|AllocTRES|State
11|2024-05-01T12:00:00|4|7200|02:00:00|1-00:00:00|billing=4,bb/datawarp=400G,cpu=4,node=4|COMPLETED
11.batch|2024-05-01T12:00:00|1|7200|02:00:00||cpu=1|COMPLETED
12|2024-05-01T12:30:00|1|30|00:00:30|UNLIMITED|cpu=1|TIMEOUT
13|2024-05-01T12:31:00|1|0|00:00:00|01:00:00||PENDING
14|Unknown|1|10|00:00:10|01:00:00||FAILED
15|2024-05-01T13:00:00|2|10|00:00:10|01:00:00|bb/a=2T,bb/b=20000M,mem=4G|COMPLETED
"""


def test_table_of_sacct_is_read_without_steps_and_jobs_that_did_not_run(read):
    found = read(SACCT, stage_in_share=0.5, stage_out_share=0.25)
    of = found.jobs
    assert of.submit_s.tolist() == [0, 1800, 3600] and of.run_s.tolist() == [7200, 30, 10]
    assert of.limit_s.tolist() == [86400, 30, 3600]
    assert of.capacity_bytes.tolist() == [400 * GIB, 0, (2 << 40) + (20000 << 20)]
    assert of.stage_in_bytes[0] == 200 * GIB and of.stage_out_bytes[0] == 100 * GIB
    assert found.left_out == 2 and not found.stages
    assert found.reasons[0].startswith("line 5: ") and found.reasons[1].startswith("line 6: column 2 (submit): ")


def test_json_of_sacct_is_read(read):
    def job(submission, nodes, elapsed, limit, **more):
        times = {"submission": submission, "elapsed": elapsed, "limit": limit}
        return {"time": times, "allocation_nodes": nodes} | more

    tres = {"allocated": [{"type": "cpu", "count": 9}, {"type": "bb", "name": "datawarp", "count": 2048}]}
    jobs = [
        job(100, 2, 60, {"set": True, "infinite": False, "number": 5}, tres=tres),
        job(50, {"set": True, "number": 1}, 10, {"set": True, "infinite": True, "number": 0}),
        job(50, 0, 10, 5),
        {"no": "job"},
        None,
        "text",
    ]
    found = read(json.dumps({"meta": {}, "jobs": jobs}))
    assert found.jobs.nodes.tolist() == [1, 2] and found.jobs.limit_s.tolist() == [10, 300]
    assert found.jobs.capacity_bytes.tolist() == [0, 2 * GIB]
    assert found.left_out == 4 and found.reasons[0].startswith("job 3: ") and len(found.reasons) == 3


@pytest.mark.parametrize(
    "row",
    ["nan,1,5", "1,inf,5", "-1,1,5", "1,1,-5", "1,0,5", "1,1,0", "1,1", "x,1,5", "1,1e400,5", ",,", "\x1b[31m,1,1"],
)
def test_row_that_cannot_be_played_is_left_out_and_named(read, row):
    found = read(f"submit_s,nodes,run_s\n{row}\n7,1,5\n")
    assert found.jobs.run_s.tolist() == [5] and found.left_out == 1
    (reason,) = found.reasons
    assert reason.startswith("line 2: ") and reason.isprintable()


def test_first_faults_are_named_with_line_and_column(read):
    found = read('comment,submit_s,nodes,run_s\n"two\nlines",1,2,3\n,x,1,1\n,1,2,\n,1,1,1e400\n,y,1,1\n')
    assert found.left_out == 4 and len(found.jobs) == 1
    assert [reason.partition(": ")[:1][0] for reason in found.reasons] == ["line 4", "line 5", "line 6"]
    assert "column 2 (submit_s): could not convert string to float: 'x'" in found.reasons[0]
    assert found.reasons[1].endswith("column 4 (run_s): it is empty")


@pytest.mark.parametrize(
    "text, message",
    [
        ("", "line 1: no column gives submit_s or nodes or run_s"),
        ("a,b,c\n1,2,3\n", "no column gives submit_s"),
        ("submit_s,nodes\n1,1\n", "no column gives run_s"),
        ("submit_s,nodes,run_s\n", "no job can be played"),
        ("submit_s,nodes,run_s\nx,1,1\n", "jobs: no job can be played .line 2: column 1 .submit_s.: could not convert"),
        ("{", "not what `sacct --json` prints"),
        ('{"jobs": 3}', "not what `sacct --json` prints"),
        ('{"jobs": []}', "no job can be played"),
        ("{" * 100_000, "not what `sacct --json` prints"),
        (b"\xff\xfe\x00,\n", "no column gives"),
    ],
)
def test_list_without_jobs_is_refused(read, text, message):
    with pytest.raises(SimulationError, match=message):
        read(text)


def test_missing_list_is_refused(tmp_path):
    with pytest.raises(SimulationError, match="missing: cannot be read: No such file"):
        read_past_jobs(tmp_path / "missing", Past())
    with pytest.raises(SimulationError, match="cannot be read: Is a directory"):
        read_past_jobs(tmp_path, Past())


def test_number_of_nodes_beyond_all_machines_is_rejected_by_the_play_not_by_the_reader(read):
    assert read("submit_s,nodes,run_s\n1,1e300,5\n").jobs.nodes[0] == 10_000_000
