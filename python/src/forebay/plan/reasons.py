"""Why the planner recommends what it does, in sentences with the numbers behind them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from forebay.plan.units import node_hours_text, rate_text, stripe_text
from forebay.quantities import counted, duration

if TYPE_CHECKING:
    from forebay.plan.search import Searcher, Trial

_SERVERS = {
    "lustre": "OSTs",
    "datawarp": "DataWarp nodes",
    "spectrum-scale": "NSD servers",
    "node-local": "nodes with local storage",
    "directory": "servers",
}
_BOUND = {
    "streams": "single processes: more of them must VERB, with large requests",
    "nodes": "the network of the compute nodes: more nodes would help, more servers would not",
    "servers": "the servers",
    "locks": "locks that move between clients: collective calls avoid it",
}
#: A part of the time below this share is not worth a sentence.
SHARE_MIN = 0.15
#: Times that differ by a smaller share are equal.
SAME_BELOW = 0.005
#: More servers are called slower from this factor on.
SLOWER_FROM = 1.01


def server_word(kind: str, count: int = 2) -> str:
    """What servers of that kind of storage are called."""
    word = _SERVERS[kind]
    if count != 1:
        return word
    return "node with local storage" if kind == "node-local" else word.removesuffix("s")


def server_count(kind: str, count: int) -> str:
    """`1 OST`, `16 DataWarp nodes`."""
    return f"{count} {server_word(kind, count)}"


def of(searcher: Searcher, trials: Sequence[Trial], best: Trial, default: Trial) -> list[str]:
    """Sentences, the most important first."""
    found = [*_number_of_servers(searcher, trials, best), *_limit(searcher, best)]
    found += _parts(best)
    found += _aggregators(searcher, best, default)
    found += _stripes(searcher, best)
    return found


def _number_of_servers(searcher: Searcher, trials: Sequence[Trial], best: Trial) -> list[str]:
    """What the recommended number costs, and what the numbers next to it would."""
    if len(trials) == 1:
        return []
    kind, price = searcher.storage.kind, searcher.price_of(best)
    held = " and held capacity" if searcher.held_nodes(best.servers) * searcher.compute_s else ""
    verb = "costs" if best.servers == 1 else "cost"
    found = [
        f"{server_count(kind, best.servers)} {verb} the fewest node-hours: "
        f"{_hours(price.compute_node_s)} of compute nodes that wait, "
        f"{_hours(price.storage_node_s)} of {server_word(kind)}{held}."
    ]
    others = [
        max((one for one in trials if one.servers < best.servers), key=lambda one: one.servers, default=None),
        min((one for one in trials if one.servers > best.servers), key=lambda one: one.servers, default=None),
    ]
    compared = [_compared(searcher, one, best) for one in others if one]
    found.append(f"{'; with '.join(['With ' + compared[0], *compared[1:]])}.")
    if searcher.pool() and not searcher.compute_s:
        found.append("Capacity that is held while the job computes has a price, too: --compute adds it.")
    more = [trial for trial in trials if trial.servers > best.servers]
    if more and min(trial.io_s for trial in more) > SLOWER_FROM * best.io_s:
        verb = "is" if best.servers == 1 else "are"
        recommended = server_count(kind, best.servers)
        found.append(f"More than {recommended} {verb} slower: opening a file costs time for each of them.")
    return found


def _compared(searcher: Searcher, other: Trial, best: Trial) -> str:
    before, after = searcher.price_of(best).node_s, searcher.price_of(other).node_s
    changed = abs(other.io_s - best.io_s)
    time = f"{duration(changed)} {'longer' if other.io_s > best.io_s else 'shorter'}"
    if changed < SAME_BELOW * best.io_s:
        time = "as long"
    costs = f"{_hours(after)} instead of {_hours(before)}" if _hours(after) != _hours(before) else "as much"
    return f"{other.servers}, the I/O takes {time} and costs {costs}"


def _hours(node_s: float) -> str:
    return node_hours_text(node_s / 3600)


def _limit(searcher: Searcher, best: Trial) -> list[str]:
    longest = max(best.predictions, key=lambda one: one.seconds)
    if longest.storage_s < SHARE_MIN * longest.seconds:
        return []
    pattern = searcher.patterns[best.predictions.index(longest)]
    bound = _BOUND[longest.bound_by].replace("VERB", pattern.direction)
    if longest.bound_by == "servers":
        is_fixed = searcher.fixed.servers is not None and best.servers < searcher.storage.servers
        bound += ": more of them would help" if is_fixed else ""
    return [f"System calls move {rate_text(longest.storage_bytes_per_s)}. The limit is {bound}."]


def _parts(best: Trial) -> list[str]:
    total = best.io_s
    sums = {
        "the exchange of data with aggregators": sum(one.exchange_s for one in best.predictions),
        "agreement in collective calls": sum(one.synchronisation_s for one in best.predictions),
        "opening files": sum(one.open_s for one in best.predictions),
    }
    return [
        f"{100 * seconds / total:.0f} % of the time is {name}."
        for name, seconds in sums.items()
        if seconds > SHARE_MIN * total
    ]


def _aggregators(searcher: Searcher, best: Trial, default: Trial) -> list[str]:
    found = []
    for pattern, one, plain in zip(searcher.patterns, best.settings, default.settings, strict=True):
        if pattern.access != "collective":
            continue
        unbalanced = searcher.imbalance(pattern, one)
        if one.aggregators != plain.aggregators and not unbalanced:
            is_datawarp = searcher.storage.kind == "datawarp" and one.servers > 1
            multiple = f"a multiple of {server_count('datawarp', one.servers)} and " if is_datawarp else ""
            found.append(
                f"{pattern.name}: {counted(one.aggregators, 'aggregator')} instead of {plain.aggregators}, "
                f"{multiple}a divisor of {counted(pattern.ranks, 'rank')}."
            )
        found += [f"{pattern.name}: {sentence}." for sentence in unbalanced]
    return found


def _stripes(searcher: Searcher, best: Trial) -> list[str]:
    default = searcher.storage.stripe_bytes
    return [
        f"{pattern.name}: a stripe unit of {stripe_text(one.stripe_bytes)} instead of {stripe_text(default)} "
        f"{_stripe_reason(one.stripe_bytes, default)}."
        for pattern, one in zip(searcher.patterns, best.settings, strict=True)
        if one.stripe_bytes != default
    ]


def _stripe_reason(stripe: int, default: int) -> str:
    if stripe < default:
        return "spreads each call over more aggregators"
    return "needs fewer requests"
