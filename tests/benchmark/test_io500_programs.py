"""What ior and mdtest are asked, and what is read from their answers (recorded from version 4.1)."""

import pathlib

import pytest

from forebay.bench.errors import BenchError
from forebay.bench.phases import PHASES
from forebay.bench.programs import Ior, Mdtest, Output, OwnProgram, Setting

NAMED = {phase.name: phase for phase in PHASES}
LIMITS = {"ior-easy": 32, "ior-hard": 100, "mdtest-easy": 100_000, "mdtest-hard": 2000}
TABLE = """
   File creation               {0:14.3f} {0:14.3f} {0:14.3f}          0.000
   File stat                        0.000          0.000          0.000          0.000
   File read                   {1:14.3f} {1:14.3f} {1:14.3f}          0.000
SUMMARY time (in ms/op): (of 1 iterations)
   File creation                    1.184          1.184          1.184          0.000
"""


@pytest.fixture
def setting(tmp_path):
    return Setting(
        directory=tmp_path, ranks=2, shift=1, signature=7, stonewall_s=300, operations_max=LIMITS
    )  # fmt: skip


def has(words, *wanted):
    """Whether the words are there, one after the other."""
    return any(tuple(words[at : at + len(wanted)]) == wanted for at in range(len(words)))


def test_ior_is_called_as_io500_calls_it(setting):
    easy = Ior().words(NAMED["ior-easy-write"], setting, 1)
    assert has(easy, "-C", "-Q", "1", "-g", "-G", "7", "-k", "-e")
    assert has(easy, "-F", "-t", str(2 << 20), "-b", str(32 * (2 << 20))) and has(easy, "-w", "-D", "300")
    assert has(easy, "-O", "stoneWallingWearOut=1")
    hard = Ior().words(NAMED["ior-hard-read"], setting, 1)
    assert has(hard, "-t", "47008", "-b", "47008", "-s", "100") and has(hard, "-r", "-R")
    assert "-F" not in hard and "-D" not in hard
    of_both = [
        [word for word in words if "StatusFile" in word]
        for words in (hard, Ior().words(NAMED["ior-hard-write"], setting, 1))
    ]
    assert of_both[0] == of_both[1] and len(of_both[0]) == 1


def test_mdtest_is_called_as_io500_calls_it(setting):
    def words(name):
        return Mdtest().words(NAMED[name], setting, 1)

    easy = words("mdtest-easy-write")
    assert has(easy, "-n", "100000", "-F", "-P", "-G", "7", "-N", "1") and has(easy, "-u", "-L")
    assert has(easy, "-C", "-Y", "-W", "300")
    assert words("mdtest-easy-stat")[-1] == "-T" and words("mdtest-easy-delete")[-1] == "-r"
    assert has(words("mdtest-hard-write"), "-t", "-w", "3901", "-e", "3901", "-C", "-Y")
    assert words("mdtest-hard-read")[-2:] == ["-E", "-X"] and "-u" not in words("mdtest-hard-read")


def summary_of_ior(setting, name, mib_per_s, total_s):
    text = f'{{"tests": [{{"Results": [{{"access": "write", "bwMiB": {mib_per_s}, "totalTime": {total_s}}}]}}]}}'
    (setting.directory / f"{name}.json").write_text(text)


def test_summary_of_ior_is_read(setting):
    summary_of_ior(setting, "ior-easy-write", 156.7398, 0.8166)
    found = Ior().measured(NAMED["ior-easy-write"], setting, 32, Output(0, "", ""))
    assert (found.operations, found.operations_of_rank, found.bytes) == (64, 32, 128 << 20)
    assert found.score == pytest.approx(156.7398 / 1024) and found.verified is None and not found.errors


def test_wrong_data_that_ior_finds_make_the_phase_invalid(setting):
    summary_of_ior(setting, "ior-easy-read", 326.11, 0.3925)
    said = "WARNING: Incorrect data on read (3 errors found).\n"
    found = Ior().measured(NAMED["ior-easy-read"], setting, 32, Output(2, said, ""))
    assert found.verified is False and found.errors == ["ior-easy-read: 3 transfers have wrong data"]


