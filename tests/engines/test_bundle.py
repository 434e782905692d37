"""`forebay engine bundle` copies the installed Ceph, and the copy runs without the original."""

import hashlib
import json
import os
import pathlib
import re
import signal
import subprocess
import tarfile

import pytest

from support.ceph import Ceph
from support.waiting import wait_until

LIMIT_S = 300
WORK = ".forebay-bundle-*"


def make_bundle(build, *words, directory):
    command = [build / "bin" / "forebay", "engine", "bundle", *words]
    return subprocess.run(command, cwd=directory, capture_output=True, text=True, timeout=LIMIT_S)


@pytest.fixture(scope="module")
def ceph_bundle(build, tmp_path_factory):
    directory = tmp_path_factory.mktemp("bundle")
    done = make_bundle(build, "--output", "ceph", "--json", directory=directory)
    assert done.returncode == 0, done.stderr
    assert [path.name for path in directory.iterdir()] == ["ceph"]
    return directory / "ceph", json.loads(done.stdout)


def sha256(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_manifest_lists_all_files_and_licences(ceph_bundle):
    directory, answer = ceph_bundle
    manifest = json.loads((directory / "manifest.json").read_text())
    listed = {one["path"]: (one["bytes"], one["sha256"]) for one in manifest["files"]}
    found = [path for path in directory.rglob("*") if path.is_file() and path.name != "manifest.json"]
    assert {str(path.relative_to(directory)): (path.stat().st_size, sha256(path)) for path in found} == listed
    assert {"bin/ceph-mon", "bin/ceph-fuse", "lib/librados.so.2", "lib/libcephfs.so.2"} <= set(listed)
    assert {f"licences/{package}" for package in manifest["packages"]} <= set(listed)
    assert {"ceph-osd", "libc6", "librados2"} <= set(manifest["packages"])
    # The licences of packages refer to these texts.
    texts = re.findall(r"/usr/share/common-licenses/([\w.-]*\w)", (directory / "licences" / "ceph-osd").read_text())
    assert {"LGPL-2.1", "GPL-3"} <= set(texts)
    assert {f"licences/common-licenses/{text}" for text in texts} <= set(listed)
    asked = ["dpkg-query", "--show", "--showformat", "${source:Package} ${source:Version}", "librados2"]
    assert subprocess.run(asked, capture_output=True, text=True, check=True).stdout in manifest["sources"]
    assert (answer["files"], answer["bytes"]) == (len(listed), sum(size for size, _ in listed.values()))
    version = subprocess.run(["ceph-mon", "--version"], capture_output=True, text=True, check=True).stdout
    assert f"ceph version {manifest['version']} " in version
    started = subprocess.run([*answer["start"], "--version"], capture_output=True, text=True)
    assert started.stdout == version


def foreign_maps(process, bundle):
    """The files outside of the bundle that a process has mapped."""
    maps = pathlib.Path(f"/proc/{process.pid}/maps").read_text().splitlines()
    paths = {line.split(maxsplit=5)[5] for line in maps if line.count("/")}
    return {path for path in paths if not path.startswith(f"{bundle}/")}


def test_daemons_of_a_bundle_map_nothing_of_the_system(ceph_bundle, build, tmp_path):
    directory, _ = ceph_bundle
    cluster = Ceph(build / "bin" / "forebay", tmp_path / "n", bundle=directory)
    try:
        cluster.start()
        for name, daemon in cluster.daemons.items():
            assert foreign_maps(daemon, directory) == set(), name
        path = cluster.file({"wait_for_storage": {"daemons": 9}, "s_max": 600})
        client = subprocess.Popen([cluster.program, "__ceph", path])
        try:
            cluster.wait_for_connection(client)
            assert foreign_maps(client, directory) == {os.path.realpath(cluster.program)}
        finally:
            client.kill()
            client.wait()
    finally:
        cluster.stop()


@pytest.mark.soak
def test_archive_has_the_files_of_the_manifest(build, tmp_path):
    done = make_bundle(build, directory=tmp_path)
    assert done.returncode == 0, done.stderr
    (archive,) = tmp_path.iterdir()
    assert str(archive) in done.stdout and "start a program of it: " in done.stdout
    top = archive.name.removesuffix(".tar.gz")
    with tarfile.open(archive) as contents:
        names = {member.name for member in contents if member.isfile()}
        manifest = json.load(contents.extractfile(f"{top}/manifest.json"))
    listed = {one["path"] for one in manifest["files"]} | {"manifest.json"}
    assert names == {f"{top}/{path}" for path in listed}


@pytest.mark.soak
def test_bundle_replaces_nothing_and_is_not_bundled_again(ceph_bundle, build, tmp_path):
    directory, _ = ceph_bundle
    for name in ("there", "there.tar.gz"):
        (tmp_path / name).write_text("mine")
        done = make_bundle(build, "--output", name, directory=tmp_path)
        assert done.returncode == 1 and f"{tmp_path / name} exists already" in done.stderr
        assert (tmp_path / name).read_text() == "mine"
    done = make_bundle(build, "--engine-root", directory, directory=tmp_path)
    assert done.returncode == 1 and "is a bundle already" in done.stderr
    assert len(list(tmp_path.iterdir())) == 2


def test_missing_programs_are_named_with_their_packages(build, tmp_path):
    (tmp_path / "root").mkdir()
    done = make_bundle(build, "--engine-root", "root", "--json", directory=tmp_path)
    assert done.returncode == 1 and "missing: ceph-mon, ceph-osd, ceph-mds, ceph-fuse, monmaptool" in done.stderr
    assert "hint: install the packages ceph-mon ceph-osd ceph-mds ceph-fuse ceph-base" in done.stderr
    assert json.loads(done.stdout)["exit_code"] == 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_bundle_leaves_nothing(build, tmp_path, number):
    words = [build / "bin" / "forebay", "engine", "bundle", "--output", "ceph.tar.gz"]
    process = subprocess.Popen(words, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    wait_until(lambda: list(tmp_path.glob(f"{WORK}/*/bin/*")), process=process)
    process.send_signal(number)
    _, error = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 128 + number and "the bundle was not completed" in error
    assert list(tmp_path.iterdir()) == []
