"""MPICH_MPIIO_HINTS: which hints reach which file, and what is said about them."""

import pytest

from support.mpi import only_file, said


def hints(mpi, path, value, case="own", ranks=1, **environment):
    report, run = mpi.report(ranks, mpi.observed(), case, path, MPICH_MPIIO_HINTS=value, **environment)
    return only_file(report)["hints"], run


def given(mpi, path, value):
    """What reaches the file PATH.0."""
    return hints(mpi, path, value)[0]["environment"]


@pytest.mark.parametrize(
    "value",
    [
        "*:cb_nodes=3",
        "wrf*:cb_nodes=3",
        "wrfout.0:cb_nodes=3",
        "{path}.0:cb_nodes=3",
        "{parent}/*:cb_nodes=3",
        "*/wrfout.?:cb_nodes=3",
        "other:cb_nodes=1,wrf*:cb_nodes=3",
        "wrf*:cb_nodes=3,*:cb_nodes=1",
        "*:cb_nodes=3:",
        "*:cb_nodes=3:,other:cb_nodes=1,",
        "other:cb_nodes=1,\\\n  *:cb_nodes=3\\\n",
        " * : cb_nodes = 3 ",
    ],
)
def test_matching_patterns_apply_hints(openmpi, tmp_path, value):
    value = value.format(path=tmp_path / "wrfout", parent=tmp_path)
    assert given(openmpi, tmp_path / "wrfout", value) == {"cb_nodes": "3"}


@pytest.mark.parametrize("value", ["wrf:cb_nodes=3", "/wrfout.0:cb_nodes=3", "nowhere/*:cb_nodes=3", "*.nc:cb_nodes=3"])
def test_other_patterns_apply_no_hints(openmpi, tmp_path, value):
    assert given(openmpi, tmp_path / "wrfout", value) == {}


def test_several_hints_and_quoted_values_are_applied(mpi, tmp_path):
    value = "*:cb_nodes=2:cb_config_list=#*:2,other:1#:romio_cb_write=enable"
    assert given(mpi, tmp_path / "f", value) == {
        "cb_nodes": "2",
        "cb_config_list": "*:2,other:1",
        "romio_cb_write": "enable",
    }


@pytest.mark.parametrize(
    "value, item",
    [
        ("*:cb_nodes=2:cb_config_list=*:2", "'2' is not KEY=VALUE"),
        ("*:cb_nodes=2:cb_config_list=#*", "'cb_config_list' has a '#' without its partner"),
        ("*:cb_nodes=2:romio_cb_write=enable;cb_buffer_size=1", "'romio_cb_write' holds more than one '='"),
        ("*:cb_nodes=2:romio_cb_write=", "'romio_cb_write' has no value"),
        ("*:cb_nodes=2:=x", "has no name before '='"),
        ("cb_nodes=4,*:cb_nodes=2", "'cb_nodes=4' stands where a file pattern is expected"),
        ("lonely,*:cb_nodes=2", "'lonely' is a file pattern without a hint"),
        ("*:cb_nodes=2:" + "k" * 300 + "=1", "longer than this MPI allows"),
    ],
)
def test_bad_items_are_named_once_and_the_rest_is_used(mpi, tmp_path, value, item):
    found, run = hints(mpi, tmp_path / "f", value, case="info", ranks=2)
    assert found["environment"]["cb_nodes"] == "2"
    assert sum(item in line for line in said(run)) == 1, run.stderr
    assert run.stdout.count(" ok") == 2


def test_environment_overrides_the_program(mpich, tmp_path):
    found, run = hints(mpich, tmp_path / "f", "*:cb_buffer_size=131072", case="info", ranks=2)
    assert found["program"]["cb_buffer_size"] == "65536"
    assert found["in_force"]["cb_buffer_size"] == "131072"
    assert found["in_force"]["cb_nodes"] == "1"
    assert found["without_effect"] == []
    assert run.stdout.count(" ok") == 2, "the program's own MPI_Info is as it was"


def test_hints_of_the_program_alone_are_reported(mpich, tmp_path):
    report, _ = mpich.report(2, mpich.observed(), "info", tmp_path / "f")
    found = only_file(report)["hints"]
    assert found["environment"] == {}
    assert found["in_force"]["cb_buffer_size"] == "65536"


def test_hints_that_open_mpi_4_only_echoes_are_reported_as_unknown(openmpi, tmp_path):
    found, _ = hints(openmpi, tmp_path / "f", "*:cb_buffer_size=131072:bogus=1", case="info", ranks=2)
    assert found["in_force"] is None


