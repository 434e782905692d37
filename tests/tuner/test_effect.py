"""Did a setting do anything? Real runs with and without it; made-up profiles for machines that are not here."""

import pytest
from support.advice_data import GOOD, GOOD_SYSTEM, profile_of, shared
from support.mpi import Mpi
from support.mpi_run import TARGETS, MpiRun
from support.plans import parameter, plan

from forebay.profiles.model import Collective, Hints, Job, WithoutEffect
from forebay.tune import space
from forebay.tune.job_script import script
from forebay.tune.runs import effect

MIB = 1 << 20
FILE = "effect-replib.bbp"


@pytest.fixture(scope="module")
def ran(build, tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FOREBAY_PROGRAM", str(build / "bin" / "forebay"))
        yield MpiRun(build, tmp_path_factory.mktemp("effect"))


def judged(configuration, default, trial):
    parameters = (parameter(name, value) for name, value in configuration.items())
    return effect.without_effect(configuration, plan(parameters), default, trial)


# Real runs: Open MPI, which tells no hints in force, and MPICH, which does.


def test_effect_is_found_in_counters_of_real_runs_but_not_in_noise(ran):
    kernel = f"mpiexec -n 4 {ran.kernel('replib')} -w file1b -r 3 -t 0 -o {FILE}"

    def run(hints="", stripes=1):
        return ran.profile("replib", f"rm -f {FILE}", f"lfs setstripe -c {stripes} .", kernel, hints=hints)

    default, again = run(), run()
    trial = run(f"{FILE}:romio_cb_write=enable:cb_nodes=4:cb_config_list=#*:*#", stripes=4)
    given = {f"{FILE}:cb_nodes": "4", f"{FILE}:romio_cb_write": "enable", "lfs_stripe_count": "4"}
    assert judged(given, default, trial) == []
    assert judged(given, default, again) == list(given)
    (file,) = [file for program in trial.programs for file in program.files if "MPI-IO" in file.layers]
    assert (file.collective.aggregators_write, file.stripe_count) == (4, 4)


@pytest.mark.soak
def test_aggregators_capped_by_mpich_have_no_effect_and_are_reported(ran, build):
    deck = "printf 'w\\n0\\n2\\n16 16 16\\n.\\n' > deck.data"
    lines = [deck, f"mpiexec.mpich -n 4 {Mpi('mpich', build).btio()} deck.data"]
    default = ran.profile("mpich", *lines)
    job_script = script.read(ran.script("empty", "srun ./app"))
    made = space.build(default, job_script, "file-system", layout_may_change=False, stripe_targets=TARGETS)
    names = {one.name: one for one in made.parameters}
    # it tells what is in force, and `automatic` is seen to buffer
    assert names["btio.full.out:romio_cb_write"].default == "automatic"
    assert names["btio.full.out:romio_cb_write"].values == ("disable",)
    assert names["btio.full.out:cb_nodes"].default == "1"
    # without cb_config_list there is still one aggregator on the node
    given = {"btio.full.out:cb_nodes": "4"}
    capped = ran.profile("mpich", *lines, hints="btio.full.out:cb_nodes=4")
    assert judged(given, default, capped) == list(given)
    (file,) = [file for program in capped.programs for file in program.files if "MPI-IO" in file.layers]
    assert "1 rank(s) wrote" in file.hints.without_effect[0].seen


# Made-up profiles.


def written(*, hints=None, **members):
    known = {
        "write": GOOD,
        "system": GOOD_SYSTEM,
        "collective": Collective(aggregators_write=1, aggregators_read=0, rmw_calls=0),
        "stripe_count": 1,
        "stripe_bytes": MIB,
    }
    return profile_of(shared("/scratch/out.nc", hints=hints, **known | members), job=Job(emulated="m"))


def denied(**asked):
    seen = "this MPI does not know it"
    return Hints(environment=asked, without_effect=[WithoutEffect(key=k, asked=v, seen=seen) for k, v in asked.items()])


def test_hint_that_the_library_ignored_has_no_effect():
    """Open MPI 5.0.11 hands no hint on to its ROMIO."""
    moved = {"calls": 300, "bytes": 4 << 30}
    trial = written(hints=denied(romio_ds_write="disable"), system=moved)
    given = {"out.nc:romio_ds_write": "disable"}
    assert judged(given, written(), trial) == ["out.nc:romio_ds_write"]


def test_one_of_two_files_without_effect_is_not_enough():
    trial = written(hints=denied(romio_ds_write="disable"), system={"calls": 300, "bytes": 4 << 30})
    trial.programs[0].files.append(shared("/scratch/out.nc", write=GOOD, system=GOOD_SYSTEM, hints=Hints()))
    assert judged({"out.nc:romio_ds_write": "disable"}, written(), trial) == []


def test_fewer_aggregators_than_asked_for_are_an_effect():
    trial = written(collective=Collective(aggregators_write=4), hints=denied(cb_nodes="8"))
    assert judged({"out.nc:cb_nodes": "8"}, written(), trial) == []


def test_unknown_effect_is_not_called_without_effect():
    unknown = written(collective=None, system={"calls": None, "bytes": None}, stripe_count=None, stripe_bytes=None)
    given = {"out.nc:cb_nodes": "8", "out.nc:romio_cb_write": "enable", "lfs_stripe_count": "4"}
    assert judged(given, unknown, unknown) == []


def test_effect_of_switching_to_romio_is_found_with_equal_calls():
    given = {"out.nc:romio_cb_write": "automatic"}
    ompio, romio = written(opened_by="mca_fs_ufs.so"), written(opened_by="mca_io_romio321.so")
    assert judged(given, ompio, romio) == []
    assert judged(given, ompio, ompio) == list(given)


def test_effect_of_a_buffer_size_is_found_in_the_system_calls():
    given = {"out.nc:cb_buffer_size": str(MIB)}
    assert judged(given, written(), written(system=GOOD_SYSTEM | {"calls": 4 * GOOD_SYSTEM["calls"]})) == []
    assert judged(given, written(), written()) == list(given)


def test_file_missing_in_the_trial_is_not_judged():
    assert judged({"out.nc:cb_nodes": "8"}, written(), profile_of()) == []


@pytest.mark.parametrize(("count", "lost"), [(1, ["lfs_stripe_count"]), (8, []), (4, [])])
def test_stripe_count_capped_by_lustre_is_still_an_effect(count, lost):
    assert judged({"lfs_stripe_count": "8"}, written(), written(stripe_count=count)) == lost


def test_alignment_with_a_longer_file_is_an_effect():
    longer = written(system=GOOD_SYSTEM | {"end_bytes": 5 << 30})
    assert judged({"nc_var_align_size": str(MIB)}, written(), longer) == []
    assert judged({"nc_var_align_size": str(MIB)}, written(), written()) == ["nc_var_align_size"]


def test_automatic_romio_choice_is_not_called_without_effect():
    """Of a job that has hints already its `automatic` may be buffering; ompio's calls are its own."""
    for by, lost in (("mca_io_romio321.so", []), ("mca_fs_ufs.so", ["out.nc:romio_cb_write"])):
        run = profile_of(shared("/scratch/out.nc", write=GOOD, system=GOOD_SYSTEM, opened_by=by))
        assert judged({"out.nc:romio_cb_write": "enable"}, run, run) == lost
        assert judged({"out.nc:romio_cb_write": "disable"}, run, run) == lost
    buffered = profile_of(
        shared(
            "/scratch/out.nc",
            write=GOOD,
            system=GOOD_SYSTEM,
            opened_by="mca_io_romio321.so",
            collective=Collective(aggregators_write=1, aggregators_read=0, rmw_calls=0),
        )
    )
    assert judged({"out.nc:romio_cb_write": "disable"}, buffered, buffered) == ["out.nc:romio_cb_write"]


def test_unknown_layout_is_not_called_without_effect():
    unknown = written(stripe_count=None, stripe_bytes=None)
    given = {"lfs_stripe_count": "8", "lfs_stripe_size": str(MIB)}
    assert judged(given, unknown, unknown) == []
