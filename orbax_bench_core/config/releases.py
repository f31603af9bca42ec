"""A suite that compares two releases of a package."""

from __future__ import annotations

from collections.abc import Sequence

import yaml

from orbax_bench_core.config.environment import EnvironmentConfig
from orbax_bench_core.config.load import LoadedSuite, parse_suite


def comparing_releases(
    loaded: LoadedSuite,
    baseline: EnvironmentConfig,
    candidate: EnvironmentConfig,
    *,
    primary: Sequence[str] = (),
) -> LoadedSuite:
    """Returns a suite with two environments as its arms.

    Args:
        loaded: The suite; environments and arms of its own are replaced.
        baseline: What the baseline runs with.
        candidate: What the candidate runs with.
        primary: Operations that decide the verdict; empty leaves that to the suite.
    """
    data = dict(loaded.source.data)
    data["environments"] = [
        one.model_dump(mode="json", exclude_defaults=True) for one in (baseline, candidate)
    ]
    data["arms"] = {
        "baseline": {"environment": baseline.name},
        "candidate": {"environment": candidate.name},
    }
    if primary:
        data["gate"] = {**data.get("gate", {}), "primary": list(primary)}
    return parse_suite(yaml.safe_dump(data, sort_keys=False), loaded.source.file)
