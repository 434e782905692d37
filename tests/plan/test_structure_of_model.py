"""What limits a transfer, where published figures that no fit used showed it; and the ends of each range."""

import importlib.util
import itertools
import math
import pathlib

import msgspec
import pytest

from forebay.plan import cases
from forebay.plan.band import band
from forebay.plan.parameters import fitted
from forebay.plan.pattern import Pattern, Settings

PARAMETERS = fitted().parameters
PLACES = ["cori1.lustre", "cori1.datawarp", "shaheen2.datawarp", "summit.alpine", "xe6.lustre"]
KIB, MIB = 1 << 10, 1 << 20
PAGE = pathlib.Path(__file__).resolve().parents[2] / "tools" / "planner_page.py"


def of(access="independent", **changes):
    values = {"ranks": 1024, "nodes": 32, "total_bytes": 64e9, "transfer_bytes": 1e6} | changes
    files = values["ranks"] if access == "file-per-process" else 1
    return Pattern(access=access, **{"files": files} | values)


def run(place, pattern, **settings):
    return cases.run(PARAMETERS, place, pattern, **settings)


def held_out():
    spec = importlib.util.spec_from_file_location("planner_page", PAGE)
    page = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(page)
    return page.held_out()


def test_figures_that_were_not_used_have_a_source_and_most_are_in_the_band():
    found = held_out()
    assert len({(one.place, one.what, one.pattern.direction) for one in found}) == len(found) > 30
    assert all(one.source and one.published > 0 for one in found)
    assert sum(one.is_in_band for one in found) >= 0.9 * len(found)
    assert sum(0.5 <= one.ratio <= 2 for one in found) >= 0.85 * len(found)


def test_processes_of_one_node_write_a_lustre_file_in_turn():
    one = run("cori1.lustre", of(ranks=1, nodes=1), servers=32)
    many = run("cori1.lustre", of(ranks=32, nodes=1), servers=32)
    nodes = run("cori1.lustre", of(ranks=32, nodes=32), servers=32)
    assert many.storage_s == pytest.approx(one.storage_s, rel=0.01)
    assert nodes.storage_s < one.storage_s / 8
    read = [run("cori1.lustre", of(direction="read", ranks=ranks, nodes=1), servers=32) for ranks in (1, 32)]
    assert read[1].storage_s < read[0].storage_s


@pytest.mark.parametrize(
    ("settings", "is_alone"),
    [
        ({"servers": 8, "aggregators": 8}, True),
        ({"servers": 8, "aggregators": 4}, True),
        ({"servers": 8, "aggregators": 1, "cb_align": 0}, True),
        ({"servers": 8, "aggregators": 6}, False),
        ({"servers": 8, "aggregators": 16}, False),
        ({"servers": 8, "aggregators": 8, "cb_align": 1}, False),
    ],
)
@pytest.mark.parametrize(("place", "lock"), [("cori1.lustre", "lustre_lock_s"), ("cori1.datawarp", "flash_lock_s")])
def test_a_server_with_one_aggregator_takes_no_locks(place, lock, settings, is_alone):
    slow = msgspec.structs.replace(PARAMETERS, **{lock: 1.0})
    usual, locked = (cases.run(one, place, of("collective"), **settings).storage_s for one in (PARAMETERS, slow))
    assert (locked == usual) is is_alone


def test_a_lock_covers_all_that_a_call_writes_to_an_ost():
    slow = msgspec.structs.replace(PARAMETERS, lustre_lock_s=1.0)

    def time(mib, stripe_mib):
        pattern = of(transfer_bytes=mib * MIB)
        return cases.run(slow, "cori1.lustre", pattern, servers=32, stripe_bytes=stripe_mib * MIB).storage_s

    assert time(8, 8) == pytest.approx(time(1, 8) / 8, rel=0.05)
    assert time(8, 1) == pytest.approx(time(1, 1), rel=0.05)


def test_one_writer_sends_lustre_a_mebibyte_at_a_time():
    small, large = (of("serial", ranks=1, nodes=1, transfer_bytes=mib * MIB) for mib in (1, 64))
    assert run("cori1.lustre", large, servers=1).storage_s == run("cori1.lustre", small, servers=1).storage_s
    assert run("cori1.datawarp", large, servers=1).storage_s < run("cori1.datawarp", small, servers=1).storage_s


