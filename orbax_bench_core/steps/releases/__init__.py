"""Releases beside each other: an environment each, a search over many, a comparison of two."""

from orbax_bench_core.steps.releases.search import (
    Found,
    comparing_releases,
    expected_comparisons,
    find_releases,
    kept_requirements,
    search_releases,
)
from orbax_bench_core.steps.releases.upgrading import make_both, plan_upgrade

__all__ = [
    "Found",
    "comparing_releases",
    "expected_comparisons",
    "find_releases",
    "kept_requirements",
    "make_both",
    "plan_upgrade",
    "search_releases",
]
