"""`forebay doctor` says what is true of this machine, and what does not answer does not hold it up."""

import contextlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

from support.isolation import WITHOUT_CONFIGURATION
from support import cgroup
import pytest

from support.waiting import wait_until

IDS = [
    "store", "user_namespaces", "huge_pages", "memory", "memory_cgroup", "shared_memory", "nvme", "network_fs",
    "lfs", "fuse", "engine", "mpi", "mpi_compiler", "mpi_io", "slurm", "emulation", "recording", "reports",
]  # fmt: skip
STATES = {"ok", "warn", "missing"}


class Doctor:
    def __init__(self, program: pathlib.Path):
        self.program = program

    def run(self, *options, environment=None, **more) -> subprocess.CompletedProcess:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("SLURM", "FOREBAY"))}
        command = [self.program, "doctor", *options]
        return subprocess.run(
            command,
            env=kept | WITHOUT_CONFIGURATION | (environment or {}),
            capture_output=True,
            text=True,
            timeout=300,
            **more,
        )

    def findings(self, *options, **more) -> dict[str, dict]:
        ended = self.run("--json", *options, **more)
        assert ended.returncode in (0, 1), ended.stderr
        findings = json.loads(ended.stdout)
        assert [finding["id"] for finding in findings] == IDS
        for finding in findings:
            assert finding["state"] in STATES
            assert finding["found"] and finding["consequence"], finding
            assert bool(finding["remedy"]) == (finding["state"] != "ok"), finding
        return {finding["id"]: finding for finding in findings}


@pytest.fixture
def doctor(build) -> Doctor:
    return Doctor(build / "bin" / "forebay")


def program(directory: pathlib.Path, name: str, body: str) -> None:
    directory.mkdir(exist_ok=True)
    path = directory / name
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)


def gib(text: str) -> float:
    """The first size in a text, in GiB."""
    number, unit = text.split()[:2]
    return float(number) / {"B": 2**30, "KiB": 2**20, "MiB": 2**10, "GiB": 1, "TiB": 2**-10}[unit]


def meminfo(name: str) -> float:
    lines = pathlib.Path("/proc/meminfo").read_text().splitlines()
    return next(int(line.split()[1]) / 2**20 for line in lines if line.startswith(name + ":"))


def test_findings_match_this_machine(doctor):
    found = doctor.findings()
    assert gib(found["memory"]["found"].split(" of ")[1]) == pytest.approx(meminfo("MemTotal"), abs=0.01)
    assert 0 < gib(found["memory"]["found"]) < meminfo("MemTotal")
    assert shutil.which("mpiexec") in found["mpi"]["found"]
    version = subprocess.run(["mpiexec", "--version"], capture_output=True, text=True).stdout
    assert found["mpi"]["found"].split(" (")[0].split()[-1] in version
    assert found["mpi_compiler"]["found"] == shutil.which("mpicc")
    space = os.statvfs("/dev/shm")
    total = gib(found["shared_memory"]["found"].split(" of ")[1])
    assert total == pytest.approx(space.f_blocks * space.f_frsize / 2**30, abs=0.01)
    kinds = {line.split(" - ")[1].split()[0] for line in pathlib.Path("/proc/self/mountinfo").read_text().splitlines()}
    assert ("nfs4 on" in found["network_fs"]["found"]) == ("nfs4" in kinds)
    assert ("lustre on" in found["network_fs"]["found"]) == ("lustre" in kinds)
    assert (found["fuse"]["state"] == "ok") == (os.access("/dev/fuse", os.W_OK) and bool(shutil.which("fusermount3")))
    private = subprocess.run(["unshare", "-m", "mount", "-t", "tmpfs", "none", "/mnt"], capture_output=True)
    if os.getuid() == 0 and private.returncode == 0:
        assert "private tmpfs" in found["user_namespaces"]["found"]
    assert found["emulation"]["state"] == "ok"


