"""Advice: right where something is wrong, silent where nothing is."""

import re

import pytest
from support import record_data
from support.advice_data import GOOD, GOOD_SYSTEM, codes, local, only, profile_of, shared
from forebay.advice.advise import findings, paragraph
from forebay.advice.hint_lines import file_pattern, hints_line
from forebay.quantities import size
from forebay.profiles import record_reader
from forebay.profiles.machine import read_machine
from forebay.profiles.model import Collective, Hints, Job, WithoutEffect, Writer
from support.mpi import PROJECT


def test_good_collective_writes_by_enough_aggregators_get_no_advice():
    writers = [Writer(rank=n, bytes=1 << 30, calls=64, aggregator=True) for n in range(4)]
    collective = Collective(aggregators_write=4, active=[0, 0, 0, 16], rmw_calls=0, rmw_bytes=0)
    assert findings(profile_of(shared(write=GOOD, system=GOOD_SYSTEM, collective=collective, writers=writers))) == []


@pytest.mark.parametrize(
    "ranks, hosts, now, proposed",
    [
        (16, 1, 1, 4),
        (1024, 32, 32, 128),
        (1280, 40, 40, 160),
        (6, 1, 1, 3),
        (4, 1, 1, 2),
        (7, 1, 1, None),
        (3, 1, 1, None),
    ],
)
def test_suggested_aggregators_divide_the_ranks(ranks, hosts, now, proposed):
    file = shared(write=GOOD, system=GOOD_SYSTEM, ranks=ranks, collective=Collective(aggregators_write=now))
    found = findings(profile_of(file, ranks=ranks, hosts=hosts))
    if proposed is None:
        assert found == []
    else:
        assert f":cb_nodes={proposed}:cb_config_list=#*:*#" in found[0].lines[0]
        assert ranks % proposed == 0


def test_data_sieving_is_found():
    write = {"calls": 960, "independent": 960, "bytes": 13 << 20, "seconds": 160.0, "slowest_rank_s": 50.0}
    system = {"calls": 96, "bytes": 50 << 20}
    collective = Collective(aggregators_write=0, rmw_calls=96, rmw_bytes=37 << 20)
    found = only(profile_of(shared(write=write, system=system, collective=collective)), "data-sieving")
    assert "romio_ds_write=disable" in found.lines[0]
    assert found.seconds == 50.0


def holes(reads, calls, factor, **members):
    """16 ranks write 4 GiB by collective calls; of the system's reads, each returns nothing."""
    system = {"calls": calls, "bytes": int(factor * (4 << 30)), "seconds": 160.0}
    collective = Collective(aggregators_write=4, rmw_calls=reads, rmw_bytes=0, rmw_s=600.0)
    return shared(write=GOOD, system=system, collective=collective, stripe_bytes=1 << 20, **members)


def test_reads_of_holes_are_data_sieving():
    found = only(profile_of(holes(16_000, 16_000, 3.9)), "data-sieving")
    assert "16,000 reads in order to write; 4 GiB became 15.6 GiB" in found.title
    assert "romio_ds_write=disable" in found.lines[0] and "striping_unit" not in found.lines[0]


@pytest.mark.parametrize(("reads", "factor"), [(16_000, 1.0), (10, 3.9), (0, 3.9)])
def test_few_reads_or_no_amplification_are_no_sieving_of_holes(reads, factor):
    assert "data-sieving" not in codes(profile_of(holes(reads, 16_000, factor)))


def test_hint_that_is_in_force_is_not_proposed():
    hints = Hints(in_force={"romio_ds_write": "disable"})
    assert only(profile_of(holes(16_000, 16_000, 3.9, hints=hints)), "data-sieving").lines == ()


