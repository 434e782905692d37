"""A user who tries to reach the files of others, or to hold others up, through the daemon of root."""

import os
import signal
import subprocess

import pytest

from support.site_cluster import DAEMON, DW, MIB, SLOW, chown
from support.site_staging import in_stage
from support.slurm_cluster import NOBODY

SECRET = "secret of another user"


@pytest.fixture
def secret(slurm_site):
    """A file of another user, in a directory that is closed to all others."""
    directory = slurm_site.shared / "of-another"
    directory.mkdir(exist_ok=True)
    (directory / "file").write_text(SECRET)
    directory.chmod(0o700)
    chown(directory, DAEMON)
    return directory


def ends(batch, job):
    """Waits until the job has ended, whatever became of its results; returns the reason then."""
    batch.cluster.wait(
        lambda: batch.show_job(job)["JobState"] in ("COMPLETED", "FAILED") or "dws data out" in batch.reason(job),
        lambda: (batch.show_job(job), batch.log()),
    )
    return batch.reason(job)


@pytest.mark.parametrize(
    "trick",
    [
        "ln -s {secret}/file $DW_JOB_STRIPED/result",
        "ln -s {secret} $DW_JOB_STRIPED/out; ln -s out/file $DW_JOB_STRIPED/result",
        "cd $DW_JOB_STRIPED/..; rmdir striped; ln -s {secret} striped; ln -s file striped/result; true",
        "cd $DW_JOB_STRIPED/..; mv striped other; ln -s {secret} striped; ln -s {secret}/file other/result",
    ],
)
def test_links_in_the_allocation_lead_nowhere_else(slurm_site, users, secret, trick):
    users.results.mkdir()
    chown(users.results, users.user)
    out = "#DW stage_out type=file source=$DW_JOB_STRIPED/{} destination=%d/results/{}"
    users.script(trick.format(secret=secret), DW, out.format("result", "a"), out.format("file", "b"))
    job = users.submit()
    ends(users, job)
    users.run("scancel", "--hurry", job)
    users.wait_until_freed(job)
    assert slurm_site.directories() == []
    delivered = [path for path in users.results.iterdir() if not path.is_symlink()]
    assert not any(SECRET in path.read_text() for path in delivered)
    assert (secret / "file").read_text() == SECRET and secret.stat().st_uid == DAEMON


def test_source_and_target_are_reached_as_the_user_only(slurm_site, users, secret):
    (users.directory / "link").symlink_to(secret)
    chown(users.directory / "link", users.user)
    users.script("true", DW, "#DW stage_in type=file source=%d/link/file destination=$DW_JOB_STRIPED/a")
    users.waits_for(users.submit(), "Permission denied")
    for target in ("%d/link/new", "/etc/forebay-of-a-user", "/root/forebay-of-a-user"):
        stage_out = f"#DW stage_out type=file source=$DW_JOB_STRIPED/a destination={target}"
        users.script("echo a > $DW_JOB_STRIPED/a", DW, stage_out)
        job = users.submit()
        assert "Permission denied" in ends(users, job), users.log()
    assert [path.name for path in secret.iterdir()] == ["file"]


def test_user_who_changes_the_tree_during_its_removal_keeps_nothing(slurm_site, users, secret):
    body = f"cd $DW_JOB_STRIPED; mkdir -p a/b/c d; ln -s {secret} a/b/c/link; chmod 0 a/b; touch d/1"
    users.script(body, DW)
    directory = slurm_site.pool
    swap = "while [ ! -e %s/stop ]; do for d in %s/*/striped; do mkdir $d/x; touch $d/x/y; mv $d/x $d/z; done; done"
    job = users.submit()
    process = subprocess.Popen(
        ["sh", "-c", (swap % (users.directory, directory)) + " 2>/dev/null"], user=NOBODY, group=NOBODY, extra_groups=[]
    )
    try:
        assert users.wait(job) == "COMPLETED"
        users.wait_until_freed(job)
    finally:
        (users.directory / "stop").touch()
        process.wait()
    assert slurm_site.directories() == []
    assert (secret / "file").read_text() == SECRET


@pytest.mark.soak
def test_tree_deeper_than_a_path_can_be_is_removed(slurm_site, users):
    users.script(
        "cd $DW_JOB_STRIPED && python3 -c \"import os\nfor _ in range(20000): os.mkdir('d'); os.chdir('d')\"", DW
    )
    job = users.submit()
    assert users.wait(job) == "COMPLETED", users.stderr_text()
    users.wait_until_freed(job)
    assert slurm_site.directories() == []


