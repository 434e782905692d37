"""`forebay.run` and `forebay.open` with the real program."""

import pickle
import signal
import subprocess
import sys

import pytest
from support.waiting import wait_until

import forebay
from forebay import opening, running

DIRECTIVES = (
    "#DW jobdw type=scratch access_mode=striped capacity=16MiB",
    "#DW stage_out type=directory source=$DW_JOB_STRIPED/out destination=%d/out",
)
WRITES = "mkdir $DW_JOB_STRIPED/out; echo $1 > $DW_JOB_STRIPED/out/a; "


def test_import_loads_no_third_party_module():
    code = "import sys; old = set(sys.modules); import forebay; print(*set(sys.modules) - old)"
    loaded = subprocess.check_output([sys.executable, "-c", code], text=True).split()
    roots = {name.partition(".")[0] for name in loaded} - {"forebay"}
    assert roots <= set(sys.stdlib_module_names)
    assert len(forebay.__all__) <= 15


def test_run_returns_the_fields_of_the_json_and_open_finds_the_record(here):
    here.script(WRITES, *DIRECTIVES)
    result = forebay.run("job.sh", "--a b", store=here.store, verify="end", keep=False)
    assert (here.directory / "out" / "a").read_text() == "--a b\n"
    assert result.exit_code == result.job_status == 0 and not result.undelivered
    assert result.stage_out.files == 1 and result.stage_out.bytes == 6
    assert forebay.open().id == forebay.open(result.run_id).id == result.run_id
    assert forebay.open(result.run_id[-4:]).id == result.run_id
    record = forebay.open(result.run_id[:-1])
    assert record.result == forebay.open("last").result and record.state == "ended"
    assert record.result.stage_out == result.stage_out and record.profile.job.exit_code == 0
    assert record.report(here.directory / "report.html").read_text().startswith("<!doctype html>")
    with pytest.raises(LookupError, match="nosuch"):
        forebay.open("nosuch")


def test_open_finds_records_in_the_directory_of_the_setting_state(here, monkeypatch, tmp_path):
    here.script("true", DIRECTIVES[0])
    monkeypatch.delenv("FOREBAY_STATE")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (tmp_path / "forebay").mkdir()
    (tmp_path / "forebay" / "config.toml").write_text(f'state = "{tmp_path}/kept"\n')
    result = forebay.run("job.sh", store=here.store)
    assert forebay.open().path == tmp_path / "kept" / "profiles" / result.run_id
    monkeypatch.setattr(opening, "find_forebay", no_program)
    monkeypatch.setenv("FOREBAY_STATE", str(tmp_path / "kept"))
    assert forebay.open().id == result.run_id


def no_program():
    raise forebay.ProgramNotFoundError("the program forebay was not found")


def test_open_finds_records_in_the_fallback_below_tmpdir(here, monkeypatch):
    """As root can write everywhere, a file in place of the state directory makes the program use the fallback."""
    here.script("true", DIRECTIVES[0])
    monkeypatch.setenv("FOREBAY_STATE", str(here.directory / "file" / "state"))
    (here.directory / "file").touch()
    result = forebay.run("job.sh", store=here.store)
    (fallback,) = here.temporary.glob("forebay-state-*")
    assert forebay.open().path == fallback / "profiles" / result.run_id
    fallback.chmod(0o777)
    with pytest.raises(forebay.NotRecordedError):
        forebay.open()
    fallback.chmod(0o700)


@pytest.mark.parametrize("has_program", [True, False])
def test_open_refuses_a_relative_state_directory_as_the_program_does(here, monkeypatch, has_program):
    monkeypatch.setenv("FOREBAY_STATE", "relative")
    if not has_program:
        monkeypatch.setattr(opening, "find_forebay", no_program)
    with pytest.raises(forebay.ForebayError, match=r"FOREBAY_STATE: .*relative") as refused:
        forebay.open()
    assert refused.value.hint


def test_false_overrides_a_flag_of_a_file_and_conflicts_with_no_other_option(here):
    here.script('echo "trace ${FOREBAY_MPI_TRACE:-off} profile ${FOREBAY_PROFILE:+on}"', DIRECTIVES[0])
    settings = here.directory / "forebay.toml"

    def printed(**options) -> str:
        forebay.run("job.sh", store=here.store, output="printed", **options)
        return (here.directory / "printed").read_text().strip()

    settings.write_text("trace = true\n")
    assert printed() == "trace 1 profile on"
    assert printed(trace=False) == "trace off profile on"
    assert printed(trace=False, no_profile=True) == "trace off profile"
    settings.write_text("no-profile = true\nno-deadline = true\n")
    assert printed() == "trace off profile"
    assert printed(no_profile=False, no_deadline=False, deadline="10:00") == "trace off profile on"
    assert printed(no_profile=False, trace=True) == "trace 1 profile on"
    settings.unlink()
    assert printed(trace=False, no_profile=False, keep=False) == "trace off profile on"