def test_stripe_unit_that_the_file_has_is_not_proposed():
    write = GOOD | {"calls": 4096, "collective": 0, "independent": 4096}
    file = shared(write=write, system=GOOD_SYSTEM | {"calls": 4096}, file_system="lustre", stripe_bytes=1 << 20)
    file.layers["POSIX"].not_aligned, file.layers["POSIX"].alignment_bytes = (4000, 4096)
    found = only(profile_of(file), "not-aligned")
    assert found.lines == () and "multiples of 1 MiB" in found.action
    assert "HDF5" not in found.action and "PNETCDF" not in found.action
    profile = profile_of(file, libraries=["PnetCDF"])
    assert "nc_var_align_size" in only(profile, "not-aligned").action


def test_aggregators_that_begin_inside_of_blocks_are_left_alone():
    system = GOOD_SYSTEM | {"calls": 4096}
    file = shared(write=GOOD, system=system, stripe_bytes=1 << 20, collective=Collective(aggregators_write=4))
    file.layers["POSIX"].not_aligned = 4000
    assert codes(profile_of(file)) == []


def test_findings_that_disagree_share_one_line():
    """Both would set the stripe unit: that with more at stake does."""
    system = {"calls": 1024, "bytes": 4 << 30, "seconds": 160.0}
    collective = Collective(aggregators_write=8, active=[90, 5, 0, 5])
    file = shared(write=GOOD, system=system, collective=collective, stripe_bytes=16 << 20, stripe_count=8)
    found = {one.code: one for one in findings(profile_of(file))}
    assert {"stripe-unit", "idle-aggregators"} <= set(found)
    lines = {line for one in found.values() for line in one.lines}
    assert len(lines) == 1 and lines.pop().count("striping_unit") == 1
    assert sum("finding above first" in one.action for one in found.values()) == 1


def test_allocations_of_all_findings_are_one_line():
    write = {"calls": 80_000, "independent": 80_000, "bytes": 80_000 * 4096, "seconds": 800.0, "slowest_rank_s": 50.0}
    files = [
        shared(path, write=write, system={"calls": 80_000, "bytes": 80_000 * 4096, "end_bytes": end})
        for path, end in (("/s/one", 8 << 30), ("/s/two", 80 << 30))
    ]
    found = [one for one in findings(profile_of(*files)) if one.code == "small-independent"]
    assert len(found) == 2
    assert {one.lines for one in found} == {("#DW jobdw type=scratch access_mode=striped capacity=100GiB",)}


def test_hints_without_effect_are_not_in_the_line_of_another_finding():
    ignored = [WithoutEffect(key="romio_no_indep_rw", asked="true", seen="all ranks opened it")]
    hints = Hints(environment={"romio_no_indep_rw": "true", "cb_buffer_size": "4194304"}, without_effect=ignored)
    file = shared(write=GOOD, system=GOOD_SYSTEM, hints=hints, collective=Collective(aggregators_write=1))
    line = only(profile_of(file), "few-aggregators").lines[0]
    assert "romio_no_indep_rw" not in line and "cb_buffer_size=4194304" in line


def test_collective_reads_of_the_same_bytes_are_left_alone():
    """16 ranks read the same 256 MiB, and the system reads them once."""
    read = {"calls": 256, "collective": 256, "bytes": 4 << 30, "seconds": 800.0, "slowest_rank_s": 50.0}
    system = {"calls": 64, "bytes": 256 << 20, "seconds": 8.0, "slowest_rank_s": 2.0}
    file = shared(read=read, system_read=system, collective=Collective(aggregators_read=4))
    file.layers["MPI-IO"].views = 0
    assert codes(profile_of(file)) == []


@pytest.mark.parametrize(("source", "is_found"), [("darshan", False), ("forebay", True)])
def test_stripe_unit_below_the_default_of_lustre_is_not_proposed(source, is_found):
    """The mean call is 600 KiB and the unit 1 MiB."""
    write = GOOD | {"calls": 4096, "collective": 4096}
    system = {"calls": 7000, "bytes": 4 << 30, "seconds": 160.0}
    file = shared(write=write, system=system, stripe_bytes=1 << 20, collective=Collective(aggregators_write=4))
    profile = profile_of(file)
    profile.source = source
    assert ("stripe-unit" in codes(profile)) == is_found


