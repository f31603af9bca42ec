"""Real saves by Orbax in one to four processes, compared with what the plan says of them.

`python -m tests.support.real_saves` makes a large matrix of them; its last line says what was seen.
"""

import argparse
import dataclasses
import itertools
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
from collections import Counter
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


def save_all(cases: Sequence[Case], folder: Path, *, processes: int = 1) -> list[Path]:
    """Makes the saves of `cases` in so many processes, and returns their folders."""
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
    return [folder / str(number) for number in range(len(cases))]


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
    from orbax_bench_core.plan import options_of, plan_checkpoint

    return plan_checkpoint(
        CheckpointConfig(spec=case.spec),
        mesh=case.mesh,
        devices_per_host=DEVICES // processes,
        options=options_of(case.options),
    ).layout


def wrong(case: Case, saved: Path, processes: int) -> list[str]:
    """Returns what the plan said of a save that does not hold."""
    from orbax_bench_core.inventory import read_checkpoint

    layout, said = planned(case, processes), []
    arrays = {one.name: one for one in read_checkpoint(str(saved)).arrays}
    for plan in layout.arrays:
        shape = arrays[plan.name].zarr.chunk_shape
        if shape != plan.chunk_shape:
            said.append(f"{plan.name}: chunks of {plan.chunk_shape}, really {shape}")
    written: Counter[int] = Counter()
    for chunk in (chunk for one in arrays.values() for chunk in one.chunks):
        if writer := re.search(r"ocdbt\.process_\D*(\d+)", chunk.file):
            written[int(writer[1])] += chunk.num_bytes
    if not case.options.get("use_ocdbt", True):  # a folder per array does not tell who wrote a file
        return said
    for host, planned_bytes in enumerate(layout.host_bytes.tolist()):
        # Values are random, of which zstd saves less than 2 %; a chunk has an index of its own.
        if abs(written[host] - planned_bytes) > 0.02 * planned_bytes + 8192:
            said.append(f"host {host}: {planned_bytes} B, really {written[host]}")
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
    bad = 0
    for processes in arguments.processes:
        for first in range(0, len(cases), 24):
            with tempfile.TemporaryDirectory() as folder:
                some = cases[first : first + 24]
                for case, saved in zip(
                    some, save_all(some, Path(folder), processes=processes), strict=True
                ):
                    for line in wrong(case, saved, processes):
                        bad += 1
                        print(f"{processes} processes, {case.label}: {line}", flush=True)
                shutil.rmtree(folder, ignore_errors=True)
    total = len(cases) * len(arguments.processes)
    print(f"{total} saves; {bad} statements about their chunks and bytes wrong")
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
