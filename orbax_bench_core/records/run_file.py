"""Names of the files of a run directory that tell what was found in its records."""

from __future__ import annotations

import enum


class RunFile(enum.StrEnum):
    """File of a run directory beside its records, by what it says."""

    BEST = "best.json"
    HOST_LIMITS = "limits_of_hosts.json"
    LIMITS = "limits.json"
    RECOVERY = "recovery.json"
    SOAK = "soak.json"
    STUDY = "async_study.json"
    VERDICTS = "verdicts.json"
