"""`forebay-py report` as a person types it."""

import io
import json
import os
import pathlib
import pty
import re
import signal
import subprocess
import sys
import time

import msgspec
import pytest
from support import record_data
from support.report_data import LOG_NAMES, LOGS, advised, log
from support.strace import few
from rich.console import Console

from forebay.profiles import metrics
from forebay.report.terminal import print_summary

FOREBAY_PY = pathlib.Path(sys.executable).parent / "forebay-py"
DEFAULT = LOGS / "mpiio_shared_default.darshan"
TUNED = LOGS / "mpiio_shared_tuned.darshan"
HEAVY = ("numpy", "pandas", "matplotlib", "weasyprint", "darshan", "rich", "jinja2")


@pytest.mark.parametrize("name", few(*LOG_NAMES, kept=2))
def test_summary_fits_a_screen(report, name):
    told = report(LOGS / f"{name}.darshan")
    assert told.returncode == 0, told.stderr
    lines = told.stdout.splitlines()
    assert 5 <= len(lines) <= 40
    assert max(len(line.rstrip()) for line in lines) <= 80
    assert "of the run time" in told.stdout


@pytest.mark.soak
def test_summary_has_the_size_of_most_calls_and_not_their_mean(report):
    """314,219 reads of 24.5 MiB: nearly all returned nothing."""
    told = report(LOGS.parents[1] / "report" / "labelled" / "e3sm_io_heatmap_only.darshan", COLUMNS="160")
    (line,) = [line for line in told.stdout.splitlines() if line.startswith("POSIX")]
    assert "306,777 calls, most of 100K-1M bytes" in line and "314,219 calls, most of 0-100 bytes" in line


@pytest.mark.soak
def test_summary_of_two_runs_fits_a_screen(report):
    told = report(DEFAULT, TUNED)
    assert len(told.stdout.splitlines()) <= 40
    assert "B was 1.2 times as fast as A" in told.stdout
    assert "POSIX writes: calls" in told.stdout


@pytest.mark.soak
def test_summary_fits_a_narrow_terminal(report):
    told = report(DEFAULT, COLUMNS="40")
    assert len(told.stdout.splitlines()) <= 40
    # A line to be copied is left whole: half of it would be another command.
    copied = [line for line in told.stdout.splitlines() if len(line) > 40]
    assert copied == ["  export MPICH_MPIIO_HINTS='d.dat:cb_nodes=2:cb_config_list=#*:*#'"]


def test_narrow_terminal_always_shows_the_lines_to_add():
    one = advised(log("mpiio_shared_default"))
    long = "more than fits on a screen of forty columns, " * 9
    others = [msgspec.structs.replace(one.findings[0], title=long, lines=()) for _ in "ab"]
    one.findings += others
    screen = io.StringIO()
    print_summary(Console(file=screen, width=40), one, advice=True)
    told = screen.getvalue()
    assert "the page (--html) has the rest" in told
    assert f"\n  {one.findings[0].lines[0]}\n" in told


def test_names_in_errors_are_shown_without_control_characters(report, tmp_path):
    """A report on a directory names whatever file another user has put there."""
    (tmp_path / "\x1b]0;title\x07\x1b[31m.darshan").write_bytes(DEFAULT.read_bytes()[:1000])
    refused = report(tmp_path)
    assert refused.returncode == 1 and refused.stderr.startswith("error: ")
    assert "\\x1b]0;title\\x07\\x1b[31m.darshan" in refused.stderr
    assert refused.stderr.replace("\n", "").isprintable()


@pytest.mark.soak
def test_bar_parts_are_marked_by_letters(report):
    assert re.search(r"slowest rank  W+x+M*\.+", report(DEFAULT).stdout)


@pytest.mark.soak
def test_colour_is_used_only_on_a_terminal(report):
    assert "\x1b" not in report(DEFAULT).stdout
    assert "\x1b[" in on_a_terminal()
    assert not re.search(r"\x1b\[[\d;]*3\d", on_a_terminal(NO_COLOR="1"))


def on_a_terminal(**variables: str) -> str:
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "80", **variables}
    process = subprocess.Popen(
        [FOREBAY_PY, "report", DEFAULT], stdout=theirs, stderr=subprocess.DEVNULL, env=environment
    )
    os.close(theirs)
    told = b""
    while part := read_or_end(ours):
        told += part
    os.close(ours)
    assert process.wait() == 0
    return told.decode()


def read_or_end(terminal: int) -> bytes:
    try:
        return os.read(terminal, 4096)
    except OSError:  # EIO: the other side is closed
        return b""


def test_json_is_one_object(report):
    told = json.loads(report("--json", DEFAULT, TUNED).stdout)
    assert told["forebay_report"] == 2
    profile = log("mpiio_shared_default")
    assert told["jobs"][0]["totals"]["POSIX"]["write"]["calls"] == metrics.totals(profile, "POSIX").write.calls
    assert told["jobs"][0]["findings"][0]["level"] == "suggestion" and told["jobs"][0]["findings"][0]["lines"]
    of_log = told["jobs"][0]["profile"]["programs"][0]["log"]
    assert of_log["writer"] == "Darshan 3.5.0" and of_log["modules"][0]["name"] == "POSIX"
    assert {one["kind"] for one in told["differences"]} == {"outcome", "counter"}


@pytest.mark.soak
def test_run_without_advice_has_a_short_summary(report, tmp_path):
    told = report("--no-advice", "--html", tmp_path / "page.html", DEFAULT)
    assert "aggregator" not in told.stdout
    assert "What to do" not in (tmp_path / "page.html").read_text()


