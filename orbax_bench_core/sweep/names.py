"""Names of checkpoints and meshes whose labels would not tell them apart."""

from __future__ import annotations

import collections
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from orbax_bench_core.config import ArraySpec, CheckpointConfig, MeshConfig, Suite, leaves

_Config = TypeVar("_Config", CheckpointConfig, MeshConfig)
_Facts = dict[str, str]


def with_distinct_names(suite: Suite) -> Suite:
    """Returns a suite whose checkpoints have distinct labels, and whose meshes have.

    Those whose label another has too get a `name` of the label and of what tells them apart; a name
    is no part of the id of a point.
    """
    arms = [] if suite.arms is None else [suite.arms.baseline, suite.arms.candidate]
    own = [arm.mesh_config for arm in arms if arm.mesh_config is not None]
    meshes = _name_apart([*(suite.mesh_configs or ()), *own], _describe_mesh)
    swept = len(suite.mesh_configs or ())
    changed: dict[str, object] = {
        "checkpoint_configs": tuple(_name_apart(suite.checkpoint_configs, _describe_checkpoint)),
        "mesh_configs": suite.mesh_configs and tuple(meshes[:swept]),
    }
    if suite.arms is not None:
        left = iter(meshes[swept:])
        named = [
            arm if arm.mesh_config is None else arm.model_copy(update={"mesh_config": next(left)})
            for arm in arms
        ]
        changed["arms"] = suite.arms.model_copy(
            update={"baseline": named[0], "candidate": named[1]}
        )
    return suite.model_copy(update=changed)


def _name_apart(configs: Sequence[_Config], facts: Callable[[_Config], _Facts]) -> list[_Config]:
    """Returns the configurations, with a name where a label alone does not tell them apart."""
    alike: dict[str, list[_Config]] = collections.defaultdict(list)
    for each in configs:
        alike[each.label].append(each)
    names: dict[str, dict[int, str]] = {
        label: _tell_apart(label, [facts(each) for each in group])
        for label, group in alike.items()
        if len(group) > 1
    }
    found, seen = [], collections.Counter[str]()
    for each in configs:
        label = each.label
        name = names.get(label, {}).get(seen[label], label)
        seen[label] += 1
        found.append(each if name == label else each.model_copy(update={"name": name}))
    return found


def _tell_apart(label: str, every: Sequence[_Facts]) -> dict[int, str]:
    """Returns the name of each, by the fewest of the first facts that tell them apart."""
    distinct = len({tuple(sorted(facts.items())) for facts in every})
    chosen: list[str] = []
    groups = 1
    for fact in dict.fromkeys(fact for facts in every for fact in facts):
        if groups == distinct:
            break
        split = len({tuple(facts.get(name, "") for name in (*chosen, fact)) for facts in every})
        if split > groups:
            chosen.append(fact)
            groups = split
    columns = [_shorten([facts.get(fact, f"no {fact}") for facts in every]) for fact in chosen]
    said = ["·".join(column[at] for column in columns) for at in range(len(every))]
    return {at: f"{label}({text})" if text else label for at, text in enumerate(said)}


def _shorten(texts: list[str]) -> list[str]:
    """Returns paths without the folders that all have, at both ends; anything else as it is."""
    parts = [text.split("/") for text in texts]
    shortest = min(map(len, parts))
    first = next((at for at in range(shortest) if len({part[at] for part in parts}) > 1), 0)
    after = next((at for at in range(shortest) if len({part[-1 - at] for part in parts}) > 1), 0)
    short = ["/".join(part[first : len(part) - after]) for part in parts]
    return short if all(short) and len(set(short)) == len(set(texts)) else texts


def _describe_checkpoint(config: CheckpointConfig) -> _Facts:
    """Returns the description of a checkpoint; the seed is a part of its points' labels."""
    content = config.model_dump(mode="json", exclude={"name", "spec", "random_seed"})
    found = {key: f"{key}:{value}" for key, value in content.items() if value not in (None, False)}
    return found | dict(_describe_spec(config))


def _describe_spec(config: CheckpointConfig) -> Iterator[tuple[str, str]]:
    every = list(leaves(config.spec or {}))
    for path, leaf in every:
        name = ".".join(path)
        before = "" if len(every) == 1 else f"{name}:"
        if not isinstance(leaf, ArraySpec):
            yield name, f"{before}{leaf}"
            continue
        yield name, f"{before}{'x'.join(map(str, leaf.shape)) or 'scalar'}"
        yield f"dtype of {name}", f"{before}{leaf.dtype}"
        cuts = ["+".join(c) if isinstance(c, tuple) else c or "-" for c in leaf.sharding or ()]
        layout = "host" if leaf.host else "|".join(cuts) or "replicated"
        yield f"sharding of {name}", f"{before}{layout}"
    yield "order", ">".join(".".join(path) for path, _ in every)


def _describe_mesh(config: MeshConfig) -> _Facts:
    sizes = zip(config.mesh_axes, config.ici_shape, config.dcn_shape, strict=True)
    return {
        "axes": "·".join(
            f"{axis}{ici}" + (f"x{dcn}" if dcn > 1 else "") for axis, ici, dcn in sizes
        ),
        "granule": "processes" if config.process_is_granule else "slices",
        "split": "split axes" if config.allow_split_physical_axes else "whole axes",
    }
