"""cb_nodes, with cb_config_list: how many ranks move the data of all in collective buffering.

The two are one parameter, since cb_config_list caps cb_nodes: its default in ROMIO is one for each node.
The form that renders cb_nodes renders it too (tune/script_forms/rendering.py).
"""

from __future__ import annotations

from collections.abc import Sequence

from forebay.advice.thresholds import STRIPE_UNIT_BYTES_MIN
from forebay.profiles.model import File
from forebay.quantities import count, size
from forebay.tune.model import Parameter, Refusal
from forebay.tune.settings.job_view import Files
from forebay.tune.settings.setting import Setting, SettingContext, positive

VALUES_MAX = 7
#: Lustre's smallest stripe unit: less has no work for two aggregators. Ours.
ROUND_BYTES_MIN = STRIPE_UNIT_BYTES_MIN


class CbNodes(Setting):
    """Divisors of the ranks, so that each aggregator serves as many, which the nodes share evenly."""

    name = "cb_nodes"
    source = "KAUST's burst buffer talk (2018); ROMIO Users Guide"

    def for_files(self, files: Files) -> Parameter | Refusal | None:
        """Where there are collective calls, of more than one rank."""
        if not files.is_collective:
            return self.refusal(files, f"it makes no collective calls: {_independent(files)}")
        if files.ranks < 2:
            return self.refusal(files, "one rank alone opens it")
        round_bytes = max(files.write.round_bytes, files.read.round_bytes)
        if round_bytes < ROUND_BYTES_MIN:
            return self.refusal(
                files,
                f"one collective call of all ranks moves {size(round_bytes)}, too little to be shared "
                "by several aggregators",
            )
        values, default = aggregator_counts(files.ranks, files.hosts), self._default(files)
        calls = max((files.write, files.read), key=lambda calls: calls.asked_bytes * (calls.collective > 0))
        seen = "" if calls.aggregators is None else f"{count(calls.aggregators)} of "
        return self.parameter(
            files,
            values,
            default=default,
            ordered=True,
            reason=f"{seen}{count(files.ranks)} ranks on {count(files.hosts)} node(s) moved "
            f"{size(calls.asked_bytes)} for all, {size(calls.round_bytes)} at once; "
            "more of them can use more storage at once",
        )

    def _default(self, files: Files) -> str | None:
        in_force = files.default(self.name)
        if in_force is None:
            return str(files.hosts) if files.is_romio and not files.has_lustre_driver else None
        number, is_listed = positive(in_force), files.main.hint("cb_config_list") is not None
        is_capped = number is not None and not files.has_lustre_driver and not is_listed
        return str(min(number, files.hosts)) if is_capped else in_force

    def is_idle(self, value: str, context: SettingContext) -> bool:
        """Nobody aggregates if collective buffering is off for all that is moved."""
        return not context.is_buffered

    def conflict(self, value: str, context: SettingContext) -> str | None:
        """It divides the ranks."""
        ranks = context.machine.ranks
        name = f"{context.pattern}:{self.name}"
        is_offered = name in context.parameters and value in context.parameters[name].values
        if is_offered or (value.isdecimal() and int(value) > 0 and ranks % int(value) == 0):
            return None
        return f"cb_nodes={value} does not divide {ranks} ranks"

    def is_seen(self, value: str, default: Sequence[File], trial: Sequence[File]) -> bool | None:
        """Other ranks than by default moved data inside of collective calls, or as many as asked for."""
        before, after = _aggregators(default), _aggregators(trial)
        if before is None or after is None or not any(after):
            return None
        return after != before or int(value) in after


def aggregator_counts(ranks: int, hosts: int) -> list[int]:
    """Divisors of the ranks that are multiples of the nodes, about doubling, up to all ranks.

    Without one for each node, ROMIO's default. With many nodes fewer than one for each are in it.
    """
    fitting = [number for number in range(1, ranks + 1) if ranks % number == 0]
    fewer = [number for number in fitting if number < hosts and hosts % number == 0 and hosts <= 4 * number]
    more = [number for number in fitting if number > hosts and number % hosts == 0]
    if not more or more[-1] != ranks:
        more.append(ranks)
    while len(fewer) + len(more) > VALUES_MAX and len(more) > 2:
        steps = [(more[at + 1] / more[at - 1], -at) for at in range(1, len(more) - 1)]
        del more[-min(steps)[1]]
    return [*fewer, *more]


def _independent(files: Files) -> str:
    calls = files.write.independent + files.read.independent
    return f"{count(calls)} independent ones, each rank for itself"


def _aggregators(files: Sequence[File]) -> set[int] | None:
    known = [file.collective for file in files if file.collective is not None]
    if not known:
        return None
    return {number for one in known for number in (one.aggregators_write, one.aggregators_read) if number}
