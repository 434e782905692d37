"""Writes and reads files until told to end: load.py DIRECTORY NAME STOP ANSWER PAUSE_S. The answer is JSON: files that were
written and synced, errors by name, wrong contents and missing files, the longest operation in seconds, and the long
operations: when they began (the machine's monotonic clock) and how long they took."""

import errno
import hashlib
import json
import os
import sys
import time

BYTES = 65536
#: An operation that takes so long is a pause.
PAUSE_FROM_S = 0.1


def content(name, number):
    return hashlib.sha256(f"{name} {number}".encode()).digest() * (BYTES // 32)


def write(path, data):
    with open(path, "wb", buffering=0) as file:
        assert file.write(data) == len(data)
        os.fsync(file.fileno())


def read(path):
    with open(path, "rb", buffering=0) as file:
        return file.read(2 * BYTES)


def main(directory, name, stop, answer, pause_s):
    found = {"files": 0, "errors": {}, "wrong": [], "longest_s": 0.0, "pauses": []}
    while not os.path.exists(stop):
        number = found["files"]
        began = time.monotonic()
        try:
            write(f"{directory}/{name}-{number}", content(name, number))
            found["files"] += 1
            earlier = number // 2
            if read(f"{directory}/{name}-{earlier}") != content(name, earlier):
                found["wrong"].append(earlier)
        except OSError as error:
            word = errno.errorcode[error.errno]
            found["errors"][word] = found["errors"].get(word, 0) + 1
            open(f"{answer}.error", "w").close()  # whoever waits for one goes on
            if error.errno == errno.ENOENT:
                found["wrong"].append(f"missing: {error.filename}")
            time.sleep(0.1)
        took_s = time.monotonic() - began
        found["longest_s"] = max(found["longest_s"], took_s)
        if took_s > PAUSE_FROM_S:
            found["pauses"].append([began, took_s])
        time.sleep(float(pause_s))
    with open(f"{answer}.part", "w") as file:
        json.dump(found, file)
    os.rename(f"{answer}.part", answer)  # whoever waits for it reads all of it


main(*sys.argv[1:])
