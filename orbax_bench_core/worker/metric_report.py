"""Metric report of one process at the end of a repeat, for its log."""

from __future__ import annotations

from orbax_bench_core.records import Record


def metric_report(record: Record) -> str:
    """Returns every value that one process measured in a repeat, one per line.

    The keys are those of the published guide: `save_0_basics/time_s`.
    """
    which = f"{'warm-up' if record.warmup else 'repeat'} {record.repeat}"
    arm = "" if record.arm is None else f" {record.arm}"
    title = (
        f"metric report of process {record.host} of {record.num_hosts}: "
        f"{record.point_name}{arm} {which}: {record.status}"
    )
    if record.error is not None:
        title += f": {record.error.said}"
    keys = [sample.key for sample in record.samples]
    width = max(map(len, keys), default=0)
    values = [
        f"  {key:<{width}}  {sample.value:.6g} {sample.unit}".rstrip()
        for key, sample in zip(keys, record.samples, strict=True)
    ]
    return "\n".join([title, *(values or ["  nothing was measured"])])
