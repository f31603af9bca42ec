"""`orbax-bench goodput`: how often to save, in which way, and what failures cost."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from orbax_bench_core.cli.arguments import AsJson, Html, Markdown
from orbax_bench_core.cli.results import publish

if TYPE_CHECKING:
    from orbax_bench_core.plan.goodput import GoodputPlan, JobLog


def _duration(about: str) -> Any:
    return typer.Option(metavar="DURATION", help=about)


def goodput(
    mtbf: Annotated[str | None, _duration("Mean time between failures of the job.")] = None,
    host_mtbf: Annotated[
        str | None, _duration("Mean time between failures of one host; needs --hosts.")
    ] = None,
    hosts: Annotated[int | None, typer.Option(min=1, help="Hosts of the job.")] = None,
    save_blocking: Annotated[
        str | None, _duration("How long a save in the background blocks training.")
    ] = None,
    save_background: Annotated[str | None, _duration("How long its background part takes.")] = None,
    slowdown: Annotated[
        float | None,
        typer.Option(help="Share of the speed lost during the background part, 0 to 1."),
    ] = None,
    save_sync: Annotated[
        str | None, _duration("How long a save takes that blocks as a whole.")
    ] = None,
    recovery: Annotated[str | None, _duration("From a failure to the first step after it.")] = None,
    step_time: Annotated[str | None, _duration("A training step.")] = None,
    interval: Annotated[
        str | None, _duration("Useful time between saves today, to compare with.")
    ] = None,
    local_save: Annotated[
        str | None, _duration("How long a save to local disks blocks training.")
    ] = None,
    local_recovery: Annotated[str | None, _duration("A recovery from local disks.")] = None,
    local_share: Annotated[
        float | None, typer.Option(help="Share of failures that local disks survive, 0 to 1.")
    ] = None,
    devices: Annotated[int | None, typer.Option(min=1, help="Accelerators of the job.")] = None,
    from_log: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Log of ml-goodput-measurement as JSON lines: step, interval, stalls, failures.",
        ),
    ] = None,
    checkpoint: Annotated[
        str | None, typer.Option(metavar="PATH", help="A checkpoint of the job: tree and mesh.")
    ] = None,
    as_json: AsJson = False,
    html: Html = None,
    markdown: Markdown = None,
) -> None:
    """Say how often to save, and what failures cost.

    For saves that block, in the background, continuous and in two tiers. Durations are 90s, 15min,
    4h or 2d.

    orbax-bench goodput --mtbf 4h --recovery 5min --save-blocking 2s --save-background 2min
    --slowdown 0.1

    Exit codes: 0; 2 something is missing or out of range.
    """
    from orbax_bench_core.plan.goodput import (
        checkpoint_facts,
        goodput_document,
        job_of,
        plan_goodput,
        read_log,
        seconds_of,
    )

    durations = {
        "mtbf_s": ("--mtbf", mtbf),
        "host_mtbf_s": ("--host-mtbf", host_mtbf),
        "blocking_s": ("--save-blocking", save_blocking),
        "background_s": ("--save-background", save_background),
        "save_s": ("--save-sync", save_sync),
        "recovery_s": ("--recovery", recovery),
        "step_s": ("--step-time", step_time),
        "local_blocking_s": ("--local-save", local_save),
        "local_recovery_s": ("--local-recovery", local_recovery),
    }
    given = {
        field: None if text is None else seconds_of(text, flag)
        for field, (flag, text) in durations.items()
    }
    numbers = {"slowdown": slowdown, "hosts": hosts, "devices": devices, "local_share": local_share}
    log = None if from_log is None else read_log(from_log)
    facts = None if checkpoint is None else checkpoint_facts(checkpoint)
    tau = None if interval is None else seconds_of(interval, "--interval")
    if tau is None and log is not None and log.interval_s is not None:
        tau = max(1e-3, log.interval_s - (log.blocking_s or 0.0))
    plan = plan_goodput(job_of(given | numbers, log, facts), interval_s=tau)
    document, found = goodput_document(plan, log), _full(plan, log, facts)
    publish(document, found, html, markdown, as_json=as_json)


def _full(plan: GoodputPlan, log: JobLog | None, facts: Any) -> dict[str, Any]:
    import dataclasses

    return {
        "job": dataclasses.asdict(plan.job),
        "young_s": plan.young_s,
        "log": None if log is None else dataclasses.asdict(log),
        "checkpoint": None if facts is None else dataclasses.asdict(facts),
        "strategies": json.loads(plan.table().to_json(orient="records")),
    }
