"""Rows of data/calibration.json of which the model says nothing, and why."""

from __future__ import annotations

_REASONS = {
    "it describes what was run, not how long it took": (
        "S0-028 S0-029 S0-035 S0-038 S0-040 S0-041 S0-062 S0-077 S0-132 S0-135 S0-160 S0-162 S0-163 "
        "S0-164 S3-018 S3-027 S3-028 S3-039 S3-041 S3-042 S4-015 S4-018 S4-019 S4-020 S4-021 S4-022 "
        "S4-023 S4-036 S4-037 S4-039 S4-040"
    ),
    "it is a rule, which exact arithmetic has": ("S0-032 S0-133 S3-045 S4-041 S4-042"),
    "it is the noise that the band starts from": ("S0-134"),
    "the time of the whole job is given, and its computation is not": (
        "S0-026 S0-027 S0-142 S0-144 S0-165 S3-037 S3-038"
    ),
    "another row of the same experiment is measured against it": ("S0-080 S0-081"),
    "the row does not say what exactly was run": ("S0-033 S0-039 S0-061 S0-145 S3-040 S3-043"),
    "it is the average of each rank's own time, which the model does not have": ("S0-066"),
    "no machine file describes the machine, whose storage was not published": (
        "S4-030 S4-031 S4-032 S4-033 S4-034 S4-035 S4-038"
    ),
    "it is about compression, energy, transfer services, or people, not about parallel I/O": (
        "S1-001 S1-002 S1-003 S1-004 S1-005 S1-006 S1-007 S1-008 S1-009 S1-014 S1-018 S1-019 S1-020 "
        "S1-021 S1-022 S2-009 S2-010 S2-011 S2-012 S2-013 S2-014 S2-015 S2-016 S2-017 S2-018 S2-019 "
        "S2-020 S3-044 S3-047 S4-016"
    ),
}

#: Row -> reason.
UNPREDICTED = {id: reason for reason, ids in _REASONS.items() for id in ids.split()}
