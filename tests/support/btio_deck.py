"""BTIO's decks and values: a value is its own index counted from 1."""

import array

from support.kernels import mpiexec

COMPONENTS = 5


def write_deck(directory, *, mode="w", method=0, dumps=12, grid=(12, 12, 12), out=None):
    """The deck file in `directory`; the output directory is directory/out unless given."""
    if out is None:
        out = directory / "out"
        out.mkdir(exist_ok=True)
    deck = directory / "inputbt.data"
    nx, ny, nz = grid
    deck.write_text(f"{mode}\n{method}\n{dumps}\n{nx} {ny} {nz}\n{out}\n")
    return deck


def run_btio(build, ranks, deck, *flags, **options):
    return mpiexec(ranks, build / "kernels" / "btio", *flags, deck, **options)


def values_in(path):
    values = array.array("d")
    values.frombytes(path.read_bytes())
    return values


def expected_values(grid, dumps):
    nx, ny, nz = grid
    return array.array("d", range(1, COMPONENTS * nx * ny * nz * dumps + 1))
