"""Cost of planning a save of a thousand arrays from a hundred thousand devices."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any, Final

from perf.pairing import Figure, alternate
from perf.probe import Setting
from perf.process import Finished, ProbeFailed, our_command, run

TARGET_S: Final = 10.0
TARGET_MB: Final = 500.0

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
        words = ("--mesh", MESH, "--devices-per-host", "4", "--onto", ONTO, "--no-compression")
        command = our_command("plan", str(file), *words)
        runs = alternate(
            setting.rounds,
            lambda: _plan(command),
            None,
            say=lambda line: setting.say(f"plan: {line}"),
        )
    seconds, _ = runs.values(lambda run: run.seconds)
    megabytes, _ = runs.values(lambda run: run.peak_bytes / 1e6)
    name = f"orbax-bench plan, 100,000 devices, {ARRAYS:,} arrays"
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


def _plan(command: list[str]) -> Finished:
    finished = run(command, keep_output=True)
    if "100000 devices on 25000 hosts of 4" not in finished.output:
        raise ProbeFailed(f"the plan says {finished.output[:200]!r}")
    return finished