def test_small_calls_on_one_target_are_no_matter_of_stripes():
    calls = 100_000
    write = {"calls": calls, "independent": calls, "bytes": calls * 1000, "seconds": 800.0, "slowest_rank_s": 50.0}
    system = {"calls": calls, "bytes": calls * 1000, "end_bytes": calls * 1000}
    file = shared(write=write, system=system, stripe_count=1, file_system="lustre")
    assert codes(profile_of(file)) == ["small-independent"]


def test_buffers_of_1_mib_are_joined_calls():
    """Each rank asks for 100 MiB in a call, and an aggregator writes its buffer of 1 MiB 1,600 times."""
    write = {"calls": 16, "collective": 16, "bytes": 1600 << 20, "seconds": 800.0, "slowest_rank_s": 50.0}
    system = {"calls": 1600, "bytes": 1600 << 20, "seconds": 160.0}
    file = shared(write=write, system=system, collective=Collective(aggregators_write=4))
    assert codes(profile_of(file)) == []


@pytest.mark.parametrize(
    ("collective", "system_mib", "is_found"), [(0, 1000, True), (0, 120, False), (900, 1000, False)]
)
def test_reads_of_much_more_than_was_asked_for_are_found(collective, system_mib, is_found):
    read = {"calls": 900, "independent": 900 - collective, "collective": collective, "bytes": 100 << 20}
    system = {"calls": 250, "bytes": system_mib << 20, "end_bytes": system_mib << 20}
    file = shared(read=read | {"seconds": 800.0, "slowest_rank_s": 50.0}, system_read=system)
    profile = profile_of(file)
    assert ("sieved-reads" in codes(profile)) == is_found
    if is_found:
        found = only(profile, "sieved-reads")
        assert "1000 MiB of out.nc were read for 100 MiB" in found.title and "romio_ds_read=disable" in found.lines[0]


def test_large_independent_calls_are_left_alone():
    write = {"calls": 4096, "independent": 4096, "bytes": 64 << 30, "seconds": 800.0, "slowest_rank_s": 50.0}
    file = shared(write=write, system={"calls": 4096, "bytes": 64 << 30}, file_system="lustre", stripe_bytes=1 << 20)
    file.layers["POSIX"].not_aligned = 4000
    assert codes(profile_of(file)) == []


def test_small_calls_are_judged_by_the_histogram():
    """9 of 10 calls are small, and their mean with the others is 300 KiB; then one small call for each large one."""
    many = [0, 9000, 0, 0, 0, 1000, 0, 0, 0, 0]
    half = [0, 5000, 0, 0, 0, 5000, 0, 0, 0, 0]
    write = {"calls": 10_000, "independent": 10_000, "seconds": 800.0, "slowest_rank_s": 50.0}

    def found(sizes, moved):
        traffic = {"calls": 10_000, "bytes": moved}
        return codes(profile_of(shared(write=write | {"sizes": sizes, "bytes": moved}, system=traffic)))

    assert found(many, 3 << 30) == ["small-independent"]
    assert found(half, 15 << 30) == []
    assert found(many, 3 << 34) == []  # the large ones move the bytes


def test_appends_by_opening_again_are_not_random():
    """Each open is followed by one append, which Darshan counts as going back."""
    path, size_bytes = "/s/log.bin", 40_000 * 4000
    again = local(path, calls=40_000, moved=size_bytes, seconds=20.0, opens=40_000, sequential=0)
    found = only(profile_of(again, ranks=1), "small-calls")
    assert "random" not in found.title
    back = local(path, calls=40_000, moved=size_bytes, seconds=20.0, opens=1, sequential=0)
    assert "at random places" in only(profile_of(back, ranks=1), "small-calls").title


def test_buffer_line_of_fortran_is_for_fortran_only():
    for path, has_line in (("/data/fort.10", True), ("/data/out.bin", False)):
        file = local(path, calls=50_000, moved=50_000 * 40, seconds=20.0, sequential=50_000)
        assert bool(only(profile_of(file, ranks=1), "small-calls").lines) == has_line


