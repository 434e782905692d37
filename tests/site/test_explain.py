"""What `forebay why` says in states that last too short for a test with Slurm."""

import msgspec
import pytest

from forebay.site.explain import explain
from forebay.site.facts import Allocation, Facts, Holder, Job, Node, OnNode, Pool, Progress, Site, Staging

NOW_S = 1000


def on_node(name, **changed):
    none = {"next_try_unix_s": None, "silent_since_unix_s": None}
    return OnNode(**({"node": name, "progress": None, "failures": 0} | none | changed))


def facts(state, phase=None, reason="None", problem=None, online=None, pool=None, wanted_bytes=0, **staging):
    job = Job(id="7", token="7", state=state, user="ada", start="N/A", reason=reason, stage="x", directives="#DW")
    running = None
    if staging:
        seen_unix_s = staging.pop("seen_unix_s", 999)
        node = on_node("n1", **staging)
        running = Staging(direction="Out", since_unix_s=900, seen_unix_s=seen_unix_s, full_nodes=[], nodes=[node])
    nodes = [Node(name="n1", is_online=online, is_delivered=False)]
    allocation = phase and Allocation(
        user="ada", pool="flash", capacity_bytes=1 << 30, phase=phase, is_on_nodes=False, nodes=nodes, in_the_way=[],
        has_problem=problem is not None, has_stage_out=True, staging=running,
    )  # fmt: skip
    site = Site(allocation=allocation, pools=[pool] if pool else [])
    return Facts(job=job, site=site, pool=pool, wanted_bytes=wanted_bytes, ends={}, problem=problem)


WAITING = Progress(is_waiting=True, files=0, bytes=0, bytes_done=0)
HALF = Progress(is_waiting=False, files=2, bytes=2048, bytes_done=1024)
SMALL = Pool(
    name="flash",
    granularity_bytes=1 << 30,
    quantity=2,
    free=2,
    user_bytes_max=1 << 30,
    is_drained=False,
    allocations=[],
)


@pytest.mark.parametrize(
    "known, state, text, step",
    [
        (facts("STAGE_OUT", "staging-out", failures=2), "staging out", "That failed 2 times; Forebay tries", "look at"),
        (facts("STAGE_OUT", "staging-out", progress=WAITING), "staging out", "waits for its turn to be", None),
        (facts("STAGE_OUT", "staging-out", progress=HALF), "staging out", "1 KiB of 2 KiB in 2 files are copied (50 %)", None),
        (facts("STAGE_OUT", "staging-out", progress=HALF, seen_unix_s=500), "staging out", "That was 8 min 20 s ago", None),
        (facts("STAGE_OUT", "removing"), "being freed", "its results are delivered", None),
        (facts("PENDING", "creating", online=False), "waits for node", "n1, which does not answer", "tell the site"),
        (
            facts("PENDING", "waiting", "BurstBufferStageIn", pool=SMALL),
            "waits for space", "waits for 1 GiB: a user may have 1 GiB of the pool flash.", "wait until one of them ends",
        ),
        (facts("PENDING", "staging-out", "BeginTime", progress=HALF), "staging out", "earlier run come first. Job 7", None),
        (facts("PENDING", "running", "BeginTime"), "staging out", "in the queue again; the results of its earlier run", None),
        (facts("PENDING", "removing", "BeginTime", online=False), "waits for node", "of its earlier run is removed", "tell"),
        (
            facts("PENDING", "staged-out", "burst_buffer/datawarp: dws_data_out: n2 is silent; start it"),
            "being freed", "The results of its earlier run are delivered.", "if this stays so: scancel 7",
        ),
        (
            facts("PENDING", "staged-out", "BurstBufferResources"),
            "being freed", "The results of its earlier run are delivered.", "if this stays so: scancel 7, and submit",
        ),
        (facts("PENDING", "removing", "BurstBufferResources"), "being freed", "until the allocation of its earlier run is freed", None),
        (facts("PENDING", "staged-in", "Priority"), "waits for Slurm", "waits for Slurm: Priority.", None),
        (facts("PENDING", "staged-in", "BeginTime", problem="n2: down"), "waits for node", "n2: down", "scontrol show job 7"),
        (
            facts("PENDING", None, "Burst buffer pre_run error"),
            "held", "could not start, since not all of its nodes", "correct what SystemComment in scontrol show job 7 says",
        ),
        (
            facts("PENDING", None, "burst_buffer/lua: slurm_bb_setup: no room; ask for less"),
            "held", "is held: no room.", "ask for less; then scancel 7",
        ),
        (
            facts("PENDING", "staging-out", "burst_buffer/datawarp: dws_data_out: n2 is silent; start it"),
            "held", "is held: n2 is silent.", "start it; after the results are delivered, scancel 7,",
        ),
        (
            facts("PENDING", None, "BurstBufferResources", pool=SMALL, wanted_bytes=5 << 30),
            "waits for space", "needs 5 GiB", "ask for at most capacity=2GiB",
        ),
        (facts("COMPLETED", "removing", problem="files of others"), "being freed", "files of others", "ask the site"),
        (facts("CANCELLED"), "ended", "(CANCELLED), and its burst buffer is freed", None),
    ],
)  # fmt: skip
def test_each_state_has_its_paragraph_and_step(known, state, text, step):
    told = explain(known, NOW_S)
    assert told.state == state and text in told.paragraph, told
    assert (told.next_step or "").startswith(step) if step else told.next_step is None, told


