"""The wheel brings the program with its libraries, and the Python modules, into an empty environment."""

import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

from support.strace import few

PROJECT = pathlib.Path(__file__).resolve().parents[2]
#: `make wheel` builds the program for an old glibc; here the one that is built already serves.
TAG = "linux_x86_64"
#: Of an installed wheel without other packages.
SIZE_MAX_BYTES = 30_000_000


def stripped(build: pathlib.Path, tree: pathlib.Path) -> pathlib.Path:
    """An installation without Python and without symbols, as `make tree` makes it."""
    (tree / "bin").mkdir(parents=True)
    shutil.copy(build / "bin" / "forebay", tree / "bin")
    for folder in ("lib/forebay", "share"):
        shutil.copytree(build / folder, tree / folder)
    binaries = [path for path in tree.rglob("*") if path.is_file() and path.read_bytes()[:4] == b"\x7fELF"]
    subprocess.run(["strip", *binaries], check=True)
    return tree


@pytest.fixture(scope="module")
def environment(build, tmp_path_factory) -> pathlib.Path:
    """A virtual environment with nothing but the wheel."""
    directory = tmp_path_factory.mktemp("wheel")
    source = directory / "python"
    shutil.copytree(PROJECT / "python", source, ignore=shutil.ignore_patterns("__pycache__"))
    tree = stripped(build, directory / "tree")
    settings = os.environ | {"FOREBAY_TREE": str(tree), "FOREBAY_WHEEL_TAG": TAG}
    make = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--no-cache-dir"]
    subprocess.run([*make, "--wheel-dir", directory, source], env=settings, check=True)
    (wheel,) = directory.glob(f"forebay-*-py3-none-{TAG}.whl")
    own = directory / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", own], check=True)
    install = [sys.executable, "-m", "pip", "--python", own, "install", "--quiet", "--no-deps", "--no-index", wheel]
    subprocess.run(install, check=True)
    return own


def run(environment: pathlib.Path, *words: object, **settings: str) -> subprocess.CompletedProcess[str]:
    """Runs a program of the environment, in which no other installation is found."""
    own = {"HOME": os.environ.get("HOME", "/"), "PATH": f"{environment}/bin:/usr/bin:/bin"} | settings
    return subprocess.run(list(map(str, words)), env=own, capture_output=True, text=True)


def test_first_job_from_a_wheel_runs_and_is_recorded(environment, tmp_path):
    """The commands of the page of the first job: they copy the example from the installation."""
    page = (PROJECT / "docs" / "start" / "first-job.md").read_text()
    commands = re.findall(
        r"^\$ (.+)$", page.partition("## Look first")[2].partition("## What happened")[0], re.MULTILINE
    )
    assert [command.split()[0] for command in commands] == ["cp", "cd", "forebay", "forebay"]
    settings = {"FOREBAY_STATE": str(tmp_path / "state"), "FOREBAY_STORE": "memory", "HOME": str(tmp_path)}
    done = run(environment, "bash", "-ec", "\n".join(commands), **settings)
    assert done.returncode == 0, done.stderr
    assert len(list((tmp_path / "first-job" / "out").iterdir())) == 10
    assert "I/O took" in done.stderr, "the library that records is found"


@pytest.mark.soak
def test_installed_wheel_is_smaller_than_30_mb(environment):
    code = (
        "from importlib.metadata import files; "
        "print(*(path.locate().resolve() for path in files('forebay') if path.locate().exists()), sep='\\n')"
    )
    paths = run(environment, environment / "bin" / "python", "-c", code).stdout.splitlines()
    assert str(environment / "bin" / "forebay") in paths
    assert sum(os.stat(path).st_size for path in paths) < SIZE_MAX_BYTES


