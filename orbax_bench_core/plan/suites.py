"""Plans of files: of a suite one for each distinct save, of a spec or `checkpoint_config` one."""

from __future__ import annotations

import dataclasses
import itertools
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from orbax_bench_core.config import CheckpointConfig, LoadedSuite, SuiteSource, load_suite
from orbax_bench_core.errors import Problem, UserError
from orbax_bench_core.files import read_at_most
from orbax_bench_core.plan.options import StorageOptions, options_of
from orbax_bench_core.plan.planning import Mesh, Plan, checked_config, config_of, plan_checkpoint
from orbax_bench_core.sweep import SweepPoint, expand, sides

_SOURCES = ("spec", "model", "nnx", "path")
_SUFFIXES = (".yaml", ".yml", ".json")


def plan_source(
    source: str,
    *,
    mesh: Mesh = None,
    changes: Mapping[str, Any] | None = None,
    overrides: tuple[str, ...] = (),
    **places: Any,
) -> tuple[Plan, ...]:
    """Plans what a command line names.

    Args:
        source: A suite file, a file with a spec or a `checkpoint_config`, a preset by its label, a
            Flax NNX factory or the path of a checkpoint.
        mesh: As for `plan_checkpoint`; takes the place of a suite's meshes.
        changes: Storage options; they take the place of those of a suite's points.
        overrides: Values in place of those of a suite file, each `KEY.PATH=VALUE`.
        **places: Further arguments of `plan_checkpoint`.

    Returns:
        One plan, or several where a suite sweeps over what decides the layout.

    Raises:
        UserError: The source cannot be read, or a mesh cannot hold an array.
    """
    if source.endswith(_SUFFIXES):
        data = _read(source)
        if {"benchmarks", "suite_name"} & set(data):
            return plan_suite(load_suite(source, overrides), mesh=mesh, changes=changes, **places)
        config = _config(source, data)
    else:
        is_folder = os.path.isdir(source)  # noqa: PTH112 - of a name too long, pathlib raises
        config = config_of(str(Path(source).resolve()) if is_folder else source)
    if overrides:
        raise UserError(f"--override changes a suite file, which {source!r} is not")
    options = StorageOptions(**(changes or {}))
    return (plan_checkpoint(config, mesh=mesh, options=options, suite_file=source, **places),)


def plan_suite(
    loaded: LoadedSuite,
    *,
    mesh: Mesh = None,
    changes: Mapping[str, Any] | None = None,
    **places: Any,
) -> tuple[Plan, ...]:
    """Plans all that a suite saves, each distinct checkpoint, mesh and set of options once.

    Args:
        loaded: The suite.
        mesh: Takes the place of its meshes; None leaves them.
        changes: Storage options that take the place of those of its points.
        **places: Further arguments of `plan_checkpoint`.

    Raises:
        UserError: Nothing in it can be planned, or a mesh cannot hold an array.
    """
    expansion = expand(loaded)
    points = [point for entry in expansion.points for point in sides(entry).values()]
    found: dict[tuple[Any, ...], Plan] = {}
    saves: Iterable[tuple[CheckpointConfig, SweepPoint]]
    saves = ((point.checkpoint, point) for point in points)
    if mesh is not None:  # presets have other trees there
        saves = itertools.product(loaded.suite.checkpoint_configs, points)
    for checkpoint, point in saves:
        if checkpoint.is_empty:
            continue
        options = dataclasses.replace(options_of(point.options), **(changes or {}))
        place = mesh or point.mesh
        key = (checkpoint.model_dump_json(), repr(place), options)
        if key not in found:
            found[key] = plan_checkpoint(
                checkpoint, mesh=place, options=options, suite_file=loaded.source.file, **places
            )
    if not found:
        skipped = [skip.reason for skip in expansion.skipped]
        reason = skipped[0] if skipped else "its benchmarks make their own state"
        raise UserError(f"no point of this suite has a checkpoint to plan for: {reason}")
    return tuple(found.values())


def _read(file: str) -> dict[str, Any]:
    try:
        found = SuiteSource(read_at_most(file).decode(), file).data
    except FileNotFoundError:
        raise UserError(Problem("there is no such file", file=file)) from None
    except (OSError, ImportError, ValueError) as error:
        raise UserError(Problem(f"cannot be read: {error}", file=file)) from None
    if not isinstance(found, dict):
        message = f"a suite or a spec is a mapping, got {type(found).__name__}"
        raise UserError(Problem(message, file=file))
    return found


def _config(file: str, data: dict[str, Any]) -> CheckpointConfig:
    """Returns a file's `checkpoint_config`, its spec, or the tree that it is."""
    inner = data.get("checkpoint_config", data)
    is_config = isinstance(inner, dict) and any(
        isinstance(inner.get(name), dict if name == "spec" else str) for name in _SOURCES
    )
    return checked_config(inner if is_config else {"spec": inner}, file=file)
