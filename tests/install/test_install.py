"""`make install PREFIX=...` without root; the installed command finds its parts."""

import errno
import json
import os
import pathlib
import re
import shutil
import subprocess
import sysconfig

import pytest

from support.waiting import wait_until

PROJECT = pathlib.Path(__file__).resolve().parents[2]


def doctor(prefix: pathlib.Path) -> dict[str, dict]:
    """What `forebay doctor` finds, by name."""
    done = subprocess.run([prefix / "bin" / "forebay", "doctor", "--json"], capture_output=True, text=True)
    return {one["id"]: one for one in json.loads(done.stdout)}


def check_helpers(prefix: pathlib.Path) -> None:
    """Each user can run the Python side, whoever installed it; what cannot be run is no `ok`."""
    if os.geteuid() == 0:
        python = (prefix / "lib" / "forebay" / "python" / "bin" / "python3").resolve()
        assert all(os.stat(above).st_mode & 0o005 == 0o005 for above in python.parents), python
    # It has 2 s, which may be too little for its first start on a busy machine.
    wait_until(lambda: doctor(prefix)["reports"]["state"] == "ok", 60, "a doctor that finds the reports")
    program = (prefix / "bin" / "forebay-py").resolve()
    content = program.read_text()
    program.write_text("#!/no/such/python\n" + content.split("\n", 1)[1])
    broken = doctor(prefix)["reports"]
    assert broken["state"] == "missing" and "No such file" in broken["found"], broken
    program.write_text(content)


def documented_commands() -> list[str]:
    """All commands, which `make check` compares with the page."""
    page = (PROJECT / "docs" / "reference" / "command-line.md").read_text()
    return re.findall(r"^##+ (forebay.*)$", page, re.MULTILINE)


def test_installed_programs_run_from_their_prefix(build, tmp_path):
    prefix = tmp_path / "prefix"
    # `build` is there already: only its installation is under test. What Forebay depends on is in the environment of the tests.
    packages = sysconfig.get_path("purelib")
    command = ["make", "-o", "build", "install", f"PREFIX={prefix}"]
    subprocess.run(command, cwd=PROJECT, env=os.environ | {"PYTHONPATH": packages}, check=True, capture_output=True)
    (own,) = (prefix / "lib" / "forebay" / "python" / "lib").glob("python*/site-packages")
    assert (own / "forebay").is_dir()
    (own / "dependencies.pth").write_text(packages)
    forebay = prefix / "bin" / "forebay"
    (tmp_path / "job.sh").write_text("#!/bin/bash\necho hello\n")
    model = prefix / "share" / "forebay" / "machines" / "lustre-small.toml"
    command = [forebay, "run", "--pfs-model", model, "job.sh"]
    own_state = os.environ | {"FOREBAY_STATE": str(tmp_path / "state")}
    done = subprocess.run(command, cwd=tmp_path, env=own_state, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "hello\n"), done.stderr
    assert "emulated: lustre-small" in done.stderr
    example = PROJECT / "examples" / "first-job"
    installed = prefix / "share" / "forebay" / "first-job"
    assert {file.name: file.read_bytes() for file in installed.iterdir()} == {
        name: (example / name).read_bytes() for name in ("job.sh", "simulate.py", "start.txt")
    }
    assert f'"{prefix}/bin/"' in (prefix / "share" / "forebay" / "burst_buffer.lua").read_text()
    compile_against(prefix, tmp_path)
    check_helpers(prefix)
    pages = prefix / "share" / "man" / "man1"
    assert sorted(page.name for page in pages.iterdir()) == sorted(
        f"{command.replace(' ', '-')}.1" for command in documented_commands()
    )
    assert "pfs\\-model" in (pages / "forebay-run.1").read_text()
    for words in (["tune"], ["report"], ["why"], ["profile", "export"], ["plan"], ["plan", "sweep"]):
        page = (pages / f"forebay-{'-'.join(words)}.1").read_text().replace("\\-", "-")
        told = subprocess.run([forebay, *words, "--help"], check=True, capture_output=True, text=True).stdout
        options = re.findall(r"^  (--[a-z-]+)", told, re.MULTILINE)
        assert options and [option for option in options if f"\\fB{option}" not in page] == []
        assert told.splitlines()[0].removeprefix("Usage: ") in page.replace("\\fB", "").replace("\\fR", "")


