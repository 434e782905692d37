"""The modulefile of an installation, loaded by the real environment-modules."""

import errno
import pathlib
import subprocess

import pytest

PROJECT = pathlib.Path(__file__).resolve().parents[2]
#: Of the Debian package environment-modules.
INIT = "/usr/share/modules/init/bash"


@pytest.fixture(scope="module")
def prefix(build, tmp_path_factory) -> pathlib.Path:
    """What `make install` installs besides Python."""
    prefix = tmp_path_factory.mktemp("modulefile") / "prefix"
    command = ["make", "install-programs", f"BUILD={build}", f"PREFIX={prefix}"]
    subprocess.run(command, cwd=PROJECT, check=True, capture_output=True)
    return prefix


def with_module(prefix: pathlib.Path, *commands: str) -> list[str]:
    """The lines that bash prints for commands after `module use`."""
    script = "\n".join(["set -e", f". {INIT}", f"module use {prefix}/share/modulefiles", *commands])
    plain = {"PATH": "/usr/bin:/bin", "HOME": str(prefix)}
    done = subprocess.run(["bash", "-c", script], env=plain, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_loaded_module_finds_program_manual_library_and_header(prefix):
    (version,) = (prefix / "share" / "modulefiles" / "forebay").iterdir()
    source = PROJECT / "tests" / "programs" / "capi" / "ask.c"
    found = with_module(
        prefix,
        "module load forebay",
        "command -v forebay; forebay --version",
        "man --where forebay-run",
        "manpath | tr : '\\n' | grep -cx /usr/share/man",
        "pkg-config --variable=libdir cray-datawarp",
        f"cc {source} -o {prefix}/ask $(pkg-config --libs cray-datawarp) && {prefix}/ask wait /",
        "module -t list 2>&1 | tail -1",
    )
    assert found == [
        f"{prefix}/bin/forebay",
        f"forebay {version.name}",
        f"{prefix}/share/man/man1/forebay-run.1",
        "1",
        f"{prefix}/lib",
        str(-errno.EINVAL),
        f"forebay/{version.name}",
    ]


def test_unloaded_module_leaves_the_environment_as_it_was(prefix):
    variables = "env | grep -E '^(PATH|MANPATH|LD_LIBRARY_PATH|PKG_CONFIG_PATH|CPATH)=' | sort"
    lines = with_module(prefix, variables, "echo", "module load forebay", "module unload forebay", variables)
    middle = lines.index("")
    assert lines[:middle] == lines[middle + 1 :] and middle > 0


def test_module_describes_itself(prefix):
    assert "burst buffer" in "".join(with_module(prefix, "module whatis forebay 2>&1"))
