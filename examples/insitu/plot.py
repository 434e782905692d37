"""Plots one step: plot.py STEP.nc PICTURE.png."""

import sys

import matplotlib

matplotlib.use("agg")
from matplotlib import pyplot  # noqa: E402
from scipy.io import netcdf_file  # noqa: E402


def plot(source, target):
    with netcdf_file(source, mmap=False) as file:
        step, v = file.step, file.variables["v"][:].copy()
    figure, axes = pyplot.subplots(figsize=(5, 4), layout="constrained")
    image = axes.imshow(v, origin="lower", cmap="viridis", vmin=0, vmax=0.4)
    axes.set(title=f"Substance V after step {int(step)}", xlabel="x (cells)", ylabel="y (cells)")
    figure.colorbar(image, label="concentration")
    figure.savefig(target, dpi=100)
    pyplot.close(figure)


if __name__ == "__main__":
    plot(*sys.argv[1:])
