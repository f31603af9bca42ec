"""Limits of a machine that are made up: 1 GiB in so many seconds."""

import datetime

from orbax_bench_core.limits import PROBES, Limits

GIB = 2**30
PAGE = 4096


def made_up(seconds, path="/disk", **fields):
    """Returns the limits of a machine whose probes took these seconds; others do not apply."""
    found = {name: {"seconds": (taken,)} for name, taken in seconds.items()}
    given = {
        "path": path,
        "requested_bytes": GIB,
        "num_bytes": GIB,
        "num_threads": 2,
        "dtype": "float32",
        "taken_at": datetime.datetime(2026, 1, 2, tzinfo=datetime.UTC),
        "duration_s": 3.0,
        "surroundings": {
            "host_memory": "reused",
            "load_average": 0.5,
            "available_memory_bytes": GIB,
            "free_disk_bytes": GIB,
            "page_bytes": PAGE,
        },
        "probes": [
            {"name": name, "num_bytes": GIB, **found.get(name, {"reason": "not applicable"})}
            for name in PROBES
        ],
    }
    return Limits.model_validate(given | fields)