@pytest.mark.parametrize("text", ["", "{", '{"tests": []}', '{"tests": [{"Results": []}]}', '{"tests": 1}'])
def test_summary_of_ior_that_cannot_be_read_is_an_error(setting, text):
    (setting.directory / "ior-hard-read.json").write_text(text)
    with pytest.raises(BenchError, match="ior-hard-read: ior wrote no summary that can be read"):
        Ior().measured(NAMED["ior-hard-read"], setting, 1, Output(0, "", ""))


def test_failure_names_the_phase_and_the_message_of_the_program(setting):
    output = Output(1, "", "mpiexec noise\nior ERROR: open64() failed, errno 28, No space left\n")
    with pytest.raises(BenchError, match="ior-hard-write: ior failed, exit code 1: ior ERROR: .*No space left"):
        Ior().measured(NAMED["ior-hard-write"], setting, 1, output)
    with pytest.raises(BenchError, match="mdtest-easy-stat: mdtest failed, SIGKILL ended it: it printed no message"):
        Mdtest().measured(NAMED["mdtest-easy-stat"], setting, 1, Output(-9, "", ""))


def test_table_of_mdtest_is_read(setting):
    (setting.directory / "mdtest-easy.stonewall").write_text("17796")
    text = "Continue stonewall hit min: 16048 max: 17796 avg: 16922.0 \n" + TABLE.format(30070.614, 0)
    found = Mdtest().measured(NAMED["mdtest-easy-write"], setting, 100_000, Output(0, text, ""))
    assert (found.operations, found.operations_of_rank, found.stonewall_operations) == (35592, 17796, 33844)
    assert found.score == pytest.approx(30.070614) and found.time_s == pytest.approx(35592 / 30070.614)


def test_phase_of_mdtest_that_reached_its_limit_has_no_status_file(setting):
    found = Mdtest().measured(NAMED["mdtest-hard-write"], setting, 2000, Output(0, TABLE.format(4000, 0), ""))
    assert (found.operations, found.bytes) == (4000, 4000 * 3901)
    (setting.directory / "mdtest-hard.stonewall").write_text("no number")
    with pytest.raises(BenchError, match="mdtest wrote no number"):
        Mdtest().measured(NAMED["mdtest-hard-write"], setting, 2000, Output(0, TABLE.format(4000, 0), ""))


def test_wrong_data_that_mdtest_reports_with_exit_code_0_make_the_phase_invalid(setting):
    text = "ERROR: verifying the data on read (1 errors)! Take the performance values with care!\n" + TABLE.format(
        0, 500
    )
    found = Mdtest().measured(NAMED["mdtest-hard-read"], setting, 100, Output(0, text, ""))
    assert found.verified is False and "verifying the data on read" in found.errors[0]


def test_output_of_a_foreign_mpi_is_recognised(setting):
    """A launcher of another MPI starts as many programs, each with one rank."""
    line = (
        '{"ranks":1,"operations":1,"operations_of_rank":1,"found":0,"bytes":0,"wall_s":1.0,'
        '"stonewall_operations":1,"verified":null}\n'
    )
    own = OwnProgram(str(pathlib.Path("forebay-io500")), True)
    with pytest.raises(BenchError, match="2 ranks were asked for, and each of 2 programs had 1") as caught:
        own.measured(NAMED["find"], setting, 1, Output(0, 2 * line, ""))
    assert "--launcher" in caught.value.hint


def test_own_program_compares_only_what_it_wrote():
    setting = Setting(directory=pathlib.Path("d"), ranks=2, shift=1, signature=7, stonewall_s=9, operations_max=LIMITS)
    phase = NAMED["ior-rnd4K-easy-read"]
    assert "--verify" in OwnProgram("p", True).words(phase, setting, 4)
    assert "--verify" not in OwnProgram("p", False).words(phase, setting, 4)
