"""romio_no_indep_rw: the promise of collective calls alone, so that only aggregators open the file."""

from __future__ import annotations

from forebay.quantities import count, percent
from forebay.tune.model import Parameter, Refusal
from forebay.tune.settings.job_view import Files
from forebay.tune.settings.setting import Setting, SettingContext

#: Of the time in the file, in opening and closing it. Ours.
OPENING_SHARE_MIN = 0.05


class NoIndependent(Setting):
    """It saves opens, and forces collective buffering."""

    name = "romio_no_indep_rw"
    source = "ROMIO Users Guide; OLCF's talk on Summit (2018); MPICH, issue 6408"

    def for_files(self, files: Files) -> Parameter | Refusal | None:
        """Where all calls are collective, and opening takes long."""
        if not files.is_collective:
            return None
        independent = files.write.independent + files.read.independent
        if independent:
            return self.refusal(
                files, f"it makes {count(independent)} independent call(s), and the hint promises none"
            )
        unit = files.asked("striping_unit")
        if unit is not None:
            return self.refusal(files, f"the job asks for striping_unit={unit}, with which it can hang")
        layers = [view.mpiio for view in files.views if view.mpiio is not None]
        opening_s = sum(layer.metadata_slowest_rank_s or layer.metadata_s or 0.0 for layer in layers)
        share = opening_s / files.seconds if files.seconds else 0.0
        opening_text = f"opening and closing took {percent(share)} of the time in it"
        if share < OPENING_SHARE_MIN:
            return self.refusal(files, f"{opening_text}: there is little to gain from fewer opens")
        reason = f"{opening_text}; of {count(files.ranks)} ranks only the aggregators would open it"
        return self.parameter(files, ["true"], default=files.default(self.name), ordered=False, reason=reason)

    def conflict(self, value: str, context: SettingContext) -> str | None:
        """With a stripe unit it has been seen to hang."""
        if value == "true" and context.given("striping_unit"):
            return "romio_no_indep_rw with striping_unit can hang (MPICH, issue 6408)"
        return None
