"""Cost of expanding a suite of ten thousand sweep points."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any, Final

from perf.pairing import Figure, alternate
from perf.probe import Setting
from perf.process import Finished, ProbeFailed, our_command, run

TARGET_S: Final = 3.0
TARGET_MB: Final = 300.0

NUM_POINTS: Final = 10_000


def suite() -> dict[str, Any]:
    """Returns a suite of `NUM_POINTS` points: 400 options x 5 meshes x 5 checkpoints."""
    both = [True, False]
    return {
        "suite_name": "ten thousand points",
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
                    "chunk_byte_size": [2**power for power in range(20, 25)],
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
        command = our_command("expand", str(file))
        runs = alternate(
            setting.rounds,
            lambda: _expand(command),
            None,
            say=lambda line: setting.say(f"expand: {line}"),
        )
    seconds, _ = runs.values(lambda run: run.seconds)
    megabytes, _ = runs.values(lambda run: run.peak_bytes / 1e6)
    name = f"orbax-bench expand, {NUM_POINTS:,} points"
    return [
        Figure(name=f"{name}: time", unit="s", ours=seconds, target=TARGET_S, limits="value"),
        Figure(
            name=f"{name}: peak memory",
            unit="MB",
            ours=megabytes,
            target=TARGET_MB,
            limits="value",
        ),
    ]


def _expand(command: list[str]) -> Finished:
    finished = run(command, keep_output=True)
    counted = finished.output.rstrip().rpartition("\n")[2]
    if counted != f"{NUM_POINTS} points":
        raise ProbeFailed(f"the suite was expanded to {counted!r} instead of {NUM_POINTS} points")
    return finished
