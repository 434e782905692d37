"""`dw_wlm_cli` and `dwstat` without Slurm and without a daemon: what goes wrong is one line that says what to do."""

import concurrent.futures
import contextlib
import fcntl
import json
import os
import pathlib
import shutil
import sqlite3
import subprocess
import tempfile

import pytest

from support.site_cluster import DAEMON
from support.slurm_cluster import NOBODY
from support.waiting import wait_until

SITE = """slurm_user = "nobody"
state = "{top}/state"
munge_socket = "{top}/no-munge"
node_wait = "0s"
[[pool]]
name = "flash"
kind = "directory"
path = "{top}/pool"
granularity = "1GiB"
quantity = 10
staging_nodes = ["127.0.0.1"]
"""
SCRIPT = "#!/bin/bash\n#DW jobdw type=scratch access_mode=striped capacity=1GiB\n"
SETUP = "setup --token 1 --caller SLURM --user 65534 --groupid 65534 --capacity flash:1GiB --job {script}"
OUT_OF_RESULT = {
    "kind": "File",
    "inner_path": "result",
    "pfs_path": "/result",
    "place": {"origin": "Script", "line": 3, "column": 1},
}
#: A call of each function for a job that has no allocation.
WHOLE = {
    "job_process": "--job {script}",
    "pools": "",
    "show_sessions": "",
    "show_instances": "",
    "show_configurations": "",
    "setup": SETUP.removeprefix("setup "),
    "data_in": "--token 1 --job {script}",
    "real_size": "--token 1",
    "paths": "--job {script} --token 1 --pathfile {path}",
    "pre_run": "--token 1 --job {script} --nodehostnamefile {nodes}",
    "post_run": "--token 1 --job {script}",
    "data_out": "--token 1 --job {script}",
    "teardown": "--token 1 --job {script}",
    "create_persistent": "-c CLI -t p1 -u 65534 -C flash:1073741824 -a striped -T scratch",
}


class Site:
    """The control host of a site, of which no daemon runs."""

    def __init__(self, build, top):
        self.build, self.top = build, top
        top.chmod(0o755)
        self.file = top / "site.toml"
        self.file.write_text(SITE.format(top=top))
        self.state = top / "state"
        self.state.mkdir(mode=0o700)
        os.chown(self.state, NOBODY, NOBODY)
        self.database = self.state / "state.sqlite"
        self.names = {name: top / name for name in ("script", "path", "nodes")}
        self.names["script"].write_text(SCRIPT)
        self.names["nodes"].write_text("127.0.0.1\n")
        self.names["path"].touch()
        os.chown(self.names["path"], NOBODY, NOBODY)

    def run(self, *words, name="dw_wlm_cli", user=NOBODY):
        return subprocess.run(
            [name, *map(str, words)],
            executable=self.build / "bin" / "forebay",
            env={"PATH": os.defpath, "FOREBAY_SITE": str(self.file)},
            capture_output=True,
            text=True,
            user=user,
            group=user,
            extra_groups=[],
        )

    def write_allocation(self, phase, created_unix_s=7):
        """Replaces all allocations by one of job 1, of another user, that no node was asked to make."""
        columns = (
            "id, token, user_id, group_id, pool, path, grains, granularity_bytes, node, state, created_unix_s, plan"
        )
        plan = {"stage_in": [], "stage_out": [OUT_OF_RESULT], "variables": [], "persistent": []}
        row = (5, "1", 1, 1, "flash", "/p", 2, 1 << 30, "", phase, created_unix_s, json.dumps(plan))
        with contextlib.closing(sqlite3.connect(self.database)) as state, state:
            state.execute("DELETE FROM session")
            state.execute(f"INSERT INTO session ({columns}) VALUES ({', '.join('?' * len(row))})", row)

    def start(self, *words, tracer):
        """`dw_wlm_cli` under a tracer, still running."""
        program = [*tracer, self.build / "bin" / "dw_wlm_cli", *words]
        environment = {"PATH": os.defpath, "FOREBAY_SITE": str(self.file)}
        to_pipe = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        return subprocess.Popen(program, env=environment, user=NOBODY, group=NOBODY, extra_groups=[], **to_pipe)

    def call(self, function, words="", **how):
        """One function of the protocol; the words name files in braces."""
        return self.run("--function", function, *words.format(**self.names).split(), **how)


