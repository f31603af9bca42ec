"""Before the first point: which step measures which points, and the checkpoint that they load."""

import importlib.util
import json
import math
import subprocess
import sys
from collections.abc import Sequence
from typing import Final

from orbax_bench_core.config import Suite, parse_suite
from orbax_bench_core.errors import UserError
from orbax_bench_core.execute import refuse_several_hosts
from orbax_bench_core.files import place
from orbax_bench_core.python_command import python_command
from orbax_bench_core.sweep import Pair, SweepEntry, SweepPoint, benchmark_of

_STEP_S: Final = 300.0
"""Seconds that a step is to measure for: the start of its pod is small beside that, and a step that
is lost loses no more."""
_REPEAT_S: Final = 0.5
_BYTES_PER_S: Final = 2.5e8
"""A guess of what a repeat costs: seconds, and its bytes saved and loaded at such a rate."""
_UNKNOWN_BYTES: Final = 2**30
MOST_STEPS: Final = 300
"""Steps of one loop. The number is ours: no service documents one. Argo, which runs the loops of
Kubeflow, keeps the state of all iterations in one object of 1 MB at most, compressed (its page
"Offloading Large Workflows"), and loops of many hundreds have failed (kubeflow/pipelines#12131)."""
_MODULES: Final = {
    "nnx_restore": ("flax",),
    "pytorch_dcp": ("torch",),
    "torch_save": ("torch",),
    "pytorch_safetensors": ("torch", "safetensors"),
}
"""What built-ins import beside JAX and Orbax, each of which an extra of that name brings."""
_MOST_POINTS: Final = 1000
"""Points of one step, whose ids travel in one argument of a command."""


def check_modules(suite: Suite) -> None:
    """Refuses what the image of this step cannot measure, unless environments are made for it.

    Raises:
        UserError: A benchmark or checkpoint needs a module that is not installed here, and the
            suite has no environments. It names each of them.
    """
    needs = [
        (entry.generator, module)
        for entry in suite.benchmarks
        for module in _MODULES.get(benchmark_of(entry.generator), ())
    ]
    needs += [(f"nnx: {one.nnx}", "flax") for one in suite.checkpoint_configs if one.nnx]
    lacking = [(what, name) for what, name in needs if importlib.util.find_spec(name) is None]
    if lacking and not suite.environments:
        raise UserError(
            *(
                f"{what} needs {module}, which this image does not have; take one that is built "
                f"with the extra {module}: images/README.md says how"
                for what, module in lacking
            )
        )


def batches(
    entries: Sequence[SweepEntry], repeats: int, points_per_step: int = 0, most_steps: int = 0
) -> list[tuple[SweepEntry, ...]]:
    """Puts points or pairs into batches of consecutive ones, each of which is a step.

    Args:
        entries: All of the run, in their order.
        repeats: Repeats of each, warm-ups included, from which the time of a step is estimated.
        points_per_step: Entries of a batch; 0 for as many as take some minutes.
        most_steps: Batches that the engine takes; 0 for our own limit.

    Raises:
        UserError: A batch would have too many entries or a negative number of them, or there would
            be too many batches.
    """
    if not 0 <= points_per_step <= _MOST_POINTS:
        raise UserError(
            f"{points_per_step} points in one step: it takes 1 to {_MOST_POINTS}, whose ids travel "
            "in one argument of a command, or 0 to have them chosen"
        )
    fitting = math.ceil(len(entries) / (most_steps or MOST_STEPS))
    size = points_per_step or min(_MOST_POINTS, max(_in_minutes(entries, repeats), fitting))
    steps = math.ceil(len(entries) / size)
    if most_steps and steps > most_steps:
        raise UserError(
            f"{len(entries):,} points in {steps:,} steps of {size:,}: the engine takes "
            f"{most_steps:,}; give {fitting:,} points to a step, or 0 to have them chosen"
        )
    return [tuple(entries[start : start + size]) for start in range(0, len(entries), size)]


