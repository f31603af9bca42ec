"""Goodput of a job: how often to save, in which way, and what failures cost.

**Goodput** is the useful share of all time. A **recovery** is all between a failure and the first
step after it. A **stall** is the time that training waits for a save.
"""

from orbax_bench_core.plan.goodput.job import (
    CheckpointFacts,
    Job,
    LocalTier,
    checkpoint_facts,
    job_of,
    seconds_of,
)
from orbax_bench_core.plan.goodput.log import JobLog, log_of, read_log
from orbax_bench_core.plan.goodput.strategies import GoodputPlan, Strategy, plan_goodput
from orbax_bench_core.plan.goodput.view import goodput_document

__all__ = [
    "CheckpointFacts",
    "GoodputPlan",
    "Job",
    "JobLog",
    "LocalTier",
    "Strategy",
    "checkpoint_facts",
    "goodput_document",
    "job_of",
    "log_of",
    "plan_goodput",
    "read_log",
    "seconds_of",
]
