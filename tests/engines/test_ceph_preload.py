"""The preload library of Ceph's mount program ends a wait whose wake-up is missing."""

import os
import subprocess
import sys

import pytest

# The condition is never signalled; the mutex is held, as POSIX wants it.
WAIT = """
import ctypes, sys, threading
libc = ctypes.CDLL(None)
condition, mutex = (ctypes.create_string_buffer(64) for _ in range(2))
def wait():
    assert libc.pthread_mutex_lock(mutex) == 0
    for _ in range(3):
        assert libc.pthread_cond_wait(condition, mutex) == 0
    assert libc.pthread_mutex_unlock(mutex) == 0
if "thread" in sys.argv:
    thread = threading.Thread(target=wait)
    thread.start()
    thread.join()
else:
    wait()
print("went on")
"""
LIMIT_S = 60  # a hang, not a slow machine


def waiting(build, *words, limit_s):
    library = build / "lib" / "forebay" / "libforebay_ceph_preload.so"
    environment = os.environ | {"LD_PRELOAD": str(library)}
    command = [sys.executable, "-c", WAIT, *words]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=limit_s, check=True)


def test_wait_without_a_wake_up_returns_to_its_caller(build):
    assert waiting(build, "thread", limit_s=LIMIT_S).stdout == "went on\n"


def test_first_thread_waits_for_its_wake_up(build):
    """It mounts, and takes each return for the answer."""
    with pytest.raises(subprocess.TimeoutExpired):
        waiting(build, limit_s=2)
