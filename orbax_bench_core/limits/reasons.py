"""Reasons of limits in words: why a probe has no times, and why fewer bytes were moved."""

from typing import Final

from orbax_bench_core.pages import percent
from orbax_bench_core.reasons import Words

_SHARES: Final = {"memory": "an eighth", "disk": "half"}


def size(num_bytes: int) -> str:
    """Returns bytes in whole MiB."""
    return f"{num_bytes / 2**20:.0f} MiB"


def room(place: str, free_bytes: int) -> str:
    """Returns the part of the free memory or disk that probes may use."""
    return f"{_SHARES[place]} of the {size(free_bytes)} of free {place}"


SENTENCES: Final[Words] = {
    "not_compared": "left out: nothing in this run is compared with it",
    "no_local_files": "not applicable: an object store has no local files",
    "no_page_cache": "not applicable: an object store has no page cache",
    "cpu_devices": "not applicable: on CPU devices it is a memory copy",
    "stays_resident": lambda share: (
        f"not cold: {percent(share)} of the pages stay in memory when dropped, as where a file "
        "system lies in memory"
    ),
    "probe_failed": "{said}",
    "little_room": lambda asked, place, free: (
        f"{size(asked)} was asked for, but only {room(place, free)} may be used"
    ),
}
"""Sentence of each code."""
