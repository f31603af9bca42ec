"""Cost of expanding a suite of a hundred thousand sweep points."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any, Final

from perf.pairing import Figure
from perf.probe import Setting
from perf.whole_process import Bounds, command_figures

BOUNDS: Final = Bounds(seconds=15.0, megabytes=400.0)

NUM_POINTS: Final = 100_000


def suite() -> dict[str, Any]:
    """Returns a suite of `NUM_POINTS` points: 4,000 options x 5 meshes x 5 checkpoints."""
    both = [True, False]
    return {
        "suite_name": "a hundred thousand points",
        "execution": {"max_points": NUM_POINTS},
        "checkpoint_configs": [
            {
                "random_seed": seed,
                "spec": {
                    "params": {"dtype": "bfloat16", "shape": [8192, 8192], "sharding": ["fsdp"]}
                },
            }
            for seed in range(5)
        ],
        "mesh_configs": [
            {"mesh_axes": ["fsdp"], "ici_parallelism": {"fsdp": size}} for size in (1, 2, 4, 8, 16)
        ],
        "benchmarks": [
            {
                "generator": "save_restore",
                "options": {
                    "async_enabled": both,
                    "use_ocdbt": both,
                    "use_zarr3": both,
                    "use_compression": both,
                    "chunk_byte_size": [2**20 + number for number in range(50)],
                    "save_concurrent_gb": [1, 2, 4, 8, 16],
                },
            }
        ],
    }


def figures(setting: Setting) -> list[Figure]:
    """Expands the suite, in a whole process each time."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "suite.yaml"
        file.write_text(json.dumps(suite()))  # JSON is YAML
        return command_figures(
            setting,
            f"orbax-bench expand, {NUM_POINTS:,} points",
            *("expand", str(file)),
            bounds=BOUNDS,
            is_right=lambda said: said.rstrip().endswith(f"\n{NUM_POINTS} points"),
        )