def test_cb_nodes_without_cb_config_list_is_named(mpi, tmp_path):
    found, run = hints(mpi, tmp_path / "f", "*:cb_nodes=2:romio_cb_write=enable", case="info", ranks=2)
    assert [(effect["key"], effect["asked"]) for effect in found["without_effect"]] == [("cb_nodes", "2")]
    assert any("hint cb_nodes=2 had no effect: 1 rank(s) wrote" in line for line in said(run)), run.stderr


def test_cb_nodes_beyond_the_ranks_is_named_as_such(mpich, tmp_path):
    value = "*:cb_nodes=8:cb_config_list=#*:*#:romio_cb_write=enable"
    found, _ = hints(mpich, tmp_path / "f", value, case="info", ranks=2)
    assert [effect["seen"] for effect in found["without_effect"]] == [
        "2 rank(s) wrote in collective calls; no more have it open"
    ]


def test_cb_nodes_with_cb_config_list_has_its_effect(mpi, tmp_path):
    value = "*:cb_nodes=2:cb_config_list=#*:*#:romio_cb_write=enable"
    found, run = hints(mpi, tmp_path / "f", value, case="info", ranks=2)
    assert found["without_effect"] == []
    assert "had no effect" not in run.stderr


def test_hint_unknown_to_the_mpi_is_named(mpich, tmp_path):
    found, _ = hints(mpich, tmp_path / "f", "*:bogus=1:cb_nodes=1")
    assert found["without_effect"] == [{"key": "bogus", "asked": "1", "seen": "this MPI does not know it"}]


def test_open_mpi_gets_romio_with_one_message(openmpi, tmp_path):
    run = openmpi.run(2, openmpi.observed(), "info", tmp_path / "f", MPICH_MPIIO_HINTS="*:cb_buffer_size=131072")
    assert sum("ROMIO takes the files" in line for line in said(run)) == 1


def test_component_chosen_by_the_user_is_kept(openmpi, tmp_path):
    value = "*:cb_buffer_size=131072"
    report, run = openmpi.report(
        2, openmpi.observed(), "info", tmp_path / "f", MPICH_MPIIO_HINTS=value, OMPI_MCA_io="ompio"
    )
    assert only_file(report)["opened_by"] == "mca_fs_ufs.so"
    assert "ROMIO" not in run.stderr


def test_without_hints_open_mpi_keeps_its_own_choice(openmpi, tmp_path):
    report, _ = openmpi.report(2, openmpi.observed(), "info", tmp_path / "f")
    assert only_file(report)["opened_by"] == "mca_fs_ufs.so"


def test_hints_work_without_a_report(mpich, tmp_path):
    run = mpich.run(
        2,
        mpich.observed(),
        "info",
        tmp_path / "f",
        MPICH_MPIIO_HINTS="*:cb_buffer_size=131072",
        MPICH_MPIIO_HINTS_DISPLAY="1",
    )
    assert run.stderr.startswith(f"PE 0: MPIIO hints for {tmp_path / 'f'}:\n")
    assert run.stderr.count("cb_buffer_size           = 131072\n") == 1


def test_rank_0_sets_the_hints_for_all_ranks(mpi, tmp_path):
    """Only rank 0 has the variables: the others get hints, and Open MPI's component, all the same."""
    script = tmp_path / "rank.sh"
    script.write_text(
        '[ "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" = 0 ] || unset MPICH_MPIIO_HINTS FOREBAY_MPI_STATS\nexec "$@"\n'
    )
    value = "*:cb_nodes=2:cb_config_list=#*:*#:romio_cb_write=enable"
    report, run = mpi.report(2, "bash", script, mpi.observed(), "info", tmp_path / "f", MPICH_MPIIO_HINTS=value)
    file = only_file(report)
    assert run.stdout.count(" ok") == 2
    assert (file["ranks"], file["write"]["aggregators"]) == (2, 2)
    assert file["opened_by"] in ("mca_io_romio321.so", "libmpich.so.12")


def test_line_breaks_in_values_of_the_program_become_blanks(mpi, tmp_path):
    report, run = mpi.report(1, mpi.observed(), "line_ends", tmp_path / "f", MPICH_MPIIO_HINTS_DISPLAY="1")
    assert run.stdout == "rank 0 ok\n"
    assert only_file(report)["hints"]["program"] == {"note": "first second"}


def test_line_breaks_in_values_of_the_environment_are_refused(mpi, tmp_path):
    report, run = mpi.report(1, mpi.observed(), "own", tmp_path / "f", MPICH_MPIIO_HINTS="*:note=a\nb:cb_nodes=1")
    assert any("'note' holds a line end" in line for line in said(run))
    assert only_file(report)["hints"]["environment"] == {"cb_nodes": "1"}
