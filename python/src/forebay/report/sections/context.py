"""What a section is made from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import msgspec

from forebay.profiles import metrics, trace
from forebay.profiles.errors import ProfileError
from forebay.profiles.machine import Machine
from forebay.profiles.model import LayerName, Profile, Program
from forebay.profiles.trace import Trace


@dataclass
class SectionContext:
    """One program of a job, and those it is compared with: they share the limits of their axes."""

    profile: Profile
    program: Program
    machine: Machine | None = None
    peers: list[SectionContext] = field(default_factory=list)
    _totals: dict[LayerName, metrics.LayerTotals] = field(default_factory=dict)

    @property
    def alone(self) -> Profile:
        """The profile as if the job had been this program."""
        return msgspec.structs.replace(self.profile, programs=[self.program])

    @cached_property
    def layers(self) -> list[LayerName]:
        """Layers the program used, from the application downwards."""
        return metrics.layers_present(self.alone)

    @cached_property
    def trace(self) -> Trace | str | None:
        """The calls of the program, or why its trace cannot be read; None without a trace."""
        if self.program.trace is None:
            return None
        try:
            return trace.read(Path(self.program.trace))
        except ProfileError as error:
            return str(error)
        except OSError as error:
            return error.strerror or str(error)

    def totals(self, layer: LayerName) -> metrics.LayerTotals:
        """Sums over the program's files; made once, for most sections ask."""
        if layer not in self._totals:
            self._totals[layer] = metrics.totals(self.alone, layer)
        return self._totals[layer]

    def limit(self, of: Callable[[SectionContext], float | None]) -> float | None:
        """The largest figure among all that are compared; None if there is none."""
        return max((value for context in self.peers or [self] if (value := of(context))), default=None)