def test_list_has_every_finding_and_ends_with_what_a_job_uses(doctor, tmp_path):
    ended = doctor.run("--store", tmp_path)
    assert ended.returncode == 0 and ended.stderr == ""
    assert "\x1b" not in ended.stdout
    lines = ended.stdout.splitlines()
    begins = [line for line in lines if line.split(" ")[0] in STATES]
    assert [" ".join(line[9:].split("  ")[0].split()) for line in begins] == [name.replace("_", " ") for name in IDS]
    assert max(map(len, lines[:-1])) <= 100
    assert re.match(rf"A job here uses {re.escape(str(tmp_path))}, (in memory, )?up to ", lines[-1])


def test_store_option_is_checked_and_without_a_store_no_job_can_run(doctor, tmp_path):
    by_site = {"FOREBAY_STORE": str(tmp_path)}
    found = doctor.findings(environment=by_site)["store"]["found"]
    assert re.match(rf"{re.escape(str(tmp_path))}, (in memory, )?up to ", found)
    ended = doctor.run("--store", tmp_path / "missing", environment=by_site)
    assert ended.returncode == 1
    assert ended.stdout.splitlines()[-1].startswith(f"No job can run here: cannot find {tmp_path}/missing")


def test_missing_mpi_is_reported_with_a_remedy(doctor, tmp_path):
    found = doctor.findings(environment={"PATH": str(tmp_path)})
    assert found["mpi"]["state"] == "missing"
    assert "openmpi" in found["mpi"]["remedy"]
    assert found["mpi_compiler"]["state"] == found["mpi_io"]["state"] == "missing"
    assert found["slurm"]["state"] == "ok" and found["slurm"]["found"] == "none"


def test_hanging_scheduler_does_not_delay_the_doctor(doctor, tmp_path):
    alive = tmp_path / "alive"
    program(tmp_path / "bin", "scontrol", f"exec sleep 1000 9>{alive}")
    # Had it waited, the time limit of `run` would have ended it.
    found = doctor.findings(environment={"PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"})
    assert found["slurm"]["state"] == "warn"
    assert "no answer within 2 s" in found["slurm"]["found"]
    assert found["mpi"]["state"] == "ok"
    wait_until(lambda: not any_process_holds(alive), what="the end of what hangs")


def any_process_holds(path: pathlib.Path) -> bool:
    for link in pathlib.Path("/proc").glob("[0-9]*/fd/9"):
        with contextlib.suppress(OSError):
            if os.readlink(link) == str(path):
                return True
    return False


def test_slurm_settings_that_matter_are_listed(doctor, tmp_path):
    config = "BurstBufferType         = {}\nSelectType              = select/cons_tres\nSLURM_VERSION = 24.05.3"
    environment = {"PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}", "SLURM_JOB_ID": "77"}
    program(tmp_path / "bin", "scontrol", f"[ \"$*\" = 'show config' ] && echo '{config.format('(null)')}'")
    slurm = doctor.findings(environment=environment)["slurm"]
    assert slurm["found"] == "job 77; SLURM_VERSION=24.05.3 BurstBufferType=(null) SelectType=select/cons_tres"
    assert "comments" in slurm["consequence"]
    program(tmp_path / "bin", "scontrol", f"echo '{config.format('burst_buffer/datawarp')}'")
    assert "Slurm itself" in doctor.findings(environment=environment)["slurm"]["consequence"]


def test_own_job_is_not_taken_for_a_slurm_job(doctor, job):
    job.script(f'echo "$SLURM_JOB_ID"; "{doctor.program}" doctor --json')
    ended = job.run()
    number, findings = ended.stdout.splitlines()
    assert number
    found = {finding["id"]: finding["found"] for finding in json.loads(findings)}
    assert "job" not in found["slurm"]
    assert shutil.which("mpiexec") in found["mpi"]  # not the stand-in


