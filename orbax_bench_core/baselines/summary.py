"""Baselines that Orbax's own framework wrote: statistics of each metric, and no samples."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final, Literal

import pydantic

from orbax_bench_core.baselines.store import read_model, registry_path
from orbax_bench_core.files import ResultModel, read_at_most
from orbax_bench_core.sweep import SweepPoint, is_builtin, names_of, short_name

_KEY: Final = re.compile(r"(.+?)(?:::|_(?=\d+_\w+/))(\w+/.+)")
"""Operation and metric: `save::0_basics/time_s`, or `save_0_basics/time_s` as its guide has it."""
_SURROUNDINGS: Final = {
    "jax_device_kind": "kind",
    "jax_device_count": "count",
    "jax_process_count": "processes",
}
_POINT: Final = re.compile(r"_[0-9a-f]{12}$")


class Summary(ResultModel):
    """Baseline of one benchmark of Orbax's own framework, of its schema version 1.

    Attributes:
        schema_version: Version of that layout.
        metrics: Statistics over the hosts of the mean over the repeats, by operation and metric.
        benchmark_name: Class of the benchmark and digest of its options; empty where it is unknown.
        config: The options.
        manifest: What ran, and on what.
    """

    model_config = pydantic.ConfigDict(extra="ignore", frozen=True)

    schema_version: Literal[1] = 1
    metrics: dict[str, dict[str, pydantic.FiniteFloat]]
    benchmark_name: str = ""
    config: dict[str, Any] = {}
    manifest: dict[str, Any] = {}

    @property
    def means(self) -> Mapping[tuple[str, str], float]:
        """Means by operation and metric; a metric that is told otherwise is left out."""
        found = ((_KEY.fullmatch(key), stats.get("mean")) for key, stats in self.metrics.items())
        return {(key[1], key[2]): mean for key, mean in found if key and mean is not None}

    def differs(self, point: SweepPoint) -> tuple[str, ...]:
        """Returns in what a point is not the one that the baseline is of: benchmark and options."""
        cls = _POINT.sub("", self.benchmark_name)
        name = short_name(point.benchmark)
        paths = names_of(name) if is_builtin(point.benchmark) else (point.benchmark,)
        if cls and cls not in {path.rsplit(".", 1)[-1] for path in paths}:
            return (f"benchmark: {cls} instead of {name}",)
        plain = json.loads(json.dumps(point.options))
        return tuple(
            f"{option}: {value!r} instead of {plain[option]!r}"
            for option, value in self.config.items()
            if option in plain and plain[option] != value
        )

    def moved(self, provenance: Mapping[str, Any]) -> list[str]:
        """Returns in what the surroundings of a record are known to be others."""
        devices = provenance.get("devices")
        here = devices if isinstance(devices, Mapping) else {}
        return [
            f"{key}: {here[ours]}, was {self.manifest[key]}"
            for key, ours in _SURROUNDINGS.items()
            if ours in here and self.manifest.get(key, here[ours]) != here[ours]
        ]


def read_summary(path: str) -> Summary | None:
    """Returns the baseline that Orbax's own framework wrote into a file; None for anything else."""
    file = registry_path(path)
    if file.suffix != ".json":
        return None
    try:
        raw = json.loads(read_at_most(file))
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(raw, dict) or "metrics" not in raw:
        return None
    return read_model(file, Summary, "baseline of Orbax's own framework")
