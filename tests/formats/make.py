"""Makes the golden files again: python3 tests/formats/make.py BUILD, as root, in a folder with that build's sources.

Each is a folder of scratch directories as `Job` has them, left by jobs, stagings or a tuner that ran there, in a tar.
"""

import os
import pathlib
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tarfile
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
BUILD = pathlib.Path(sys.argv[1] if __name__ == "__main__" else os.environ["FOREBAY_BUILD"]).resolve()
#: What a test puts its own in place of; all are as long as what they stand for.
TOP = "/tmp/forebay-format-00000000"
BOOT = "00000000-0000-0000-0000-000000000000"
NAMESPACE = "pid:[0000000000]"
HOST = "forebay-format-host"
TOLD = b"precious\n"
DW = "#DW jobdw type=scratch access_mode=striped capacity=64MiB"
OUT = "#DW stage_out type=directory source=$DW_JOB_STRIPED/out destination=%d/results"
IN = "#DW stage_in type=directory source=%d/in destination=$DW_JOB_STRIPED/in"
USE = "#DW persistentdw name=proj1"
FROM = "#DW stage_out type=file source=$DW_PERSISTENT_STRIPED_proj1/p destination=%d/p"
MPI = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


class Scratch:
    """The directories of one golden."""

    def __init__(self, name):
        self.name = name
        self.top = pathlib.Path(tempfile.mkdtemp(prefix="forebay-format-", dir="/tmp"))
        self.submit, self.store, self.state = (self.top / one for one in ("submit dir", "store", "state"))
        for one in (self.submit, self.store, self.state, self.top / "tmp"):
            one.mkdir()
        (self.submit / "in").mkdir()
        (self.submit / "in" / "small").write_bytes(TOLD)
        (self.submit / "in" / "large").write_bytes(bytes(range(256)) * 1024)  # four pieces

    def script(self, body, *directives, name="job.sh"):
        (self.submit / name).write_text("\n".join(["#!/bin/bash", "#SBATCH --ntasks=2", *directives, body, ""]))

    def start(self, *words, **environment):
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("FOREBAY", "DW_", "SLURM"))}
        kept |= {"FOREBAY_SITE_CONFIG": "/dev/null/none", "XDG_CONFIG_HOME": "/dev/null/none"}
        kept |= {"TMPDIR": str(self.top / "tmp"), "FOREBAY_STATE": str(self.state), "USER": "ada"} | environment
        out = (self.top.parent / f"{self.top.name}.log").open("ab")
        return subprocess.Popen([BUILD / "bin" / "forebay", *words], cwd=self.submit, env=kept, stdout=out, stderr=out)

    def forebay(self, *words, status=0, **environment):
        assert self.start(*words, **environment).wait(60) == status, words

    def killed(self, reached, *words, **environment):
        """By SIGKILL once this is so, with all that it had started."""
        process = self.start(*words, **environment)
        until(lambda: process.poll() is not None or reached())
        assert process.poll() is None, words
        process.kill()
        process.wait()
        mark = f"TMPDIR={self.top}/tmp".encode()
        for other in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                if mark in (other / "environ").read_bytes().split(b"\0"):
                    os.kill(int(other.name), signal.SIGKILL)
            except OSError:
                continue

    def parts(self):
        return list(self.top.rglob("*.part"))

    def keep(self):
        """Puts it into the tar, without what is this machine's."""
        for path in [*self.top.rglob("*.journal"), *self.top.rglob("*.sqlite")]:
            sqlite3.connect(path).execute("PRAGMA wal_checkpoint(TRUNCATE)").connection.close()
            for end in ("-wal", "-shm"):
                path.with_name(path.name + end).unlink(missing_ok=True)
        boot = pathlib.Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        swaps = {
            str(self.top): TOP,
            boot: BOOT,
            os.readlink("/proc/self/ns/pid"): NAMESPACE,
            socket.gethostname(): HOST,
        }
        with tarfile.open(HERE / f"{self.name}.tar.gz", "w:gz") as tar:
            for path in sorted(self.top.rglob("*")):
                if not (path.is_file() or path.is_dir() or path.is_symlink()) or path.parent.name == "bin":
                    continue  # the launchers' stand-ins are links to forebay
                if path.is_file() and not path.is_symlink() and path.suffix != ".trace":  # checksums are in traces
                    times = path.stat()
                    path.write_bytes(swapped(path.read_bytes(), swaps))
                    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
                entry = tar.gettarinfo(path, swapped(str(path.relative_to(self.top)).encode(), swaps).decode())
                if path.is_symlink():
                    entry.linkname = swapped(entry.linkname.encode(), swaps).decode()
                entry.uid = entry.gid = 0
                entry.uname = entry.gname = ""
                tar.addfile(entry, path.open("rb") if entry.isreg() else None)
        print(self.name, (HERE / f"{self.name}.tar.gz").stat().st_size)
        shutil.rmtree(self.top)


