"""Which configurations to try first: what the rules of the field, and those of the advice, would choose."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import msgspec

from forebay.advice.advise import LEVELS
from forebay.advice.counters import DIRECTIONS
from forebay.advice.registry import FILE_RULES
from forebay.advice.unbound_finding import Draft
from forebay.tune.model import Configuration, Guess, Parameter
from forebay.tune.settings.job_view import Files
from forebay.tune.settings.setting import positive

#: NERSC16: sixteen writers on eight nodes come near the peak. Ours, for few nodes with many ranks: eight.
AGGREGATORS_PER_NODE = 8
#: A block of one rank so large that handing it over costs more than a system call of its own. Ours.
LARGE_BLOCK_BYTES = 256 << 10
#: Of a call so small that agreeing on it takes longer. Ours.
TINY_BYTES = 16 << 10
BUFFER_BYTES = 4 << 20

#: setting -> value, for the files of one pattern.
Values = dict[str, str]


class Offer(msgspec.Struct, frozen=True, kw_only=True):
    """The parameters of one pattern, or of the whole job (`files` None), by setting."""

    files: Files | None
    parameters: dict[str, Parameter]
    unit_bytes: float | None = None  # what a system write will move, with as many aggregators as are guessed

    def take(self, setting: str, wanted: str) -> Values:
        """The setting with this value, if it is offered."""
        parameter = self.parameters.get(setting)
        return {setting: wanted} if parameter and wanted in parameter.values else {}

    def near(self, setting: str, wanted: float) -> Values:
        """The setting with the nearest value, by ratio; nothing if the default is nearer."""
        parameter = self.parameters.get(setting)
        if parameter is None:
            return {}
        known = [one for one in (parameter.default, *parameter.values) if positive(one)]
        nearest = min(known, key=lambda value: abs(math.log(float(value) / wanted)))
        return {} if nearest == parameter.default else {setting: nearest}


Recipe = Callable[[Offer], Values]


def _many_aggregators(offer: Offer) -> Values:
    """Many aggregators, also where the job switches them off; data sieving for independent pieces."""
    values = offer.near("cb_nodes", AGGREGATORS_PER_NODE * (offer.files.hosts if offer.files else 1))
    for direction in DIRECTIONS:
        values |= offer.take(f"romio_ds_{direction}", "enable")
        buffering = offer.parameters.get(f"romio_cb_{direction}")
        if buffering is not None and buffering.default == "disable":
            values |= offer.take(buffering.setting, "enable")
    return values


def _set_by_direction(offer: Offer, setting: str, value: str, suits: Callable[[Files, str], bool]) -> Values:
    """The value for the directions, write and read, that the job uses and that suit."""
    files = offer.files
    directions = [
        direction
        for direction in DIRECTIONS
        if files is not None and files.calls_in(direction).is_used and suits(files, direction)
    ]
    return {
        name: one
        for direction in directions
        for name, one in offer.take(f"{setting}_{direction}", value).items()
    }


def _large_blocks_unbuffered(offer: Offer) -> Values:
    """Each rank moves its own large blocks, if they are not seen to interleave; else many aggregators."""
    large = _set_by_direction(offer, "romio_cb", "disable", _has_large_blocks)
    return {name: one for name, one in large.items() if offer.take(name, "enable")} or _many_aggregators(
        offer
    )


def _has_large_blocks(files: Files, direction: str) -> bool:
    return (files.calls_in(direction).block_bytes or 0) >= LARGE_BLOCK_BYTES


def _large_blocks_unsieved(offer: Offer) -> Values:
    """The same without data sieving, as KAUST found best for Replib's blocks."""
    values = _large_blocks_unbuffered(offer)
    directions = [direction for direction in DIRECTIONS if values.get(f"romio_cb_{direction}") == "disable"]
    for direction in directions:
        values = values | offer.take(f"romio_ds_{direction}", "disable")
    return values


def _large_blocks_aggregated(offer: Offer) -> Values:
    """Blocks that ROMIO would leave to each rank go through one aggregator on each node."""
    return _set_by_direction(offer, "romio_cb", "enable", _has_large_blocks)


def _tiny_calls_unbuffered(offer: Offer) -> Values:
    """Tiny pieces by each rank itself: agreeing takes longer than moving them."""
    tiny = _set_by_direction(
        offer,
        "romio_cb",
        "disable",
        lambda files, direction: files.calls_in(direction).mean_bytes < TINY_BYTES,
    )
    return tiny or _many_aggregators(offer)


def _romio_default(offer: Offer) -> Values:
    """ROMIO as it is, in place of ompio."""
    found = [offer.take(f"romio_cb_{direction}", "automatic") for direction in DIRECTIONS]
    return next((values for values in found if values), {})


def _small_buffers(offer: Offer) -> Values:
    """Many aggregators that begin to write earlier."""
    return _many_aggregators(offer) | offer.near("cb_buffer_size", BUFFER_BYTES)


def _unchanged(offer: Offer) -> Values:
    return {}


def _most_targets(offer: Offer) -> Values:
    """Most storage targets, if by default there are fewer."""
    most = offer.parameters.get("lfs_stripe_count") or offer.parameters.get("striping_factor")
    is_more = most is not None and int(most.values[-1]) > (positive(most.default) or 1)
    return {most.setting: most.values[-1]} if is_more else {}


def _local_placement(offer: Offer) -> Values:
    """Each file on the node that creates it."""
    return offer.take("dw_placement", "local")


