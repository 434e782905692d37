"""Settings come from the files of the site, the user and the project, from variables and from options."""

import json
import os
import shutil
import subprocess

import pytest

from support.job import DW, NOBODY

LIMIT_S = 300


class Settings:
    """The configuration files of one job."""

    def __init__(self, job):
        self.job = job
        top = job.directory.parent
        self.site = top / "site.toml"
        self.user = top / "config" / "forebay" / "config.toml"
        self.project = job.directory / "forebay.toml"
        self.user.parent.mkdir(parents=True)
        job.settings |= {"FOREBAY_SITE_CONFIG": str(self.site), "XDG_CONFIG_HOME": str(top / "config")}
        job.script("true", DW)

    def write(self, **texts: str) -> None:
        for name, text in texts.items():
            path = getattr(self, name)
            path.write_text(text)
            path.chmod(0o644)

    def effective(self, **environment: str) -> dict[str, dict]:
        """What `forebay config` says of each key."""
        done = self.job.command("config", "--json", "job.sh", **environment)
        assert done.returncode == 0, done.stderr
        return {one["key"]: one for one in json.loads(done.stdout)["settings"]}

    def refused(self, *texts: str, exit_code: int = 125, options: tuple[str, ...] = (), **environment: str) -> None:
        """`forebay run` starts nothing, and says why."""
        done = self.job.run(*options, **environment)
        assert done.returncode == exit_code, done.stderr
        for text in texts:
            assert text in done.stderr, done.stderr
        self.job.leaves_nothing()
        assert self.job.records() == []


@pytest.fixture
def settings(job):
    return Settings(job)


def test_each_source_overrides_the_ones_below_it(settings):
    sources = []

    def add(source, options=(), **environment):
        sources.append(source)
        done = settings.job.run("--explain", *options, **environment)
        assert done.returncode == 0, done.stderr
        (line,) = [line for line in done.stderr.splitlines() if "setting rate = " in line]
        assert line == f"forebay: setting rate = {len(sources)}MB ({source})"

    settings.write(site="rate = '1MB'\n")
    add(f"{settings.site}:1")
    settings.write(user="\nrate = '2MB'\n")
    add(f"{settings.user}:2")
    settings.write(project="\n\nrate = '3MB'\n")
    add(f"{settings.project}:3")
    add("FOREBAY_RATE", FOREBAY_RATE="4MB")
    add("--rate", ("--rate", "5MB"), FOREBAY_RATE="4MB")


def test_run_names_configuration_files_only_if_they_have_an_effect(settings):
    settings.write(site="", user="trace = true\n")
    assert f"forebay: settings from {settings.user}\n" in settings.job.run().stderr
    settings.write(user="# nothing\n")
    assert "settings from" not in settings.job.run().stderr


def test_flag_in_a_file_applies_and_an_option_overrides_it(settings):
    settings.write(user="no-profile = true\n")
    assert settings.job.run().returncode == 0 and settings.job.records() == []
    assert settings.job.run("--no-profile=false").returncode == 0
    assert len(settings.job.records()) == 1


def test_option_that_conflicts_with_a_file_wins(settings):
    settings.write(user="no-deadline = true\ntrace = true\n")
    done = settings.job.run("--explain", "--deadline", "10", "--no-profile")
    assert done.returncode == 0, done.stderr
    assert "setting no-deadline" not in done.stderr and "setting trace" not in done.stderr


def test_all_errors_of_all_files_are_reported_with_their_lines(settings):
    settings.write(user="verify = 'end'\nstroe = '/x'\n", project="verify = 'fast'\n")
    settings.refused(
        f"{settings.user}:2: there is no key stroe; did you mean store?",
        f'{settings.project}:1: verify = "fast": there is no such value; allowed: "off", "copy" or "end"',
    )
    settings.write(user="rate =\n", project="")
    settings.refused(f"{settings.user}:1: ")
    settings.write(user="")
    settings.refused("FOREBAY_RATE: rate", "allowed: bytes per second", FOREBAY_RATE="fast")


def test_every_command_but_those_without_settings_stops_at_an_error(settings):
    settings.write(user="stroe = '/x'\n")
    for words in (["config"], ["status"], ["compare", "job.sh"], ["stage", "list"], ["clean"]):
        done = settings.job.command(*words)
        assert done.returncode == 1 and "did you mean store?" in done.stderr, (words, done)
    done = settings.job.command("run", "--json", "job.sh")
    assert json.loads(done.stdout)["exit_code"] == 125
    done = settings.job.command("__series", "job.sh")
    assert "did you mean store?" in json.loads(done.stdout)["error"]
    assert settings.job.command("machines").returncode == 0
    settings.user.unlink()


