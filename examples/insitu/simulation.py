"""A small simulation: Gray and Scott's reaction and diffusion of two substances, each step a NetCDF file."""

import sys

import numpy as np
from scipy.io import netcdf_file

CELLS, ITERATIONS_PER_STEP = 128, 400
DIFFUSION_U, DIFFUSION_V, FEED, KILL = 0.16, 0.08, 0.060, 0.062


def laplacian(field):
    return sum(np.roll(field, shift, axis) for shift in (1, -1) for axis in (0, 1)) - 4 * field


def advance(u, v):
    reaction = u * v * v
    u += DIFFUSION_U * laplacian(u) - reaction + FEED * (1 - u)
    v += DIFFUSION_V * laplacian(v) + reaction - (FEED + KILL) * v


def write(path, step, v):
    with netcdf_file(path, "w") as file:
        for name in ("y", "x"):
            file.createDimension(name, CELLS)
        file.step = step
        file.createVariable("v", "f4", ("y", "x"))[:] = v


def main(directory, steps):
    u, v = np.ones((CELLS, CELLS)), np.zeros((CELLS, CELLS))
    middle = slice(CELLS // 2 - 10, CELLS // 2 + 10)
    u[middle, middle], v[middle, middle] = 0.5, 0.25
    v += 0.02 * np.random.default_rng(1).random(v.shape)
    for step in range(1, steps + 1):
        for _ in range(ITERATIONS_PER_STEP):
            advance(u, v)
        write(f"{directory}/step-{step:03}.nc", step, v)
        print(f"step {step} of {steps} is written", flush=True)


main(sys.argv[1], int(sys.argv[2]))
