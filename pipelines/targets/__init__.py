"""The places that a pipeline can run in, what is set for them, and what is submitted.

The modules `local` and `docker` run a pipeline here; they are doors of their own, since they import
what only their target needs.
"""

from orbax_bench_core.launchers import SliceShape
from orbax_bench_pipelines.target import Package, Target
from orbax_bench_pipelines.targets.checks import (
    check_connection,
    check_directory,
    check_image,
    check_launchers,
    check_settings,
    require_extras,
)
from orbax_bench_pipelines.targets.honoured import settings_page
from orbax_bench_pipelines.targets.job import (
    Job,
    SubmissionFailed,
    job_name,
    schedules_of,
    service_for,
)
from orbax_bench_pipelines.targets.placement import Placement
from orbax_bench_pipelines.targets.settings import (
    Settings,
    at_submission,
    read_changes,
    read_settings,
    read_text,
)

__all__ = [
    "Job",
    "Package",
    "Placement",
    "Settings",
    "SliceShape",
    "SubmissionFailed",
    "Target",
    "at_submission",
    "check_connection",
    "check_directory",
    "check_image",
    "check_launchers",
    "check_settings",
    "job_name",
    "read_changes",
    "read_settings",
    "read_text",
    "require_extras",
    "schedules_of",
    "service_for",
    "settings_page",
]