def test_files_of_another_user_in_the_allocation_are_named(slurm_site, users):
    users.script(f"chmod 777 $DW_JOB_STRIPED $DW_JOB_STRIPED/..; touch {users.directory}/open; sleep 60", DW)
    job = users.submit()
    users.wait_for_file("open")
    foreign = users.directory_of(job) / "foreign"
    foreign.mkdir()
    (foreign / "file").touch()
    foreign.chmod(0o700)
    chown(foreign, DAEMON)
    users.run("scancel", job)
    slurm_site.wait(lambda: "holds files of another user" in str(slurm_site.allocation(job)), users.log)
    (foreign / "file").unlink()
    foreign.rmdir()
    slurm_site.call("--function", "teardown", "--token", job, "--job", "/dev/null", "--hurry", check=True)
    users.wait_until_freed(job)


def test_names_with_blanks_quotes_and_ends_of_lines_harm_nobody(slurm_site, users):
    odd = users.directory / "a b'\"$(touch hit);`touch hit`\n#DW stage_out"
    odd.mkdir()
    (odd / "input").write_text("odd\n")
    chown(odd, users.user)
    users.script("true", DW, "#DW stage_in type=file source=%d/input destination=$DW_JOB_STRIPED/input")
    job = users.submit("-D", odd, "-J", "name '\"\n$(touch hit)", "-o", "/dev/null", "-e", "/dev/null")
    # The path ends at its blank, so the source does not exist.
    users.waits_for(job, "line 3: ")
    assert not list(users.directory.rglob("hit")) and not (slurm_site.top / "state" / "hit").exists()


CLIENT = r"""
import json, socket, subprocess, sys, time
socket_of_munge, what = sys.argv[1:]
def ask(line):
    peer = socket.create_connection(("10.77.0.1", 7077), timeout=60)
    peer.sendall(line + b"\n")
    answer = peer.makefile("rb").readline().strip()
    return answer
def credential(text):
    made = subprocess.run(["munge", "-S", socket_of_munge], input=text, capture_output=True, check=True)
    return made.stdout.strip()
def read(answer):
    done = subprocess.run(["unmunge", "-S", socket_of_munge], input=answer, capture_output=True)
    return done.stdout.decode()
place = {"pool": "flash", "path": "%s", "name": "1.1", "user": 1, "group": 1}
request = {"version": 1, "node": "n1", "nonce": "x", "operation": {"what": "remove", "place": place, "attempt": "x"}}
if what == "request":
    print(read(ask(credential(json.dumps(request).encode()))))
elif what == "old":
    made = subprocess.run(["munge", "-S", socket_of_munge, "-t", "1"], input=json.dumps(request).encode(),
                          capture_output=True, check=True)
    time.sleep(3)
    print(read(ask(made.stdout.strip())))
elif what == "replay":
    one = credential(b"{}")
    print(len(ask(one)), len(ask(one)))
elif what == "garbage":
    print([len(ask(line)) for line in (b"", b"MUNGE:AAAA:", b"\xff" * 100, b"x" * (1 << 20) + b"x")])
"""


def test_daemon_obeys_slurm_and_root_alone(slurm_site, users):
    program = users.directory / "client.py"
    program.write_text(CLIENT % slurm_site.pool)

    def client(what, user):
        return slurm_site.run(["python3", program, slurm_site.top / "munge" / "socket", what], user=user).stdout

    assert "nobody may not ask: only slurm and root may" in client("request", NOBODY)
    assert client("garbage", NOBODY) == "[0, 0, 0, 0]\n"
    # Slurm's own user may have a clock that differs.
    assert "the credential is too old: the clocks of two hosts differ; compare date" in client("old", "slurm")
    first, second = client("replay", NOBODY).split()
    assert int(first) > 0 and second == "0"
    log = slurm_site.top / "log" / "noded-n1"
    # It is closed first.
    slurm_site.wait(lambda: "eplayed credential" in log.read_text(), log.read_text)


#: Tries to read the environment and the memory of a process, and to trace it.
TRACER = """
import ctypes, os, sys
number = int(sys.argv[1])
def seize():
    if ctypes.CDLL(None, use_errno=True).ptrace(0x4206, number, None, None) != 0:
        raise OSError(ctypes.get_errno(), "ptrace")
def tried(act):
    try:
        act()
    except PermissionError:
        return "refused"
    return "done"
environment, memory = (lambda: open(f"/proc/{number}/environ", "rb").read()), (lambda: open(f"/proc/{number}/mem", "rb"))
print(*map(tried, (environment, memory, seize)))
"""


def test_user_cannot_trace_the_process_that_stages(slurm_site, users):
    (users.directory / "big").write_bytes(bytes(28 * MIB))
    stage_in = "#DW stage_in type=file source=%d/big destination=$DW_JOB_STRIPED/big"
    users.script("true", SLOW.replace("16MiB", "32MiB"), stage_in)
    as_user = {"user": NOBODY, "group": NOBODY, "extra_groups": []}

    def tried(number):
        words = ["python3", "-c", TRACER, str(number)]
        return subprocess.run(words, capture_output=True, text=True, check=True, **as_user).stdout

    # Where the user's other processes are closed, too, the test shows nothing.
    with subprocess.Popen(["sleep", "600"], **as_user) as other:
        try:
            assert tried(other.pid) == "done done done\n"
        finally:
            other.kill()
    job = users.submit()
    in_stage(users, "in")
    (work,) = slurm_site.processes("/proc/self/exe", "__site")
    assert tried(work) == "refused refused refused\n"
    assert users.wait(job) == "COMPLETED", users.log()


