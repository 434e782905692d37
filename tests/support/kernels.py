"""How the kernels are run, and what every one of them promises about its output."""

import json
import os
import tempfile
import pathlib
import re
import subprocess

import pytest

from support.mpi import launching

RUN_SECONDS_MAX = 300

both_libraries = pytest.mark.parametrize("io", ["ompio", "romio321"])


def mpiexec(n, *args, io="ompio", cwd=None, before=()):
    """Run `before... mpiexec -n N args...`; a hang is a failure."""
    environment = {**os.environ, **launching(), "OMPI_MCA_io": io}
    command = [*before, "mpiexec", "-n", n, *args]
    return subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=RUN_SECONDS_MAX,
    )


def result_of(run):
    """The JSON line of a run that must have succeeded."""
    assert run.returncode == 0, run.stderr
    return only_json_line(run)


def only_json_line(run):
    lines = run.stdout.splitlines()
    assert len(lines) == 1, run.stdout
    return json.loads(lines[0])


def errors_of(run):
    return [line for line in run.stderr.splitlines() if re.match(r"[a-z0-9]+: error:", line)]


def assert_refused(run, pattern):
    """Exit 2, nothing on stdout, and one message, from one rank, that matches."""
    assert run.returncode == 2, (run.returncode, run.stderr)
    assert run.stdout == ""
    assert len(errors_of(run)) == 1, run.stderr
    assert re.search(pattern, run.stderr), run.stderr
    assert "MPI_ABORT" not in run.stderr


def assert_failed(run, pattern):
    """Exit 1 and one message that matches."""
    assert run.returncode == 1, (run.returncode, run.stderr)
    assert len(errors_of(run)) == 1, run.stderr
    assert re.search(pattern, run.stderr), run.stderr


def flip_byte(path, offset):
    with open(path, "r+b") as file:
        file.seek(offset)
        byte = file.read(1)[0]
        file.seek(offset)
        file.write(bytes([byte ^ 0xFF]))


def with_small_disk(directory, size="400k"):
    """Command words that run what follows with a small tmpfs on the directory, in a mount namespace."""
    unshare = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--mount", "--map-root-user"]
    mount = f'mount -t tmpfs -o size={size} tmpfs "$1" && shift && exec "$@"'
    # An ordinary user is root in there; Open MPI's directory for root in /tmp may be the real root's.
    own = pathlib.Path(tempfile.gettempdir(), f"forebay-test-ompi-{os.geteuid()}")
    own.mkdir(exist_ok=True)
    words = [*unshare, "env", f"OMPI_MCA_orte_tmpdir_base={own}", "sh", "-c", mount, "sh", str(directory)]
    if subprocess.run([*words, "true"], capture_output=True).returncode != 0:
        pytest.skip("no mount namespace to be had here")
    return words