@pytest.fixture
def site_host(build):
    if os.getuid() != 0:
        pytest.skip("only root owns the configuration of a site")
    # pytest's own folders are closed to other users.
    top = pathlib.Path(tempfile.mkdtemp(prefix="forebay-site-"))
    try:
        yield Site(build.resolve(), top)
    finally:
        shutil.rmtree(top)


def error_of(done):
    """The one line of a call that failed."""
    assert done.returncode == 1 and done.stdout == "", done
    assert done.stderr.endswith("\n") and done.stderr.count("\n") == 1, done
    return done.stderr.strip()


def test_each_argument_is_required_once(site_host):
    for function, words in WHOLE.items():
        words = words.split()
        for at in range(0, len(words), 2):
            option = words[at]
            if option in ("--nodehostnamefile", "-a", "-T"):
                continue
            without = site_host.call(function, " ".join(words[:at] + words[at + 2 :]))
            assert error_of(without).startswith(f"{function}: --") and without.stderr.endswith("is missing\n")
            twice = site_host.call(function, " ".join(words + words[at : at + 2]))
            assert error_of(twice).endswith("is given twice")


def test_functions_for_unknown_tokens_fail_except_teardown(site_host):
    for function in ("data_in", "real_size", "paths", "pre_run", "post_run", "data_out"):
        error = error_of(site_host.call(function, WHOLE[function]))
        assert error.startswith("1 has no allocation here; ")
        # Slurm takes these texts for success.
        assert "No matching session" not in error and "token not found" not in error
    for hurry in ("", " --hurry"):
        done = site_host.call("teardown", WHOLE["teardown"] + hurry)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert site_host.call("pools").stdout == (
        '{"pools":[{"free":10,"granularity":1073741824,"id":"flash","quantity":10,"units":"bytes"}]}\n'
    )
    for name in ("sessions", "instances", "configurations"):
        assert site_host.call(f"show_{name}").stdout == f'{{"{name}":[]}}\n'


def test_munged_or_daemon_that_does_not_run_is_named_and_no_space_is_lost(site_host):
    for function in ("setup", "create_persistent"):
        error = error_of(site_host.call(function, WHOLE[function]))
        assert f"munged at {site_host.top}/no-munge: " in error and "munged runs on each node" in error
    assert '"free":10,' in site_host.call("pools").stdout
    log = (site_host.state / "dw_wlm_cli.log").read_text()
    assert "setup 1: error: cannot make a credential" in log


def test_wrong_values_are_named(site_host):
    for change, wanted in [
        (("65534 --g", "0 --g"), "root cannot have an allocation"),
        (("65534 --g", "4000000000 --g"), "the user 4000000000 is not known on the control host"),
        (("65534 --g", "x --g"), 'setup: --user "x" is no number'),
        (("flash:1GiB", "flash"), 'setup: --capacity "flash" names no pool; it has the form POOL:SIZE'),
        (("flash:1GiB", "flash:1GX"), 'setup: --capacity "flash:1GX" has no size'),
        (("flash:1GiB", "other:1GiB"), "there is no pool other; the pools are: flash"),
        (("flash:1GiB", "flash:11GiB"), "the pool flash has 10 of 10 granules free, 11 are wanted"),
        (("--token 1", "--token ../1"), 'setup: --token "../1" is no job ID'),
        (("{script}", "/no/such"), "the job script: cannot open /no/such"),
    ]:
        error = error_of(site_host.run("--function", *SETUP.replace(*change).format(**site_host.names).split()))
        assert error.startswith(wanted), error


