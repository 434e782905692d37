"""The kernels that grids are made of: how each is run on each model, and the settings that its grid has."""

import dataclasses
import itertools
import pathlib
from collections.abc import Iterator

from forebay.tune.model import Configuration, Parameter, key

KIB, MIB = 1 << 10, 1 << 20
MODELS = {"lustre-small": "lustre", "burst-buffer-small": "burst-buffer"}
#: In the environment of every job: ROMIO, and what keeps the start of eight ranks on two cores short.
LAUNCHING = {
    "OMPI_MCA_io": "romio321",
    "OMPI_MCA_pml": "ob1",
    "OMPI_MCA_btl": "self,vader",
    "OMPI_MCA_osc": "^ucx",
    "OMPI_MCA_odls_base_sigkill_timeout": "0",
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
}
ORDERED = {"cb_nodes", "cb_buffer_size", "striping_unit", "ind_wr_buffer_size", "lfs_stripe_count", "lfs_stripe_size"}

#: Parameter name -> the values beside the default.
Values = dict[str, tuple[str, ...]]
#: Parameter -> the one that decides whether it acts, and the values of that one with which it does (None: default).
Acts = dict[str, tuple[str, tuple[str | None, ...]]]


@dataclasses.dataclass(frozen=True)
class Grid:
    """One kernel on one model. Files of `inputs` are hard-linked into the directory of each run."""

    kernel: str
    model: str
    ranks: int
    words: tuple[str, ...]  # program below build/kernels, and its arguments
    values: Values
    acts: Acts
    inputs: dict[str, str] = dataclasses.field(default_factory=dict)
    prepare: tuple[str, ...] = ()  # arguments of a run before all others that makes more inputs
    #: More arguments with which the kernel compares what a run left, where the same data are not the same bytes.
    check: tuple[str, ...] = ()
    limit_s: float = 6.0  # a run is ended after this; nothing that takes as long is near the best

    @property
    def name(self) -> str:
        return f"{self.kernel}-{MODELS[self.model]}"

    def parameters(self) -> list[Parameter]:
        return [parameter(name, values) for name, values in self.values.items()]

    def canonical(self, configuration: Configuration) -> Configuration:
        """Without the settings that cannot act."""
        return canonical(configuration, self.acts)

    def configurations(self) -> list[Configuration]:
        """All that differ in effect, the default first."""
        names = list(self.values)
        products = itertools.product(*((None, *self.values[name]) for name in names))
        chosen = (
            {name: value for name, value in zip(names, row, strict=True) if value is not None} for row in products
        )
        return list({key(one): one for one in map(self.canonical, chosen)}.values())

    def write_inputs(self, directory: pathlib.Path) -> None:
        for name, text in self.inputs.items():
            (directory / name).write_text(text)


def canonical(configuration: Configuration, acts: Acts) -> Configuration:
    """Without the settings whose deciding parameter has another value than those with which they act."""
    return {
        name: value
        for name, value in configuration.items()
        if name not in acts or configuration.get(acts[name][0]) in acts[name][1]
    }


def parameter(name: str, values: tuple[str, ...]) -> Parameter:
    pattern, colon, setting = name.rpartition(":")
    return Parameter(
        name=name,
        setting=setting,
        pattern=pattern if colon else None,
        values=values,
        ordered=setting in ORDERED,
        default=None,
        reason="an axis of the grid",
        source="bench/grid_kernels.py",
    )


def rendered(configuration: Configuration) -> tuple[str, list[str]]:
    """The text of MPICH_MPIIO_HINTS, and the options of `lfs setstripe` for the directory of the run."""
    hints: dict[str, list[str]] = {}
    options = []
    for name, value in sorted(configuration.items()):
        pattern, _, setting = name.rpartition(":")
        if setting == "lfs_stripe_count":
            options += ["-c", value]
        elif setting == "lfs_stripe_size":
            options += ["-S", value]
        else:
            # One node: without cb_config_list there is one aggregator, whatever cb_nodes says.
            more = ["cb_config_list=#*:*#"] if setting == "cb_nodes" else []
            hints.setdefault(pattern, []).extend([f"{setting}={value}", *more])
    return ",".join(":".join([pattern, *settings]) for pattern, settings in hints.items()), options


def sizes(*bytes_: int) -> tuple[str, ...]:
    return tuple(map(str, bytes_))


COUNTS = {"lfs_stripe_count": ("2", "4", "8")}
STRIPES = COUNTS | {"lfs_stripe_size": sizes(4 * MIB)}


def collective(pattern: str, **settings: tuple[str, ...]) -> tuple[Values, Acts]:
    """Settings of a file that is written by interleaved collective calls: two phases, unless they are disabled."""
    on, off = f"{pattern}:romio_cb_write", f"{pattern}:romio_ds_write"
    values = {f"{pattern}:{name}": values for name, values in settings.items()}
    acts: Acts = {name: (on, (None,)) for name in values}
    return values | {on: ("disable",), off: ("disable",)}, acts | {off: (on, ("disable",))}


