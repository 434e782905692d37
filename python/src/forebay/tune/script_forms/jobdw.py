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
    first = own.line - 1
    text = "\n".join(job.script.text.split("\n")[first : own.end])
    for setting, value in sorted(settings.items()):
        word = f"{setting.removeprefix(_PREFIX)}={value}"
        key = re.escape(setting.removeprefix(_PREFIX))
        if setting.removeprefix(_PREFIX) in own.values:
            text = re.sub(rf"(?<=\s){key}=\S*", word, text, count=1)
        else:
            text = re.sub(r"(?<=\bjobdw)\b", f" {word}", text, count=1)
    return [Change(first=first, end=own.end, text=text, carries=carries, is_directive=True)]
