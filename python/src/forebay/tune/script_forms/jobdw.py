"""Where the data of a job's files are: `placement=` and `stripe_bytes=` of its `#DW jobdw` line.

Settings: dw_placement, dw_stripe_bytes. They are keys of Forebay's own (docs/reference/directives.md).
"""

from __future__ import annotations

import re

from forebay.tune.script_forms.job_lines import Change, Job

_PREFIX = "dw_"


def changes(job: Job, settings: dict[str, str], carries: frozenset[str]) -> list[Change]:
    """The line, with the keys in it."""
    own = job.script.jobdw
    if own is None or not settings:
        return []
    text = "\n".join(job.script.text.split("\n")[own.first : own.end])
    for setting, value in sorted(settings.items()):
        key = setting.removeprefix(_PREFIX)
        if key in own.values:
            # What follows the value may be the sign that the line goes on.
            text = re.sub(rf"(?<=\s){key}=[^\s\\]*", f"{key}={value}", text, count=1)
        else:
            text = re.sub(r"(?<=\bjobdw)\b", f" {key}={value}", text, count=1)
    return [Change(first=own.first, end=own.end, text=text, carries=carries, is_directive=True)]