def test_state_that_is_damaged_newer_or_foreign_is_named_and_left_alone(site_host):
    site_host.call("pools")
    whole = site_host.database.read_bytes()
    newer = sqlite3.connect(site_host.database)
    newer.execute("PRAGMA user_version = 4")
    newer.commit()
    newer.close()
    for content, wanted in [
        (None, "is of version 4, this program knows version 3; install the version of Forebay that wrote it"),
        (b"", "is damaged: it is empty; restore a copy of it"),
        (b"garbage" * 1000, "is damaged: file is not a database; restore a copy of it"),
        (whole[:4096] + b"\xff" * (len(whole) - 4096), "is damaged: "),
    ]:
        if content is not None:
            site_host.database.write_bytes(content)
        before = site_host.database.read_bytes()
        for function in ("pools", "setup", "data_out", "teardown", "show_sessions"):
            error = error_of(site_host.call(function, WHOLE[function]))
            assert f"the state {site_host.database} {wanted}" in error
        assert error_of(site_host.run(name="dwstat")).startswith(f"the state {site_host.database}")
        assert site_host.database.read_bytes() == before
    site_host.database.unlink()
    assert site_host.call("pools").returncode == 0


def test_state_of_version_1_is_brought_to_this_one(site_host):
    site_host.call("setup", WHOLE["setup"])
    before = site_host.call("show_sessions").stdout
    with contextlib.closing(sqlite3.connect(site_host.database)) as earlier:
        earlier.executescript("DROP TABLE share; PRAGMA user_version = 1")
        assert site_host.call("show_sessions").stdout == before
        assert earlier.execute("PRAGMA user_version").fetchone() == (3,)
        assert earlier.execute("SELECT count(*) FROM share").fetchone() == (0,)


@pytest.mark.parametrize("nodes", [0, 1], ids=["waiting", "started"])
def test_state_of_version_2_knows_what_the_nodes_of_a_started_job_made(site_host, nodes):
    site_host.call("pools")
    site_host.write_allocation("staged-in")
    with contextlib.closing(sqlite3.connect(site_host.database)) as earlier:
        share = "INSERT INTO share (session, node, bytes) SELECT id, 'n1:7077', 1 FROM session"
        hosts = f"UPDATE session SET hosts = {nodes}"
        version = "PRAGMA user_version = 2"
        earlier.executescript(f"ALTER TABLE share DROP COLUMN is_made; {share}; {hosts}; {version}")
        site_host.call("show_sessions")
        assert earlier.execute("PRAGMA user_version").fetchone() == (3,)
        assert earlier.execute("SELECT is_made FROM share").fetchall() == [(nodes,)]


def test_state_that_another_user_could_change_is_refused(site_host):
    """Whoever can write it can have files copied as any user."""
    site_host.call("pools")
    foreign = site_host.top / "foreign"
    shutil.copy(site_host.database, foreign)
    os.chown(foreign, DAEMON, DAEMON)
    os.chown(site_host.database, DAEMON, DAEMON)
    wanted = f"the state {site_host.database} must belong to nobody and be closed to other writers; as root: chown "
    site_host.database.chmod(0o666)
    assert wanted in error_of(site_host.call("pools"))
    os.chown(site_host.database, NOBODY, NOBODY)
    assert wanted in error_of(site_host.call("teardown", WHOLE["teardown"]))
    site_host.database.chmod(0o600)
    assert site_host.call("pools").returncode == 0
    site_host.database.unlink()
    foreign.chmod(0o666)
    site_host.database.symlink_to(foreign)
    assert f"the state {site_host.database} is no regular file" in error_of(site_host.call("pools"))


