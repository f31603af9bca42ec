"""Goodput of a job: how often to save, in which way, and what failures cost.

**Goodput** is the useful share of all time. A **recovery** is all between a failure and the first
step after it. A **stall** is the time that training waits for a save.
"""

from orbax_bench_core.plan.goodput.job import CheckpointFacts as CheckpointFacts
from orbax_bench_core.plan.goodput.job import Job as Job
from orbax_bench_core.plan.goodput.job import LocalTier as LocalTier
from orbax_bench_core.plan.goodput.job import checkpoint_facts as checkpoint_facts
from orbax_bench_core.plan.goodput.job import job_of as job_of
from orbax_bench_core.plan.goodput.job import seconds_of as seconds_of
from orbax_bench_core.plan.goodput.log import JobLog as JobLog
from orbax_bench_core.plan.goodput.log import log_entries as log_entries
from orbax_bench_core.plan.goodput.log import log_of as log_of
from orbax_bench_core.plan.goodput.log import log_text as log_text
from orbax_bench_core.plan.goodput.log import read_log as read_log
from orbax_bench_core.plan.goodput.strategies import GoodputPlan as GoodputPlan
from orbax_bench_core.plan.goodput.strategies import plan_goodput as plan_goodput
from orbax_bench_core.plan.goodput.view import goodput_document as goodput_document
