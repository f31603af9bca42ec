"""Test context made by hand, for calling `test_fn` directly."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from orbax_bench_core.authoring import BenchmarkOptions, TestContext, Verifier
from orbax_bench_core.config import CheckpointConfig, MeshConfig, expanded
from orbax_bench_core.state import Digest, StateCache, build_mesh, check_digest


def make_context(
    directory: str,
    options: BenchmarkOptions,
    *,
    checkpoint: Mapping[str, Any] | None = None,
    mesh: Mapping[str, Any] | None = None,
) -> TestContext:
    """Makes the context of one repeat; nothing is controlled and nothing is traced.

    Args:
        directory: The working directory, which must exist.
        options: The options of the benchmark.
        checkpoint: The `checkpoint_config` block that `pytree` is made from.
        mesh: The `mesh_config` block; it needs as many devices as JAX has here.

    Raises:
        ValueError: A block is invalid, or the devices cannot form the mesh.
    """
    from etils import epath

    layout = None if mesh is None else MeshConfig(**mesh)
    config = expanded(CheckpointConfig(**(checkpoint or {})), layout)
    devices = None if layout is None else build_mesh(layout)
    made = StateCache().get(config, layout, devices)
    return TestContext(
        pytree=made.tree,
        path=epath.Path(directory),
        options=options,
        mesh=devices,
        repeat_index=0,
        name="test",
        verifier=_verifier(made.digest),
        checkpoint=config,
    )


def _verifier(saved: Mapping[str, str]) -> Verifier:
    def verify(restored: Any, expected: Any) -> None:
        check_digest(restored, Digest(saved) if expected is None else expected)

    return verify
