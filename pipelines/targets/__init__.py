"""The places that a pipeline can run in, what is set for them, and what is submitted.

The modules `local` and `docker` run a pipeline here; they are doors of their own, since they import
what only their target needs.
"""

from orbax_bench_core.launchers import SliceShape as SliceShape
from orbax_bench_pipelines.target import Package as Package
from orbax_bench_pipelines.target import Target as Target
from orbax_bench_pipelines.targets.checks import check_connection as check_connection
from orbax_bench_pipelines.targets.checks import check_directory as check_directory
from orbax_bench_pipelines.targets.checks import check_image as check_image
from orbax_bench_pipelines.targets.checks import check_launchers as check_launchers
from orbax_bench_pipelines.targets.checks import check_settings as check_settings
from orbax_bench_pipelines.targets.checks import require_extras as require_extras
from orbax_bench_pipelines.targets.honoured import settings_page as settings_page
from orbax_bench_pipelines.targets.job import Job as Job
from orbax_bench_pipelines.targets.job import RunGone as RunGone
from orbax_bench_pipelines.targets.job import SubmissionFailed as SubmissionFailed
from orbax_bench_pipelines.targets.job import ending_of as ending_of
from orbax_bench_pipelines.targets.job import job_name as job_name
from orbax_bench_pipelines.targets.job import schedules_of as schedules_of
from orbax_bench_pipelines.targets.job import service_for as service_for
from orbax_bench_pipelines.targets.placement import Placement as Placement
from orbax_bench_pipelines.targets.settings import Settings as Settings
from orbax_bench_pipelines.targets.settings import at_submission as at_submission
from orbax_bench_pipelines.targets.settings import read_changes as read_changes
from orbax_bench_pipelines.targets.settings import read_settings as read_settings
from orbax_bench_pipelines.targets.settings import read_text as read_text
