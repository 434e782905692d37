"""Processes in the namespaces of a test bed, as the machine itself sees them."""

import os
import pathlib
import signal
import subprocess

PROC = pathlib.Path("/proc")


class Entered(subprocess.Popen):
    """A command that nsenter has started in namespaces: its signals reach the command itself."""

    @property
    def command_pid(self) -> int | None:
        """Of the command, in the machine's numbers; None when there is none (any more)."""
        return next(iter(children(self.pid)), None)

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            inner = self.command_pid
            if inner is not None:
                send(inner, number)
            # It stops when its command does, and continues only on a signal of its own.
            if inner is None or number == signal.SIGCONT:
                super().send_signal(number)


def send(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


def children(pid: int) -> list[int]:
    try:
        return [int(word) for word in (PROC / f"{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def words_of(pid: int) -> list[str]:
    """The command line of a process; empty when it has ended."""
    try:
        return (PROC / f"{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")[:-1]
    except OSError:
        return []


def state_of(pid: int) -> str | None:
    """R, S, D (uninterruptible), T (stopped), Z (a zombie), ...; None when it has ended."""
    try:
        return (PROC / f"{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return None


def user_of(path: pathlib.Path) -> int | None:
    """The number of the user who owns it; None when it is gone. That of a process owns its directory in PROC."""
    try:
        return path.stat().st_uid
    except OSError:
        return None


def identity(pid: int) -> tuple[int, str] | None:
    """The process and when it began, as its number is used again; None when it has ended."""
    try:
        words = (PROC / f"{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if words[0] == "Z" else (pid, words[19])


def alive(processes: set[tuple[int, str]]) -> list[tuple[int, list[str]]]:
    """(number, command line) of those that have not ended."""
    return [(pid, words_of(pid)) for pid, start in sorted(processes) if identity(pid) == (pid, start)]


def number_inside(pid: int) -> int:
    """Its number in its own process namespace."""
    lines = (PROC / f"{pid}/status").read_text().splitlines()
    (found,) = (line for line in lines if line.startswith("NSpid:"))
    return int(found.split()[-1])


def namespace(pid: int, kind: str) -> str | None:
    """Which "mnt", "net", "uts" or "pid" namespace it is in."""
    try:
        return os.readlink(f"/proc/{pid}/ns/{kind}")
    except OSError:
        return None


def members(namespaces: set[str], kind: str) -> list[int]:
    """All processes in one of these namespaces of a kind."""
    # Tests ask for it in loops: without pathlib it takes a third of the time.
    return [int(name) for name in os.listdir("/proc") if name.isdigit() and namespace(int(name), kind) in namespaces]


def mounts_of(pid: int) -> list[list[str]]:
    """The words of each line of its mountinfo."""
    try:
        return [line.split() for line in (PROC / f"{pid}/mountinfo").read_text().splitlines()]
    except OSError:
        return []
