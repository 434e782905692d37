"""Heat in a rod for one member of an ensemble. Resumes from its checkpoint.

Usage: simulate.py MEMBER FOLDER
"""

import json
import os
import sys
import time
from pathlib import Path

member, folder = int(sys.argv[1]), Path(sys.argv[2])
checkpoint = folder / "checkpoint" / "state.json"
STEPS, CELLS = 30, 100
#: What one step computes on a real machine, in seconds.
COMPUTE_S = 0.1

if checkpoint.exists():
    state = json.loads(checkpoint.read_text())
else:
    state = {"step": 0, "heat": [100.0 * member] + [0.0] * (CELLS - 1)}
print(f"member {member}: step {state['step']} of {STEPS}", flush=True)
while state["step"] < STEPS:
    heat = state["heat"]
    inner = [sum(heat[cell - 1 : cell + 2]) / 3 for cell in range(1, CELLS - 1)]
    state = {"step": state["step"] + 1, "heat": [heat[0], *inner, heat[-1]]}
    time.sleep(COMPUTE_S)
    # The rename makes sure that a stage-out never copies half of a checkpoint.
    partial = checkpoint.with_suffix(".partial")
    partial.write_text(json.dumps(state))
    os.replace(partial, checkpoint)
result = folder / "result" / f"heat-{member}.txt"
result.write_text("".join(f"{value:.9f}\n" for value in state["heat"]))
