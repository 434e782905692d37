"""Arithmetic that has one right answer: published counts come out to the digit, and laws hold for all numbers."""

import json
import pathlib
import random
from fractions import Fraction

import pytest

from forebay.plan import collective, striping
from forebay.plan.allocation import Pool, place
from forebay.plan.errors import PlanError

DATA = pathlib.Path(__file__).resolve().parents[2] / "python" / "src" / "forebay" / "plan" / "data"
PUBLISHED = {row["id"]: row for row in json.loads((DATA / "exact.json").read_text())}
GIB, TIB = 1 << 30, 1 << 40
SHAHEEN = Pool(name="shaheen2", nodes=268, granularity_bytes=368 * GIB, node_capacity_bytes=int(Fraction("5.82") * TIB))
CORI = Pool(name="cori", nodes=144, granularity_bytes=218 * 10**9)
#: The score of IO-500, and the bandwidths that go into it: `forebay bench io500` has them.
IO500 = {f"S2-0{number}" for number in range(21, 29)}
#: Figures that contradict another row or whose rule is not published, with the reason.
NOT_DERIVED = {
    "S2-034": "the row calls itself a schematic; the printed hints of S2-035 say one aggregator a node",
    "S0-051": "the rule of the average write gap is not published",
    "S0-056": "the rule of the average write gap is not published",
}


