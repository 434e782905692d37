"""Statistics that MPI libraries print into a job's output."""

import re
import tracemalloc

import pytest

from forebay.profiles import cray, metrics, sources
from forebay.profiles.errors import ProfileError

BTIO_BOX = """\
+--------------------------------------------------------+
| MPIIO write access patterns for /scratch/btio.full.out
|   independent writes      = 11
|   collective writes       = 40960
|   independent writers     = 1
|   aggregators             = 64
|   stripe count            = 64
|   stripe size             = 1048576
|   system writes           = 51211
|   stripe sized writes     = 51200
|   aggregators active      = 0,0,0,40960 (1, <= 32, > 32, 64)
|   total bytes for writes  = 53687091532 = 51200 MiB = 50 GiB
|   ave system write size   = 1048350
|   read-modify-write count = 0
|   read-modify-write bytes = 0
|   number of write gaps    = 2
|   ave write gap size      = 524288
| See "Optimizing MPI I/O on Cray XE Systems" S-0013-20 for explanations.
+--------------------------------------------------------+
"""
TIMERS = """\
| MPIIO write by phases, all ranks, for /scratch/btio.full.out
|   number of ranks writing        =    64
|   number of ranks not writing    =   960
|                                          min         max         ave
|   open/close/trunc  time         =       0.01        0.02        0.01
|   time scale: 1 = 2**4     clock ticks    min         max         ave
|   total                          =                          760329267
|
|   imbalance                      =      1000       90000       20000   1%
|   wait for coll                  =      1000       90000       20000   4%
|   data send             (*)      =      1000       90000       20000  17%
|   file write                     =      1000       90000       20000  80%
|   data send BW (MiB/s)           =                              100.5
|   raw write BW (MiB/s)           =                              2795.
|   net write BW (MiB/s)           =                              2231.
| (*) send and write overlap when number ranks != number of writers
"""


def profile(tmp_path, text):
    path = tmp_path / "slurm-4711.out"
    path.write_text(text)
    return sources.open_path(path)


def only_file(found):
    ((file,),) = [program.files for program in found.programs]
    return file


@pytest.mark.parametrize("value", ["0", "-1", "NA"])
def test_stripes_of_no_bytes_are_not_known(tmp_path, value):
    text = re.sub(r"(stripe (?:count|size) +=).*", rf"\1 {value}", BTIO_BOX)
    file = only_file(profile(tmp_path, text))
    assert (file.stripe_count, file.stripe_bytes) == (None, None)


NINES = "9" * 5000


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("= 0,0,0,40960", f"= 0,0,0,{NINES}"),
        ("20000  17%", f"20000  {NINES}%"),
        ("writing        =    64", "writing        =    64."),
        ("writing        =    64", f"writing        =    {NINES}"),
        ("2231.", f"{NINES}."),
    ],
)
def test_numbers_that_no_statistics_have_are_left_out(tmp_path, old, new):
    text = BTIO_BOX + TIMERS
    assert old in text
    found = profile(tmp_path, text.replace(old, new))
    assert metrics.totals(found, "POSIX").write.calls == 51211


def test_lines_without_end_and_of_blanks_only_cost_no_memory_or_time(tmp_path):
    path = tmp_path / "out"
    path.write_text(
        BTIO_BOX.replace("|   aggregators   ", f"|{' ' * 9000}x\n|   aggregators   ") + "MPIIO " * 2_000_000
    )
    tracemalloc.start()
    found = sources.open_path(path)
    most_bytes = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert only_file(found).collective.aggregators_write == 64
    assert most_bytes < 4 << 20


def test_cray_box_is_read_exactly(tmp_path):
    file = only_file(profile(tmp_path, BTIO_BOX))
    called, system = file.layers["MPI-IO"].write, file.layers["POSIX"].write
    assert (file.path, file.stripe_count, file.stripe_bytes) == ("/scratch/btio.full.out", 64, 1048576)
    assert (called.collective, called.independent, called.calls) == (40960, 11, 40971)
    assert (system.calls, system.bytes, system.stripe_sized, system.gaps) == (51211, 53687091532, 51200, 2)
    assert system.gap_bytes == 2 * 524288
    assert system.calls == system.bytes // file.stripe_bytes + 11  # the published arithmetic
    assert file.collective.aggregators_write == 64
    assert file.collective.active == [0, 0, 0, 40960]
    assert (file.collective.rmw_calls, file.collective.rmw_bytes) == (0, 0)
    assert called.bytes is None and called.seconds is None


@pytest.mark.parametrize("prefix", ["", "0: ", "[0] ", "[1,0]<stderr>:"])
@pytest.mark.parametrize("side", ["| ", "|", ""])
def test_box_is_read_with_any_labels_and_sides(tmp_path, prefix, side):
    lines = [line.removeprefix("| ") for line in BTIO_BOX.splitlines() if not line.startswith("+")]
    text = "".join(f"{prefix}{side}{line}\n" for line in lines)
    assert only_file(profile(tmp_path, text)) == only_file(profile(tmp_path, BTIO_BOX))