def test_failed_job_raises_an_error_with_its_result(here):
    here.script(WRITES + "exit 3", *DIRECTIVES)
    with pytest.raises(forebay.JobError, match="exit code 3") as caught:
        forebay.run("job.sh", store=here.store)
    assert isinstance(caught.value, RuntimeError) and caught.value.result.stage_out.files == 1
    assert forebay.run("job.sh", store=here.store, check=False).exit_code == 3


def test_job_works_in_the_directory_that_cwd_names(here):
    here.script(WRITES, *DIRECTIVES)
    folder = here.directory / "a member"
    folder.mkdir()
    forebay.run(here.directory / "job.sh", "x", cwd=folder, store=here.store)
    assert (folder / "out" / "a").read_text() == "x\n" and not (here.directory / "out").exists()
    (here.directory / "job.sh").rename(folder / "own.sh")
    assert forebay.run("own.sh", "y", cwd=str(folder), store=here.store).exit_code == 0
    assert (folder / "out" / "a").read_text() == "y\n"


def test_errors_reach_the_caller_from_another_process(here):
    here.script(WRITES + "exit 3", *DIRECTIVES)
    with pytest.raises(forebay.JobError) as failed:
        forebay.run("job.sh", store=here.store)
    with pytest.raises(forebay.NotRecordedError) as unknown:
        forebay.open("nosuch")
    with pytest.raises(forebay.stage.NotInJobError) as outside:
        forebay.stage.stage_out("a", "b")
    for error in (failed.value, unknown.value, outside.value):
        copy = pickle.loads(pickle.dumps(error))
        assert (type(copy), str(copy), copy.hint) == (type(error), str(error), error.hint)
        assert getattr(copy, "result", None) == getattr(error, "result", None)


def test_job_that_does_not_start_has_an_error_and_a_hint(here):
    result = forebay.run("nosuch.sh", check=False)
    assert result.exit_code == 125 and "nosuch.sh" in result.error and result.hint


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"drian": "*"}, "did you mean 'drain'"),
        ({"store": True}, "takes a value"),
        ({"keep": "yes"}, "takes True or False"),
        ({"json": True}, "unknown option 'json'"),
    ],
)
def test_wrong_option_is_a_type_error(here, options, message):
    with pytest.raises(TypeError, match=message):
        forebay.run("job.sh", **options)


def test_options_and_reports_work_in_the_environment_of_a_notebook(here, monkeypatch):
    here.script(WRITES + "dd if=/dev/zero of=$DW_JOB_STRIPED/out/b bs=64K count=99 status=none", *DIRECTIVES)
    # What the kernel of a notebook sets; its backend is not installed with forebay-py.
    monkeypatch.setenv("CLICOLOR_FORCE", "1")
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("MPLBACKEND", "module://matplotlib_inline.backend_inline")
    running._options.cache_clear()
    result = forebay.run("job.sh", "x", store=here.store, output="output.txt")
    assert result.exit_code == 0 and (here.directory / "output.txt").exists()
    assert "<svg" in forebay.open().report(here.directory / "report.html").read_text()


def test_the_text_of_a_result_fits_a_screen(here):
    here.script(WRITES, *DIRECTIVES)
    result = forebay.run("job.sh", store=here.store)
    assert len(repr(result)) < 1000 and "members" not in repr(result) and result.members["job_s"] == result.job_s


def test_ctrl_c_stages_out_and_leaves_nothing(here):
    here.script(WRITES + "touch started; sleep 60", *DIRECTIVES)
    code = f"import forebay; forebay.run('job.sh', 'x', store={str(here.store)!r})"
    process = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE, text=True)
    wait_until((here.directory / "started").exists)
    process.send_signal(signal.SIGINT)
    assert "KeyboardInterrupt" in process.communicate()[1]
    assert (here.directory / "out" / "a").read_text() == "x\n"
    here.leaves_nothing()


def test_notebook_tables_escape_names_and_have_no_script(here):
    here.script(WRITES, *DIRECTIVES)
    (here.directory / "job.sh").rename(here.directory / "<b>.sh")
    shown = forebay.run("<b>.sh", store=here.store)._repr_html_() + forebay.open()._repr_html_()
    assert "&lt;b&gt;.sh" in shown and "<b>" not in shown and "<script" not in shown
    assert shown.count("stage out") == 2