def btio(unit):
    """BTIO with PnetCDF: 10 dumps of 16 collective calls; a header, and the number of records after each dump."""
    dump = 1024 * 512 * 256 * 5 * 8
    return collective.system_calls([(160, dump // 16)], unit, independent=(11, 332))


def statistics(row):
    """Counts of a WRF file from its total, its average and its stripe-sized calls, as the row has them."""
    config = PUBLISHED[row]["config"]
    total = config["total_bytes"]
    calls = collective.calls_of_average(total, config["ave_system_size"])
    return collective.SystemCalls(system_calls=calls, stripe_sized=config["stripe_sized"], total_bytes=total)


def wrf_rows():
    """Three rows of each of six files: calls, average, stripe-sized calls."""
    for first in range(98, 116, 3):
        rows = [f"S0-{number:03d}" for number in range(first, first + 3)]
        yield rows[0], statistics(rows[0]).system_calls
        yield rows[1], statistics(rows[1]).average_bytes
        yield rows[2], statistics(rows[2]).stripe_sized


DERIVED = {
    "S0-015": round(float(SHAHEEN.granules_per_node_exact), 2),
    "S0-016": SHAHEEN.usable_per_node_bytes / TIB,
    "S0-017": SHAHEEN.allocate(60 * TIB).nodes,
    "S0-018": round(SHAHEEN.capacity_without_doubling_bytes / TIB, 2),
    "S0-019": SHAHEEN.capacity_for(64) // GIB,
    "S0-020": SHAHEEN.allocate(600 * GIB).granted_bytes // GIB,
    "S0-023": striping.aggregators_default("lustre", ranks=1216, nodes=152, servers=1),
    "S0-024": striping.aggregators_default("lustre", ranks=1216, nodes=152, servers=144),
    "S0-025": striping.aggregator_ranks(144, ranks=1216, nodes=152)[1],
    "S0-034": striping.divisors(5297)[-1],
    "S0-036": collective.repeated_reads(5297, 17310596)[0],
    "S0-037": 5 * 5297,
    "S0-048": btio(8 << 20).system_calls,
    "S0-049": btio(8 << 20).stripe_sized,
    "S0-050": btio(8 << 20).average_bytes,
    "S0-053": btio(1 << 20).system_calls,
    "S0-054": btio(1 << 20).stripe_sized,
    "S0-055": btio(1 << 20).average_bytes,
    "S0-057": btio(1 << 20).total_bytes,
    "S0-116": round(statistics("S0-098").stripe_sized_percent, 2),
    "S0-117": round(statistics("S0-101").stripe_sized_percent, 2),
    "S0-118": round(statistics("S0-107").stripe_sized_percent),
    "S0-119": round(statistics("S0-110").stripe_sized_percent, 1),
    "S0-120": round(statistics("S0-113").stripe_sized_percent),
    "S2-035": striping.aggregators_default("spectrum-scale", ranks=256, nodes=16, servers=154),
    "S3-007": CORI.allocate(1000 * 10**9).nodes,
    **dict(wrf_rows()),
}


@pytest.mark.parametrize("row", sorted(DERIVED))
def test_published_count_comes_out_to_the_digit(row):
    assert DERIVED[row] == PUBLISHED[row]["value"], PUBLISHED[row]


def test_every_published_count_is_derived_or_named():
    assert set(DERIVED) | IO500 | set(NOT_DERIVED) == set(PUBLISHED)


def test_aggregators_are_the_published_ranks():
    ranks = striping.aggregator_ranks(144, ranks=1216, nodes=152)
    assert (ranks[0], ranks[1], ranks[143], len(ranks)) == (0, 8, 1144, 144)


def test_collective_calls_are_calls_of_all_ranks():
    assert collective.collective_calls(256, 16 * 10) == 40960
    assert collective.collective_calls(1280, 412) == 527360


def test_capacity_and_nodes_are_inverse_for_every_pool():
    random.seed(1)
    for _ in range(2000):
        pool = Pool(name="p", nodes=random.randint(1, 400), granularity_bytes=random.randint(1, 1 << 45))
        nodes = random.randint(1, pool.nodes)
        capacity = pool.capacity_for(nodes)
        assert pool.allocate(capacity).nodes == nodes
        assert pool.allocate(capacity).granted_bytes == capacity
        assert not pool.allocate(capacity).is_doubled
        assert pool.allocate(capacity - pool.granularity_bytes + 1).nodes == nodes


def test_grant_holds_the_request_and_wastes_less_than_a_granule():
    random.seed(2)
    for _ in range(2000):
        pool = Pool(name="p", nodes=random.randint(1, 300), granularity_bytes=random.randint(1, 1 << 40))
        request = random.randint(1, pool.granularity_bytes * pool.nodes * 3)
        got = pool.allocate(request)
        assert 0 <= got.granted_bytes - request < pool.granularity_bytes
        assert got.is_doubled == (got.granted_bytes > pool.capacity_without_doubling_bytes)
        even = got.granules_per_node_max * got.nodes
        assert (
            got.granules == even if not got.nodes_with_more else got.granules == even - got.nodes + got.nodes_with_more
        )


def test_huge_capacities_are_exact():
    pool = Pool(name="p", nodes=7, granularity_bytes=10**18 + 1)
    assert pool.allocate(3 * (10**18 + 1)).nodes == 3
    assert pool.allocate(3 * (10**18 + 1) + 1).nodes == 4


def test_three_jobs_of_64_nodes_use_192_and_share_none():
    placed = place(SHAHEEN, [SHAHEEN.capacity_for(64)] * 3)
    assert (placed.in_use, placed.shared) == (192, 0)
    assert placed.sharers(0) == []


def test_fifth_job_of_64_nodes_shares_with_the_first():
    placed = place(SHAHEEN, [SHAHEEN.capacity_for(64)] * 5)
    assert placed.in_use == 268 and placed.shared == 5 * 64 - 268
    assert placed.sharers(4) == [0] and placed.sharers(0) == [4]


def test_allocation_larger_than_the_pool_takes_the_first_nodes_twice():
    got = SHAHEEN.allocate(SHAHEEN.capacity_without_doubling_bytes + 1)
    assert got.is_doubled and got.nodes == 268 and got.nodes_with_more == 1 and got.granules_per_node_max == 2
    assert place(SHAHEEN, [got.requested_bytes]).nodes_of_job[0].count(0) == 2


def test_full_nodes_are_skipped_and_a_full_pool_is_refused():
    pool = Pool(name="p", nodes=3, granularity_bytes=10, node_capacity_bytes=10)
    assert place(pool, [20, 10]).nodes_of_job == [[0, 1], [2]]
    with pytest.raises(PlanError, match="job 3 needs 1 granule, and 0 are free"):
        place(pool, [20, 10, 1])


def test_more_granules_than_can_be_placed_are_refused():
    pool = Pool(name="p", nodes=10**6, granularity_bytes=1)
    with pytest.raises(PlanError, match="too many to place"):
        place(pool, [10**9])


@pytest.mark.parametrize("capacity", [0, -5])
def test_no_capacity_is_refused(capacity):
    with pytest.raises(PlanError, match="capacity"):
        SHAHEEN.allocate(capacity)


def test_capacity_beyond_the_machine_is_refused_with_its_size():
    with pytest.raises(PlanError, match="268 storage nodes") as refused:
        SHAHEEN.allocate(2 * 1024 * TIB)
    assert refused.value.hint
    with pytest.raises(PlanError, match="the pool has 268"):
        SHAHEEN.capacity_for(269)


def test_balanced_aggregators_obey_both_rules_and_none_is_missed():
    random.seed(3)
    for _ in range(300):
        ranks, servers = random.randint(1, 3000), random.randint(1, 80)
        counts = set(striping.aggregator_counts(ranks, servers))
        for count in range(1, ranks + 1):
            is_balanced = ranks % count == 0 and count % servers == 0 and ranks >= 2 * count
            assert (count in counts) == (is_balanced and count <= 128 * servers), (ranks, servers, count)


def test_unbalanced_counts_are_named_with_their_neighbours():
    (first,) = striping.imbalance(1024, 100, 4)
    assert first == "100 aggregators do not divide 1024 ranks: choose 64 or 128"
    assert striping.imbalance(1024, 128, 4) == []
    assert "3 storage nodes do not divide 64 aggregators" in striping.imbalance(1024, 64, 3)[0]


@pytest.mark.parametrize(
    ("files", "targets", "processes", "stripes"),
    [(4, 8, 64, 2), (1, 108, 64, 64), (1, 108, 1024, 108), (500, 240, 500, 1), (1, 504, 4096, 160), (3, 8, 9, 2)],
)
def test_lustre_stripe_count_follows_the_three_rules(files, targets, processes, stripes):
    assert striping.lustre_stripe_count(files, targets, processes, 160) == stripes


def test_system_calls_scale_as_the_stripes_do():
    random.seed(4)
    for _ in range(1000):
        unit, count, size = random.randint(1, 1 << 24), random.randint(1, 500), random.randint(0, 1 << 32)
        got = collective.system_calls([(count, size), (1, 1)], unit)
        assert got.system_calls == count * sum(1 for _ in range(0, min(size, unit * 50), unit)) + 1 or size > unit * 50
        assert got.stripe_sized <= got.system_calls and got.total_bytes == count * size + 1
        assert got.system_calls * unit >= got.total_bytes > (got.stripe_sized - 1) * unit
    assert btio(1 << 20).stripe_sized == 8 * btio(8 << 20).stripe_sized


@pytest.mark.parametrize(
    "call",
    [
        lambda: striping.check_ranks(0, 1),
        lambda: striping.check_ranks(4, 8),
        lambda: striping.aggregator_ranks(9, ranks=8, nodes=1),
        lambda: striping.lustre_stripe_count(0, 8, 8, 160),
        lambda: collective.system_calls([(1, 8)], 0),
        lambda: collective.system_calls([], 8),
        lambda: collective.system_calls([(-1, 8)], 8),
        lambda: collective.calls_of_average(8, 0),
    ],
)
def test_impossible_numbers_are_refused_with_a_remedy(call):
    with pytest.raises(PlanError) as refused:
        call()
    assert refused.value.hint
