"""Fixture step: the checkpoint that load-only points read."""

from __future__ import annotations

import subprocess
import sys

from orbax_bench_core.config import parse_suite
from orbax_bench_core.errors import UserError
from orbax_bench_core.execute import refuse_several_hosts
from orbax_bench_core.files import place


def ensure_checkpoint(suite_text: str, fixture_text: str) -> str | None:
    """Returns the checkpoint that a suite loads, made first when it is missing."""
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

    It needs a `spec` or a `model`. A checkpoint that is at `path` already is replaced.
    """
    loaded = parse_suite(fixture_text, "fixture")
    first = loaded.suite.checkpoint_configs[0]
    if first.spec is None and first.model is None:
        raise UserError(
            "the fixture's first checkpoint_config has neither `spec` nor `model` to generate from"
        )
    # JAX stays out of this process: on a TPU host it would keep the chips from the workers.
    process = subprocess.run(
        [sys.executable, "-m", "orbax_bench_core.steps.fixture", path],
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
