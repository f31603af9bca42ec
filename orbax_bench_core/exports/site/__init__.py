"""Morning page of past runs: latest verdict of each suite, trends, every run, at one address.

What makes a page is loaded when it is first used: most runs only look whether there is one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from orbax_bench_core.exports.site.view import PAGE, has_site, renew_site, write_site

if TYPE_CHECKING:
    from orbax_bench_core.exports.site.gathering import gather
    from orbax_bench_core.exports.site.view import site_document

__all__ = [
    "PAGE",
    "gather",
    "has_site",
    "renew_site",
    "site_document",
    "write_site",
]


def __getattr__(name: str) -> Any:
    if name == "gather":
        from orbax_bench_core.exports.site.gathering import gather

        return gather
    if name == "site_document":
        from orbax_bench_core.exports.site.view import site_document

        return site_document
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
