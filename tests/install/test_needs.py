"""`tools/needs.sh`: what is missing and cannot be installed is named, with the remedy."""

import pathlib
import shutil
import subprocess

import pytest

NEEDS = pathlib.Path(__file__).resolve().parents[2] / "tools" / "needs.sh"


@pytest.fixture
def bare(tmp_path):
    """A machine with nothing on it but what the script itself is made of."""
    for name in ("bash", "cut", "sort", "head", "grep"):
        (tmp_path / name).symlink_to(shutil.which(name))
    return tmp_path


def pretend(machine, name, says):
    program = machine / name
    program.write_text(f"#!{shutil.which('bash')}\necho {says}\n")
    program.chmod(0o755)


def needs(machine, what="build"):
    return subprocess.run(
        [shutil.which("bash"), NEEDS, what], env={"PATH": str(machine)}, capture_output=True, text=True
    )


def test_missing_or_old_rust_is_named(bare):
    done = needs(bare)
    assert done.returncode == 1 and "Rust 1.88 or newer is needed; found: none" in done.stderr
    pretend(bare, "cargo", "cargo 1.63.0")
    done = needs(bare)
    assert (
        done.returncode == 1 and "found: cargo 1.63.0" in done.stderr and "hint: install it with rustup" in done.stderr
    )


def test_packages_to_install_are_named_to_an_ordinary_user(bare):
    pretend(bare, "cargo", "cargo 1.95.0")
    pretend(bare, "id", "1000")
    done = needs(bare)
    assert done.returncode == 1
    assert "error: missing: libopenmpi-dev openmpi-bin gcc" in done.stderr
    assert "hint: as root: apt-get install libopenmpi-dev openmpi-bin gcc" in done.stderr


def test_packages_are_named_without_apt(bare):
    pretend(bare, "cargo", "cargo 1.95.0")
    pretend(bare, "id", "0")
    done = needs(bare)
    assert done.returncode == 1 and "there is no apt-get" in done.stderr and "hint: " in done.stderr


def test_missing_optional_libraries_do_not_stop_a_build(bare):
    for name, says in [("cargo", "cargo 1.95.0"), ("mpiexec", ""), ("gcc", ""), ("python3", ""), ("id", "1000")]:
        pretend(bare, name, says)
    mpicc = bare / "mpicc"
    mpicc.write_text(f"#!{shutil.which('bash')}\nexit 1\n")
    mpicc.chmod(0o755)
    done = needs(bare)
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.startswith("note: without libpnetcdf-dev") and done.stderr.endswith(
        "some kernels are left out\n"
    )


def test_machine_with_all_needs_is_not_changed(bare):
    for name in ("mpicc", "mpiexec", "gcc", "gfortran", "python3", "pkg-config"):
        pretend(bare, name, "")
    pretend(bare, "cargo", "cargo 1.95.0")
    done = needs(bare)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
