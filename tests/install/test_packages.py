"""The packages of `make deb` and `make rpm` have what a site installs for Slurm, at the places that the pages name."""

import os
import pathlib
import re
import shutil
import subprocess

import pytest

PROJECT = pathlib.Path(__file__).resolve().parents[2]
#: Of the tree; that of `make deb` has the same places, and programs for an older glibc.
PARTS = (
    "bin/forebay",
    "lib/forebay",
    "lib/libdatawarp.so",
    "lib/pkgconfig/cray-datawarp.pc",
    "include/datawarp.h",
    "share",
)


@pytest.fixture(scope="module")
def tree(build, tmp_path_factory):
    """An installation from which packages are made."""
    directory = tmp_path_factory.mktemp("packages") / "tree"
    for part in PARTS:
        (directory / part).parent.mkdir(parents=True, exist_ok=True)
        copy = shutil.copytree if (build / part).is_dir() else shutil.copy
        copy(build / part, directory / part)
    shutil.copy(PROJECT / "LICENSES" / "Apache-2.0.txt", directory)
    subprocess.run([directory / "bin" / "forebay", "__completions", directory / "share"], check=True)
    make(directory, "site-files-of-tree")
    return directory


def make(tree, target):
    words = ["make", "-C", PROJECT / "packaging", target, f"TREE={tree}", f"OUT={tree.parent}"]
    subprocess.run([*words, f"BUILD={os.environ['FOREBAY_BUILD']}"], check=True, capture_output=True)


def check_site(root):
    """The files of a site below this directory."""
    lua = (root / "usr/share/forebay/burst_buffer.lua").read_text()
    assert lua == (PROJECT / "integrations" / "slurm" / "burst_buffer.lua").read_text()
    programs = root / re.search(r'^local DIRECTORY = "/(.*)"', lua, re.MULTILINE)[1]
    called = set(re.findall(r'words\(\s*"([a-z_]+)"', lua))
    assert called == {"dw_wlm_cli", "dwstat"}
    for name in called:
        assert (programs / name).resolve() == (root / "usr/bin/forebay").resolve()
    unit = (root / "usr/lib/systemd/system/forebay-noded.service").read_text()
    started = root / re.search(r"^ExecStart=/(\S+)", unit, re.MULTILINE)[1]
    assert started.resolve() == (root / "usr/bin/forebay").resolve()
    page = (PROJECT / "docs" / "reference" / "site-slurm.md").read_text()
    assert "`/usr/share/forebay/burst_buffer.lua`" in page


def test_tree_of_the_tarball_has_the_files_of_a_site(tree):
    for name, source in (
        ("burst_buffer.lua", "integrations/slurm"),
        ("forebay-noded.service", "packaging"),
        ("forebay-noded-engine.conf", "packaging"),
    ):
        assert (tree / "share" / "forebay" / name).read_bytes() == (PROJECT / source / name).read_bytes()


def called_by(script, argument, tmp_path):
    """What a script of the packages calls where systemd is PID 1. Each call fails."""
    (tmp_path / "systemctl").write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/called\nexit 1\n')
    (tmp_path / "systemctl").chmod(0o755)
    (tmp_path / "called").touch()
    inside = 'mount -t tmpfs tmpfs /run; mkdir -p /run/systemd/system; PATH=$1:$PATH; shift; exec sh "$@"'
    words = ["unshare", "--mount", "--propagation", "private", "sh", "-ec", inside, "sh", tmp_path]
    subprocess.run([*words, PROJECT / "packaging" / script, argument], check=True)
    return (tmp_path / "called").read_text().splitlines()


@pytest.mark.skipif(os.getuid() != 0, reason="only root can mount another /run")
@pytest.mark.parametrize("argument, is_upgrade", [("remove", False), ("0", False), ("upgrade", True), ("1", True)])
def test_daemon_ends_with_its_package_and_is_started_again_by_an_upgrade(tmp_path, argument, is_upgrade):
    ends = [] if is_upgrade else ["disable --now forebay-noded.service"]
    assert called_by("before_removal.sh", argument, tmp_path) == ends
    (tmp_path / "called").unlink()
    assert called_by("after_install.sh", "configure", tmp_path) == [
        "daemon-reload",
        "try-restart forebay-noded.service",
    ]


@pytest.mark.skipif(not shutil.which("dpkg-deb"), reason="dpkg-deb is not installed")
def test_deb_has_the_files_of_a_site(build, tree, tmp_path):
    if not (build / "tools" / "bin" / "nfpm").exists():
        pytest.skip("nfpm is not built: make deb builds it, with Go")
    make(tree, "deb-of-tree")
    (package,) = tree.parent.glob("forebay_*_amd64.deb")
    subprocess.run(["dpkg-deb", "--extract", package, tmp_path], check=True)
    check_site(tmp_path)
    subprocess.run(["dpkg-deb", "--control", package, tmp_path / "control"], check=True)
    for name, source in (("postinst", "after_install.sh"), ("prerm", "before_removal.sh")):
        assert (tmp_path / "control" / name).read_bytes() == (PROJECT / "packaging" / source).read_bytes()


def test_rpm_has_the_files_of_a_site(build, tree, tmp_path):
    if not (build / "tools" / "bin" / "nfpm").exists():
        pytest.skip("nfpm is not built: make rpm builds it, with Go")
    unpack = next((name for name in ("bsdtar", "rpm2archive") if shutil.which(name)), None)
    if unpack is None:
        pytest.skip("neither bsdtar nor rpm2archive is installed")
    make(tree, "rpm-of-tree")
    (package,) = tree.parent.glob("forebay-*.x86_64.rpm")
    if unpack == "bsdtar":
        subprocess.run(["bsdtar", "-x", "-f", package, "-C", tmp_path], check=True)
    else:
        archive = subprocess.run(["rpm2archive", "-n", "-"], stdin=package.open("rb"), check=True, capture_output=True)
        subprocess.run(["tar", "-x", "-C", tmp_path], input=archive.stdout, check=True)
    check_site(tmp_path)