def test_single_rank_with_tiny_mpi_io_calls_is_named():
    write = {"calls": 40_000, "independent": 40_000, "bytes": 40_000 * 8, "seconds": 30.0, "slowest_rank_s": 30.0}
    file = shared(write=write, system={"calls": 40_000, "bytes": 40_000 * 8}, ranks=1, rank=5)
    found = only(profile_of(file), "single-rank-mpiio")
    assert found.title.startswith("Rank 5 alone makes 40,000 MPI-IO write calls of 8 B")
    large = {"calls": 4000, "independent": 4000, "bytes": 4000 << 20, "seconds": 30.0, "slowest_rank_s": 30.0}
    whole = shared(write=large, system={"calls": 4000, "bytes": 4000 << 20}, ranks=1, rank=5)
    assert "single-rank-mpiio" not in codes(profile_of(whole))


@pytest.mark.parametrize(("views", "system_s", "is_found"), [(0, 32.0, True), (0, 180.0, False), (256, 32.0, False)])
def test_collective_calls_that_cost_more_than_they_give_are_found(views, system_s, is_found):
    """4 aggregators; the calls take 50 s, and of these an aggregator's system calls 8 s or 45 s."""
    system = {"calls": 256, "bytes": 4 << 30, "seconds": system_s, "slowest_rank_s": system_s / 4}
    file = shared(write=GOOD, system=system, collective=Collective(aggregators_write=4))
    file.layers["MPI-IO"].views = views
    profile = profile_of(file)
    assert ("collective-overhead" in codes(profile)) == is_found
    if is_found:
        assert "84 % of the time" in only(profile, "collective-overhead").title


def test_one_sync_of_each_rank_is_no_storm():
    file = local("/data/out", calls=2048, moved=64 << 30, seconds=2048 * 20.0, ranks=2048)
    file.layers["POSIX"].syncs = 2048
    assert codes(profile_of(file, ranks=2048)) == []


def test_little_sieving_at_the_edges_is_ignored():
    collective = Collective(aggregators_write=4, rmw_calls=2, rmw_bytes=1 << 20)
    assert "data-sieving" not in codes(profile_of(shared(write=GOOD, system=GOOD_SYSTEM, collective=collective)))


def test_hints_without_effect_are_found():
    ignored = [WithoutEffect(key="cb_nodes", asked="4", seen="1 rank(s) wrote")]
    hints = Hints(environment={"cb_nodes": "4", "romio_no_indep_rw": "true"}, without_effect=ignored)
    collective = Collective(aggregators_write=1)
    found = only(
        profile_of(shared(write=GOOD, system=GOOD_SYSTEM, hints=hints, collective=collective)), "hints-without-effect"
    )
    assert found.evidence[0].value == "1 rank(s) wrote"
    assert "cb_config_list=#*:*#" in found.lines[0]
    assert "romio_no_indep_rw=true" in found.lines[0]  # what the job sets already is kept