@pytest.mark.soak
def test_report_shows_efficiency_against_a_machine(report, tmp_path):
    machine = pathlib.Path(__file__).parents[2] / "machines" / "lustre-small.toml"
    report("--machine", machine, "--html", tmp_path / "page.html", DEFAULT)
    page = (tmp_path / "page.html").read_text()
    # 8 targets of 62.5 MB/s; the page cache is faster than the storage that the file describes.
    assert "477 MiB/s (lustre-small: 8 storage targets of 62.5 MB/s each)" in page
    assert re.search(r"\d{3} % of the peak, at MPI-IO; a cache was in front", page)


def test_page_and_pdf_are_written(report, tmp_path):
    told = report("--html", tmp_path / "a.html", "--pdf", tmp_path / "a.pdf", DEFAULT)
    assert told.stderr == f"page: {tmp_path / 'a.html'}\nPDF: {tmp_path / 'a.pdf'}\n"
    assert (tmp_path / "a.html").read_text().startswith("<!doctype html>")
    assert (tmp_path / "a.pdf").read_bytes().startswith(b"%PDF-")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.html", "a.pdf"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["/nowhere/a.darshan"], "error: /nowhere/a.darshan: no such file"),
        ([], "error: no job has been recorded yet"),
        ([DEFAULT] * 7, "error: 7 jobs are too many"),
        ([DEFAULT, "--html", "/nowhere/page.html"], "error: /nowhere/page.html: No such file"),
        ([DEFAULT, "--machine", "/nowhere.toml"], "error: /nowhere.toml: No such file"),
    ],
)
def test_errors_say_what_to_do(report, arguments, said):
    told = report(*arguments)
    assert told.returncode == 1
    assert told.stderr.startswith(said)
    assert "\nhint: " in told.stderr
    assert "Traceback" not in told.stderr


@pytest.mark.soak
def test_interrupted_report_leaves_no_partial_file(tmp_path):
    """Interrupted ever later, until a run is through: there is a whole file or none, and nothing next to it."""
    page = tmp_path / "page.html"
    delay_s = 0.4
    while not page.exists():
        process = subprocess.Popen(
            [FOREBAY_PY, "report", DEFAULT, "--html", page], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )
        time.sleep(delay_s)
        delay_s *= 2
        process.send_signal(signal.SIGINT)
        process.communicate()
        assert [path.name for path in tmp_path.iterdir()] in ([], ["page.html"])
    assert page.read_text().endswith("</html>")


def test_full_disk_is_reported_and_leaves_nothing(report, tmp_path):
    """A limit of the file size stands for a full disk: the write fails half way."""
    page = tmp_path / "page.html"
    limited = f"ulimit -f 8; trap '' XFSZ; exec {FOREBAY_PY} report {DEFAULT} --html {page}"
    told = subprocess.run(["bash", "-c", limited], capture_output=True, text=True)
    assert told.returncode == 1
    assert f"error: {page}: File too large\nhint: " in told.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "words", [["-c", "import forebay"], ["-m", "forebay.cli", "--help"], ["-m", "forebay.cli", "report", "--help"]]
)
def test_heavy_modules_are_loaded_only_when_needed(words):
    code = f"import runpy, sys, forebay, atexit; loaded = lambda: print([n for n in {HEAVY} if n in sys.modules], file=sys.stderr)\natexit.register(loaded)\n"
    code += "" if words[0] == "-c" else f"from forebay.cli import main\nmain({words[2:]})"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert told.stderr == "[]\n"


def test_help_has_examples(report):
    assert "forebay report old.darshan new.darshan" in report("--help").stdout


@pytest.mark.soak
def test_page_of_the_last_run_is_written_into_its_record(report, tmp_path):
    state = tmp_path / "state"
    files = (record_data.posix_file("/scratch/ada/out.dat"),)
    record_data.record(state, record_data.job_json("1700000000001"), record_data.step(*files))
    record_data.record(
        state, record_data.job_json("1700000000002", started_unix_s=1700000900.0), record_data.step(*files)
    )
    told = report()
    assert told.returncode == 0, told.stderr
    assert "job 1700000000002" in told.stdout
    page = state / "profiles" / "1700000000002" / "report.html"
    assert told.stderr == f"page: {page}\n"
    assert "/scratch/ada/out.dat" in page.read_text()
    assert not (state / "profiles" / "1700000000001" / "report.html").exists()
    # With the page in it, the record reads as before.
    assert report("1700000000002").stdout == told.stdout


@pytest.mark.soak
def test_nodes_of_an_allocation_are_in_the_report(report, tmp_path):
    nodes = {"engine": "ceph", "names": ["n1", "n2"], "failed": None, "redundancy": 2, "share_bytes": 4 << 20}
    outcome = {"job_status": 0, "exit_code": 0, "job_s": 1.0, "nodes": nodes, "store": {"store": "/nvme on 2 nodes"}}
    record = record_data.record(tmp_path, record_data.job_json(outcome=outcome))
    told = json.loads(report(record, "--json").stdout)
    assert told["jobs"][0]["profile"]["job"]["allocation"]["nodes"] == ["n1", "n2"]
    page = tmp_path / "page.html"
    assert report(record, "--html", page).returncode == 0
    text = page.read_text()
    for part in ("n1, n2", "copies of the data", "share of each node, at most", "4 MiB"):
        assert part in text
