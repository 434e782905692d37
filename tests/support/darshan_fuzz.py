"""Damages Darshan logs at random, and tries what Forebay makes of each: a report, or an error.

    python -m support.darshan_fuzz SEED COUNT LOG... prints one line of JSON for each log that it has damaged.

Each try is a process of its own, made by fork, so that nothing is imported again. What a user runs has two: Darshan's
library may crash in the first.
"""

import json
import os
import pathlib
import random
import resource
import sys
import tempfile
import traceback

from forebay.advice.advise import findings
from forebay.advice.diagnosis import reason
from forebay.profiles import darshan_log, darshan_worker
from forebay.profiles.errors import ProfileError
from forebay.report import terminal
from forebay.report.assembly import Advised
from forebay.report.objects import as_json
from forebay.report.verdict import verdict
from rich.console import Console

#: What a try may take beyond what the process that it is forked from has, and the seconds of its processor time.
MEMORY_BYTES = 1 << 30
CPU_S = 20
#: Results of a try.
REPORTED, REFUSED, NOT_READ, FAILED = range(4)


def damaged(whole: bytes, chosen: random.Random) -> tuple[bytes, str]:
    """A copy with one change, and what it is. The header, of which no checksum is kept, gets half of them."""
    content = bytearray(whole)
    end = min(len(whole), 1400) if chosen.random() < 0.5 else len(whole)
    at, kind = chosen.randrange(end), chosen.choice(["bit", "byte", "number", "cut", "zeros"])
    if kind == "bit":
        content[at] ^= 1 << chosen.randrange(8)
    elif kind == "byte":
        content[at] = chosen.randrange(256)
    elif kind == "number":
        value = chosen.choice([2**63 - 1, 2**63, 2**62, 2**32, 2**31, 2**31 - 1, 0, 1])
        content[at : at + 8] = value.to_bytes(8, chosen.choice(["little", "big"]))
    elif kind == "cut":
        del content[at:]
    else:
        content[at : at + 40] = bytes(40)
    return bytes(content), f"{kind} at {at}"


def report_on(path: pathlib.Path, raw) -> None:
    """Everything that a report computes."""
    found = darshan_log.profile(path, raw)
    advice = findings(found, None)
    job = Advised(found, verdict(found), reason(found, advice).paragraph, advice)
    with open(os.devnull, "w") as nowhere:
        terminal.print_summary(Console(file=nowhere), job, True)
    json.loads(as_json([job], None, None, True))


def try_log(path: pathlib.Path) -> None:
    """Ends this process with a result."""
    used_bytes = int(pathlib.Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    resource.setrlimit(resource.RLIMIT_AS, (used_bytes + MEMORY_BYTES,) * 2)
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S + 5))
    try:
        raw = darshan_worker.log(str(path))
    except (darshan_worker.Unreadable, MemoryError):
        os._exit(NOT_READ)
    os.write(3, b"read")
    try:
        report_on(path, raw)
    except ProfileError as error:
        os._exit(REFUSED if str(error) and error.hint else FAILED)
    except BaseException:
        traceback.print_exc()
        os._exit(FAILED)
    os._exit(REPORTED)


def outcome(path: pathlib.Path, messages) -> dict:
    """What became of a log."""
    there, ours = os.pipe()
    child = os.fork()
    if child == 0:
        os.dup2(messages.fileno(), 1)
        os.dup2(messages.fileno(), 2)
        os.dup2(ours, 3)
        try_log(path)
    os.close(ours)
    _, status = os.waitpid(child, 0)
    with open(there, "rb") as pipe:
        was_read = pipe.read() == b"read"
    code = os.waitstatus_to_exitcode(status)
    # Darshan's library ends its process on some logs, and Forebay says so. After it, nothing may end.
    is_right = code in (REPORTED, REFUSED) if was_read else code in (NOT_READ, -6, -7, -8, -11)
    return {"code": code, "was_read": was_read, "is_right": is_right}


def main(seed: int, count: int, logs: list[str]) -> None:
    contents = [(pathlib.Path(log), pathlib.Path(log).read_bytes()) for log in logs]
    with tempfile.TemporaryDirectory() as scratch:
        path = pathlib.Path(scratch) / "damaged.darshan"
        for number in range(count):
            chosen = random.Random(f"{seed} {number}")
            log, whole = chosen.choice(contents)
            content, change = damaged(whole, chosen)
            path.write_bytes(content)
            with tempfile.TemporaryFile() as messages:
                found = outcome(path, messages)
                messages.seek(0)
                words = messages.read().decode(errors="replace")[-2000:]
            print(json.dumps({"number": number, "log": log.name, "change": change, **found, "words": words}))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
