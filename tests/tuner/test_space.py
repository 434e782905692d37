"""The space of a job: from real profiles, and from made-up ones of machines that are not here."""

import msgspec
import pytest
from support.advice_data import GOOD, GOOD_SYSTEM, local, profile_of, shared
from support.record_data import log
from support.mpi_run import TARGETS, MpiRun
from support.plans import plan as plan_with

from forebay.profiles.model import Allocation, Collective, Hints, Job, Profile
from forebay.tune import space
from forebay.tune.job_script import script
from forebay.tune.model import PLACES, key
from forebay.tune.settings.job_view import Namespace

MIB = 1 << 20


@pytest.fixture(scope="module")
def ran(build, tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FOREBAY_PROGRAM", str(build / "bin" / "forebay"))
        yield MpiRun(build, tmp_path_factory.mktemp("space"))


@pytest.fixture(scope="module")
def empty(ran):
    """A script that says nothing of its own."""
    return script.read(ran.script("empty", "srun ./app"))


def built(profile, job_script, place="file-system", **options):
    options = {"layout_may_change": False, "stripe_targets": TARGETS, "head_of": lambda path: b""} | options
    return space.build(profile, job_script, place, **options)


def plan_of(made):
    return plan_with(made.parameters, refusals=made.refusals, guesses=made.guesses, machine=made.machine)


def named(made):
    return {parameter.name: parameter for parameter in made.parameters}


def refused(made, setting, pattern=None):
    found = [one.reason for one in made.refusals if setting in one.setting.split(", ") and one.pattern == pattern]
    assert len(found) == 1, made.refusals
    return found[0]


def collective(path="/scratch/out.nc", *, by="mca_io_romio321.so", aggregators=1, **members):
    """16 ranks write 16 MiB each in a collective call; one aggregator."""
    known = {
        "write": GOOD | {"common_sizes": [(16 * MIB, 256)]},
        "system": GOOD_SYSTEM,
        "opened_by": by,
        "stripe_count": 1,
        "stripe_bytes": MIB,
        "collective": Collective(aggregators_write=aggregators),
    }
    return shared(path, **known | members)


# Real runs.


@pytest.fixture(scope="module")
def replib(ran):
    lines = [f"mpiexec -n 4 {ran.kernel('replib')} -w file1b -r 5 -t 0 -o space-replib.bbp"]
    return ran.profile("replib", *lines), script.read(ran.script("replib", *lines))


@pytest.mark.soak
def test_collective_writes_get_aggregators_and_stripes(replib):
    made = built(*replib)
    parameters = named(made)
    nodes = parameters["space-replib.bbp:cb_nodes"]
    assert nodes.values == ("2", "4") and nodes.ordered and nodes.default is None
    assert "1 of 4 ranks on 1 node(s) moved 12.7 MiB" in nodes.reason
    assert parameters["lfs_stripe_count"].values == ("2", "4", "8")
    assert parameters["lfs_stripe_count"].default == "1"
    assert "1 of 8 storage target(s)" in parameters["lfs_stripe_count"].reason
    assert made.machine.ranks == 4 and made.machine.nodes == 1 and not made.machine.lustre_driver
    # ompio had the file: that ROMIO takes it is a choice of its own
    assert parameters["space-replib.bbp:romio_cb_write"].values == ("automatic", "disable", "enable")
    # it is written only
    assert not [name for name in parameters if "read" in name]


def test_first_guess_has_an_effect_on_the_counters(replib):
    made = built(*replib)
    first = made.guesses[0]
    assert first.configuration == {"space-replib.bbp:cb_nodes": "4", "lfs_stripe_count": "8"}
    assert "ROMIO in place of ompio" in first.reason
    assert {"space-replib.bbp:romio_cb_write": "disable", "lfs_stripe_count": "8"} in [
        guess.configuration for guess in made.guesses
    ]


def test_guesses_differ_in_effect_and_are_allowed(replib):
    made = built(*replib)
    plan = plan_of(made)
    assert len(made.guesses) >= 5
    for guess in made.guesses:
        assert space.canonical(guess.configuration, plan) == guess.configuration
        assert space.forbidden(guess.configuration, plan) is None
        assert all(value in named(made)[name].values for name, value in guess.configuration.items())
    assert len({key(guess.configuration) for guess in made.guesses}) == len(made.guesses)


@pytest.mark.soak
def test_independent_contiguous_calls_leave_only_the_layout(ran):
    lines = [f"mpiexec -n 4 {ran.kernel('vpic')} --steps 1 --transfer independent -o space-vpic.h5"]
    made = built(ran.profile("vpic", *lines), script.read(ran.script("vpic", *lines)))
    assert [one.setting for one in made.parameters] == ["lfs_stripe_count", "lfs_stripe_size"]
    assert "no collective calls" in refused(made, "cb_nodes", "space-vpic.h5")
    assert "no hint joins" in refused(made, "romio_ds_write", "space-vpic.h5")
    assert "--check" in refused(made, "hdf5_alignment", "space-vpic.h5")


def test_hdf5_is_known_by_its_first_bytes(ran, empty):
    made = built(
        profile_of(collective("/scratch/out.dat"), job=Job(emulated="m")),
        empty,
        layout_may_change=True,
        head_of=lambda path: b"\x89HDF\r\n\x1a\n",
    )
    assert named(made)["out.dat:hdf5_alignment"].values == ("65536", str(MIB))
    assert "nc_var_align_size" not in named(made)


# Made-up machines.


def test_pnetcdf_is_aligned_only_where_the_output_can_be_judged(empty):
    profile = profile_of(collective(), job=Job(emulated="m"))
    aligned = built(profile, empty, layout_may_change=True)
    assert named(aligned)["nc_var_align_size"].values == ("65536", str(MIB))
    assert named(aligned)["nc_var_align_size"].pattern is None
    assert "--check" in refused(built(profile, empty), "nc_var_align_size")


def test_romio_has_known_defaults(empty):
    made = built(profile_of(collective(), job=Job(emulated="m")), empty)
    parameters = named(made)
    assert parameters["out.nc:cb_nodes"].default == "1"
    assert parameters["out.nc:cb_buffer_size"].default == "16777216"
    assert "16777216" not in parameters["out.nc:cb_buffer_size"].values
    # one of 16 ranks aggregates: `automatic` is seen to buffer what interleaves, which only costs without
    assert "disable" not in {value for guess in made.guesses for value in guess.configuration.values()}
    assert parameters["out.nc:romio_cb_write"].values == ("disable",)
    assert parameters["out.nc:striping_unit"].values == (str(MIB),)


def test_hint_of_the_job_is_the_default(empty):
    file = collective(hints=Hints(environment={"cb_nodes": "4", "cb_config_list": "*:*"}), aggregators=4)
    nodes = named(built(profile_of(file), empty))["out.nc:cb_nodes"]
    assert nodes.default == "4"
    assert nodes.values == ("2", "8", "16")


@pytest.mark.parametrize("junk", ["16m", "0", "-1", "", " "])
def test_hints_that_are_no_numbers_are_no_error(empty, junk):
    names = ("cb_nodes", "cb_buffer_size", "striping_unit", "striping_factor", "romio_cb_write")
    hints = Hints(environment=dict.fromkeys(names, junk))
    made = built(profile_of(collective(hints=hints, file_system="lustre")), empty)
    assert "out.nc:cb_nodes" in named(made) and made.guesses
    lustre = Hints(in_force={"romio_lustre_co_ratio": "1"} | dict.fromkeys(names, junk))
    made = built(profile_of(collective(hints=lustre, file_system="lustre")), empty)
    assert "out.nc:striping_factor" in named(made) and made.guesses


@pytest.mark.parametrize(
    ("ranks", "hosts", "values"),
    [
        (8, 1, ["2", "4", "8"]),
        (9, 1, ["3", "9"]),
        (7, 1, ["7"]),
        (64, 4, ["1", "2", "8", "16", "32", "64"]),
        (1024, 16, ["4", "8", "32", "64", "128", "256", "1024"]),
        (6, 4, ["1", "2", "6"]),
    ],
)
def test_aggregators_divide_the_ranks_and_are_shared_by_the_nodes(empty, ranks, hosts, values):
    write = GOOD | {"common_sizes": [(16 * MIB, ranks)]}
    made = built(profile_of(collective(ranks=ranks, write=write), ranks=ranks, hosts=hosts), empty)
    assert list(named(made)["out.nc:cb_nodes"].values) == values
    assert all(ranks % int(value) == 0 for value in values)


def test_lustre_driver_has_no_buffer_size_and_sets_layouts(empty):
    hints = Hints(in_force={"romio_lustre_co_ratio": "1", "cb_nodes": "1", "striping_factor": "1"})
    made = built(profile_of(collective(hints=hints, file_system="lustre")), empty)
    assert made.machine.lustre_driver
    assert "issue 7935" in refused(made, "cb_buffer_size", "out.nc")
    assert named(made)["out.nc:striping_factor"].values == ("2", "4", "8")
    assert str(MIB) not in named(made)["out.nc:striping_unit"].values
    assert "lfs_stripe_count" not in named(made)
    assert "lays its files out itself" in refused(made, "lfs_stripe_count")


def test_cray_uses_the_lustre_driver(empty):
    made = built(profile_of(collective(by=None), mpi="CRAY MPICH version 8.1"), empty)
    assert made.machine.lustre_driver and "out.nc:striping_unit" in named(made)


def test_real_lustre_without_a_driver_is_laid_out_by_lfs(empty):
    made = built(profile_of(collective(file_system="lustre")), empty)
    assert named(made)["lfs_stripe_count"].values == ("2", "4", "8")
    assert "lfs setstripe" in refused(made, "striping_factor", "out.nc")


def test_burst_buffer_has_no_stripes(empty):
    profile = profile_of(collective(stripe_count=None, stripe_bytes=None))
    made = built(profile, empty, place="burst-buffer")
    assert not [name for name in named(made) if "strip" in name]
    assert "burst buffer" in refused(made, "lfs_stripe_count")
    assert made.guesses[0].configuration == {"out.nc:cb_nodes": "8"}


def test_stripe_count_does_not_exceed_the_units_of_the_file(empty):
    small = {**GOOD, "bytes": 600_000, "end_bytes": 600_000}
    made = built(profile_of(collective(write=small), job=Job(emulated="m")), empty)
    assert named(made)["lfs_stripe_count"].values == ("2",)


def test_guesses_keep_a_file_on_all_targets(empty):
    made = built(profile_of(collective(stripe_count=TARGETS), job=Job(emulated="m")), empty)
    assert named(made)["lfs_stripe_count"].values == ("1", "2", "4")
    assert not [guess for guess in made.guesses if "lfs_stripe_count" in guess.configuration]


def test_small_scattered_writes_get_the_smallest_stripe_unit(empty):
    write = {"calls": 80_000, "independent": 80_000, "bytes": 100 * MIB, "seconds": 800.0, "slowest_rank_s": 50.0}
    file = collective(by="mca_fs_ufs.so", write=write, system={"calls": 80_000, "bytes": 100 * MIB})
    made = built(profile_of(file, job=Job(emulated="m")), empty)
    assert [guess.configuration for guess in made.guesses[:2]] == [
        {"lfs_stripe_count": "8"},
        {"lfs_stripe_count": "8", "lfs_stripe_size": "65536"},
    ]


def test_unknown_number_of_targets_is_no_error(empty):
    made = built(profile_of(collective(), job=Job(emulated="m")), empty, stripe_targets=None)
    assert named(made)["lfs_stripe_count"].values == ("2", "4", "8", "16", "32", "64")


def test_launch_line_of_the_script_is_named(ran):
    own = script.read(ran.script("own", "lfs setstripe -c 1 out", "srun ./app"))
    made = built(profile_of(collective(), job=Job(emulated="m")), own)
    assert "(line 3 of the script)" in named(made)["lfs_stripe_count"].reason


def test_files_without_mpi_io_get_only_a_layout(empty):
    path = str(empty.path.parent / "log.txt")
    made = built(profile_of(local(path, moved=64 * MIB, seconds=50.0), job=Job(emulated="m")), empty)
    assert "no hint reaches it" in refused(made, "hints of MPI-IO", "log.txt")
    assert {one.setting for one in made.parameters} == {"lfs_stripe_count", "lfs_stripe_size"}
    # nobody told its layout
    assert named(made)["lfs_stripe_count"].default is None
    elsewhere = profile_of(local("/elsewhere/log.txt", moved=64 * MIB, seconds=50.0), job=Job(emulated="m"))
    assert "not on Lustre" in refused(built(elsewhere, empty), "lfs_stripe_count")


def test_files_without_io_time_are_omitted(empty):
    little = {"calls": 16, "collective": 16, "bytes": 100, "seconds": 0.1, "slowest_rank_s": 0.01}
    made = built(profile_of(collective(), collective("/scratch/tiny_01.dat", write=little)), empty)
    assert not [name for name in named(made) if name.startswith("tiny")]
    assert "1 file(s) (tiny*.dat) take under 1 % of the run each" == refused(made, "all")


def test_files_are_grouped_by_pattern_and_access(empty):
    read = {"calls": 256, "collective": 256, "bytes": 4 << 30, "seconds": 800.0, "slowest_rank_s": 20.0}
    made = built(
        profile_of(
            collective("/scratch/wrfout_d01_2007-04-03"),
            collective("/scratch/wrfout_d01_2007-04-04"),
            shared("/scratch/wrfinput_d01", read=read, system_read=GOOD_SYSTEM, opened_by="mca_io_romio321.so"),
        ),
        empty,
    )
    settings = {
        pattern: {one.setting for one in made.parameters if one.pattern == pattern}
        for pattern in ("wrfout*", "wrfinput*")
    }
    assert {"cb_nodes", "romio_cb_write", "romio_ds_write"} <= settings["wrfout*"]
    assert {"cb_nodes", "romio_cb_read", "romio_ds_read"} <= settings["wrfinput*"]
    assert not any("read" in name for name in settings["wrfout*"])
    assert not any("write" in name or "strip" in name for name in settings["wrfinput*"])
    assert {"wrfout*:cb_nodes", "wrfinput*:cb_nodes"} <= set(made.guesses[0].configuration)


def test_hints_for_all_files_have_one_pattern(empty):
    profile = profile_of(collective("/scratch/a.nc"), collective("/scratch/b.nc"), mpi="Open MPI v5.0.11")
    made = built(profile, empty)
    assert {one.pattern for one in made.parameters if one.setting == "cb_nodes"} == {"*"}


def test_tiny_collective_calls_are_not_shared_by_more_aggregators(empty):
    tiny = {"calls": 16000, "collective": 16000, "bytes": 1_600_000, "seconds": 160.0, "slowest_rank_s": 10.0}
    made = built(profile_of(collective(write=tiny)), empty)
    assert "too little to be shared" in refused(made, "cb_nodes", "out.nc")
    assert {"out.nc:romio_cb_write": "disable"} in [guess.configuration for guess in made.guesses]


INDEPENDENT = {"calls": 160, "independent": 160, "bytes": 160 * MIB, "seconds": 160.0, "slowest_rank_s": 10.0}


def test_independent_noncontiguous_calls_get_data_sieving(empty):
    system = {"calls": 160_000, "bytes": 160 * MIB}
    made = built(profile_of(collective(by="mca_fs_ufs.so", write=INDEPENDENT, system=system)), empty)
    assert named(made)["out.nc:romio_ds_write"].values == ("disable", "enable")
    assert made.guesses[0].configuration["out.nc:romio_ds_write"] == "enable"
    assert "out.nc:ind_wr_buffer_size" in named(made)


def test_no_write_sieving_without_locks(empty):
    system = {"calls": 160_000}
    file = collective(by="mca_fs_ufs.so", write=INDEPENDENT, system=system, file_system="unifyfs")
    sieving = named(built(profile_of(file), empty))["out.nc:romio_ds_write"]
    assert sieving.values == ("disable",) and "no locks" in sieving.reason


def test_fewer_opens_are_tried_where_opens_are_slow(empty):
    file = collective(write=GOOD | {"slowest_rank_s": 2.0})
    file.layers["MPI-IO"].metadata_slowest_rank_s = 0.5
    assert "20 %" in named(built(profile_of(file), empty))["out.nc:romio_no_indep_rw"].reason
    independent = collective(write=GOOD | {"independent": 3, "slowest_rank_s": 2.0})
    independent.layers["MPI-IO"].metadata_slowest_rank_s = 0.5
    assert "3 independent" in refused(built(profile_of(independent), empty), "romio_no_indep_rw", "out.nc")


def test_setting_that_hangs_with_a_hint_of_the_job_is_not_offered(empty):
    """MPICH, issue 6408."""
    aligned = collective(write=GOOD | {"slowest_rank_s": 2.0}, hints=Hints(environment={"striping_unit": "65536"}))
    aligned.layers["MPI-IO"].metadata_slowest_rank_s = 0.5
    assert "striping_unit=65536" in refused(built(profile_of(aligned), empty), "romio_no_indep_rw", "out.nc")
    promised = collective(hints=Hints(program={"romio_no_indep_rw": "true"}))
    assert "hang" in refused(built(profile_of(promised), empty), "striping_unit", "out.nc")


def test_lazy_io_is_tried_off_where_a_mount_took_it(empty):
    parameter = named(built(profile_of(collective(lazy_opens=16)), empty))["out.nc:lazy_io"]
    assert (parameter.values, parameter.default) == (("disable",), "enable")
    assert "16 open(s) were lazy" in parameter.reason
    assert "out.nc:lazy_io" not in named(built(profile_of(collective(lazy_opens=0)), empty))
    off = collective(lazy_opens=0, hints=Hints(environment={"lazy_io": "disable"}))
    assert named(built(profile_of(off), empty))["out.nc:lazy_io"].values == ("enable",)


JOBDW = "#DW jobdw type=scratch access_mode=striped capacity=1GiB"
NAMESPACE = Namespace(
    path="/n/forebay-node-1795476999999-d7b2daf62c51/", placement="striped", stripe_bytes=MIB, takes_local=True
)
#: In the namespace of an earlier job.
OWN_FILES = [
    local(f"/n/forebay-node-1795476034261-17d71af21c3f/rank.{number}", moved=512 * MIB, seconds=1.0)
    for number in range(4)
]


def of_engine(name):
    return Allocation(engine=name, nodes=["n1", "n2"], redundancy=1, share_bytes=None, failed=None)


def in_namespace(ran, *files, lines=(JOBDW,), place="burst-buffer", allocation=of_engine("ceph"), **layout):
    """The space of a job that wrote these files."""
    job_script = script.read(ran.script("placed", *lines, "srun ./app"))
    namespace = msgspec.structs.replace(NAMESPACE, **layout)
    profile = profile_of(*files, job=Job(allocation=allocation))
    return built(profile, job_script, place, namespace=namespace)


def test_placement_and_unit_are_tried_for_files_of_one_rank_each_in_a_namespace(ran):
    made = in_namespace(ran, *OWN_FILES)
    placement, unit = named(made)["dw_placement"], named(made)["dw_stripe_bytes"]
    assert (placement.values, placement.default, unit.default) == (("local",), "striped", str(MIB))
    assert {"dw_placement": "local"} in [guess.configuration for guess in made.guesses]
    already = named(in_namespace(ran, *OWN_FILES, placement="local", stripe_bytes=4 * MIB))
    assert already["dw_placement"].values == ("striped",) and already["dw_stripe_bytes"].default == str(4 * MIB)


def test_units_are_those_that_the_engine_takes(ran):
    largest = local(OWN_FILES[0].path, moved=2048 * MIB, calls=10, seconds=1.0)
    assert max(map(int, named(in_namespace(ran, largest))["dw_stripe_bytes"].values)) <= 128 * MIB


def test_placement_is_left_out_where_it_cannot_help(ran):
    shared_file = collective(OWN_FILES[0].path)
    assert "several ranks write each file" in refused(in_namespace(ran, shared_file), "dw_placement")
    assert "dw_stripe_bytes" in named(in_namespace(ran, shared_file))
    assert "do not place" in refused(in_namespace(ran, *OWN_FILES, takes_local=False), "dw_placement")
    staged = (JOBDW, "#DW stage_in type=file source=/etc/passwd destination=$DW_JOB_STRIPED/a")
    assert "stages files in" in refused(in_namespace(ran, *OWN_FILES, lines=staged), "dw_placement")
    elsewhere = local("/home/ada/log", moved=64 * MIB, seconds=1.0)
    nnf = "#DW jobdw type=xfs capacity=1GiB name=mine"
    for made in (
        in_namespace(ran, elsewhere),
        in_namespace(ran, *OWN_FILES, lines=(nnf,)),
        in_namespace(ran, *OWN_FILES, allocation=None),
        in_namespace(ran, *OWN_FILES, allocation=of_engine("beeond")),
        built(profile_of(*OWN_FILES), script.read(ran.script("placed", JOBDW, "srun ./app")), "burst-buffer"),
    ):
        assert not [one for one in made.parameters if one.setting.startswith("dw_")]


def test_existing_directories_get_the_layout(ran, empty):
    """What exists inherits nothing from the job's directory; what is outside of it is left alone."""
    here = empty.path.parent
    (here / "old results").mkdir(exist_ok=True)
    paths = [here / "old results" / "a.nc", here / "new" / "b.nc", here / "c.nc", here.parent / "d.nc"]
    profile = profile_of(*(collective(str(path)) for path in paths))
    profile.job.directory = str(here)
    assert built(profile, empty).machine.output_directories == ("old results",)


def test_tuned_pattern_is_not_listed_as_omitted(empty):
    """A file that a second program reads for long, and the first one has made in no time."""
    light = collective("/scratch/in.nc", write=GOOD | {"slowest_rank_s": 0.001, "seconds": 0.001})
    for layer in light.layers.values():
        layer.write.slowest_rank_s = layer.write.seconds = 0.0001
        layer.read.slowest_rank_s = layer.read.seconds = 0.0
    profile = profile_of(light, collective("/scratch/in.nc"), collective("/scratch/other.nc"))
    made = built(profile, empty)
    assert "in.nc" in {one.pattern for one in made.parameters}
    assert not any("in.nc" in one.reason for one in made.refusals if one.setting == "all")


@pytest.mark.soak
@pytest.mark.parametrize("name", ["mpiio_shared_default", "mpiio_shared_cbdisable", "small_random", "posix_fpp"])
@pytest.mark.parametrize("place", PLACES)
def test_log_with_fewer_counters_gives_a_smaller_space(empty, name, place):
    made = built(log(name), empty, place=place)
    settings = {one.setting for one in made.parameters}
    assert ("cb_nodes" in settings) == name.startswith("mpiio")
    assert made.refusals and all(one.reason for one in made.refusals)


def test_empty_record_gives_an_empty_space(empty):
    made = built(Profile(source="forebay", path="x", job=Job(), programs=[]), empty)
    assert made.parameters == made.guesses == () and made.machine.ranks == 4


# What acts alike, and what must not be.


@pytest.fixture
def plan(empty):
    file = collective(by="mca_fs_ufs.so")
    file.layers["MPI-IO"].metadata_slowest_rank_s = 10.0
    return plan_of(built(profile_of(file, job=Job(emulated="m")), empty))


@pytest.mark.parametrize(
    ("given", "acts"),
    [
        # nobody aggregates
        (
            {"romio_cb_write": "disable", "cb_nodes": "8", "cb_buffer_size": "4194304", "striping_unit": "1048576"},
            {"romio_cb_write": "disable"},
        ),
        ({"cb_nodes": "8", "romio_ds_write": "disable"}, {"cb_nodes": "8"}),
        ({"romio_ds_write": "disable"}, {}),
        ({"romio_cb_write": "disable", "romio_ds_write": "disable"}, None),
        # any other hint brings ROMIO, too
        ({"romio_cb_write": "automatic", "cb_nodes": "8"}, {"cb_nodes": "8"}),
        ({"romio_cb_write": "automatic"}, None),
        ({"romio_no_indep_rw": "true", "romio_cb_write": "enable"}, {"romio_no_indep_rw": "true"}),
        # the default, and the unit of one stripe
        ({"lfs_stripe_count": "1", "lfs_stripe_size": "4194304"}, {}),
        ({"lfs_stripe_count": "4", "lfs_stripe_size": "4194304"}, None),
        ({}, {}),
    ],
)
def test_settings_without_effect_are_omitted(plan, given, acts):
    def full(short):
        return {name if name.startswith("lfs") else f"out.nc:{name}": value for name, value in short.items()}

    assert space.canonical(full(given), plan) == full(given if acts is None else acts)


def test_several_files_switch_to_romio_once(empty):
    made = built(profile_of(*(collective(f"/scratch/{name}.nc", by="mca_fs_ufs.so") for name in "ab")), empty)
    both = {"a.nc:romio_cb_write": "automatic", "b.nc:romio_cb_write": "automatic"}
    assert space.canonical(both, plan_of(made)) == {"a.nc:romio_cb_write": "automatic"}


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"out.nc:romio_no_indep_rw": "true", "out.nc:striping_unit": "1048576"}, "hang"),
        ({"out.nc:romio_no_indep_rw": "true", "out.nc:romio_cb_write": "disable"}, "switches it off"),
        ({"out.nc:cb_nodes": "5"}, "does not divide 16 ranks"),
        ({"out.nc:cb_buffer_size": "4194304", "lfs_stripe_size": "3145728"}, "no whole number of stripe units"),
        ({"other:cb_nodes": "4"}, "no parameter"),
    ],
)
def test_unsafe_combinations_are_forbidden_with_a_reason(plan, given, why):
    assert why in space.forbidden(given, plan)


def test_safe_combinations_are_not_forbidden(plan):
    given = {"out.nc:cb_nodes": "8", "out.nc:cb_buffer_size": "1048576", "lfs_stripe_size": "4194304"}
    assert space.forbidden(given, plan) is None


def test_space_is_read_back_from_the_study_file(replib):
    made = built(*replib)
    assert msgspec.json.decode(msgspec.json.encode(made), type=space.Space) == made
