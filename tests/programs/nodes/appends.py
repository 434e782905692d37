"""Appends records to a file, as fast as it can: appends.py FILE NAME COUNT. A record has the name and a number, and
ends a line of 100 bytes."""

import os
import sys

file, name, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
descriptor = os.open(file, os.O_WRONLY | os.O_APPEND)
for number in range(count):
    record = f"{name} {number}".ljust(99, ".").encode() + b"\n"
    assert os.write(descriptor, record) == len(record)
os.close(descriptor)
