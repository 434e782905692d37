"""The files of a test bed: names and addresses of its nodes, its users, and keys for ssh between all of them."""

import os
import pathlib
import shutil
import subprocess

from support.isolation import WITHOUT_CONFIGURATION

#: Ordinary users of every node. Debian reserves these numbers, so they are nobody's on the machine itself.
USERS = {"ada": 65432, "bob": 65433}
STORE = pathlib.Path("/mnt/nvme")
BUILD = pathlib.Path("/mnt/build")
#: The Python of the tests, without its packages, where every user reaches it.
PYTHON = pathlib.Path("/mnt/python/bin/python3")
PATH = f"{BUILD}/bin:{os.defpath}:/usr/local/bin:/usr/sbin:/sbin"

SSHD = """
HostKey /etc/ssh/host_key
AuthorizedKeysFile /etc/ssh/authorized_keys/%u
AuthenticationMethods publickey
PermitRootLogin prohibit-password
UsePAM no
UseDNS no
MaxStartups 1000
PrintMotd no
SetEnv {environment}
"""
SSH = """
Host *
    # The default one takes five times the time.
    KexAlgorithms curve25519-sha256
    IdentityFile /etc/ssh/keys/%u
    IdentitiesOnly yes
    BatchMode yes
    ConnectTimeout 30
    StrictHostKeyChecking yes
    GlobalKnownHostsFile /etc/ssh/known_hosts
    UserKnownHostsFile none
    LogLevel ERROR
"""


def environment_of_nodes() -> dict[str, str]:
    """What every command on a node has, whoever starts it."""
    return WITHOUT_CONFIGURATION | {"PATH": PATH, "FOREBAY_STORE": str(STORE), "LANG": "C.UTF-8"}


def home(top: pathlib.Path, user: str | None) -> pathlib.Path:
    """The same on all nodes."""
    return top / "home" / (user or "root")


def write_files(top: pathlib.Path, names: tuple[str, ...], subnet: str) -> None:
    """All of it, in the new directory `top`."""
    for part in ("etc", "ssh/keys", "ssh/authorized_keys", "home", "hosts", "mpi", "shared"):
        (top / part).mkdir(parents=True)
    for name in names:
        (top / "hosts" / name).mkdir()
    (top / "shared").chmod(0o1777)
    for user in ("root", *USERS):
        directory = home(top, user)
        directory.mkdir(mode=0o700)
        os.chown(directory, USERS.get(user, 0), USERS.get(user, 0))
    write_names(top / "etc", names, subnet)
    write_users(top)
    write_ssh(top / "ssh", names, subnet)


def addresses(names: tuple[str, ...], subnet: str) -> dict[str, str]:
    return {name: f"{subnet}.{number}" for number, name in enumerate(names, 1)}


def write_names(etc: pathlib.Path, names: tuple[str, ...], subnet: str) -> None:
    lines = [f"{address} {name}" for name, address in addresses(names, subnet).items()]
    (etc / "hosts").write_text("\n".join(["127.0.0.1 localhost", f"{subnet}.100 head", *lines, ""]))


def write_users(top: pathlib.Path) -> None:
    """The machine's users with another home for root, and those of the bed; nobody has a password."""
    kept = [line for line in pathlib.Path("/etc/passwd").read_text().splitlines() if not line.startswith("root:")]
    users = {"root": 0} | USERS
    lines = [f"{name}:x:{number}:{number}::{home(top, name)}:/bin/bash" for name, number in users.items()]
    (top / "etc" / "passwd").write_text("\n".join([*lines, *kept, ""]))
    groups = [f"{name}:x:{number}:" for name, number in USERS.items()]
    (top / "etc" / "group").write_text(pathlib.Path("/etc/group").read_text() + "\n".join([*groups, ""]))
    shadow = top / "etc" / "shadow"
    shadow.write_text("".join(f"{name}:*:20000:0:99999:7:::\n" for name in users))
    shadow.chmod(0o600)


def write_ssh(ssh: pathlib.Path, names: tuple[str, ...], subnet: str) -> None:
    """It is bound over /etc/ssh, so no file in anybody's home takes part."""
    make_key(ssh / "host_key")
    key = (ssh / "host_key.pub").read_text()
    known = ",".join([*names, *addresses(names, subnet).values()])
    (ssh / "known_hosts").write_text(f"{known} {key}")
    for user in ("root", *USERS):
        path = ssh / "keys" / user
        make_key(path)
        shutil.move(f"{path}.pub", ssh / "authorized_keys" / user)
        os.chown(path, USERS.get(user, 0), USERS.get(user, 0))
    environment = " ".join(f"{name}={value}" for name, value in environment_of_nodes().items())
    (ssh / "sshd_config").write_text(SSHD.format(environment=environment))
    (ssh / "ssh_config").write_text(SSH)


def make_key(path: pathlib.Path) -> None:
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "bed", "-f", path], check=True)