def compile_against(prefix, tmp_path):
    """A program that uses every function: as C and C++, through pkg-config, and with the plain compiler."""
    every = PROJECT / "tests" / "programs" / "capi" / "ask.c"
    named = {"PKG_CONFIG_PATH": str(prefix / "lib" / "pkgconfig"), "PATH": os.environ["PATH"]}
    asked = ["pkg-config", "--cflags", "--libs", "cray-datawarp"]
    flags = subprocess.run(asked, env=named, check=True, capture_output=True, text=True).stdout.split()
    plain = named | {"CPATH": str(prefix / "include"), "LIBRARY_PATH": str(prefix / "lib")}
    for number, (words, environment) in enumerate(
        (
            (["cc", every, *flags], named),
            (["cc", "-Wl,--as-needed", *flags, every], named),
            (["g++", "-x", "c++", every, *flags], named),
            (["cc", every, "-ldatawarp"], plain),
        )
    ):
        program = tmp_path / f"program{number}"
        subprocess.run([*words, "-o", program], env=environment, check=True)
        symbols = subprocess.run(["nm", "-D", "-u", program], check=True, capture_output=True, text=True).stdout
        assert sum(line.split()[-1].startswith("dw_") for line in symbols.splitlines()) == 24
        loaded = {"LD_LIBRARY_PATH": str(prefix / "lib")}
        done = subprocess.run([program, "wait", "/"], env=loaded, capture_output=True, text=True)
        assert done.stdout == f"{-errno.EINVAL}\n"


def test_prefix_that_the_preload_cannot_be_loaded_from_is_refused(build, tmp_path):
    prefix = tmp_path / "my tools"
    for part in ("bin/forebay", "lib/forebay/libforebay_pfsmodel_preload.so"):
        (prefix / part).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(build / part, prefix / part)
    (tmp_path / "job.sh").write_text("#!/bin/bash\ntouch started\n")
    model = PROJECT / "machines" / "lustre-small.toml"
    command = [prefix / "bin" / "forebay", "run", "--pfs-model", model, "job.sh"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 125 and "nothing would be emulated" in done.stderr, done.stderr
    assert not (tmp_path / "started").exists()


def test_every_command_has_help_with_an_example(build):
    for verb in ("run", "compare", "doctor"):
        done = subprocess.run([build / "bin" / "forebay", verb, "--help"], capture_output=True, text=True)
        assert done.returncode == 0 and "Example:" in done.stdout and "--json" in done.stdout


@pytest.mark.soak
@pytest.mark.parametrize("words", ["tune", "report", "why", "profile export", "run", "persistent create"])
def test_help_of_a_verb_is_the_same_through_the_help_command(build, words):
    def help_text(*words):
        return subprocess.run([build / "bin" / "forebay", *words], check=True, capture_output=True, text=True).stdout

    words = words.split()
    assert help_text("help", *words) == help_text(*words, "--help") == help_text(*words[:-1], "help", words[-1])
    assert "--json" in help_text("help", *words) or "--output" in help_text("help", *words)


def test_wrong_command_line_is_refused(build):
    for words in ([], ["rnu", "x"], ["run"], ["run", "--pfs-root", "/tmp", "x"], ["compare", "--repeat", "0", "x"]):
        done = subprocess.run([build / "bin" / "forebay", *words], capture_output=True, text=True)
        assert done.returncode == 2 and done.stdout == "", words


def test_packages_have_the_programs_where_slurm_and_systemd_look_for_them():
    """The deb and the rpm install `burst_buffer.lua` and the unit as they are in the source."""
    content = (PROJECT / "packaging" / "nfpm.yaml").read_text()
    installed = set(re.findall(r"dst: (/usr/\S+?)[,}]", content))
    lua = (PROJECT / "integrations" / "slurm" / "burst_buffer.lua").read_text()
    directory = re.search(r'^local DIRECTORY = "(.*)"', lua, re.MULTILINE)[1]
    called = set(re.findall(r'words\(\s*"([a-z_]+)"', lua))
    assert called == {"dw_wlm_cli", "dwstat"}
    assert {directory + name for name in called} <= installed
    unit = (PROJECT / "packaging" / "forebay-noded.service").read_text()
    assert re.search(r"^ExecStart=(\S+)", unit, re.MULTILINE)[1] in installed
    assert "/usr/share/forebay" in installed
