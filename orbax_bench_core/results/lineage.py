"""What an artifact says of itself, so that a verdict can be traced to what it was made from."""

from __future__ import annotations

import os
from collections.abc import Sequence

from orbax_bench_core.results.provenance import PACKAGES, UNKNOWN, package_version
from orbax_bench_core.results.record import SCHEMA_VERSION
from orbax_bench_core.results.run_directory import RunInfo


def artifact_metadata(
    kind: str, info: RunInfo | None, *, point_ids: Sequence[str] = ()
) -> dict[str, str]:
    """Returns the metadata of a pipeline artifact: text only, `unknown` where nothing is known.

    Args:
        kind: What the artifact is: `records`, `checkpoint`, `samples`, `comparison`.
        info: The run that it belongs to; None for one that belongs to no run.
        point_ids: The sweep points that it is about.
    """
    versions = {f"version_{name}": package_version(name) for name in PACKAGES}
    return {
        "orbax_bench_type": kind,
        "schema_version": str(SCHEMA_VERSION),
        "run_id": UNKNOWN if info is None else info.run_id,
        "config_hash": UNKNOWN if info is None else info.suite_identity,
        "point_ids": ",".join(point_ids) or UNKNOWN,
        "image": os.environ.get("ORBAX_BENCH_IMAGE", UNKNOWN),
        **versions,
    }