def points_in(text: str) -> list[str]:
    """Returns the points that a text names: ids, a point as JSON, or a JSON list of such texts.

    Raises:
        UserError: It begins with `[` and is no JSON list.
    """
    text = text.strip()
    if not text.startswith("["):
        return [text] if text.startswith("{") else text.split()
    try:
        given = json.loads(text)
        return [point for each in given for point in points_in(str(each))]
    except (ValueError, RecursionError) as error:
        raise UserError(f"not a list of points, as plan-sweep returns it: {error}") from None


def _in_minutes(entries: Sequence[SweepEntry], repeats: int) -> int:
    """Returns of how many points the repeats take some minutes."""
    seconds = [
        _STEP_S
        if isinstance(entry, Pair)
        else repeats * (_REPEAT_S + 2 * _bytes(entry) / _BYTES_PER_S)
        for entry in entries
    ]
    return max(1, int(_STEP_S * len(seconds) / max(sum(seconds), _REPEAT_S)))


def _bytes(point: SweepPoint) -> int:
    """Returns the bytes of what a point saves or loads; a guess where nothing tells."""
    if point.checkpoint.is_empty:
        return 0
    found = point.with_presets_expanded().checkpoint.num_bytes
    return _UNKNOWN_BYTES if found is None else found


def ensure_checkpoint(suite_text: str, fixture_text: str) -> str | None:
    """Returns the checkpoint that a suite loads, made first when it is missing.

    Args:
        suite_text: The suite as YAML.
        fixture_text: A suite as YAML whose first checkpoint is made; empty for none.

    Returns:
        The first path that the suite loads, or None if it loads none.

    Raises:
        UserError: The checkpoint is missing and there is no fixture, more than one is missing,
            several hosts run this step, or the fixture cannot be made.
    """
    configs = parse_suite(suite_text).suite.checkpoint_configs
    paths = list(dict.fromkeys(config.path for config in configs if config.path is not None))
    missing = [path for path in paths if not place(path).exists()]
    if missing and not fixture_text:
        raise UserError(f"the suite loads {missing[0]}, which does not exist; give a fixture")
    if len(missing) > 1:
        raise UserError(f"one fixture cannot make {len(missing)} checkpoints: {missing}")
    if missing:
        refuse_several_hosts(f"making {missing[0]}")
    for path in missing:
        make_fixture(fixture_text, path)
    return paths[0] if paths else None


def make_fixture(fixture_text: str, path: str) -> None:
    """Generates the first checkpoint of a suite on its first mesh, and saves it.

    Args:
        fixture_text: A suite as YAML.
        path: The folder that is made, local or in a bucket.

    Raises:
        UserError: The fixture has nothing to generate from, or its process has failed; the message
            ends with the last line of its error.
    """
    loaded = parse_suite(fixture_text, "fixture")
    first = loaded.suite.checkpoint_configs[0]
    if first.spec is None and first.model is None:
        raise UserError(
            "the fixture's first checkpoint_config has neither `spec` nor `model` to generate from"
        )
    # JAX stays out of this process: on a TPU host it would keep the chips from the workers.
    process = subprocess.run(
        python_command("-m", "orbax_bench_core.engine.planning", path),
        input=fixture_text,
        capture_output=True,
        text=True,
        check=False,
    )
    if process.returncode != 0:
        reason = process.stderr.strip().splitlines()[-1:]
        raise UserError(f"cannot make the checkpoint {path}: {''.join(reason)}")


def _make(fixture_text: str, path: str) -> None:
    import jax

    from orbax_bench_core.config import expanded
    from orbax_bench_core.state import build_mesh, generate, save_fixture
    from orbax_bench_core.worker import simulate_devices

    suite = parse_suite(fixture_text, "fixture").suite
    config = suite.mesh_configs[0] if suite.mesh_configs else None
    simulate_devices(1 if config is None else config.num_devices)
    jax.config.update("jax_enable_x64", True)
    mesh = None if config is None else build_mesh(config)
    checkpoint = expanded(suite.checkpoint_configs[0], config)
    save_fixture(generate(checkpoint.spec, seed=checkpoint.random_seed, mesh=mesh), path)


if __name__ == "__main__":
    _make(sys.stdin.read(), sys.argv[1])
