"""Signals that end a command of the Python side."""

import subprocess

LATE = """
import os, signal
try:
    os.kill(os.getpid(), signal.SIGTERM)
    complete = True
except BaseException:  # as compiled modules do
    complete = False
"""
COMMAND = """
import time
from forebay.cli.interruption import Interrupted, interruptible
try:
    with interruptible():
        import late
        time.sleep(60)
except Interrupted as stop:
    print(int(stop.number), late.complete)
"""


def test_signal_during_an_import_ends_the_command_after_it(build, tmp_path):
    (tmp_path / "late.py").write_text(LATE)
    command = [build / "venv" / "bin" / "python", "-c", COMMAND]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.stdout == "15 True\n", done.stderr
