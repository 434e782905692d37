"""Two processes write files at the same time: `two_writers.py DIRECTORY first|second FILES`.

The first sets the size of each file, writes all but the end, and has some of it in its cache when the second, on another
node, opens the file and writes the end. Nothing else happens to the file until the first has written all.
"""

import errno
import os
import sys
import time

BLOCK = bytes(4 << 20)
BLOCKS = 12
ROOM_S = 60


def wait_for(path):
    while not os.path.exists(path):
        time.sleep(0.002)


def set_size(file, size):
    """Files that were removed count against the capacity for some seconds."""
    until = time.monotonic() + ROOM_S
    while True:
        try:
            return os.ftruncate(file, size)
        except OSError as error:
            if error.errno != errno.EDQUOT or time.monotonic() > until:
                raise
        time.sleep(0.05)


def write(path, first, number):
    whole, done = f"{path}.whole", f"{path}.done"
    if first:
        file = os.open(f"{path}.new", os.O_CREAT | os.O_WRONLY)
        set_size(file, (BLOCKS + 1) * len(BLOCK))
        os.rename(f"{path}.new", path)
        for block in range(BLOCKS):
            os.pwrite(file, BLOCK, block * len(BLOCK))
        os.close(file)
        os.close(os.open(whole, os.O_CREAT))
        wait_for(done)
        os.unlink(path)
    else:
        wait_for(path)
        time.sleep(0.004 * (number % 8))
        file = os.open(path, os.O_WRONLY)
        os.pwrite(file, BLOCK, BLOCKS * len(BLOCK))
        wait_for(whole)
        os.close(file)
        os.close(os.open(done, os.O_CREAT))


directory, role, files = sys.argv[1:]
for number in range(int(files)):
    write(f"{directory}/{number}", role == "first", number)
