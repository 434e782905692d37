"""The mean heat of each member of an ensemble, as CSV.

Usage: analyse.py FOLDER SUMMARY
"""

import sys
from pathlib import Path

folder, summary = Path(sys.argv[1]), Path(sys.argv[2])
lines = ["member,mean\n"]
for path in sorted(folder.glob("heat-*.txt")):
    heat = [float(line) for line in path.read_text().split()]
    lines.append(f"{path.stem.removeprefix('heat-')},{sum(heat) / len(heat):.6f}\n")
summary.write_text("".join(lines))
