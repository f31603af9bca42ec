"""Cost of planning a save of a thousand arrays from a hundred thousand devices."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any, Final

from perf.pairing import Figure
from perf.probe import Setting
from perf.whole_process import Bounds, command_figures

BOUNDS: Final = Bounds(seconds=10.0, megabytes=500.0)

ARRAYS: Final = 1_000
MESH: Final = "data=10,fsdp=1000,tensor=10"
ONTO: Final = "fsdp=625,data=32,tensor=5"


def spec() -> dict[str, Any]:
    """Returns a thousand arrays, no two of one shape, in six partitions."""
    partitions: tuple[list[Any], ...] = (
        ["fsdp", "tensor"],
        ["tensor", "fsdp"],
        [["fsdp", "tensor"]],
        ["fsdp"],
        [None, "tensor"],
        [],
    )
    return {
        f"layer_{index:04d}": {
            "dtype": "bfloat16",
            "shape": [50_000 * (1 + index % 7), 50_000 + 10_000 * index],
            "sharding": partitions[index % len(partitions)],
        }
        for index in range(ARRAYS)
    }


def figures(setting: Setting) -> list[Figure]:
    """Plans the save and a load onto another mesh, in a whole process each time."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "spec.yaml"
        file.write_text(json.dumps(spec()))  # JSON is YAML
        return command_figures(
            setting,
            f"orbax-bench plan, 100,000 devices, {ARRAYS:,} arrays",
            *("plan", str(file), "--mesh", MESH, "--devices-per-host", "5"),
            *("--onto", ONTO, "--no-compression"),
            bounds=BOUNDS,
            is_right=lambda said: "100000 devices on 20000 hosts of 5" in said,
        )
