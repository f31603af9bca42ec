"""Reference of all metrics, generated from the registry.

`python -m orbax_bench_core.measure.documentation` writes `docs/metrics.md`, for people, and
`docs/schema/metrics.json`, for programs, into the checkout that it runs from.
"""

import dataclasses
import inspect
import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from orbax_bench_core.measure import collectors, known_metrics
from orbax_bench_core.measure.collectors import TIME
from orbax_bench_core.measure.definition import Metric

SCHEMA_VERSION = 1

_HEADER = (
    "# Metrics",
    "",
    "Every metric that a measured block can give. This page is generated from the metric registry:",
    (
        "change a metric where it is defined, then run "
        "`python -m orbax_bench_core.measure.documentation`."
    ),
    "",
    "Sizes are binary: a unit of GiB or MiB stands behind names in `_gb`, `_mb` and `_gbps` too.",
    "*Better* says which direction is an improvement; – stands for neither. An event that fires",
    "several times within one block becomes one value, its *sum* or its *last*.",
)


def main() -> int:
    """Writes both files; returns the exit code."""
    docs = Path(__file__).resolve().parents[2] / "docs"
    if not docs.is_dir():
        print(f"error: {docs} is no folder; run this from a checkout", file=sys.stderr)
        return 2
    for name, text in pages().items():
        page = docs / name
        page.parent.mkdir(exist_ok=True)
        page.write_text(text)
    return 0


def pages() -> Mapping[str, str]:
    """The text of each generated file, by its path under `docs`."""
    schema = json.dumps(as_data(), indent=1, ensure_ascii=False)
    return {"metrics.md": "\n".join(as_markdown()) + "\n", "schema/metrics.json": schema + "\n"}


def as_data() -> dict[str, Any]:
    """The registry as plain data: namespaces, collectors, metrics and families of metrics."""
    return {
        "schema_version": SCHEMA_VERSION,
        "namespaces": dict(known_metrics.NAMESPACES),
        "collectors": [
            {"key": key, "default": key in collectors.DEFAULT_KEYS, "description": _summary(key)}
            for key in collectors.KEYS
        ],
        "metrics": [dataclasses.asdict(metric) for metric in known_metrics.all_metrics()],
        "families": [dataclasses.asdict(family) for family in known_metrics.FAMILIES],
    }


def as_markdown() -> Iterator[str]:
    """The lines of the page for people."""
    yield from _HEADER
    yield from ("", "## Collectors", "")
    yield from (
        "Keys for `Metrics.measure`; the first stand nearest to the clock. What a metric below has",
        "from elsewhere is added by the worker or by one benchmark, and cannot be asked for.",
        "",
    )
    yield from _table(
        ("Key", "When", "What it measures"),
        (
            (f"`{key}`", "default" if key in collectors.DEFAULT_KEYS else "opt-in", _summary(key))
            for key in collectors.KEYS
        ),
    )
    for namespace, meaning in known_metrics.NAMESPACES.items():
        metrics = [
            metric for metric in known_metrics.all_metrics() if metric.namespace == namespace
        ]
        yield from ("", f"## {namespace}", "", f"{meaning}.")
        if metrics:
            yield ""
            yield from _metric_table(metrics)
    yield from ("", "## Names that only a run can know", "")
    yield from _table(
        ("Name", "Unit", "Collector", "What it says"),
        (
            (f"`{family.pattern}`", family.units, f"`{family.collector}`", family.description)
            for family in known_metrics.FAMILIES
        ),
    )


def _metric_table(metrics: Sequence[Metric]) -> Iterator[str]:
    """A table whose columns are those that the metrics of one namespace need."""
    events = any(metric.event for metric in metrics)
    yield from _table(
        ("Name", "Unit", "Better", "Collector", "What it says")
        + (("Event", "Repeated") if events else ()),
        (
            (
                f"`{metric.name.partition('/')[2]}`",
                metric.unit or "–",
                metric.better.replace("none", "–"),
                f"`{metric.collector}`",
                metric.description,
            )
            + (
                (f"`{metric.event}`" if metric.event else "–", metric.aggregate or "–")
                if events
                else ()
            )
            for metric in metrics
        ),
    )


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield _row(heads)
    yield _row(["---"] * len(heads))
    for row in rows:
        yield _row(row)


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _summary(key: str) -> str:
    """The first sentence that a collector's class says about itself."""
    if key == "time":
        return f"{TIME.description}."
    text = inspect.getdoc(collectors.FACTORIES[key])
    assert text is not None
    return text.partition("\n")[0]


if __name__ == "__main__":
    sys.exit(main())
