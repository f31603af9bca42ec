"""Morning page of past runs: latest verdict of each suite, trends, every run, at one address."""

from orbax_bench_core.exports.site.gathering import Night, Site, gather
from orbax_bench_core.exports.site.view import site_document
from orbax_bench_core.exports.site.write import MOST_RUNS, PAGE, has_site, renew_site, write_site

__all__ = [
    "MOST_RUNS",
    "PAGE",
    "Night",
    "Site",
    "gather",
    "has_site",
    "renew_site",
    "site_document",
    "write_site",
]
