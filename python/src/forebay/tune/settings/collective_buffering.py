"""romio_cb_write, romio_cb_read: are collective calls buffered, or does each rank move its own data?"""

from __future__ import annotations

from collections.abc import Sequence

from forebay.profiles.model import Direction, File
from forebay.quantities import count, size
from forebay.tune.model import Parameter, Refusal
from forebay.tune.settings.job_view import Calls, Files
from forebay.tune.settings.setting import Setting, SettingContext


class CollectiveBuffering(Setting):
    """ROMIO's `automatic` buffers where the ranks' ranges interleave."""

    source = "ROMIO Users Guide; Cray's course on parallel I/O (2012); measured (docs/reference/settings.md)"

    def __init__(self, direction: Direction) -> None:
        self.direction = direction
        self.name = f"romio_cb_{direction}"

    def for_files(self, files: Files) -> Parameter | Refusal | None:
        """Where there are collective calls in this direction."""
        calls = files.calls_in(self.direction)
        if not calls.is_used:
            return None
        if not calls.collective:
            return self.refusal(
                files, f"its {count(calls.independent)} calls to {self.direction} are independent"
            )
        values, also = self._values(files, calls), ""
        if files.is_ompio and files.default(self.name) is None:
            values = ["automatic", *values]
            also = "; automatic: ROMIO as it is, in place of Open MPI's ompio, which any hint brings"
        system = (
            "" if calls.system_calls is None else f" and ended as {count(calls.system_calls)} system calls"
        )
        return self.parameter(
            files,
            values,
            default=files.default(self.name),
            ordered=False,
            reason=f"{count(calls.collective)} collective calls asked for {size(calls.mean_bytes)} on average"
            f"{system}: large pieces of one rank gain nothing from buffering, small interleaved ones "
            f"everything{also}",
        )

    def _values(self, files: Files, calls: Calls) -> list[str]:
        """Where ROMIO's `automatic` is seen to buffer, to enable it changes nothing."""
        is_buffering = calls.aggregators is not None and calls.aggregators < files.ranks
        is_told = files.default(self.name) == "automatic" and is_buffering
        return ["disable"] if is_told else ["disable", "enable"]

    def is_idle(self, value: str, context: SettingContext) -> bool:
        """`romio_no_indep_rw` enables it; `automatic` only brings ROMIO, as any other hint does."""
        if context.value("romio_no_indep_rw") == "true":
            return value != "disable"
        return value == "automatic" and _is_romio_brought(self.name, context)

    def conflict(self, value: str, context: SettingContext) -> str | None:
        """`romio_no_indep_rw` forces it on."""
        if value == "disable" and context.value("romio_no_indep_rw") == "true":
            return f"romio_no_indep_rw=true enables collective buffering, {self.name}=disable switches it off"
        return None

    def is_seen(self, value: str, default: Sequence[File], trial: Sequence[File]) -> bool | None:
        """`automatic` is there to bring ROMIO."""
        by = {file.opened_by for file in trial}
        return True if value == "automatic" and by != {file.opened_by for file in default} else None

    def may_be_default_behaviour(self, value: str, default: Sequence[File]) -> bool:
        """ROMIO's `automatic` buffers what interleaves, and a record does not always tell that it did.

        Where it does not, it still exchanges the ranks' ranges before each call, which `disable` saves.
        """
        by = [file.opened_by or "" for file in default]
        is_seen_buffering = all(self._is_buffered(file) for file in default)
        is_romio = all("romio" in one or "mpich" in one for one in by)
        return is_romio and (value == "enable" or (value == "disable" and not is_seen_buffering))

    def _is_buffered(self, file: File) -> bool:
        """Fewer ranks move data than have opened the file."""
        movers = file.collective and getattr(file.collective, f"aggregators_{self.direction}")
        return movers is not None and file.ranks is not None and movers < file.ranks


def _is_romio_brought(setting: str, context: SettingContext) -> bool:
    """Does another hint for MPI-IO bring ROMIO, or the same one for files that come first?"""
    here = f"{context.pattern}:{setting}"
    for name, value in context.configuration.items():
        parameter = context.parameters.get(name)
        is_hint = parameter is not None and parameter.setting.startswith(
            ("cb_", "romio_", "striping_", "ind_")
        )
        if is_hint and name != here and (value != "automatic" or name < here):
            return True
    return False
