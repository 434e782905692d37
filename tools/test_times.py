#!/usr/bin/env python3
"""Prints the ten slowest tests and the totals of `make test`; fails if it took too long.

Usage: tools/test_times.py DIRECTORY MINUTES_MAX. The directory has the JUnit files and a file `started`, made when
the tests began.
"""

import pathlib
import sys
import time
import xml.etree.ElementTree as ElementTree

SLOWEST = 10


def main(directory: pathlib.Path, minutes_max: float) -> int:
    cases = []
    for file in sorted(directory.glob("*.xml")):
        found = [
            (float(case.get("time", 0)), f"{case.get('classname')}::{case.get('name')}")
            for case in ElementTree.parse(file).iter("testcase")
        ]
        print(f"{file.stem}: {len(found)} tests, {sum(seconds for seconds, _ in found):.0f} s in tests")
        cases += found
    for seconds, name in sorted(cases, reverse=True)[:SLOWEST]:
        print(f"{seconds:8.1f} s  {name}")
    minutes = (time.time() - (directory / "started").stat().st_mtime) / 60
    print(f"all tests: {minutes:.1f} min of {minutes_max:g} min")
    if minutes > minutes_max:
        print("error: the tests took too long; the slowest are above", file=sys.stderr)
        print("hint: on a slow machine: make test TEST_MINUTES_MAX=60", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]), float(sys.argv[2])))
