"""Advice on genuine logs, on the published case, and on real runs before and after it is taken."""

import copy
import re

import pytest
from support import record_data
from support import wrf_chem
from support.advice_data import codes, only
from forebay.advice.advise import findings, paragraph
from forebay.profiles import sources
from support.mpi import Mpi


@pytest.mark.soak
def test_advice_differs_for_default_and_tuned_logs():
    found = only(record_data.log("mpiio_shared_default"), "few-aggregators")
    assert found.level == "suggestion"
    assert found.lines == ("export MPICH_MPIIO_HINTS='d.dat:cb_nodes=2:cb_config_list=#*:*#'",)
    assert {evidence.counter: evidence.value for evidence in found.evidence}["ranks with POSIX writes"] == 1
    assert codes(record_data.log("mpiio_shared_tuned")) == []


def test_disabled_collective_buffering_is_found():
    found = only(record_data.log("mpiio_shared_cbdisable"), "collective-buffering-off")
    assert found.level == "problem"
    assert found.lines == ("export MPICH_MPIIO_HINTS='d.dat:romio_cb_write=enable'",)
    values = {evidence.counter: evidence.value for evidence in found.evidence}
    assert (values["MPIIO_COLL_WRITES"], values["POSIX_WRITES"]) == (20, 23040)
    assert values["POSIX_BYTES_WRITTEN / POSIX_WRITES"] == 960
    assert codes(record_data.log("mpiio_shared_cbdisable")) == ["collective-buffering-off"]


def test_small_random_calls_are_found():
    found = only(record_data.log("small_random"), "small-independent")
    assert "8,000 independent" in found.title and "random" in found.title and "512 B" in found.title
    assert "MPI_File_write_at_all" in found.action and "MPI_File_read_at_all" in found.action
    assert found.lines == ("#DW jobdw type=scratch access_mode=striped capacity=1GiB",)
    assert "burst buffer" in found.action


def test_job_in_a_burst_buffer_is_not_advised_to_use_one():
    profile = copy.deepcopy(record_data.log("small_random"))
    profile.job.store = "memory"
    found = only(profile, "small-independent")
    assert "burst buffer" not in found.action and found.lines == ()


def test_good_file_per_process_log_gets_no_advice():
    profile = record_data.log("posix_fpp")
    assert findings(profile) == []
    assert "No rule finds anything wrong" in paragraph(profile, [])


@pytest.mark.soak
@pytest.mark.parametrize("name", ["mpiio_shared_default", "mpiio_shared_tuned", "mpiio_shared_cbdisable"])
def test_collective_buffering_is_no_imbalance(name):
    assert not any("uneven" in code or "imbalance" in code for code in codes(record_data.log(name)))


def wrf(tmp_path, blocks):
    path = tmp_path / "rsl.error.0000"
    path.write_text(wrf_chem.text(blocks))
    return sources.open_path(path)


def test_wrf_chem_gets_stripe_units_near_the_mean_call_and_more_aggregators(tmp_path):
    found = findings(wrf(tmp_path, wrf_chem.FIRST))
    assert [finding.code for finding in found] == ["stripe-unit"] * 3
    by_name = {finding.file.rpartition("/")[2][:6]: finding for finding in found}
    shares = {name: finding.title.rpartition(", ")[2] for name, finding in by_name.items()}
    assert shares["wrfinp"].startswith("14 %") and shares["wrfout"].startswith("14 %")
    assert shares["wrfbdy"].startswith("0 %")
    line = (
        "export MPICH_MPIIO_HINTS='wrfinput*:striping_unit=4194304:cb_nodes=8,"
        "wrfbdy*:striping_unit=262144:cb_nodes=4,wrfout*:striping_unit=4194304:cb_nodes=8'"
    )
    assert all(finding.lines == (line,) for finding in found)  # one line for all files: a second would replace it
    values = {item.counter: item.value for item in by_name["wrfinp"].evidence}
    assert values["ave system read size"] == pytest.approx(3845281, abs=1)
    assert (values["stripe sized reads"], values["system reads"], values["aggregators"]) == (108, 762, 4)


def test_wrf_chem_second_round_advises_on_wrfbdy_only(tmp_path):
    (found,) = findings(wrf(tmp_path, wrf_chem.SECOND))
    assert found.code == "stripe-unit" and found.file.endswith("wrfbdy_d01")
    assert "striping_unit=131072" in found.lines[0]


@pytest.fixture(scope="module")
def btio(build, tmp_path_factory):
    """Runs BTIO's pattern on 4 ranks through ROMIO with the hints, and returns its profile."""
    scratch = tmp_path_factory.mktemp("btio")
    mpi = Mpi("openmpi", build)
    (scratch / "out").mkdir()
    (scratch / "deck").write_text(f"w\n0\n5\n48 48 48\n{scratch}/out\n")

    def run(hints):
        path = scratch / "stats.json"
        program = (build / "kernels" / "btio", "--sweeps", "0", scratch / "deck")
        done = mpi.run(4, *program, FOREBAY_MPI_STATS=path, MPICH_MPIIO_HINTS=hints, OMPI_MCA_io="romio321")
        assert done.returncode == 0, done.stderr
        return sources.open_path(path)

    return run


@pytest.mark.parametrize(
    "hints, code, before, after",
    [
        ("*:romio_cb_write=disable:romio_ds_write=disable", "collective-buffering-off", 23040, 5),
        ("*:romio_cb_write=enable", "few-aggregators", 5, 10),
    ],
)
def test_advice_that_was_applied_is_not_repeated(btio, hints, code, before, after):
    profile = btio(hints)
    assert profile.programs[0].files[-1].layers["POSIX"].write.calls == before
    line = re.fullmatch(r"export MPICH_MPIIO_HINTS='(.*)'", only(profile, code).lines[0])
    again = btio(line[1])
    assert again.programs[0].files[-1].layers["POSIX"].write.calls == after
    assert code not in codes(again)
