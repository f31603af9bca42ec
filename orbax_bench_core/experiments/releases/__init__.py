"""Releases beside each other: an environment each, a search over many, a comparison of two."""

from orbax_bench_core.experiments.releases.search import Found as Found
from orbax_bench_core.experiments.releases.search import Release as Release
from orbax_bench_core.experiments.releases.search import Upgrading as Upgrading
from orbax_bench_core.experiments.releases.search import comparing_releases as comparing_releases
from orbax_bench_core.experiments.releases.search import (
    expected_comparisons as expected_comparisons,
)
from orbax_bench_core.experiments.releases.search import find_releases as find_releases
from orbax_bench_core.experiments.releases.search import kept_requirements as kept_requirements
from orbax_bench_core.experiments.releases.search import search_releases as search_releases