def swapped(content, swaps):
    for old, new in swaps.items():
        content = content.replace(old.encode(), new.encode())
    return content


def until(reached):
    ends = time.monotonic() + 60
    while not reached():
        assert time.monotonic() < ends
        time.sleep(0.005)


def preparing():
    """A record of a job that was killed while it staged in, on an emulated file system."""
    here = Scratch("preparing")
    here.script("true", DW, IN, OUT)
    model = BUILD.parent / "machines" / "lustre-small.toml"
    words = ("--stage-rate", "128KiB", "--pfs-model", model)
    here.killed(lambda: list(here.store.rglob("in/large")), "run", "--store", here.store, *words, "job.sh")
    here.keep()
    for path in pathlib.Path("/dev/shm").glob("forebay-pfs-*"):
        path.unlink()


def running():
    """A job that was killed while its script ran, with its use of a persistent allocation, and what a drain had begun."""
    here = Scratch("running")
    here.forebay("persistent", "create", "proj1", "--capacity", "1MiB", "--store", here.store)
    body = 'mkdir $DW_JOB_STRIPED/out; cd $DW_JOB_STRIPED; cp -r "$OLDPWD/in/." out; echo precious > "$DW_PERSISTENT_STRIPED_proj1/p"'
    here.script(f'{body}; echo precious > d.dat; touch "$OLDPWD/runs"; exec sleep 60', DW, OUT, USE, FROM)
    options = (
        "--stage-verify",
        "end",
        "--stage-rate",
        "64MiB",
        "--drain",
        f"*.dat:to={here.submit}/drained",
        "--drain",
        "large:rate=64KiB/s",
    )
    here.killed(
        lambda: (here.submit / "drained" / "d.dat").exists() and list((here.submit / "results").glob("*.part")),
        "run",
        "--store",
        here.store,
        *options,
        "job.sh",
    )
    here.keep()


def requests():
    """A killed job whose program had asked for a file and a directory, part of which it revoked."""
    here = Scratch("requests")
    program = here.top / "ask"
    source = HERE.parent / "programs" / "capi" / "ask.c"
    library = BUILD / "lib"
    subprocess.run(
        ["cc", "-I", BUILD / "include", "-o", program, source, f"-L{library}", "-ldatawarp", f"-Wl,-rpath,{library}"],
        check=True,
    )
    body = [
        "S=$DW_JOB_STRIPED; cp -r in $S/d; cp in/small $S/f; echo no > $S/d/not; mkdir asked-d",
        f"'{program}' out $S/f \"$PWD/asked\" end; '{program}' out-directory $S/d \"$PWD/asked-d\" end",
        f"'{program}' out $S/d/not - revoke; touch runs; exec sleep 60",
    ]
    here.script("\n".join(body), DW)
    here.killed((here.submit / "runs").exists, "run", "--store", here.store, "job.sh")
    program.unlink()
    here.keep()


def kept():
    """A job that was ended by SIGTERM, whose stage-out failed in part: kept, with a list of what is not safe."""
    here = Scratch("kept")
    here.script("cp -r in $DW_JOB_STRIPED/out; touch runs; exec sleep 60", DW, OUT)
    (here.submit / "results" / "small").mkdir(parents=True)
    process = here.start("run", "--store", here.store, "--deadline", "1:00:00", "job.sh")
    until(lambda: process.poll() is not None or (here.submit / "runs").exists())
    process.terminate()
    process.wait(60)
    assert list(here.state.glob("*.FILES-NOT-SAFE"))
    here.keep()


