"""Heat in a rod: reads its start from a file, and writes a checkpoint every few steps."""

import sys

start, out, steps = sys.argv[1], sys.argv[2], int(sys.argv[3])
with open(start) as file:
    heat = [float(line) for line in file]
for step in range(1, steps + 1):
    inner = [(left + here + right) / 3 for left, here, right in zip(heat, heat[1:], heat[2:])]
    heat = [heat[0], *inner, heat[-1]]
    if step % 10 == 0:
        with open(f"{out}/step-{step:04}.txt", "w") as file:
            file.writelines(f"{value:.12e}\n" for value in heat)
