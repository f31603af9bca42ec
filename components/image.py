"""The container image that every component runs in."""

from __future__ import annotations

import importlib.metadata
import os

IMAGE = os.environ.get(
    "ORBAX_BENCH_IMAGE", f"orbax-bench:{importlib.metadata.version('orbax-bench')}"
)
"""Taken from `ORBAX_BENCH_IMAGE` when components are compiled; by default the local tag of this
version. The images have no ENTRYPOINT and hold kfp, so that nothing is installed at run time."""
