"""The suite reference, from the published schema of suites, which follows from the models."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

SCHEMA: Final = Path(__file__).resolve().parents[1] / "docs" / "schema" / "suite.json"

_HEAD = """\
# Suite reference

Every key of a suite file, with its type and what it is when it is left out. An editor that knows
[the schema](../schema/suite.json) completes and checks them while one types. [The
tour](../../README.md#the-tour) shows a whole suite; [checkpoints](../checkpoints.md),
[environments](../environments.md) and [verdicts](../verdicts.md) explain their blocks. This page is
generated from the models, by `python -m website`.

## The suite
"""
_OPTIONS: Final = "options_of_"
_LONGEST_DEFAULT: Final = 40
_MOST_VALUES: Final = 6
_PLURALS: Final = {"block": "blocks", "integer": "integers", "number": "numbers", "array": "arrays"}
_PLACES: Final = {
    "BenchmarkEntry": "An item of `benchmarks`",
    "CheckpointConfig": "`checkpoint_config`, or an item of `checkpoint_configs`",
    "MeshConfig": "`mesh_config`, or an item of `mesh_configs`",
    "ExecutionConfig": "`execution`",
    "EnvironmentConfig": "An item of `environments`",
    "ArmsConfig": "`arms`",
    "ArmConfig": "`arms.baseline` and `arms.candidate`",
    "GateConfig": "`gate`",
    "MetricRule": "An item of `gate.metrics`",
    "ArraySpec": "An array of `checkpoint_config.spec`",
}

_Json = Mapping[str, Any]


def suite_page() -> str:
    """Returns the page as Markdown."""
    schema = json.loads(SCHEMA.read_text())
    definitions: _Json = schema["$defs"]
    lines = [_HEAD, *_block(schema)]
    for name, place in _PLACES.items():
        if name in definitions:
            lines += [f"## {place}", "", f"{definitions[name]['description']}", ""]
            lines += _block(definitions[name])
    lines += _benchmarks(
        {
            name.removeprefix(_OPTIONS): block
            for name, block in definitions.items()
            if name.startswith(_OPTIONS)
        }
    )
    return "\n".join(lines).rstrip() + "\n"


def _benchmarks(options: Mapping[str, _Json]) -> Iterator[str]:
    """Yields the options of the built-ins; those that many have stand there once."""
    common = _common(list(options.values()))
    yield from ("## Options of the built-in benchmarks", "")
    yield from ("Any option may be a list, which is swept. Many built-ins have these:", "")
    yield from _block({"properties": common}, swept=True)
    for benchmark, block in options.items():
        keys: _Json = block["properties"]
        shared = [name for name in keys if keys[name] == common.get(name)]
        own = {name: key for name, key in keys.items() if name not in shared}
        yield from (f"### {benchmark}", "", _summary(benchmark), "")
        if own:
            yield from _block({**block, "properties": own}, swept=True)
        if shared:
            yield from (f"Also has {', '.join(f'`{name}`' for name in shared)}.", "")


def _common(blocks: list[_Json]) -> _Json:
    """Returns the options that half of the built-ins or more have alike."""
    every = [item for block in blocks for item in block["properties"].items()]
    return {name: key for name, key in every if every.count((name, key)) * 2 >= len(blocks)}


def _summary(benchmark: str) -> str:
    """Returns the first sentence of a built-in's class."""
    from orbax_bench_core.sweep import load_class

    text = inspect.getdoc(load_class(benchmark)) or ""
    return " ".join(text.split("\n\n", maxsplit=1)[0].split())


def _block(block: _Json, *, swept: bool = False) -> Iterator[str]:
    """Yields the table of the keys of one block."""
    needed = block.get("required", ())
    yield from ("| key | type | default | meaning |", "|---|---|---|---|")
    for name, key in block["properties"].items():
        default = "required" if name in needed else _default(key)
        meaning = " ".join(key.get("description", "").split())
        cells = (f"`{name}`", _type(key, swept=swept), default, meaning)
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"
    yield ""


def _default(key: _Json) -> str:
    if "default" not in key:
        return ""
    default = key["default"]
    text = default if isinstance(default, str) else json.dumps(default, ensure_ascii=False)
    return f"`{text}`" if len(text) <= _LONGEST_DEFAULT else "every key at its default"


def _type(key: _Json, *, swept: bool = False) -> str:
    """Returns the type of a key in words; where every key is swept, lists go without saying."""
    for kind in ("anyOf", "oneOf"):
        if kind in key:
            return _one_of(key[kind], swept=swept)
    if "$ref" in key:
        return {"Spec": "tree", "ArraySpec": "array"}.get(key["$ref"].rpartition("/")[2], "block")
    if "enum" in key or "const" in key:
        values = key.get("enum", [key.get("const")])
        shown = [f"`{value if isinstance(value, str) else json.dumps(value)}`" for value in values]
        return ", ".join(shown[:_MOST_VALUES]) + (", ..." if len(shown) > _MOST_VALUES else "")
    if key.get("type") == "array":
        items = _type(key.get("items", {}))
        return f"list of {_PLURALS.get(items, items)}" if items else "list"
    words = {"object": "block", "string": "text", "boolean": "true or false", "null": "`null`"}
    kind = key.get("type", "")
    return ", ".join(words.get(one, one) for one in ([kind] if isinstance(kind, str) else kind))


def _one_of(kinds: list[_Json], *, swept: bool) -> str:
    """Returns alternatives in words; "or a list" stands for the list of what stands before it."""
    lists = [kind for kind in kinds if kind.get("type") == "array"]
    others = list(dict.fromkeys(filter(None, (_type(kind) for kind in kinds if kind not in lists))))
    for kind in lists:
        items = kind.get("items", {})
        if _type(items) not in (", ".join(others), *others):
            others.append(_type(kind))
        elif not swept:
            others.append("or a list of them")
    return ", ".join(others)