def _most_targets_with_fitting_unit(offer: Offer) -> Values:
    """Most targets, a stripe unit near what a system write moves (KAUST's burst buffer talk, 2018)."""
    is_driver = "striping_factor" in offer.parameters
    setting = "striping_unit" if is_driver else "lfs_stripe_size"
    return _most_targets(offer) | (offer.near(setting, offer.unit_bytes) if offer.unit_bytes else {})


def _most_targets_with_alignment(offer: Offer) -> Values:
    """Most targets, and what libraries place begins on borders."""
    found = [offer.parameters.get(setting) for setting in ("nc_var_align_size", "hdf5_alignment")]
    return _most_targets(offer) | {one.setting: one.values[-1] for one in found if one}


#: What is done for the files of each pattern, and with the layout. The surest first: counters show it.
RECIPES: tuple[tuple[Recipe, str, Recipe, str], ...] = (
    (
        _many_aggregators,
        "as many aggregators as keep the storage busy",
        _most_targets,
        "most storage targets",
    ),
    (_unchanged, "", _most_targets, "most storage targets"),
    (_unchanged, "", _local_placement, "files on the nodes that write them"),
    (
        _small_buffers,
        "as many aggregators with buffers of about 4 MiB",
        _most_targets,
        "most storage targets",
    ),
    (
        _many_aggregators,
        "as many aggregators as keep the storage busy",
        _most_targets_with_fitting_unit,
        "stripe units near system writes",
    ),
    (_romio_default, "ROMIO as it is", _most_targets, "most storage targets"),
    (
        _large_blocks_aggregated,
        "large blocks through one aggregator a node",
        _most_targets,
        "most storage targets",
    ),
    (_many_aggregators, "as many aggregators as keep the storage busy", _unchanged, "the layout as it is"),
    (
        _tiny_calls_unbuffered,
        "tiny collective calls by each rank itself",
        _most_targets,
        "most storage targets",
    ),
    (
        _many_aggregators,
        "as many aggregators as keep the storage busy",
        _most_targets_with_alignment,
        "data on borders",
    ),
    (_large_blocks_unbuffered, "large blocks by each rank itself", _most_targets, "most storage targets"),
    (
        _large_blocks_unsieved,
        "large blocks by each rank itself, without data sieving",
        _most_targets,
        "most storage targets",
    ),
)


def guesses(parameters: Sequence[Parameter], patterns: Sequence[Files]) -> list[Guess]:
    """In the order in which they are to be tried; the same configuration may come twice."""
    offers = [
        _with_unit(Offer(files=files, parameters=_by_setting(parameters, files.pattern)))
        for files in patterns
    ]
    main = next((offer.unit_bytes for offer in offers if offer.unit_bytes), None)
    job = Offer(files=None, parameters=_by_setting(parameters, None), unit_bytes=main)
    found = [_composed(job, offers, recipe) for recipe in RECIPES]
    return [*found, *_advised(job, offers)]


def _with_unit(offer: Offer) -> Offer:
    """What a system write moved by default; no more than the share of each aggregator."""
    write = offer.files.write if offer.files else None
    if write is None or not write.mean_system_bytes:
        return offer
    aggregators = int(_many_aggregators(offer).get("cb_nodes", "1"))
    share = write.round_bytes / aggregators if write.collective else write.mean_system_bytes
    return msgspec.structs.replace(offer, unit_bytes=min(write.mean_system_bytes, share) or None)


def _by_setting(parameters: Sequence[Parameter], pattern: str | None) -> dict[str, Parameter]:
    return {one.setting: one for one in parameters if one.pattern == pattern}


def _composed(job: Offer, offers: Sequence[Offer], recipe: tuple[Recipe, str, Recipe, str]) -> Guess:
    of_files, what, of_layout, where = recipe
    layout = _named(job, of_layout(job))
    hints: Configuration = {}
    for offer in offers:
        layout |= _named(offer, of_layout(offer))
        hints |= _named(offer, of_files(offer))
    words = [word for word, values in ((what, hints), (where, layout)) if values]
    if (
        hints
        and of_files is not _romio_default
        and any(offer.files and offer.files.is_ompio for offer in offers)
    ):
        words.append("and ROMIO in place of ompio")
    return Guess(configuration=hints | layout, reason=", ".join(words))


def _named(offer: Offer, values: Values) -> Configuration:
    return {offer.parameters[setting].name: value for setting, value in values.items()}


def _advised(job: Offer, offers: Sequence[Offer]) -> list[Guess]:
    """What the advice on a run would have the user try."""
    configuration: Configuration = {}
    titles = []
    for offer in offers:
        for draft in _drafts(offer.files):
            values: Values = {}
            for setting, value in draft.hints.items():
                is_number = value.isdecimal() and int(value) > 0
                values |= offer.near(setting, int(value)) if is_number else offer.take(setting, value)
            if values:
                configuration = _named(offer, values) | configuration
                titles.append(draft.title)
    if not titles:
        return []
    layout = {
        name: value for offer in (job, *offers) for name, value in _named(offer, _most_targets(offer)).items()
    }
    return [Guess(configuration=configuration | layout, reason=f"advice: {titles[0]}")]


def _drafts(files: Files | None) -> list[Draft]:
    views = files.views if files else []
    drafts = [draft for view in views for rule in FILE_RULES for draft in rule(view)]
    return sorted(drafts, key=lambda draft: (LEVELS.index(draft.level), -(draft.seconds or 0.0)))
