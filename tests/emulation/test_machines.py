"""Machine files by name."""

import json

import pytest

from support.job import DW


def test_machines_lists_what_is_installed(job, build):
    done = job.command("machines", "--json")
    assert done.returncode == 0, done.stderr
    found = {one["name"]: one for one in json.loads(done.stdout)}
    assert "lustre-small" in found and found["lustre-small"]["file"].startswith(f"{build}/share/forebay/machines/")
    assert "lustre-small" in job.command("machines").stdout


@pytest.mark.parametrize("named", ["lustre-small", "lustre-small.toml"])
def test_installed_machine_is_found_by_its_name(job, named):
    job.script("echo $PWD > x", DW)
    done = job.run("--pfs-model", named, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["emulated"]["model"] == "lustre-small"
    done = job.command("tune", "--pfs-model", named, "--dry-run", "job.sh")
    assert "No such file" not in done.stderr and "machine" not in done.stderr, done.stderr
    missing = job.run("--pfs-model", "no-such")
    assert missing.returncode == 125 and "forebay machines lists" in missing.stderr


def test_own_machine_file_overrides_the_installed_one(job, build):
    text = (build / "share" / "forebay" / "machines" / "lustre-small.toml").read_text()
    (job.directory / "lustre-small").write_text(text.replace('name = "lustre-small"', 'name = "mine"'))
    job.script("true", DW)
    assert json.loads(job.run("--pfs-model", "lustre-small", "--json").stdout)["emulated"]["model"] == "mine"