@pytest.mark.skipif(os.getuid() != 0, reason="only root may become another user")
def test_ordinary_user_gets_findings_for_that_user(doctor):
    # The build may lie where only its owner may look.
    copy = pathlib.Path(tempfile.mkdtemp(prefix="forebay-test-"))
    copy.chmod(0o755)
    try:
        for directory in ("bin", "lib/forebay"):
            shutil.copytree(doctor.program.parents[1] / directory, copy / directory)
        found = Doctor(copy / "bin" / "forebay").findings(user=65534, group=65534, extra_groups=[], cwd="/")
    finally:
        shutil.rmtree(copy)
    private = ["unshare", "-rm", "mount", "-t", "tmpfs", "none", "/mnt"]
    allowed = subprocess.run(private, user=65534, group=65534, extra_groups=[], cwd="/", capture_output=True)
    assert (found["user_namespaces"]["state"] == "ok") == (allowed.returncode == 0), allowed.stderr
    assert (found["fuse"]["state"] == "ok") <= bool(pathlib.Path("/dev/fuse").stat().st_mode & 0o006)


def test_forbidden_namespaces_are_named_with_setting_and_remedy(doctor):
    forbid = "echo 0 > /proc/sys/user/max_user_namespaces"
    plain = "setpriv --securebits=+noroot --bounding-set=-all --inh-caps=-all"
    inside = ["unshare", "-Ur", "sh", "-c", f'{forbid} && exec {plain} "$0" doctor --json', str(doctor.program)]
    ended = subprocess.run(inside, capture_output=True, text=True, timeout=300)
    if not ended.stdout:
        pytest.skip(f"no user namespace to forbid them in: {ended.stderr}")
    found = {finding["id"]: finding for finding in json.loads(ended.stdout)}["user_namespaces"]
    assert found["state"] == "warn"
    assert "user.max_user_namespaces = 0" in found["found"]
    assert "sysctl user.max_user_namespaces" in found["remedy"]


@pytest.mark.skipif(os.getuid() != 0, reason="only root can hide /dev/shm")
@pytest.mark.parametrize("mode, state", [("0755", "missing"), ("1777", "ok")])
def test_store_in_memory_is_tried_where_namespaces_are_forbidden(doctor, mode, state):
    """As a job would use it, which then needs a directory in /dev/shm."""
    forbid = "echo 0 > /proc/sys/user/max_user_namespaces"
    ordinary = "setpriv --ambient-caps=-all --inh-caps=-all"
    forbidden = (
        f"unshare --user --map-current-user --keep-caps sh -c '{forbid} && exec {ordinary} \"$0\" doctor --json'"
    )
    nobody = f"setpriv --reuid=65534 --regid=65534 --clear-groups {forbidden} {doctor.program}"
    script = f"mount -t tmpfs -o mode={mode} tmpfs /dev/shm && cd / && exec {nobody}"
    ended = subprocess.run(["unshare", "--mount", "sh", "-c", script], capture_output=True, text=True, timeout=300)
    if not ended.stdout:
        pytest.skip(f"no user namespace whose limits may be set here: {ended.stderr.strip()}")
    found = {finding["id"]: finding for finding in json.loads(ended.stdout)}["store"]
    assert found["state"] == state and ended.returncode == (1 if state == "missing" else 0), found
    assert "/dev/shm" in found["found"]
    assert state == "missing" or "not enforced" in found["consequence"]


@pytest.mark.xdist_group("memory")
def test_memory_cgroup_limit_is_named_and_counts_files_in_memory(doctor):
    with cgroup.limited(512 * 2**20) as group:
        held = pathlib.Path("/dev/shm") / group.name
        try:
            fill = f'head -c {100 * 2**20} /dev/zero > "{held}" && exec "$0" doctor --json'
            shell = cgroup.within(group, ["/bin/sh", "-c", fill, doctor.program])
            ended = subprocess.run(shell, capture_output=True, text=True, timeout=300)
            found = {finding["id"]: finding for finding in json.loads(ended.stdout)}["memory_cgroup"]
            assert found["found"].endswith(f" of 512.00 MiB in {group}"), found
            assert 200 / 1024 < gib(found["found"]) < 412 / 1024, found
            assert found["state"] == "warn" and "--mem" in found["remedy"]
        finally:
            held.unlink(missing_ok=True)
