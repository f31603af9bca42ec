"""Releases beside each other: an environment each, a search over many, a comparison of two."""

from orbax_bench_core.steps.releases.search import (
    Found,
    Release,
    comparing_releases,
    expected_comparisons,
    find_releases,
    kept_requirements,
    search_releases,
)
from orbax_bench_core.steps.releases.upgrading import Upgrading

__all__ = [
    "Found",
    "Release",
    "Upgrading",
    "comparing_releases",
    "expected_comparisons",
    "find_releases",
    "kept_requirements",
    "search_releases",
]