def test_results_of_an_earlier_job_with_the_same_id_are_out_of_reach_of_the_new_job(site_host):
    """Slurm counts from the first ID again after a loss of its state."""
    site_host.call("pools")
    for phase in ("running", "ended", "staging-out", "staged-out"):
        site_host.write_allocation(phase)
        # No munged runs, so the set-up fails. Slurm tears down then; for a cancelled job with --hurry.
        site_host.call("setup", WHOLE["setup"])
        assert site_host.call("teardown", WHOLE["teardown"] + " --hurry").returncode == 0
        (kept,) = json.loads(site_host.run("control", "status", "--json", name="forebay", user=0).stdout)["allocations"]
        assert (kept["token"], kept["phase"], kept["directory"]) == ("1.5", phase, "/p/1.5")
        assert "forebay control deliver 1.5 delivers the results that are kept in /p/1.5/striped/" in kept["problem"]
        assert site_host.call("show_sessions").stdout == '{"sessions":[]}\n'
        assert '"free":8,' in site_host.call("pools").stdout
    error = error_of(site_host.call("paths", WHOLE["paths"].replace("--token 1", "--token 1.5")))
    assert 'paths: --token "1.5" is no job ID' in error


def test_set_up_that_began_before_the_allocation_was_made_leaves_a_running_job_alone(site_host):
    """An old copy of the call, which was stopped while the job went on."""
    site_host.call("pools")
    site_host.write_allocation("running", created_unix_s=1 << 40)
    assert "1 exists already: 2 granules of the pool flash, for daemon" in error_of(
        site_host.call("setup", WHOLE["setup"])
    )
    assert json.loads(site_host.call("show_sessions").stdout)["sessions"][0]["token"] == "1"