def btio_full(model: str) -> Grid:
    """Nine ranks, since BTIO wants a square."""
    if model == "lustre-small":
        values, acts = collective("btio.full.out", cb_nodes=("3", "9"), cb_buffer_size=sizes(MIB, 4 * MIB))
        values |= STRIPES
    else:
        values, acts = collective(
            "btio.full.out",
            cb_nodes=("2", "3", "6", "9"),
            cb_buffer_size=sizes(256 * KIB, MIB, 4 * MIB),
            striping_unit=sizes(MIB, 4 * MIB),
        )
    deck = {"inputbt.data": "w\n0\n4\n64 64 64\n.\n"}
    return Grid("btio-full", model, 9, ("btio", "--sweeps", "0", "inputbt.data"), values, acts, deck)


def btio_simple(model: str) -> Grid:
    """Each call writes one contiguous row, so no hint of ROMIO's buffers can matter: striping is what there is."""
    lustre = model == "lustre-small"
    values: Values = {
        "btio.simple.out:romio_no_indep_rw": ("true",),
        "lfs_stripe_count": ("2", "4", "8") if lustre else ("1",),
        "lfs_stripe_size": sizes(64 * KIB, 128 * KIB, 256 * KIB, 512 * KIB, 2 * MIB, 4 * MIB),
    }
    deck = {"inputbt.data": "w\n0\n1\n24 24 24\n.\n" if lustre else "w\n0\n3\n36 36 36\n.\n"}
    words = ("btio", "--variant", "simple", "--sweeps", "0", "inputbt.data")
    return Grid("btio-simple", model, 9, words, values, {}, deck)


def replib(model: str) -> Grid:
    """Chunks of 16 KiB of all ranks in turn, 32 of each rank in a step of 4 MiB."""
    ranks, chunks, size = 8, 32, 16 * KIB
    more: Values = {} if model == "lustre-small" else {"striping_unit": sizes(512 * KIB, MIB, 4 * MIB)}
    buffers = sizes(256 * KIB, MIB) if model == "lustre-small" else sizes(64 * KIB, 256 * KIB, MIB)
    values, acts = collective("currents.bbp", cb_nodes=("2", "4", "8"), cb_buffer_size=buffers, **more)
    if model == "lustre-small":
        values |= STRIPES
    lines = [
        [rank, chunks + 1, *[size] * chunks, *[(chunk * ranks + rank) * size for chunk in range(chunks)]]
        for rank in range(ranks)
    ]
    text = "".join(",".join(map(str, line)) + "\n" for line in lines)
    words = ("replib", "-w", "fileNb", "-f", "blocks.csv", "-r", "8", "-t", "0")
    return Grid("replib", model, ranks, words, values, acts, {"blocks.csv": text})


def vpic(model: str) -> Grid:
    """Contiguous pieces: ROMIO writes them without a second phase, unless that is asked for."""
    lustre = model == "lustre-small"
    on = "vpic.h5:romio_cb_write"
    buffers = sizes(256 * KIB, MIB) if lustre else sizes(64 * KIB, 256 * KIB, MIB)
    two_phase: Values = {"vpic.h5:cb_nodes": ("2", "4", "8"), "vpic.h5:cb_buffer_size": buffers}
    if not lustre:
        two_phase["vpic.h5:striping_unit"] = sizes(512 * KIB, MIB, 4 * MIB)
    acts: Acts = {name: (on, ("enable",)) for name in two_phase}
    values = {on: ("enable",), **two_phase} | (STRIPES if lustre else {})
    words = ("vpic", "--particles", "131072", "--steps", "1" if lustre else "3")
    return Grid("vpic", model, 8, words, values, acts, check=("--read", "--verify"))


def wrf(model: str) -> Grid:
    """Three patterns, each with settings of its own."""
    out, boundary, start = "wrfout*:romio_cb_write", "wrfbdy*:romio_cb_read", "wrfinput*:romio_cb_read"
    lustre = model == "lustre-small"
    values: Values = {
        out: ("disable",),
        "wrfout*:cb_nodes": ("4", "8") if lustre else ("2", "4", "8"),
        boundary: ("disable",),
        start: ("disable",),
        "wrfinput*:cb_nodes": ("8",) if lustre else ("4", "8"),
    }
    values |= {"lfs_stripe_count": ("4", "8")} if lustre else {"wrfout*:cb_buffer_size": sizes(MIB)}
    acts: Acts = {"wrfinput*:cb_nodes": (start, (None,))}
    acts |= {name: (out, (None,)) for name in ("wrfout*:cb_nodes", "wrfout*:cb_buffer_size")}
    size = "--nx 512 --ny 256 --nz 2 --variables 20 --steps 2"
    often = "--history-interval 1 --restart-interval 0 --boundary-interval 2"
    return Grid(
        "wrf", model, 8, ("wrf", *size.split(), *often.split()), values, acts, prepare=("--prepare",), limit_s=8.0
    )


KERNELS = {"btio-full": btio_full, "btio-simple": btio_simple, "replib": replib, "vpic": vpic, "wrf": wrf}


def grids() -> Iterator[Grid]:
    for model in MODELS:
        for kernel in KERNELS.values():
            yield kernel(model)