def test_independent_opening_of_a_wide_file_does_not_multiply_ranks_by_stripes():
    wide = run("cori1.lustre", of(ranks=30720, nodes=960), servers=248)
    narrow = run("cori1.lustre", of(ranks=30720, nodes=960), servers=1)
    assert wide.open_s < 1.5 * narrow.open_s


def test_a_process_waits_for_each_of_its_openings():
    many = of("file-per-process", ranks=2, nodes=1, total_bytes=8e6, transfer_bytes=4.0, files=2_000_000)
    assert run("summit.alpine", many, servers=154).open_s > 1_000_000 * 100e-6
    few = of("file-per-process", ranks=1000, nodes=100, total_bytes=8e6, transfer_bytes=4.0, files=2_000_000)
    assert run("summit.alpine", few, servers=154).open_s < run("summit.alpine", many, servers=154).open_s / 50


@pytest.mark.parametrize("place", ["cori1.datawarp", "summit.alpine"])
def test_interleaved_records_are_in_a_window_of_as_many_stripes(place):
    record = {"transfer_bytes": 47008.0, "is_interleaved": True, "direction": "read", "total_bytes": 64e9}
    few = [run(place, of(ranks=64, nodes=32, **record), servers=servers) for servers in (4, 128)]
    assert few[1].storage_s == pytest.approx(few[0].storage_s, rel=0.35)
    many = [run(place, of(ranks=64000, nodes=1000, **record), servers=servers) for servers in (4, 128)]
    assert many[1].storage_s < many[0].storage_s / 8


def test_spectrum_scale_gathers_a_block():
    small, large = (of("file-per-process", transfer_bytes=size, ranks=10, nodes=10) for size in (4.0 * KIB, 16.0 * MIB))
    assert run("summit.alpine", small, servers=154).storage_s == run("summit.alpine", large, servers=154).storage_s


def test_band_is_wider_for_interleaved_records_and_for_many_files():
    settings = Settings(servers=144, stripe_bytes=8 * MIB)
    plain, mixed = (band("datawarp", of(is_interleaved=one), settings, fitted()) for one in (False, True))
    assert mixed.factor == pytest.approx(1.5 * plain.factor)
    assert any("next to each other" in note for note in mixed.notes)
    files = band("datawarp", of("file-per-process", files=1_000_000), settings, fitted())
    assert any(note.startswith("files 1,000,000") for note in files.notes)


ENDS = list(itertools.product(PLACES, ("serial", "file-per-process", "independent", "collective"), ("write", "read")))


@pytest.mark.parametrize(("place", "access", "direction"), ENDS)
def test_more_data_are_never_faster_at_any_size_of_job(place, access, direction):
    for (ranks, nodes), transfer in itertools.product([(1, 1), (7, 2), (100_000, 1500)], (1.0, 47008.0, 16.0 * MIB)):
        times = [
            run(
                place,
                of(access, direction=direction, ranks=ranks, nodes=nodes, total_bytes=size, transfer_bytes=min(transfer, size)),
                servers=100,
                aggregators=min(100, ranks),
            ).seconds
            for size in (1.0, 1e3, 1e6, 1e9, 1e12, 1e15)
        ]  # fmt: skip
        assert all(math.isfinite(time) and time > 0 for time in times)
        assert times == sorted(times), (ranks, transfer)


@pytest.mark.parametrize("place", PLACES)
def test_more_servers_never_slow_down_a_large_collective_write(place):
    large = of("collective", ranks=4096, nodes=128, total_bytes=1e13, transfer_bytes=16.0 * MIB)
    times = [run(place, large, servers=servers, aggregators=128).seconds for servers in (1, 2, 4, 8, 16, 32, 64)]
    assert all(more <= fewer * 1.01 for fewer, more in itertools.pairwise(times))


def test_ten_jobs_take_at_most_ten_times_as_long():
    for place in PLACES:
        alone, ten = (run(place, of("file-per-process"), servers=16, jobs=jobs) for jobs in (1, 10))
        assert alone.storage_s < ten.storage_s <= 10 * alone.storage_s * 1.001
