"""Morning page of past runs: latest verdict of each suite, trends, every run, at one address."""

from orbax_bench_core.exports.site.gathering import Cards, gather
from orbax_bench_core.exports.site.view import (
    PAGE,
    has_site,
    renew_site,
    site_document,
    write_site,
)

__all__ = [
    "PAGE",
    "Cards",
    "gather",
    "has_site",
    "renew_site",
    "site_document",
    "write_site",
]
