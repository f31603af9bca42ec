"""A suite that compares two releases of a package."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

import yaml

from orbax_bench_core.config.execution import EnvironmentConfig
from orbax_bench_core.config.load import LoadedSuite, parse_suite

NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})


def comparing_releases(
    loaded: LoadedSuite,
    baseline: EnvironmentConfig,
    candidate: EnvironmentConfig,
    *,
    gate: Mapping[str, Any] = NOTHING,
) -> LoadedSuite:
    """Returns a suite with two environments as its arms.

    Args:
        loaded: The suite; environments and arms of its own are replaced.
        baseline: What the baseline runs with.
        candidate: What the candidate runs with.
        gate: Keys of the suite's `gate` block to put in place of its own.
    """
    data = dict(loaded.source.data)
    data["environments"] = [
        one.model_dump(mode="json", exclude_defaults=True) for one in (baseline, candidate)
    ]
    data["arms"] = {
        "baseline": {"environment": baseline.name},
        "candidate": {"environment": candidate.name},
    }
    if gate:
        data["gate"] = {**data.get("gate", {}), **gate}
    return parse_suite(yaml.safe_dump(data, sort_keys=False), loaded.source.file)