def test_nothing_overrides_a_locked_key(settings):
    settings.write(site="verify = 'end'\nlocked = ['verify', 'trace']\n")
    lock = f"verify cannot be changed: the site file locks it ({settings.site}:2)"
    settings.refused(f"--verify: {lock}", options=("--verify", "off"))
    settings.refused(f"FOREBAY_VERIFY: {lock}", FOREBAY_VERIFY="off")
    settings.refused("--trace: trace cannot be changed", options=("--trace",))
    settings.write(user="verify = 'copy'\n")
    settings.refused(f"{settings.user}:1: {lock}")
    settings.write(user="", project="verify = 'copy'\n")
    settings.refused(f"{settings.project}:1: {lock}")
    settings.write(project="")
    done = settings.job.command("stage", "in", "--verify", "off", "job.sh", settings.job.store)
    assert done.returncode == 1 and lock in done.stderr
    assert settings.job.run("--verify", "end").returncode == 0
    assert settings.effective()["verify"] == {
        "key": "verify",
        "value": "end",
        "source": f"{settings.site}:1",
        "file": str(settings.site),
        "line": 1,
        "locked": True,
    }


def test_configured_engine_profile_is_looked_for_unless_an_option_names_another(settings):
    settings.write(user="engine-profile = 'beeondd'\n")
    settings.refused("there is no profile beeondd", "did you mean beeond?")
    assert settings.effective()["engine-profile"]["value"] == "beeondd"
    assert settings.job.run("--engine-profile", "beeond").returncode == 0


def test_engine_profile_replaces_no_locked_engine_and_is_not_for_projects(settings):
    settings.write(user="engine-profile = 'daos'\n", site="engine = 'ceph'\nlocked = ['engine']\n")
    settings.refused(f"{settings.user}:1: engine-profile cannot be set: the site file locks engine")
    settings.write(user="", site="", project="engine-profile = 'daos'\n")
    settings.refused(f"{settings.project}:1: a project file cannot set engine-profile")


def test_doctor_checks_the_machine_if_an_engine_is_only_configured(settings):
    settings.write(user="engine = 'ceph'\n")
    done = settings.job.command("doctor")
    assert done.returncode == 0 and "A job here uses " in done.stdout, done


def test_only_the_site_file_locks(settings):
    settings.write(user="locked = ['rate']\n")
    settings.refused("only the site file can lock keys")
    settings.write(user="", site="locked = ['ratte']\n")
    settings.refused(f"{settings.site}:1: locked: there is no key ratte; did you mean rate?")


def test_project_file_cannot_choose_where_forebay_writes(settings):
    settings.write(project="store = '/tmp'\nstate = '/tmp'\ndrain = ['*:to=/tmp']\n")
    settings.refused(
        ":1: a project file cannot set store", ":2: a project file cannot set state", ":3: drain: ", "may not name to="
    )


def test_project_file_is_read_only_in_the_directory_of_the_script(settings):
    (settings.job.directory.parent / "forebay.toml").write_text("stroe = 1\n")
    below = settings.job.directory / "below"
    below.mkdir()
    shutil.copy(settings.job.directory / "job.sh", below)
    settings.write(project="rate = '3MB'\n")
    assert settings.effective()["rate"]["value"] == "3MB"
    done = settings.job.command("config", "--json", "below/job.sh")
    assert '"key":"rate","value":null' in done.stdout


@pytest.mark.parametrize("name", ["site", "user", "project"])
def test_configuration_that_is_no_regular_file_is_refused_at_once(settings, name):
    path = getattr(settings, name)
    os.mkfifo(path)
    settings.refused(f"{path}: the {name} file is not a regular file")
    path.unlink()
    path.mkdir()
    settings.refused(f"{path}: the {name} file is not a regular file")
    path.rmdir()
    with path.open("w") as file:
        file.truncate(1 << 40)
    path.chmod(0o644)
    settings.refused(f"{path}: the {name} file is larger than 1048576 bytes")


@pytest.mark.parametrize("name", ["site", "user", "project"])
def test_file_that_others_can_write_is_refused(settings, name):
    settings.write(**{name: "trace = true\n"})
    getattr(settings, name).chmod(0o664)
    settings.refused("can be written by other users (mode 0664)", f"hint: chmod go-w {getattr(settings, name)}")


@pytest.mark.skipif(os.getuid() != 0, reason="needs files of several users")
@pytest.mark.parametrize("name", ["site", "user", "project"])
def test_file_of_another_user_is_refused(settings, name):
    settings.write(**{name: "trace = true\n"})
    path = getattr(settings, name)
    os.chown(path, 1, 1)
    settings.refused(f"{path}: the {name} file belongs to daemon; you or root must own it", "hint: ")
    os.chown(path, 0, 0)
    settings.job.as_nobody()
    os.chown(settings.job.directory / "job.sh", NOBODY, NOBODY)
    assert settings.effective()["trace"]["value"] is True