def of_nodes(state, phase, direction, *nodes, full=(), in_the_way=(), problem=None, online=True):
    """Of a job with its own part on each of three nodes; the nodes given have not completed the staging."""
    known = facts(state, phase, problem=problem)
    staging = Staging(direction=direction, since_unix_s=900, seen_unix_s=999, full_nodes=list(full), nodes=list(nodes))
    allocation = msgspec.structs.replace(
        known.site.allocation, is_on_nodes=True, in_the_way=list(in_the_way), staging=staging if direction else None,
        nodes=[Node(name=f"n{number}", is_online=online, is_delivered=False) for number in (1, 2, 3)],
    )  # fmt: skip
    return msgspec.structs.replace(known, site=Site(allocation=allocation, pools=[]), ends={"5": "noon"})


HOLDER = Holder(token="5", user="grace", capacity_bytes=1 << 30, phase="staging-out")


@pytest.mark.parametrize(
    "known, state, text",
    [
        (
            of_nodes("CONFIGURING", "staged-in", "In", full=["n2"], in_the_way=[HOLDER]), "waits for space",
            "starts when the node has room for its burst buffer: n2. "
            "The largest allocations there are 5 of grace (1 GiB, ends by noon).",
        ),
        (
            of_nodes("CONFIGURING", "staged-in", "In", on_node("n1", progress=HALF), on_node("n2", progress=HALF)),
            "staging in", "is staged in on n1, n2: 2 KiB of 4 KiB in 4 files are copied (50 %). 1 of 3 nodes are done.",
        ),
        (
            of_nodes("CONFIGURING", "ready", "In", on_node("n3", silent_since_unix_s=940)), "waits for node",
            "waits for the node n3, which does not answer: the data are staged in there (silent for 60 s)",
        ),
        (of_nodes("CONFIGURING", "staged-in", None), "running", "has its burst buffer"),
        (
            of_nodes("STAGE_OUT", "staging-out", "Out", *(on_node(f"n{n}", silent_since_unix_s=990) for n in (1, 3))),
            "waits for node", "waits for the nodes n1, n3, which do not answer",
        ),
        (
            of_nodes("STAGE_OUT", "staging-out", "Out", on_node("n1", progress=HALF), on_node("n2", failures=2)),
            "staging out", "That failed 2 times on n2; Forebay tries again.",
        ),
        (
            of_nodes("COMPLETED", "removing", None, problem="n1: down", online=False), "waits for node",
            "waits for the nodes n1, n2, n3, which do not answer: its allocation is removed there",
        ),
    ],
)  # fmt: skip
def test_job_in_a_pool_of_the_nodes_is_told_which_nodes(known, state, text):
    told = explain(known, NOW_S)
    assert told.state == state and text in told.paragraph, told


def test_site_that_does_not_answer_is_named():
    known = facts("PENDING", None, "BurstBufferResources")
    told = explain(Facts(job=known.job, site=None, pool=None, wanted_bytes=0, ends={}, problem=None), NOW_S)
    assert told.state == "waits for Slurm" and "BurstBufferResources" in told.paragraph and told.next_step
