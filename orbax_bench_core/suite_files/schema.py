"""JSON schema of a suite file, by which editors complete keys and underline mistakes."""

import functools
import itertools
import json
import re
from collections.abc import Mapping
from typing import Any, Final

import pydantic

from orbax_bench_core import config, sweep

Json = dict[str, Any]

SCHEMA_ID: Final = "urn:orbax-bench:suite"

_SOURCES: Final = ("path", "spec", "model", "nnx")
_OF_A_PRESET: Final = ("scale", "optimizer", "dtypes", "layers")

_NULL: Final[Json] = {"type": "null"}
_MODELINE: Final = "# yaml-language-server: $schema="


def suite_schema() -> Json:
    """Returns the JSON schema of a suite file, draft 2020-12.

    It has the keys, their types and what they mean, and the options of every built-in benchmark.
    What follows from two places of a suite, such as a sharding that no mesh can hold, only a run or
    `orbax-bench expand` tells.
    """
    schema = config.Suite.model_json_schema(schema_generator=config.DescribedSchema)
    definitions: Json = schema.pop("$defs")
    _describe_checkpoints(definitions)
    _allow_lists(definitions["ExecutionConfig"]["properties"])
    _describe_benchmarks(definitions)
    definitions["EnvironmentConfig"]["oneOf"] = [_given("requirements"), _given("interpreter")]
    _name_singular_keys(schema["properties"], definitions)
    return {
        "$schema": config.DescribedSchema.schema_dialect,
        "$id": SCHEMA_ID,
        **_without_noise(schema),
        "$defs": _without_noise(definitions),
    }


@functools.cache
def schema_text() -> str:
    """Returns the schema as the text of a file."""
    return json.dumps(suite_schema(), indent=1, sort_keys=False) + "\n"


def modeline(schema: str) -> str:
    """Returns the line at the head of a suite by which editors find its schema."""
    return f"{_MODELINE}{schema}"


def _describe_checkpoints(definitions: Json) -> None:
    dtype = {"enum": [*config.BITS, *config.ALIASES]}
    definitions["ArraySpec"] = config.ArraySpec.model_json_schema(
        schema_generator=config.DescribedSchema
    )
    definitions["ArraySpec"]["properties"]["dtype"] |= dtype
    definitions["Spec"] = {
        "type": "object",
        "description": "A tree of named leaves: arrays, `int`, `str`, and further trees.",
        "additionalProperties": {
            "if": {"type": "object", "anyOf": [_is_leaf("dtype"), _is_leaf("shape")]},
            "then": _ref("ArraySpec"),
            "else": {"anyOf": [{"enum": ["int", "str"]}, _ref("Spec")]},
        },
    }
    checkpoint = definitions["CheckpointConfig"]
    keys = checkpoint["properties"]
    keys["spec"] |= {"anyOf": [_ref("Spec"), _NULL]}
    keys["model"] |= {"anyOf": [{"enum": list(config.MODELS)}, _NULL]}
    keys["nnx"] |= {"anyOf": [{"type": "string", "pattern": r"^[\w.]+:[\w.]+$"}, _NULL]}
    groups = dict.fromkeys(config.GROUPS, dtype)
    of_groups = {"type": "object", "properties": groups, "additionalProperties": False}
    keys["dtypes"] |= {"anyOf": [of_groups, _NULL]}
    checkpoint["allOf"] = [
        *({"not": _given(*pair)} for pair in itertools.combinations(_SOURCES, 2)),
        *({"if": _given(key), "then": _given("model")} for key in _OF_A_PRESET),
        {"if": _given("sharding_config_path"), "then": _given("path")},
    ]


def _is_leaf(key: str) -> Json:
    """Returns the condition that a mapping is an array: a tree may have a branch of that name."""
    return {"required": [key], "properties": {key: {"not": {"type": "object"}}}}


def _allow_lists(keys: Json) -> None:
    for name in sweep.swept_keys(config.ExecutionConfig):
        items = keys[name].pop("items")
        del keys[name]["type"]
        keys[name] |= _one_or_more(items) | {"default": keys[name]["default"][0]}
    # YAML reads a bare `off` as false.
    keys["verify"] = {**keys["verify"], "enum": ["digest", "off", False]}
    del keys["verify"]["type"]


def _describe_benchmarks(definitions: Json) -> None:
    generator = definitions["BenchmarkEntry"]["properties"]["generator"]
    del generator["type"]
    generator["anyOf"] = [
        {"enum": list(sweep.BUILTINS)},
        {"type": "string", "pattern": r"^[^.]+\..+$"},
    ]
    rules = []
    for name in sweep.BUILTINS:
        definitions[f"options_of_{name}"] = _options(name)
        called = {"properties": {"generator": {"enum": list(sweep.names_of(name))}}}
        own = {"properties": {"options": _ref(f"options_of_{name}")}}
        rules.append({"if": {**called, "required": ["generator"]}, "then": own})
    definitions["BenchmarkEntry"]["allOf"] = rules


def _options(builtin: str) -> Json:
    generator = sweep.load_class(builtin)
    types = sweep.option_types(generator)
    keys: Json = {}
    required = []
    for option in sweep.describe_options(generator):
        value = _value(types[option.name]) if option.name in types else {}
        keys[option.name] = {
            "description": option.meaning,
            **(_one_or_more(value) if value else {}),
        }
        if option.required:
            required.append(option.name)
        else:
            keys[option.name]["default"] = json.loads(json.dumps(option.default, default=repr))
    return {
        "type": "object",
        "description": f"Options of {builtin}; a list is swept.",
        "properties": keys,
        "additionalProperties": False,
        **({"required": required} if required else {}),
    }


@functools.cache
def _value(type_: Any) -> Json:
    how = pydantic.ConfigDict(strict=True, arbitrary_types_allowed=True)
    return pydantic.TypeAdapter(type_, config=how).json_schema()


def _name_singular_keys(keys: Json, definitions: Json) -> None:
    for singular, plural, kind in (
        ("checkpoint_config", "checkpoint_configs", "CheckpointConfig"),
        ("mesh_config", "mesh_configs", "MeshConfig"),
    ):
        meaning = definitions[kind]["description"]
        keys[singular] = {"description": meaning, "anyOf": [_ref(kind), _NULL]}
        _least_one(keys[plural])
    _least_one(keys["benchmarks"])
    keys["reuse_checkpoint"] = {"description": "Has no effect.", "deprecated": True}


def _least_one(schema: Json) -> None:
    """Refuses an empty list, also where null is allowed beside it."""
    for branch in (schema, *schema.get("anyOf", ())):
        if branch.get("type") == "array":
            branch["minItems"] = 1


def _one_or_more(value: Json) -> Json:
    return {"anyOf": [value, {"type": "array", "items": value, "minItems": 1}]}


def _given(*keys: str) -> Json:
    """Returns the condition that keys are there, and not null."""
    return {"required": list(keys), "properties": {key: {"not": _NULL} for key in keys}}


def _ref(name: str) -> Json:
    return {"$ref": f"#/$defs/{name}"}


def _without_noise(schema: Any) -> Any:
    """Returns a schema without the titles that pydantic makes of names, in the words of YAML."""
    if isinstance(schema, list):
        return [_without_noise(item) for item in schema]
    if not isinstance(schema, Mapping):
        return schema
    return {
        # Docstrings speak Python.
        key: re.sub(r"\bNone\b", "null", value)
        if key == "description" and isinstance(value, str)
        else _without_noise(value)
        for key, value in schema.items()
        if not (key == "title" and isinstance(value, str))
    }