def staging_out():
    """A job that was killed in its stage-out."""
    here = Scratch("staging-out")
    here.script("cp -r in $DW_JOB_STRIPED/out", DW, OUT)
    here.killed(here.parts, "run", "--store", here.store, "--stage-rate", "64KiB", "job.sh")
    here.keep()


def stagings():
    """Stagings of a user: one that was killed, one that was cancelled, one that failed, one that is done."""
    here = Scratch("stagings")
    slow = ("--piece", "64KiB", "--rate", "128KiB")
    here.killed(lambda: pieces(here) > 1, "stage", "out", *slow, "in", "interrupted")
    process = here.start("stage", "out", *slow, "in", "cancelled")
    until(lambda: list((here.submit / "cancelled").glob("*.part")))
    latest = max(path.stem for path in here.state.rglob("*.journal"))
    here.forebay("stage", "cancel", latest)
    process.wait(60)
    (here.submit / "failed" / "small").mkdir(parents=True)
    here.forebay("stage", "out", "in", "failed", status=123)
    here.forebay("stage", "in", "--background", "in", "done")
    until(lambda: (here.submit / "done" / "small").exists() and (here.submit / "done" / "large").exists())
    time.sleep(0.5)
    here.keep()


def pieces(here):
    found = 0
    for path in here.state.rglob("*.journal"):
        try:
            found += (
                sqlite3.connect(f"file:{path}?mode=ro", uri=True).execute("SELECT count(*) FROM piece").fetchone()[0]
            )
        except sqlite3.Error:
            pass
    return found


def persistent():
    """Two persistent allocations and the links to them; of one its store is not there any more."""
    here = Scratch("persistent")
    here.forebay("persistent", "create", "proj1", "--capacity", "1MiB", "--expires", "9999d", "--store", here.store)
    (here.store / "forebay-persistent-proj1" / "striped" / "p").write_bytes(TOLD)
    other = here.top / "other"
    other.mkdir()
    here.forebay("persistent", "create", "proj2", "--capacity", "2MiB", "--store", other)
    shutil.rmtree(other)
    here.keep()


def record():
    """The record of a job of an MPI program and of one without, with a trace."""
    here = Scratch("record")
    program = here.top / "direct"
    source = HERE / "pattern.c"
    subprocess.run(["mpicc.openmpi", "-o", program, source], check=True)
    lines = f"mpiexec.openmpi --oversubscribe -n 2 '{program}' data\ncp data copy"
    here.script(lines)
    here.forebay("run", "--trace", "job.sh", **MPI)
    shutil.rmtree(here.submit / "in")
    program.unlink()
    here.keep()


def process():
    """The record of a program without MPI."""
    here = Scratch("process")
    shutil.rmtree(here.submit / "in")
    here.script("dd if=/dev/zero of=data bs=64K count=32")
    here.forebay("run", "job.sh")
    here.keep()


def study():
    """A study of a tuner that its budget ended before it had a verdict."""
    here = Scratch("study")
    shutil.rmtree(here.submit / "in")
    deck = "{ echo w; echo 0; echo 2; echo 16 16 16; echo out; } > deck.data"
    hints = "export MPICH_MPIIO_HINTS='*:romio_cb_write=disable:romio_ds_write=disable'"
    here.script(
        f"{hints}\nmkdir -p out\n{deck}\nPATH={BUILD}/kernels:$PATH\nmpiexec.openmpi --oversubscribe -n 4 btio --sweeps 0 deck.data"
    )
    model = BUILD.parent / "machines" / "lustre-small.toml"
    shutil.copy(model, here.submit / "model.toml")
    here.forebay("tune", "--pfs-model", "model.toml", "--budget", "3", "--seed", "1", "job.sh", **MPI)
    for page in here.submit.rglob("*.html"):
        page.unlink()
    here.keep()


if __name__ == "__main__":
    for make in (preparing, running, requests, kept, staging_out, stagings, persistent, record, process, study):
        if sys.argv[2:] in ([], [make.__name__]):
            make()