def test_box_is_read_with_other_output_between_its_lines(tmp_path):
    noisy = "".join(
        f"{line}\nTiming for main: 0.5 = elapsed seconds\n residual = 17\n" for line in BTIO_BOX.splitlines()
    )
    assert only_file(profile(tmp_path, noisy)) == only_file(profile(tmp_path, BTIO_BOX))


def test_missing_lines_and_na_are_unknown_and_named(tmp_path):
    gone = ("stripe sized", "aggregators active", "number of write gaps")
    lines = [line for line in BTIO_BOX.splitlines() if not any(name in line for name in gone)]
    text = "\n".join(lines).replace("= 524288", "= NA")
    found = profile(tmp_path, text)
    system = only_file(found).layers["POSIX"].write
    assert (system.stripe_sized, system.gaps, system.gap_bytes) == (None, None, None)
    assert only_file(found).collective.active is None
    assert system.calls == 51211
    (note,) = [note for note in found.notes if "no line for" in note]
    assert all(name in note for name in ("stripe sized writes", "aggregators active", "number of write gaps"))
    assert "ave write gap size" not in note


def test_blocks_of_a_reopened_file_are_added(tmp_path):
    read = BTIO_BOX.replace("write access", "read access").replace("writes", "reads").replace("writers", "readers")
    read = read.replace("write size", "read size").replace("write gap", "read gap")
    file = only_file(profile(tmp_path, BTIO_BOX + BTIO_BOX + read))
    assert file.layers["POSIX"].write.calls == 2 * 51211
    assert file.layers["POSIX"].write.bytes == 2 * 53687091532
    assert file.layers["POSIX"].read.calls == 51211
    assert file.layers["MPI-IO"].read.collective == 40960
    assert file.collective.aggregators_write == file.collective.aggregators_read == 64
    assert file.stripe_bytes == 1048576


def test_times_are_computed_from_net_bandwidth(tmp_path):
    found = profile(tmp_path, BTIO_BOX + TIMERS)
    write = only_file(found).layers["MPI-IO"].write
    elapsed_s = 53687091532 / (2231 * 2**20)
    assert found.programs[0].ranks == 1024
    assert write.slowest_rank_s == pytest.approx(elapsed_s)
    assert write.seconds == pytest.approx(1024 * elapsed_s)
    assert write.data_s == pytest.approx(0.80 * write.seconds)
    assert write.rest_s == pytest.approx(0.20 * write.seconds)  # 22 %, but no more than 80 % leave


def test_table_of_writers_only_is_not_taken_for_all_ranks(tmp_path):
    writers = TIMERS.replace("all ranks", "writers only").replace("2231.", "9999.")
    found = profile(tmp_path, BTIO_BOX + TIMERS + writers)
    assert only_file(found) == only_file(profile(tmp_path, BTIO_BOX + TIMERS))


def test_tables_that_fit_no_box_give_no_times(tmp_path):
    found = profile(tmp_path, BTIO_BOX + TIMERS + TIMERS)
    assert only_file(found).layers["MPI-IO"].write.seconds is None
    assert any("2 table(s) of phases for 1 box(es)" in note for note in found.notes)


def test_hints_in_force_are_read(tmp_path):
    hints = """\
PE 0: MPIIO hints for /scratch/btio.full.out:
          cb_buffer_size           = 16777216
          cb_config_list           = *:*
          striping_unit            = 1048576
step = 1
PE 1279: MPIIO hints for /scratch/wrfbdy_d01:
          cb_nodes                 = 4
"""
    found = profile(tmp_path, hints + BTIO_BOX)
    files = {file.path: file for file in found.programs[0].files}
    assert files["/scratch/btio.full.out"].hints.in_force == {
        "cb_buffer_size": "16777216",
        "cb_config_list": "*:*",
        "striping_unit": "1048576",
    }
    assert files["/scratch/wrfbdy_d01"].hints.in_force == {"cb_nodes": "4"}


def test_names_with_spaces_and_utf8_are_read(tmp_path):
    text = BTIO_BOX.replace("/scratch/btio.full.out", "/scratch/my run/größe <b>.nc")
    assert only_file(profile(tmp_path, text)).path == "/scratch/my run/größe <b>.nc"


def test_text_without_statistics_is_refused(tmp_path):
    path = tmp_path / "slurm.out"
    path.write_text("hello\n" * 1000)
    with pytest.raises(ProfileError, match="no statistics") as raised:
        cray.read(path)
    assert "MPICH_MPIIO_STATS" in raised.value.hint


def test_text_truncated_in_a_box_is_reported(tmp_path):
    found = profile(tmp_path, BTIO_BOX[: BTIO_BOX.index("|   system writes")])
    assert only_file(found).layers["POSIX"].write.calls is None
    assert metrics.totals(found, "POSIX").write.calls is None
    assert any("system writes" in note for note in found.notes)


def test_number_beyond_any_limit_is_unknown(tmp_path):
    path = tmp_path / "job.out"
    path.write_text(BTIO_BOX.replace("= 51211", "= 99999999999999999999999"))
    (file,) = cray.read(path).programs[0].files
    assert file.layers["POSIX"].write.calls is None
