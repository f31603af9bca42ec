"""Reading a schedule's cron, and saying what a service will make of it."""

from __future__ import annotations

import sys

from orbax_bench_pipelines.cron import Cron, for_kubeflow, for_vertex, parse_cron
from orbax_bench_pipelines.target import Target


def read_time(text: str, zone: str | None, target: Target) -> Cron:
    """Reads a cron expression that the target must be able to honour.

    Args:
        text: What the command line was given.
        zone: Its time zone; None for UTC.
        target: The service.

    Raises:
        UserError: It is wrong, or the service cannot honour it.
    """
    cron = parse_cron(text, zone)
    _sent(cron, target)
    return cron


def say_times(cron: Cron, given: str, target: Target) -> None:
    """Says how the cron was converted, and when it fires next.

    Args:
        cron: When to run.
        given: What the command line was given.
        target: The service.
    """
    sent = _sent(cron, target)
    reads = "six fields, seconds first" if target is Target.KFP else "five fields"
    if sent.removeprefix(f"TZ={cron.zone} ") != " ".join(given.split()):
        print(f"note: {target} reads {reads}: {given!r} is sent as {sent!r}", file=sys.stderr)
    soon = ", ".join(f"{time:%Y-%m-%d %H:%M}" for time in cron.upcoming())
    print(f"note: fires next at {soon} ({cron.zone})", file=sys.stderr)


def _sent(cron: Cron, target: Target) -> str:
    return for_kubeflow(cron) if target is Target.KFP else for_vertex(cron)
