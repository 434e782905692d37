"""The preload library of Ceph's mount program ends a wait whose wake-up is missing."""

import os
import subprocess
import sys

# The condition is never signalled; the mutex is held, as POSIX wants it.
WAIT = """
import ctypes, threading
libc = ctypes.CDLL(None)
condition, mutex = (ctypes.create_string_buffer(64) for _ in range(2))
def wait():
    assert libc.pthread_mutex_lock(mutex) == 0
    for _ in range(3):
        assert libc.pthread_cond_wait(condition, mutex) == 0
    assert libc.pthread_mutex_unlock(mutex) == 0
thread = threading.Thread(target=wait)
thread.start()
thread.join()
print("went on")
"""
LIMIT_S = 60  # a hang, not a slow machine


def test_wait_without_a_wake_up_returns_to_its_caller(build):
    library = build / "lib" / "forebay" / "libforebay_ceph_preload.so"
    environment = os.environ | {"LD_PRELOAD": str(library)}
    command = [sys.executable, "-c", WAIT]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=LIMIT_S, check=True)
    assert done.stdout == "went on\n"