@pytest.mark.soak
def test_wheel_with_its_dependencies_reads_the_profile_of_a_job(environment, tmp_path):
    """As a user installs it: pip takes what the wheel requires from its index."""
    (wheel,) = environment.parent.glob("*.whl")
    own = tmp_path / "environment"
    subprocess.run([sys.executable, "-m", "venv", own], check=True)
    subprocess.run([own / "bin" / "pip", "install", "--quiet", "--disable-pip-version-check", wheel], check=True)
    (tmp_path / "job.sh").write_text("#!/bin/bash\ndd if=/dev/zero of=$TMPDIR/a bs=1M count=2 status=none\n")
    code = (
        "import forebay; forebay.run('job.sh', no_burst_buffer=True); "
        "print(*(file.path for program in forebay.open().profile.programs for file in program.files))"
    )
    settings = {"FOREBAY_STATE": str(tmp_path / "state"), "TMPDIR": str(tmp_path)}
    done = subprocess.run(
        [own / "bin" / "python", "-c", code],
        cwd=tmp_path,
        env={"PATH": f"{own}/bin:/usr/bin:/bin", "HOME": str(tmp_path)} | settings,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout) == (0, f"{tmp_path}/a\n"), done.stderr


def test_python_runs_a_job_with_the_program_of_its_environment(environment, tmp_path):
    example = tmp_path / "first-job"
    shutil.copytree(PROJECT / "examples" / "first-job", example)
    code = (
        f"import forebay; result = forebay.run('job.sh', cwd={str(example)!r}, store='memory'); "
        "print(result.stage_out.files, forebay.open(result.run_id).state)"
    )
    # The environment is not active, so the program is not in PATH.
    settings = {"FOREBAY_STATE": str(tmp_path / "state"), "PATH": "/usr/bin:/bin"}
    done = run(environment, environment / "bin" / "python", "-c", code, **settings)
    assert (done.returncode, done.stdout) == (0, "10 ended\n"), done.stderr


def test_machine_files_profiles_and_manual_pages_are_installed(environment, tmp_path):
    done = run(environment, environment / "bin" / "forebay", "machines", "--json")
    assert str(environment / "share" / "forebay" / "machines") in done.stdout
    script = PROJECT / "examples" / "first-job" / "job.sh"
    profile = ["run", "--engine-profile", "none", script]
    done = run(environment, environment / "bin" / "forebay", *profile, FOREBAY_STATE=str(tmp_path))
    assert "hint: the profiles are beeond, " in done.stderr
    assert (environment / "share" / "man" / "man1" / "forebay-run.1").exists()


def test_staging_from_python_loads_the_standard_library_only(environment):
    listing = (
        "import sys; before = set(sys.modules); from forebay import stage; "
        "print(*{name.partition('.')[0] for name in set(sys.modules) - before})"
    )
    done = run(environment, environment / "bin" / "python", "-c", listing)
    assert done.returncode == 0, done.stderr
    assert set(done.stdout.split()) - set(sys.stdlib_module_names) == {"forebay"}


@pytest.mark.soak
@pytest.mark.parametrize(("verb", "extra"), few(("report", "report"), ("tune", "tune"), ("why", "report"), kept=2))
def test_verb_without_its_packages_names_the_extra(environment, tmp_path, verb, extra):
    done = run(environment, environment / "bin" / "forebay", verb, "x", FOREBAY_STATE=str(tmp_path))
    assert done.returncode == 1
    error, hint = done.stderr.splitlines()
    (wheel,) = environment.parent.glob("*.whl")
    assert error.startswith(f"error: forebay {verb} needs a Python package that is not installed: ")
    command = hint.removeprefix("hint: ")
    assert re.sub(r"(?<=/python)[0-9.]+", "", command) == f"{environment}/bin/python -m pip install '{wheel}[{extra}]'"
    # pip reads the wheel with this extra. It then looks for the packages, here in no index.
    done = run(environment, "bash", "-c", command + " --no-index --dry-run")
    assert f"Processing {wheel}" in done.stdout and "does not provide the extra" not in done.stdout + done.stderr