def test_uneven_aggregators_and_ranks_without_system_calls_are_found():
    writers = [Writer(rank=0, bytes=3 << 30, calls=192, aggregator=True)]
    writers += [Writer(rank=n, bytes=(1 << 30) // 3, calls=20, aggregator=True) for n in (4, 8, 12)]
    collective = Collective(aggregators_write=4)
    file = shared(write=GOOD, system=GOOD_SYSTEM, collective=collective, writers=writers)
    assert codes(profile_of(file)) == ["uneven-aggregators"]


def test_idle_aggregators_are_found():
    collective = Collective(aggregators_write=8, active=[90, 5, 0, 5], rmw_calls=0, rmw_bytes=0)
    file = shared(write=GOOD, system=GOOD_SYSTEM, collective=collective, stripe_bytes=16 << 20, stripe_count=8)
    assert "idle-aggregators" in codes(profile_of(file))


def test_no_advice_where_little_time_is_lost():
    write = {"calls": 20, "collective": 20, "bytes": 22118400, "seconds": 1.0, "slowest_rank_s": 0.5}
    system = {"calls": 23040, "bytes": 22118400}
    profile = profile_of(shared(write=write, system=system), wall_s=100.0)
    (note,) = findings(profile)
    assert (note.level, note.code) == ("note", "little-io") and "nothing to gain" in note.title
    assert "nothing to gain" in paragraph(profile, [note])


def test_one_rank_that_writes_everything_is_found():
    found = only(profile_of(local("/data/big", moved=1 << 30, seconds=40.0)), "one-rank")
    assert found.seconds == 40.0 and "Rank 0 alone" in found.title
    even = [local(f"/data/{rank}", moved=1 << 30, seconds=40.0, rank=rank) for rank in range(16)]
    assert codes(profile_of(*even)) == []


def test_metadata_heavy_program_is_found():
    files = [local(f"/data/f.{n}", moved=1 << 20, seconds=0.1, opens=100, metadata_s=40.0, rank=n) for n in range(16)]
    found = only(profile_of(*files), "metadata-heavy")
    assert found.seconds == pytest.approx(40.0)
    assert "1,600 opens" in found.title


def test_one_slow_open_is_not_metadata_heavy():
    assert codes(profile_of(local("/data/f", moved=1 << 20, seconds=0.1, opens=16, metadata_s=640.0, ranks=16))) == []


def test_many_tiny_collective_calls_are_found():
    read = {"calls": 13000, "collective": 13000, "bytes": 13000 * 900, "seconds": 480.0, "slowest_rank_s": 30.0}
    file = shared("/s/wrfbdy_d01", read=read, system_read={"calls": 3250, "bytes": 13000 * 900})
    found = only(profile_of(file), "small-collective")
    assert found.seconds == 30.0 and "13,000 collective reads of wrfbdy_d01 move 900 B" in found.title


def test_many_small_files_are_found():
    files = [local(f"/data/f.{n}", moved=1000, seconds=0.5, rank=n % 16) for n in range(2000)]
    assert codes(profile_of(*files)) == ["many-small-files"]


def test_files_that_all_ranks_open_are_found():
    file = local("/data/namelist", moved=16 << 10, read=True, opens=512, metadata_s=5.0, ranks=512, seconds=5000.0)
    assert "opened-by-all" in codes(profile_of(file, ranks=512))


def test_many_syncs_are_found():
    file = local("/data/log", calls=500, moved=64 << 20, seconds=10.0)
    file.layers["POSIX"].syncs, file.layers["POSIX"].sync_s = 500, 30.0
    found = only(profile_of(file), "many-syncs")
    assert found.seconds == 30.0 and "75 %" in found.title


def test_flush_of_a_stream_is_no_sync():
    file = local("/data/log", calls=500, moved=64 << 20, seconds=10.0, name="STDIO")
    file.layers["STDIO"].syncs = 500
    assert "many-syncs" not in codes(profile_of(file))


def test_small_calls_of_fortran_and_of_streams_are_found():
    posix = local("/data/fort.10", calls=50_000, moved=50_000 * 40, seconds=20.0, sequential=50_000)
    assert "GFORTRAN_UNFORMATTED_BUFFER_SIZE" in only(profile_of(posix), "small-calls").lines[0]
    stream = local("/data/out.txt", calls=50_000, moved=50_000 * 40, seconds=20.0, name="STDIO")
    assert "small-calls" not in codes(profile_of(stream))  # a stream has a buffer


def test_stage_in_is_suggested_for_a_file_read_repeatedly():
    file = local(
        "/data/green functions.bin", calls=5000, moved=64 << 30, read=True, seconds=60.0, ranks=16, end_bytes=1 << 30
    )
    found = only(profile_of(file), "read-again")
    assert found.lines[1] == (
        '#DW stage_in type=file source="/data/green functions.bin" destination="$DW_JOB_STRIPED/green functions.bin"'
    )
    small = local("/data/in.so", calls=5000, moved=1 << 30, read=True, seconds=60.0, ranks=16, end_bytes=200 << 10)
    assert "read-again" not in codes(profile_of(small))  # caches hold it
    once = local("/data/in.bin", calls=5000, moved=1 << 30, read=True, seconds=60.0, ranks=16, end_bytes=1 << 30)
    assert "read-again" not in codes(profile_of(once))


@pytest.mark.parametrize(("of_system", "is_found"), [(1 << 30, False), (64 << 30, True), (0, True)])
def test_collective_reads_that_the_system_makes_once_are_no_reading_again(of_system, is_found):
    """Each of 16 ranks asks for 4 GiB; two-phase I/O may read them for all ranks once."""
    read = {"calls": 1600, "collective": 1600, "bytes": 64 << 30, "seconds": 800.0, "slowest_rank_s": 50.0}
    system = {"calls": 64, "bytes": of_system, "end_bytes": 1 << 30}
    assert ("read-again" in codes(profile_of(shared(read=read, system_read=system)))) == is_found


def test_independent_calls_split_into_pieces_are_found():
    write = {"calls": 160, "independent": 160, "bytes": 1 << 30, "seconds": 800.0, "slowest_rank_s": 50.0}
    system = {"calls": 1_000_000, "bytes": 1 << 30}
    assert codes(profile_of(shared(write=write, system=system))) == ["independent-pieces"]


def test_alignment_matters_on_parallel_file_systems_only():
    system = GOOD_SYSTEM | {"calls": 4096}
    file = shared(
        write=GOOD | {"calls": 4096, "collective": 0, "independent": 4096}, system=system, file_system="lustre"
    )
    file.layers["POSIX"].not_aligned, file.layers["POSIX"].alignment_bytes = (4000, 1 << 20)
    assert codes(profile_of(file)) == ["not-aligned"]
    file.file_system = "ext4"
    assert codes(profile_of(file)) == []


def test_one_stripe_on_a_machine_with_many_targets_is_found():
    file = shared(
        write=GOOD,
        system=GOOD_SYSTEM,
        stripe_count=1,
        collective=Collective(aggregators_write=4),
        path="/l/my out/a.nc",
    )
    machine = read_machine(PROJECT / "machines" / "lustre-small.toml")
    assert only(profile_of(file), "one-stripe", machine=machine).lines == ("lfs setstripe -c 8 '/l/my out'",)
    assert "one-stripe" not in codes(profile_of(file))


def test_files_left_open_and_programs_without_finalize_are_found():
    file = shared(write=GOOD, system=GOOD_SYSTEM, collective=Collective(aggregators_write=4), not_closed=16)
    assert only(profile_of(file), "not-closed").level == "note"
    assert codes(profile_of(finished=False, wall_s=None)) == ["no-finalize"]
    assert codes(profile_of(finished=False, wall_s=None, aborted_rank=2, aborted_code=9)) == ["aborted"]
    assert codes(profile_of(finished=False, wall_s=None, job=Job(running=True))) == []
    killed = {"finished": False, "wall_s": None, "job": Job(job_status=0)}
    assert codes(profile_of(**killed)) == ["no-finalize"]
    alone = profile_of(**killed)
    alone.programs[0].uses_mpi = False
    assert codes(alone) == []


def test_equal_findings_about_similar_files_are_reported_once():
    write = {"calls": 320, "collective": 320, "bytes": 320 << 20, "seconds": 80.0, "slowest_rank_s": 5.0}
    system = {"calls": 300_000, "bytes": 320 << 20}
    files = [shared(f"/s/wrfout_d01_2007-04-03_{hour:02}_00_00", write=write, system=system) for hour in range(24)]
    (found,) = findings(profile_of(*files))
    # 24 times 5 s, and the run took 100 s.
    assert "23 more files like wrfout*" in found.title and found.seconds == pytest.approx(100.0)
    assert found.lines == ("export MPICH_MPIIO_HINTS='wrfout*:romio_cb_write=enable'",)


def test_files_of_many_steps_count_together():
    """Each of 200 files takes 0.3 s of 100 s."""
    files = [local(f"/s/step_{step:04}.dat", calls=3000, moved=3000 * 64, seconds=0.3) for step in range(200)]
    found = only(profile_of(*files, ranks=1), "small-calls")
    assert "199 more files like step*.dat" in found.title and found.seconds == pytest.approx(60.0)


def test_findings_are_sorted_by_time_lost():
    def off(path, seconds):
        write = {
            "calls": 320,
            "collective": 320,
            "bytes": 320 << 20,
            "seconds": 16 * seconds,
            "slowest_rank_s": seconds,
        }
        return shared(path, write=write, system={"calls": 300_000, "bytes": 320 << 20})

    found = findings(profile_of(off("/s/b", 5.0), off("/s/a", 30.0), off("/s/c", 10.0)))
    assert [finding.file for finding in found] == ["/s/a", "/s/c", "/s/b"]


def test_finding_about_little_time_is_a_note_and_comes_last():
    """The syncs take 0.5 s of 100 s, the suggestion to keep what was read 40 s."""
    syncs = local("/s/flushed", calls=1000, moved=1 << 20, seconds=1.0)
    syncs.layers["POSIX"].syncs, syncs.layers["POSIX"].sync_s = 1000, 0.5
    again = local("/s/again", calls=1000, moved=4 << 30, read=True, seconds=40.0)
    again.layers["POSIX"].read.end_bytes = 1 << 30
    found = {one.code: one for one in findings(profile_of(syncs, again, ranks=1))}
    assert list(found)[0] == "read-again" and found["read-again"].level == "suggestion"
    assert found["many-syncs"].level == "note" and found["many-syncs"].seconds == pytest.approx(0.5)


def test_what_broke_the_job_comes_first():
    again = local("/s/again", calls=1000, moved=4 << 30, read=True, seconds=40.0)
    again.layers["POSIX"].read.end_bytes = 1 << 30
    profile = profile_of(again, ranks=1, job=Job(error=None))
    profile.programs += profile_of(finished=False, wall_s=None, aborted_rank=2, aborted_code=9).programs
    assert codes(profile)[0] == "aborted"


@pytest.mark.parametrize(
    ("stripe_bytes", "system_bytes", "is_found"),
    [
        (256 << 10, 4 << 30, False),  # one stripe in each call
        (None, 4 << 30, True),
        (64 << 20, 4 << 30, True),
        (None, 78_000, False),  # nearly all system calls are missing
    ],
)
def test_buffering_is_judged_by_stripes_and_complete_system_calls(stripe_bytes, system_bytes, is_found):
    """Each collective call asks for 16 MiB."""
    system = {"calls": 16384, "bytes": system_bytes, "seconds": 40.0}
    file = shared(write=GOOD, system=system, stripe_bytes=stripe_bytes, collective=Collective(aggregators_write=16))
    assert ("collective-buffering-off" in codes(profile_of(file))) == is_found


@pytest.mark.parametrize(
    "path, pattern",
    [
        ("/s/wrfout_d01_2007-04-03_00_00_00", "wrfout*"),
        ("/s/wrfinput_d01", "wrfinput*"),
        ("/s/btio.full.out", "btio.full.out"),
        ("/s/pfpp.dat.00000", "pfpp.dat*"),
        ("/s/plt00010.h5", "plt*.h5"),
        ("/s/0001", "0001"),
        ("/s/my out:a,b.nc", "my?out?a?b.nc"),
        ("/s/it's\nhere", "it?s?here"),
        ("/s/größe.nc", "größe.nc"),
    ],
)
def test_file_patterns_cover_similar_names(path, pattern):
    assert file_pattern(path) == pattern


def test_hint_line_quotes_values_and_puts_longer_patterns_first():
    assert hints_line({"a*": {"cb_nodes": "2"}, "abc*": {"cb_config_list": "*:*"}}) == (
        "export MPICH_MPIIO_HINTS='abc*:cb_config_list=#*:*#,a*:cb_nodes=2'"
    )


@pytest.mark.soak
def test_ten_thousand_files_without_mpi_io_are_judged(tmp_path):
    files = [record_data.posix_file(f"/data/{n}", written_bytes=1 << 21) for n in range(10_000)]
    profile = record_reader.read_record(record_data.record(tmp_path, record_data.job_json(), record_data.step(*files)))
    assert findings(profile) == findings(profile)
    assert paragraph(profile, findings(profile))


def test_empty_profile_gives_no_advice(tmp_path):
    profile = record_reader.read_record(record_data.record(tmp_path, record_data.job_json()))
    assert findings(profile) == []
    assert (
        paragraph(profile, [])
        == "No I/O was recorded. Forebay records programs that transfer 1 MiB or make 1,000 calls."
    )


def test_table_of_rules_has_every_rule():
    package = PROJECT / "python" / "src" / "forebay" / "advice"
    source = "".join(path.read_text() for path in package.glob("rules_*.py"))
    told = set(re.findall(r'code="([a-z-]+)"', source)) | {"aborted", "no-finalize"}
    rows = re.findall(
        r"^\| ((?:`[a-z-]+`(?:, )?)+) \| [^|]+ \| [^|]+ \| [^|]+ \|$",
        (PROJECT / "docs" / "reference" / "advice.md").read_text(),
        re.M,
    )
    assert {code for row in rows for code in re.findall(r"`([a-z-]+)`", row)} == told


@pytest.mark.parametrize("mpi, told", [("Open MPI v4.1.4", True), ("MPICH Version: 4.0.2", False)])
def test_advice_names_what_a_hint_needs_to_take_effect(mpi, told):
    file = shared(write=GOOD, system=GOOD_SYSTEM, collective=Collective(aggregators_write=1))
    (found,) = findings(profile_of(file, mpi=mpi))
    assert "make any MPI obey" in found.action
    assert ("does not tell" in found.action) == told


def test_unprintable_names_are_escaped():
    write = {"calls": 320, "collective": 320, "bytes": 320 << 20, "seconds": 80.0, "slowest_rank_s": 50.0}
    file = shared("/s/\x1b[31mred\n.nc", write=write, system={"calls": 300_000, "bytes": 320 << 20})
    (found,) = findings(profile_of(file))
    assert found.title.isprintable() and all(line.isprintable() for line in found.lines)
    assert found.file == "/s/\x1b[31mred\n.nc"


def test_one_stripe_on_an_emulated_file_system_is_found():
    """The record tells that it is emulated, and one stripe: no machine file has to be named."""
    file = shared(
        write=GOOD | {"bytes": 100 << 20},
        system=GOOD_SYSTEM | {"bytes": 100 << 20, "end_bytes": 100 << 20},
        stripe_count=1,
        ranks=4,
        path="/l/out/a.nc",
    )
    found = only(profile_of(file, job=Job(emulated="lustre-small")), "one-stripe")
    assert (found.level, found.lines) == ("suggestion", ("lfs setstripe -c 4 /l/out",))
    assert "one-stripe" not in codes(profile_of(file))


@pytest.mark.parametrize(("collective", "mean"), [(0, 181 << 10), (0, 1280), (12960, 305)])
def test_stripe_unit_advice_needs_calls_near_a_unit(collective, mean):
    """Independent calls are as long as the program makes them, and no unit is near 305 bytes."""
    calls = 12960
    file = shared(
        write={"calls": calls, "collective": collective, "independent": calls - collective, "bytes": calls * mean},
        system={"calls": calls, "bytes": calls * mean, "stripe_sized": 0},
        stripe_bytes=1 << 20,
    )
    assert "stripe-unit" not in codes(profile_of(file))


def test_few_bytes_read_to_write_are_ignored():
    collective = Collective(aggregators_write=2, rmw_calls=9, rmw_bytes=300 << 10)
    file = shared(write=GOOD | {"bytes": 1 << 20}, system={"calls": 20, "bytes": 1 << 20}, collective=collective)
    assert "data-sieving" not in codes(profile_of(file))


@pytest.mark.parametrize(
    ("number", "said"), [(1010 << 10, "1010 KiB"), (999, "999 B"), (5 << 20, "5 MiB"), (1536, "1.5 KiB")]
)
def test_sizes_are_formatted_without_exponents(number, said):
    assert size(number) == said
