"""`orbax-bench plan --goodput`: how often to save, in which way, and what failures cost."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from orbax_bench_core.document import Document
    from orbax_bench_core.plan.goodput import GoodputPlan, Job, JobLog

_DURATIONS = {
    "mtbf": "mtbf_s",
    "host_mtbf": "host_mtbf_s",
    "save_blocking": "blocking_s",
    "save_background": "background_s",
    "save_sync": "save_s",
    "recovery": "recovery_s",
    "step_time": "step_s",
    "local_save": "local_blocking_s",
    "local_recovery": "local_recovery_s",
}
_NUMBERS = {
    "slowdown": "slowdown",
    "hosts": "hosts",
    "devices": "devices",
    "local_share": "local_share",
}

Goodput = Annotated[
    bool,
    typer.Option("--goodput", help="Plan how often to save instead; durations as 90s, 15min, 4h."),
]


def _duration(flag: str, about: str) -> Any:
    return Annotated[str | None, typer.Option(flag, metavar="DURATION", help=about)]


Mtbf = _duration("--mtbf", "Mean time between failures of the job.")
HostMtbf = _duration("--host-mtbf", "Mean time between failures of one host; needs --hosts.")
SaveBlocking = _duration("--save-blocking", "How long a save in the background blocks training.")
SaveBackground = _duration("--save-background", "How long its background part takes.")
SaveSync = _duration("--save-sync", "How long a save takes that blocks as a whole.")
Recovery = _duration("--recovery", "From a failure to the first step after it.")
StepTime = _duration("--step-time", "A training step.")
Interval = _duration("--interval", "Useful time between saves today, to compare with.")
LocalSave = _duration("--local-save", "How long a save to local disks blocks training.")
LocalRecovery = _duration("--local-recovery", "A recovery from local disks.")
Slowdown = Annotated[
    float | None,
    typer.Option("--slowdown", help="Share of the speed lost during the background part, 0 to 1."),
]
LocalShare = Annotated[
    float | None,
    typer.Option("--local-share", help="Share of failures that local disks survive, 0 to 1."),
]
Hosts = Annotated[int | None, typer.Option("--hosts", min=1, help="Hosts of the job.")]
JobDevices = Annotated[
    int | None, typer.Option("--devices", min=1, help="Accelerators of the job.")
]
FromLog = Annotated[
    str | None,
    typer.Option(
        "--from-log",
        metavar="FILE",
        help="Log of ml-goodput-measurement as JSON lines: step, interval, stalls, failures.",
    ),
]
Checkpoint = Annotated[
    str | None,
    typer.Option("--checkpoint", metavar="PATH", help="A checkpoint of the job: tree and mesh."),
]
Prices = Annotated[
    str | None,
    typer.Option(
        "--prices",
        metavar="FILE",
        help="YAML: accelerator, with price_per_hour, currency, as_of and source.",
    ),
]
Accelerator = Annotated[
    str | None, typer.Option("--accelerator", help="Its name in the price table.")
]
WriteLog = Annotated[
    str | None,
    typer.Option(
        "--write-log", metavar="FILE", help="Also write the log of such a job over --hours."
    ),
]
Hours = Annotated[float, typer.Option("--hours", min=0.01, help="Length of the log written.")]


def plan_job(
    given: dict[str, Any],
    *,
    interval: str | None,
    from_log: str | None,
    checkpoint: str | None,
    prices: tuple[str | None, str | None],
    write_log: tuple[str | None, float],
) -> tuple[Document, dict[str, Any]]:
    """Plans the goodput of a job.

    Args:
        given: What the user gave of the job, by the name of its flag.
        interval: Useful time between saves today.
        from_log: Log of the job.
        checkpoint: A checkpoint of it.
        prices: Price table, and the accelerator in it.
        write_log: Where to write the log of such a job, and its length in hours.

    Returns:
        The document, and every number by name.

    Raises:
        UserError: Something is missing or out of range.
    """
    from orbax_bench_core.plan.goodput import (
        checkpoint_facts,
        goodput_document,
        job_of,
        plan_goodput,
        read_log,
        seconds_of,
    )

    values: dict[str, float | None] = {
        field: seconds_of(given[name], f"--{name.replace('_', '-')}")
        for name, field in _DURATIONS.items()
        if given.get(name) is not None
    }
    numbers = {field: given.get(name) for name, field in _NUMBERS.items()}
    log = None if from_log is None else read_log(from_log)
    facts = None if checkpoint is None else checkpoint_facts(checkpoint)
    job = job_of({**values, **numbers}, log, facts)
    tau = None if interval is None else seconds_of(interval, "--interval")
    if tau is None and log is not None and log.interval_s is not None:
        tau = max(1e-3, log.interval_s - (log.blocking_s or 0.0))
    plan = plan_goodput(job, interval_s=tau, price=_price(*prices))
    _write(job, plan, *write_log)
    return goodput_document(plan, log), _full(plan, log, facts)


def _price(file: str | None, accelerator: str | None) -> tuple[float, str, str] | None:
    from orbax_bench_core.errors import UserError
    from orbax_bench_core.plan.goodput import read_price

    if file is None and accelerator is None:
        return None
    if file is None or accelerator is None:
        raise UserError("a price needs both --prices and --accelerator: none is known here")
    price = read_price(file, accelerator)
    return price.price_per_hour, price.currency, price.note


def _write(job: Job, plan: GoodputPlan, file: str | None, hours: float) -> None:
    from orbax_bench_core.errors import UserError
    from orbax_bench_core.files import place, write_atomically
    from orbax_bench_core.plan.goodput import simulated_log, to_jsonl

    if file is None:
        return
    chosen = next(s for s in reversed(plan.strategies) if s.name in ("async", "sync"))
    text = to_jsonl(simulated_log(job, chosen.interval_s, hours=hours))
    try:
        write_atomically(place(file), text.encode())
    except OSError as failure:
        raise UserError(f"--write-log: cannot write {file}: {failure}") from None


def _full(plan: GoodputPlan, log: JobLog | None, facts: Any) -> dict[str, Any]:
    import dataclasses

    return {
        "job": dataclasses.asdict(plan.job),
        "young_s": plan.young_s,
        "daly_s": plan.daly_s,
        "availability_s": plan.availability_s,
        "price": plan.price_note or None,
        "log": None if log is None else dataclasses.asdict(log),
        "checkpoint": None if facts is None else dataclasses.asdict(facts),
        "strategies": json.loads(plan.table().to_json(orient="records")),
    }