#: Sends a signal to the first such process of the daemons that are named. It looks at new processes only: they live for
#: milliseconds.
SIGNALLER = """
import os, signal, sys, time
number_of_signal, *daemons = sys.argv[1:]
def newest():
    return int(open("/proc/loadavg").read().split()[-1])
seen, new = newest(), set()
print("ready", flush=True)
while True:
    time.sleep(0.0001)
    last = newest()
    new.update(range(seen + 1, last + 1))
    seen = last
    for number in list(new):
        try:
            parent = open(f"/proc/{number}/stat").read().rpartition(")")[2].split()[1]
            if parent in daemons and b"\\0__site\\0" in open(f"/proc/{number}/cmdline", "rb").read():
                os.kill(number, int(number_of_signal))
                print(number, flush=True)
                raise SystemExit
        except OSError:  # it has ended, or is another user's
            new.discard(number)
"""


def set_up_with_signal(slurm_site, users, number, is_enough):
    """Sets jobs up while a user sends a signal to the first process that makes an allocation, until `is_enough` of the call
    and of the process that got it, which is short-lived: the user may need some tries."""
    users.script("true", DW)
    script = users.directory / "job.sh"
    of_user = ("--caller", "SLURM", "--user", users.user, "--groupid", users.user, "--capacity", "flash:16MiB")
    # It interrupts all others: on one processor, what it waits for would be over when its turn comes.
    as_user = ["chrt", "--fifo", "1", "setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    words = [*as_user, "python3", "-c", SIGNALLER, str(int(number)), *map(str, slurm_site.daemons())]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as signaller:
        assert signaller.stdout.readline() == "ready\n"
        tokens = [str(900100 + number) for number in range(300)]
        for tries, token in enumerate(tokens, 1):
            done = slurm_site.call("--function", "setup", "--token", token, *of_user, "--job", script)
            if is_enough(done, signaller.poll() is not None):
                break
        signaller.kill()
        reached = signaller.communicate()[0].strip()
    for token in tokens[:tries]:
        slurm_site.call("--function", "teardown", "--token", token, "--job", script, "--hurry", check=True)
    assert slurm_site.status()["allocations"] == [] and slurm_site.directories() == []
    return done, reached


def test_user_who_stops_the_process_of_a_request_keeps_no_place_of_the_daemon(slurm_site, users):
    done, stopped = set_up_with_signal(slurm_site, users, signal.SIGSTOP, lambda done, _: done.returncode != 0)
    assert "its process had not ended after 30 s; who stops processes of the user there" in done.stderr, done
    assert stopped and not os.path.exists(f"/proc/{stopped}")


def test_allocation_is_made_although_an_epilog_kills_the_process_that_makes_it(slurm_site, users):
    done, killed = set_up_with_signal(
        slurm_site, users, signal.SIGKILL, lambda done, was_sent: was_sent or done.returncode != 0
    )
    assert killed and done.returncode == 0, done


def test_silent_peers_hold_up_nobody(slurm_site, users):
    """More of them than the daemon has places for, on the node that stages and on that of the job."""
    program = (
        "import socket,time; p=[socket.create_connection((a,7077)) for a in A for _ in range(100)]; time.sleep(99)"
    )
    addresses = [f"10.77.0.{number}" for number in range(1, 5)]
    inside = ["nsenter", "--target", str(slurm_site.leader()), "--net"]
    silent = subprocess.Popen([*inside, "python3", "-c", f"A={addresses};{program}"])
    try:
        users.script("true", DW)
        for _ in range(3):
            assert users.wait(users.submit()) == "COMPLETED", users.log()
        assert silent.poll() is None
    finally:
        silent.kill()
        silent.wait()


def test_allocation_is_closed_to_others_and_its_name_to_its_owner(slurm_site, users):
    users.script(f"touch $DW_JOB_STRIPED/a {users.directory}/running; sleep 60", DW)
    job = users.submit()
    users.wait_for_file("running")
    allocation = users.directory_of(job).parent
    status = os.stat(allocation)
    assert (status.st_uid, status.st_mode & 0o777) == (NOBODY, 0o700)
    listed = slurm_site.run(["ls", allocation], user=DAEMON, check=False)
    assert listed.returncode != 0 and "Permission denied" in listed.stderr
    assert slurm_site.pool.stat().st_uid == 0
    renamed = slurm_site.run(["mv", allocation, f"{allocation}x"], user=NOBODY, check=False)
    assert renamed.returncode != 0, "its owner cannot rename it"
