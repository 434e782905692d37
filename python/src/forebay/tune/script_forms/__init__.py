"""A user's script with settings added, in the form that the MPI at hand obeys. One file for each form."""

from forebay.tune.script_forms.choice import choose, per_file
from forebay.tune.script_forms.writing import added_lines, trial_script, tuned_script

__all__ = ["added_lines", "choose", "per_file", "trial_script", "tuned_script"]
