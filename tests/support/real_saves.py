"""Real saves by Orbax in one to four processes, counted beside what the plan says of them.

`python -m tests.support.real_saves` makes a large matrix of them; its last line says what was seen.
"""

import argparse
import dataclasses
import itertools
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
DEVICES = 8

WORKER = """
import itertools, json, pathlib, sys
import jax
processes, me, port, cases, folder = sys.argv[1:]
if int(processes) > 1:
    place = f"localhost:{port}"
    jax.distributed.initialize(place, num_processes=int(processes), process_id=int(me))
import absl.logging, numpy as np
absl.logging.set_verbosity("error")
from etils import epath
from jax.experimental import multihost_utils
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from orbax.checkpoint import v1 as ocp
from orbax_bench_core.state import make_context

def entry(found):
    return tuple(found) if isinstance(found, list) else found

made = itertools.count()

def make(mesh, shape, dtype, spec):
    number = next(made)
    sharding = NamedSharding(mesh, PartitionSpec(*map(entry, spec)))
    def part(index):
        seed = abs(hash(f'{number} {index}')) % 2**32
        size = [len(range(*s.indices(n))) for s, n in zip(index, shape)]
        whole = (*size, np.dtype(dtype).itemsize)
        values = np.random.default_rng(seed).integers(1, 255, size=whole)
        return np.ascontiguousarray(values.astype(np.uint8)).view(dtype).reshape(size)
    return jax.make_array_from_callback(tuple(shape), sharding, part)

def grow(node, mesh):
    if isinstance(node, dict) and "shape" in node:
        return make(mesh, node["shape"], jax.numpy.dtype(node["dtype"]), node.get("sharding") or ())
    if isinstance(node, dict):
        return {key: grow(child, mesh) for key, child in node.items()}
    return {"int": 1234, "str": "synthetic"}[node]

for number, case in enumerate(json.loads(pathlib.Path(cases).read_text())):
    names, sizes = zip(*case["mesh"].items())
    mesh = Mesh(np.array(jax.devices()).reshape(sizes), names)
    tree = grow(case["spec"], mesh)
    options = dict(case["options"])
    target = options.pop("target_file_size", None)
    context = make_context(**options)
    if target is not None:
        context.array.saving.ocdbt_target_data_file_size = target
    with context:
        ocp.save(epath.Path(folder) / str(number), tree)
    multihost_utils.sync_global_devices(str(number))
"""


@dataclasses.dataclass(frozen=True)
class Case:
    """A save to make, and to plan."""

    spec: dict[str, Any]
    mesh: dict[str, int]
    options: dict[str, Any]
    label: str = ""


@dataclasses.dataclass(frozen=True)
class Saved:
    """Files of a save that was made."""

    files: int
    num_bytes: int
    path: Path