@pytest.mark.skipif(not shutil.which("strace"), reason="strace is not installed")
def test_teardown_that_waited_does_not_remove_results_of_a_job_that_has_started_meanwhile(site_host):
    site_host.call("pools")
    site_host.write_allocation("staged-in")
    locks = site_host.state / "locks"
    locks.mkdir(mode=0o700)
    (locks / "1").touch()
    for path in (locks, locks / "1"):
        os.chown(path, NOBODY, NOBODY)
    trace = site_host.state / "trace"
    with (locks / "1").open("r+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        tracer = ["strace", "-qq", "-e", "trace=flock", "-o", trace]
        words = WHOLE["teardown"].format(**site_host.names).split()
        waiting = site_host.start("--function", "teardown", *words, tracer=tracer)
        wait_until(lambda: trace.exists() and "EAGAIN" in trace.read_text(), process=waiting)
        site_host.write_allocation("running")
    said = waiting.communicate()[1]
    assert waiting.returncode == 1 and "the results of 1 are not delivered; the next teardown" in said
    (kept,) = json.loads(site_host.run("control", "status", "--json", name="forebay", user=0).stdout)["allocations"]
    assert (kept["token"], kept["phase"]) == ("1", "running")


def test_configuration_with_a_fault_or_of_another_user_is_named(site_host):
    text = site_host.file.read_text()
    for change, wanted in [
        (("quantity", "quantitty"), f"{site_host.file}:10: there is no key quantitty; did you mean quantity?"),
        (
            ('"directory"', '"servers"'),
            f"{site_host.file}:7: kind: Forebay has no storage servers of its own; run a file system such as CephFS",
        ),
        (("[[pool]]", "[[pool"), f"{site_host.file}:5: "),
        (("10", "10\nquantity = 3"), f"{site_host.file}:11: duplicate key"),
    ]:
        site_host.file.write_text(text.replace(*change))
        for words in ("pools", SETUP.format(**site_host.names)):
            error = error_of(site_host.run("--function", *words.split()))
            assert error.startswith(wanted), error
    site_host.file.write_text(text)
    site_host.file.chmod(0o666)
    assert "can be written by other users" in error_of(site_host.call("pools"))
    site_host.file.chmod(0o644)
    os.chown(site_host.file, NOBODY, NOBODY)
    assert f"belongs to nobody; root must own it; as root: chown root {site_host.file}" in error_of(
        site_host.call("pools")
    )
    site_host.file.unlink()
    assert f"there is no site configuration {site_host.file}" in error_of(site_host.call("pools"))


def test_only_slurms_user_uses_the_state_and_root_becomes_that_user(site_host):
    assert site_host.call("pools", user=0).returncode == 0
    assert site_host.database.stat().st_uid == NOBODY
    error = error_of(site_host.call("pools", user=DAEMON))
    assert error.endswith("is not for daemon; nobody alone uses it; users see it with: scontrol show bbstat")
    for mode in (0o777, 0o755, 0o710):
        site_host.state.chmod(mode)
        assert "must belong to nobody and be closed to all others" in error_of(site_host.call("pools"))
    shutil.rmtree(site_host.state)
    assert f"as root: install -d -o nobody -m 700 {site_host.state}" in error_of(site_host.call("pools"))


def test_scripts_are_checked_without_state_and_daemon(site_host):
    shutil.rmtree(site_host.state)
    done = site_host.call("job_process", WHOLE["job_process"])
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    site_host.names["script"].write_text(SCRIPT.replace("1GiB", "11GiB") + "#DW stage_in type=file\n")
    assert error_of(site_host.call("job_process", WHOLE["job_process"])).startswith("line 3: ")
    site_host.names["script"].write_bytes(SCRIPT.encode() + b"#DW \xff\x00\x1b[2J\n")
    assert "\x1b" not in error_of(site_host.call("job_process", WHOLE["job_process"]))


def test_script_with_too_many_directives_is_refused_at_once(site_host):
    """Slurm holds its locks while it waits for `job_process`."""
    lines = "".join(f"#DW persistentdw name=a{number:07d}\n" for number in range(100_000))
    site_host.names["script"].write_text(SCRIPT + lines)
    error = error_of(site_host.call("job_process", WHOLE["job_process"]))
    assert "the #DW and #BB lines have 3000056 bytes; at most 65536 are possible; stage directories or a list" in error
    site_host.names["script"].write_text(SCRIPT + "echo a line of the job\n" * 100_000)
    assert site_host.call("job_process", WHOLE["job_process"]).returncode == 0


def test_options_of_other_versions_of_slurm_are_passed_over_and_logged(site_host):
    done = site_host.call("pools", "--jobexecutionnodefile /f --new")
    assert done.returncode == 0
    log = (site_host.state / "dw_wlm_cli.log").read_text()
    assert 'pools -: passed over ["--jobexecutionnodefile", "/f", "--new"]' in log
    assert error_of(site_host.run("--function", "pols")).endswith("did you mean pools?")
    assert "pols" in (site_host.state / "dw_wlm_cli.log").read_text()


def test_daemon_that_cannot_serve_its_pools_does_not_start(site_host):
    pool = site_host.top / "pool"
    text = site_host.file.read_text().replace("127.0.0.1", os.uname().nodename).replace("1GiB", "1TiB")

    def start(user=0):
        words = ["--listen", "127.0.0.1:0"]
        return error_of(site_host.run(*words, name="forebay-noded", user=user))

    site_host.file.write_text(text)
    assert f"the pool flash: cannot list {pool}: No such file" in start()
    pool.mkdir(mode=0o777)
    pool.chmod(0o777)
    assert f"{pool} must belong to root and be closed to other writers; chown root {pool}" in start()
    pool.chmod(0o755)
    # A user who owns a directory above the pool could put another pool there under running jobs.
    theirs = site_host.top / "theirs"
    (theirs / "pool").mkdir(parents=True)
    os.chown(theirs, DAEMON, DAEMON)
    (site_host.top / "link").symlink_to(theirs)
    for name in ("theirs", "link"):
        site_host.file.write_text(text.replace("/pool", f"/{name}/pool"))
        error = start()
        assert f"{site_host.top}/{name}, which leads to {site_host.top}/{name}/pool, must belong to root" in error
    site_host.file.write_text(text.replace("quantity = 10", "quantity = 1000000"))
    error = start()
    assert (
        "the pool flash has " in error and f"the file system at {pool} has " in error and "lower its quantity" in error
    )
    # Two pools of one file system, each with three fifths of it.
    (site_host.top / "other").mkdir(mode=0o755)
    space = os.statvfs(pool)
    part = space.f_blocks * space.f_frsize * 3 // 5 >> 20
    one = text[text.index("[[pool]]") :].replace("1TiB", "1MiB").replace("quantity = 10", f"quantity = {part}")
    other = one.replace('"flash"', '"other"').replace("/pool", "/other")
    site_host.file.write_text(text[: text.index("[[pool]]")] + one + other)
    refused = site_host.run("--listen", "127.0.0.1:0", name="forebay-noded", user=0)
    error = refused.stderr.splitlines()[-1]  # after what is said of the first
    assert refused.returncode == 1 and error.startswith("the pools flash, other together have "), refused.stderr
    assert "lower their quantities" in error
    assert "must be started by root" in start(user=NOBODY)
    wrong = site_host.run("--listen", "nowhere", name="forebay-noded", user=0)
    assert wrong.returncode == 2 and "invalid value 'nowhere' for '--listen <ADDRESS:PORT>'" in wrong.stderr


def test_site_commands_show_pools_and_name_what_is_missing(site_host):
    shown = site_host.run("control", "status", name="forebay", user=0)
    assert shown.returncode == 0 and "no allocations" in shown.stdout and "10.00 GiB" in shown.stdout
    drained = site_host.run("control", "drain", "flash", name="forebay", user=0)
    assert "the pool flash is empty" in drained.stderr
    assert '"free":0,' in site_host.call("pools").stdout
    assert "is being drained" in error_of(site_host.call("setup", WHOLE["setup"]))
    assert site_host.run("control", "drain", "--undo", "flash", name="forebay", user=0).returncode == 0
    assert '"free":10,' in site_host.call("pools").stdout
    wrong = site_host.run("control", "drain", "flush", name="forebay", user=0)
    assert wrong.returncode == 1 and "there is no pool flush\nhint: the pools are: flash" in wrong.stderr
    none = site_host.run("control", "deliver", "12", name="forebay", user=0)
    assert none.returncode == 1 and "12 has no allocation here" in none.stderr
    reaped = site_host.run("control", "reap", name="forebay", user=0)
    assert reaped.returncode == 1 and "pool flash: cannot make a credential" in reaped.stderr
    site_host.write_allocation("running")  # in /p
    reaped = site_host.run("control", "reap", name="forebay", user=0)
    moved = f"1 is in /p/1.5, and the pool flash is {site_host.top}/pool now; name /p in the configuration until it"
    assert moved in reaped.stderr and "is gone" not in reaped.stdout


def test_unknown_users_and_groups_of_a_pool_are_named_and_stop_nobody(site_host):
    text = site_host.file.read_text()
    site_host.file.write_text(text + 'users = ["no-such-user"]\ngroups = ["no-such-group"]\n')
    assert site_host.call("pools").returncode == 0
    shown = site_host.run("control", "status", name="forebay", user=0)
    assert shown.returncode == 0
    for unknown in ("user no-such-user", "group no-such-group"):
        assert f"warning: pool flash: there is no {unknown}" in shown.stderr
    assert "nobody may not use the pool flash" in error_of(site_host.call("setup", WHOLE["setup"]))


def test_full_log_is_renamed_once_by_calls_at_the_same_time(site_host):
    log = site_host.state / "dw_wlm_cli.log"
    for _ in range(3):
        with log.open("wb") as full:
            full.truncate((16 << 20) + 1)
        os.chown(log, NOBODY, NOBODY)
        with concurrent.futures.ThreadPoolExecutor(8) as threads:
            done = list(threads.map(lambda _: site_host.call("pools"), range(24)))
        assert all(one.returncode == 0 for one in done)
        assert log.with_name("dw_wlm_cli.log.1").stat().st_size > 16 << 20
