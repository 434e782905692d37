"""A site without MUNGE: requests and answers are signed with a secret that the hosts share."""

import hashlib
import hmac
import json
import os
import shutil
import time

import pytest

from support.site_cluster import DW, SLOW, SiteBatch, SiteCluster, chown
from support.slurm_cluster import NOBODY, started

IN = "#DW stage_in type=file source=%d/input destination=$DW_JOB_STRIPED/input"
OUT = "#DW stage_out type=file source=$DW_JOB_STRIPED/result destination=%d/results/result"
#: Sends a line to the daemon of n1, and prints the line that it answers.
CLIENT = """
import socket, sys
peer = socket.create_connection(("10.77.0.1", 7077), timeout=60)
peer.sendall(sys.stdin.buffer.read() + b"\\n")
sys.stdout.buffer.write(peer.makefile("rb").readline())
"""


class SecretCluster(SiteCluster):
    has_engine = False  # it needs MUNGE

    """Slurm itself has MUNGE; Forebay does not know its socket."""

    def make_files(self):
        super().make_files()
        self.secret = self.top / "secret"
        self.write_secret(self.secret)
        site = self.top / "site.toml"
        lines = f'auth = "secret"\nsecret = "{self.secret}"'
        site.write_text(site.read_text().replace(f'munge_socket = "{self.top}/munge/socket"', lines))

    def write_secret(self, path):
        """A new one. Control host and nodes see the same file here, so it belongs to Slurm's user."""
        path.write_text(os.urandom(32).hex())
        path.chmod(0o600)
        shutil.chown(path, "slurm", "slurm")

    def restart_noded(self, node):
        log = self.top / "log" / f"noded-{node}"
        before = log.read_text().count("listens at")
        self.kill_noded(node)
        self.wait(lambda: log.read_text().count("listens at") > before, log.read_text)


@pytest.fixture(scope="module")
def secret_site(build):
    with started(SecretCluster, build) as cluster:
        yield cluster


@pytest.fixture
def users(secret_site, request):
    batch = SiteBatch(secret_site, NOBODY, request.node.name)
    batch.results.mkdir()
    (batch.directory / "input").write_text("input\n")
    chown(batch.directory, NOBODY)
    yield batch
    batch.end()


def test_job_is_staged_in_and_out_and_no_user_reads_the_secret(secret_site, users):
    body = f"srun -N2 hostname | sort | cat $DW_JOB_STRIPED/input - >$DW_JOB_STRIPED/result; cat {secret_site.secret}"
    users.script(body, DW, IN, OUT)
    job = users.submit("-N2")
    users.wait(job)
    users.wait_until_freed(job)
    assert (users.results / "result").read_text() == "input\nn1\nn2\n", users.log()
    assert "Permission denied" in users.stderr_text()
    assert users.show_job(job)["JobState"] == "FAILED"  # of `cat`


def test_node_with_another_secret_is_named_in_the_reason(secret_site, users):
    other = secret_site.top / "other-secret"
    secret_site.write_secret(other)
    secret_site.run(["mount", "--bind", other, secret_site.secret], node="n1")
    try:
        secret_site.restart_noded("n1")
        users.script("true", SLOW)  # n1 alone makes its directories
        reason = users.waits_for(users.submit(), "is not signed with the secret")
        file = secret_site.secret
        assert f"n1:7077: the message is not signed with the secret {file} of this host" in reason
        assert f"compare on both hosts: sha256sum {file}; and restart forebay-noded" in reason
        assert "is not signed with the secret" in (secret_site.top / "log" / "noded-n1").read_text()
    finally:
        secret_site.run(["umount", secret_site.secret], node="n1")
        secret_site.restart_noded("n1")