def save_all(cases: Sequence[Case], folder: Path, *, processes: int = 1) -> list[Saved]:
    """Makes the saves of `cases` in so many processes, and counts their files."""
    folder.mkdir(parents=True, exist_ok=True)
    listed = folder / "cases.json"
    listed.write_text(json.dumps([dataclasses.asdict(case) for case in cases]))
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    environment = {
        **os.environ,
        "JAX_PLATFORMS": "cpu",
        "JAX_ENABLE_X64": "true",
        "XLA_FLAGS": f"--xla_force_host_platform_device_count={DEVICES // processes}",
        "PYTHONPATH": str(ROOT),
        "PYTHONHASHSEED": "0",
    }
    words = [sys.executable, "-c", WORKER, str(processes)]
    running = [
        subprocess.Popen(
            [*words, str(me), str(port), str(listed), str(folder)],
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        for me in range(processes)
    ]
    said = [process.communicate()[1] for process in running]
    assert not any(process.returncode for process in running), said
    return [_count(folder / str(number)) for number in range(len(cases))]


def _count(path: Path) -> Saved:
    sizes = [file.stat().st_size for file in path.rglob("*") if file.is_file()]
    return Saved(len(sizes), sum(sizes), path)


def array(shape: Sequence[int], *sharding: Any, dtype: str = "float32") -> dict[str, Any]:
    """Returns one array of a spec."""
    return {"shape": list(shape), "dtype": dtype, "sharding": list(sharding) or None}


PLAIN = {
    "params": {
        "sharded": array((512, 512), "x", "y"),
        "rows": array((1024, 256), "x"),
        "replicated": array((512, 256)),
        "odd": array((7, 13)),
        "vector": array((4096,), "y"),
    },
    "scalar": array(()),
}
"""Arrays of every kind, as those that the rules were found on."""

DEEP = {
    "layers": {
        f"{layer}": {
            "attention": {"qkv": array((96, 3, 8, 32), "x", None, "y", dtype="bfloat16")},
            "mlp": {"up": array((96, 1024), ["x", "y"]), "down": array((1024, 96), ["y", "x"])},
            "norm": array((96,), dtype="bfloat16"),
        }
        for layer in range(3)
    },
    "embed": array((4000, 96), None, "x"),
    "quantized": array((640, 640), "y", dtype="int8"),
    "rope": array((2, 3, 5, 7, 11), dtype="float64"),
    "count": array((), dtype="int32"),
}
"""Unstacked layers of four dimensions, several dtypes, dimensions cut by two axes."""

SMALL = {
    "big": array((1024, 1024), "x", "y"),
    **{f"norm_{index:03d}": array((64,), "x") for index in range(40)},
}
"""Many arrays whose chunks OCDBT keeps in its B-tree."""

TREES = {"plain": PLAIN, "deep": DEEP, "small": SMALL}
MESHES = ({"x": 2, "y": 4}, {"x": 8, "y": 1}, {"x": 4, "y": 2}, {"z": 2, "x": 2, "y": 2})


def options_of_layouts() -> Iterator[dict[str, Any]]:
    """Yields all combinations of options that decide a layout, without compression."""
    for ocdbt, zarr3, (parallel, folder), chunk, target in itertools.product(
        (True, False),
        (True, False),
        ((False, False), (True, False), (True, True)),
        (None, 65536),
        (None, 2**20),
    ):
        if (folder or target) and not ocdbt:
            continue
        yield {
            "use_ocdbt": ocdbt,
            "use_zarr3": zarr3,
            "use_compression": False,
            "use_replica_parallel": parallel,
            "enable_replica_parallel_separate_folder": folder,
            "chunk_byte_size": chunk,
            "target_file_size": target,
        }


def planned(case: Case, processes: int) -> Any:
    """Returns the layout that the plan predicts for a case."""
    from orbax_bench_core.config import CheckpointConfig
    from orbax_bench_core.plan import StorageOptions, plan_checkpoint

    return plan_checkpoint(
        CheckpointConfig(spec=case.spec),
        mesh=case.mesh,
        devices_per_host=DEVICES // processes,
        options=StorageOptions(**case.options),
    ).layout


def wrong(case: Case, saved: Saved, processes: int) -> list[str]:
    """Returns what the plan said of a save that does not hold."""
    layout = planned(case, processes)
    said = []
    files = layout.files
    if files.is_exact and files.expected != saved.files:
        said.append(f"files {files.expected}, really {saved.files}")
    if not files.least <= saved.files <= files.most:
        said.append(f"files {files.least} to {files.most}, really {saved.files}")
    # The values are random: zstd saves less than 2 % of their bytes.
    most = 0.02 if case.options.get("use_compression", True) else 0.0025
    if abs(layout.num_bytes - saved.num_bytes) > most * saved.num_bytes:
        ratio = layout.num_bytes / saved.num_bytes
        said.append(f"bytes {layout.num_bytes}, really {saved.num_bytes} ({ratio:.4f})")
    return said


def main() -> int:
    """Makes the matrix; exit code 0 when the plan was right about all of it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--processes", type=int, nargs="*", default=[1, 2, 4])
    parser.add_argument("--trees", nargs="*", default=list(TREES))
    parser.add_argument("--every", type=int, default=1, help="take one of so many cases")
    arguments = parser.parse_args()
    cases = [
        Case(TREES[tree], mesh, options, f"{tree} {mesh} {options}")
        for tree in arguments.trees
        for mesh in MESHES
        for options in options_of_layouts()
    ][:: arguments.every]
    bad, exact, worst = 0, 0, 0.0
    for processes in arguments.processes:
        for first in range(0, len(cases), 24):
            with tempfile.TemporaryDirectory() as folder:
                some = cases[first : first + 24]
                for case, saved in zip(
                    some, save_all(some, Path(folder), processes=processes), strict=True
                ):
                    layout = planned(case, processes)
                    exact += layout.files.is_exact
                    worst = max(worst, abs(layout.num_bytes / saved.num_bytes - 1))
                    for line in wrong(case, saved, processes):
                        bad += 1
                        print(f"{processes} processes, {case.label}: {line}", flush=True)
                shutil.rmtree(folder, ignore_errors=True)
    total = len(cases) * len(arguments.processes)
    print(
        f"{total} saves, {exact} with exact files; {bad} statements wrong; "
        f"bytes off by {worst:.4%} at most"
    )
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