def test_store_and_state_of_files_are_used_and_reach_programs_of_the_job(settings):
    job = settings.job
    job.where = []
    state = job.directory.parent / "own state"
    settings.write(site=f"store = '{job.directory.parent}/$PLACE'\nranks-max = 7\n", user=f"state = '{state}'\n")
    job.script('echo "$DW_JOB_STRIPED $FOREBAY_STATE $FOREBAY_RANKS_MAX"; forebay status --json', DW)
    kept = job.environment
    path = f"{job.forebay.parent}:{os.environ['PATH']}"
    without = lambda **more: {k: v for k, v in kept(**more).items() if k != "FOREBAY_STATE"}  # noqa: E731
    job.environment = without
    try:
        done = job.run(PLACE="store", PATH=path)
    finally:
        job.environment = kept
    assert done.returncode == 0, done.stderr
    first, status = done.stdout.splitlines()
    assert first.startswith(str(job.store)) and first.endswith(f" {state} 7")
    assert [one["state"] for one in json.loads(status)] == ["running"]
    assert (state / "profiles").is_dir()


def test_path_with_a_variable_that_is_not_set_is_refused(settings):
    settings.write(user="store = '$NO_SUCH_PLACE/x'\n")
    settings.refused(f"{settings.user}:1: store: $NO_SUCH_PLACE is not set")


def test_configured_store_does_not_hide_other_allocations(settings):
    job = settings.job
    other = job.directory.parent / "other"
    other.mkdir()
    made = job.command("persistent", "create", "one", "--capacity", "1MiB", "--store", job.store)
    assert made.returncode == 0, made.stderr
    settings.write(user=f"store = '{other}'\n")
    assert [one["persistent"] for one in json.loads(job.command("persistent", "list", "--json").stdout)] == ["one"]
    assert job.command("persistent", "destroy", "one").returncode == 0


def test_none_in_place_of_a_configured_model_emulates_nothing(settings):
    settings.write(user="pfs-model = 'lustre-small'\n")
    assert "is emulated: lustre-small" in settings.job.run("--no-profile").stderr
    done = settings.job.run("--pfs-model", "none", "--no-profile")
    assert done.returncode == 0 and "emulated" not in done.stderr, done.stderr


def test_compare_passes_the_configuration_to_its_runs(settings):
    settings.write(user="no-profile = true\n", site="strict-capacity = true\nlocked = ['strict-capacity']\n")
    settings.job.script(
        "echo result > $DW_JOB_STRIPED/out", DW, "#DW stage_out type=file source=$DW_JOB_STRIPED/out destination=%d/out"
    )
    done = settings.job.command("compare", *settings.job.where, "--repeat", "1", "job.sh")
    assert done.returncode == 0, done.stderr
    assert settings.job.records() == []


def test_python_side_gets_the_values_that_no_project_file_can_set(settings, tmp_path):
    """The commands in Python, seen by a program in their place."""
    job = settings.job
    programs = tmp_path / "bin"
    programs.mkdir()
    shutil.copy(job.forebay, programs / "forebay")
    (programs / "forebay-py").write_text("#!/bin/sh\nenv\n")
    (programs / "forebay-py").chmod(0o755)
    settings.write(user="pfs-model = 'lustre-small'\nno-userns = true\nstore = '/dev/shm'\nrate = '1MB'\n")
    done = subprocess.run(
        [programs / "forebay", "tune", "job.sh"],
        cwd=job.directory, env=job.environment(), capture_output=True, text=True, timeout=LIMIT_S,
    )  # fmt: skip
    found = dict(line.partition("=")[::2] for line in done.stdout.splitlines())
    assert found["FOREBAY_PFS_MODEL"] == "lustre-small" and found["FOREBAY_STORE"] == "/dev/shm"
    assert found["FOREBAY_NO_USERNS"] == "true" and "FOREBAY_RATE" not in found


def test_drains_of_a_file_concern_only_scripts_with_a_burst_buffer(settings):
    settings.write(project="drain = ['*.out']\n")
    settings.job.script("true")
    assert settings.job.run().returncode == 0
    settings.job.script("true", DW)
    done = settings.job.run()
    assert done.returncode == 125 and "*.out" in done.stderr, done.stderr


def test_table_shows_defaults_and_sources(settings):
    settings.write(user="on-close-jobs = 3\n")
    done = settings.job.command("config", FOREBAY_TRACE="1")
    rows = {line.split()[0]: line.split()[1:] for line in done.stdout.splitlines()}
    assert rows["on-close-jobs"] == ["3", f"{settings.user}:1"]
    assert rows["trace"] == ["true", "FOREBAY_TRACE"]
    assert rows["verify"] == ["copy", "default"]
    assert f"forebay: user file: {settings.user}\n" in done.stderr