def line_of(secret, operation, node="n1", time_s=None, side="request"):
    """A signed line, as the reference describes it."""
    content = json.dumps({"version": 4, "node": node, "nonce": "x", "operation": operation}).encode()
    time_ms = round((time.time() if time_s is None else time_s) * 1000)
    signed = f"{time_ms}:{os.urandom(8).hex()}:".encode() + content
    tag = hmac.new(secret, f"{side}\n".encode() + signed, hashlib.sha256).hexdigest()
    return b"HMAC:" + tag.encode() + b":" + signed


def test_forged_repeated_and_old_requests_are_refused(secret_site):
    secret = secret_site.secret.read_bytes()
    count = {"what": "count"}

    def ask(line):
        """As an ordinary user, who may have copied a line."""
        path = secret_site.shared / "line"
        path.write_bytes(line)
        words = ["sh", "-c", f"exec python3 -c '{CLIENT}' <{path}"]
        return secret_site.run(words, user=NOBODY).stdout.strip()

    def outcome(answer):
        tag, signed = answer.removeprefix("HMAC:").split(":", 1)
        assert hmac.new(secret, b"answer\n" + signed.encode(), hashlib.sha256).hexdigest() == tag
        return json.loads(signed.split(":", 2)[2])["outcome"]

    line = line_of(secret, count)
    assert outcome(ask(line))["result"] == "counts"
    assert ask(line) == ""
    log, told = secret_site.top / "log" / "noded-n1", "the message came before: somebody sends it again"
    secret_site.wait(lambda: told in log.read_text(), log.read_text)  # the connection is closed first
    unsigned = "not signed with the secret of this host"
    answer = line_of(secret, count, side="answer")
    changed = line_of(secret, count).replace(b"count", b"list_")
    for forged in (line_of(b"x" * 64, count), answer, changed, b"", b"HMAC:", b"MUNGE:AAAA:", b"\xff" * 100):
        assert ask(forged) == unsigned, forged
    for shift_s, wanted in [(-400, "too old"), (400, "from the future")]:
        refused = outcome(ask(line_of(secret, count, time_s=time.time() + shift_s)))
        reason = f"the message is {wanted}: the clocks of two hosts differ; compare date on the control host and the"
        assert refused["result"] == "refused" and refused["reason"].startswith(reason)
    assert "this node is n1, the request is for n2" in outcome(ask(line_of(secret, count, node="n2")))["reason"]
    # A daemon that is started again does not know what it answered before.
    early = line_of(secret, count)
    secret_site.restart_noded("n1")
    assert ask(early) == ""
    assert outcome(ask(line_of(secret, count)))["result"] == "counts"


def test_secret_that_cannot_be_used_is_named(secret_site):
    file, kept = secret_site.secret, secret_site.top / "kept"
    configuration = {"FOREBAY_SITE": str(secret_site.top / "site.toml")}

    def errors():
        """Those of the control host, whose programs become Slurm's user, and of a node."""
        listens = ["forebay-noded", "--listen", "127.0.0.1:0"]
        yield secret_site.run(["timeout", "60", *listens], "n1", check=False, **configuration).stderr
        yield secret_site.control("reap", check=False).stderr

    def named(wanted):
        for error in errors():
            assert f"the secret {file} {wanted}" in error, error

    shutil.copy2(file, kept)
    try:
        file.chmod(0o640)
        named("is open to other users (mode 0640)")
        file.chmod(0o600)
        os.chown(file, NOBODY, NOBODY)
        node, control = errors()
        assert f"the secret {file} belongs to nobody" in node
        assert f"the secret {file} cannot be read: Permission denied" in control
        assert f"as root on the control host: chown slurm {file}" in control
        shutil.chown(file, "slurm")
        file.write_text("short")
        named("has 5 bytes; from 32 to 4096 are possible")
        secret_site.top.chmod(0o757)
        named(f"could be exchanged by the users who can write {secret_site.top}")
        secret_site.top.chmod(0o755)
        file.unlink()
        named("is missing; make it on one host and copy it to all: openssl rand -hex 32")
    finally:
        secret_site.top.chmod(0o755)
        shutil.copy2(kept, file)
        shutil.chown(file, "slurm", "slurm")
