"""Time and peak memory of commands with a large input, in a whole process each time."""

import json
import tempfile
from pathlib import Path
from typing import Any, Final

from perf.pairing import Figure
from perf.probe import Setting
from perf.process import Finished, ProbeFailed, our_command, run

POINTS: Final = 100_000
ARRAYS: Final = 1_000


def expand(setting: Setting) -> list[Figure]:
    """Expands a suite of 100,000 points: 4,000 options x 5 meshes x 5 checkpoints."""
    both = [True, False]
    spec = {"params": {"dtype": "bfloat16", "shape": [8192, 8192], "sharding": ["fsdp"]}}
    options = {
        "async_enabled": both,
        "use_ocdbt": both,
        "use_zarr3": both,
        "use_compression": both,
        "chunk_byte_size": [2**20 + number for number in range(50)],
        "save_concurrent_gb": [1, 2, 4, 8, 16],
    }
    suite = {
        "suite_name": "a hundred thousand points",
        "execution": {"max_points": POINTS},
        "checkpoint_configs": [{"random_seed": seed, "spec": spec} for seed in range(5)],
        "mesh_configs": [
            {"mesh_axes": ["fsdp"], "ici_parallelism": {"fsdp": size}} for size in (1, 2, 4, 8, 16)
        ],
        "benchmarks": [{"generator": "save_restore", "options": options}],
    }
    name, says = f"orbax-bench expand, {POINTS:,} points", f"\n{POINTS} points\n"
    return _figures(setting, name, suite, "expand", says=says, seconds=15.0, megabytes=400.0)


def plan(setting: Setting) -> list[Figure]:
    """Plans a save of a thousand arrays, no two of one shape, and a load onto another mesh."""
    partitions: tuple[list[Any], ...] = (
        ["fsdp", "tensor"],
        ["tensor", "fsdp"],
        [["fsdp", "tensor"]],
        ["fsdp"],
        [None, "tensor"],
        [],
    )
    spec = {
        f"layer_{index:04d}": {
            "dtype": "bfloat16",
            "shape": [50_000 * (1 + index % 7), 50_000 + 10_000 * index],
            "sharding": partitions[index % len(partitions)],
        }
        for index in range(ARRAYS)
    }
    return _figures(
        setting,
        f"orbax-bench plan, 100,000 devices, {ARRAYS:,} arrays",
        spec,
        *("plan", "--mesh", "data=10,fsdp=1000,tensor=10", "--devices-per-host", "5"),
        *("--onto", "fsdp=625,data=32,tensor=5", "--no-compression"),
        says="100000 devices on 20000 hosts of 5",
        seconds=10.0,
        megabytes=500.0,
    )


def _figures(
    setting: Setting,
    name: str,
    document: dict[str, Any],
    *words: str,
    says: str,
    seconds: float,
    megabytes: float,
) -> list[Figure]:
    """Runs a command of `orbax-bench` some times, and returns its time and its peak memory.

    Args:
        setting: How often.
        name: What people call it.
        document: What it reads.
        words: The command and its flags.
        says: Something that it must print.
        seconds: Most wall time that it may take.
        megabytes: Most resident memory that it may take.

    Raises:
        ProbeFailed: It failed, or printed something else.
    """
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "document.yaml"
        file.write_text(json.dumps(document))  # JSON is YAML
        command = our_command(words[0], str(file), *words[1:])

        def finished() -> Finished:
            done = run(command, keep_output=True)
            if says not in done.output:
                raise ProbeFailed(f"{name} says {done.output[-200:]!r}")
            return done

        runs = setting.pairs(words[0], finished)
    memory = f"{name}: peak memory"
    return [
        runs.figure(f"{name}: time", "s", lambda done: done.seconds, seconds, limits="value"),
        runs.figure(memory, "MB", lambda done: done.peak_bytes / 1e6, megabytes, limits="value"),
    ]
