"""The schema of a suite, which editors validate by, and the loader, which has the last word."""

import importlib.util
import json
from pathlib import Path

import jsonschema
import pytest
import yaml

from orbax_bench_core.config import SuiteError, parse_suite
from orbax_bench_core.suite_files import schema_text, suite_schema
from orbax_bench_core.suite_files.schema import modeline
from orbax_bench_core.sweep import expand_here

REPOSITORY = Path(__file__).parents[2]
PUBLISHED = REPOSITORY / "docs" / "schema" / "suite.json"
EXAMPLES = sorted(
    file
    for file in (REPOSITORY / "examples").rglob("*.yaml")
    if "\nsuite_name:" in f"\n{file.read_text()}"
)


@pytest.fixture(scope="module")
def validator():
    return jsonschema.Draft202012Validator(suite_schema())


@pytest.fixture
def wrong_keys(validator):
    """Returns where the schema finds mistakes in the text of a suite."""

    def find(text):
        return {error.json_path for error in validator.iter_errors(yaml.safe_load(text))}

    return find


def test_what_is_published_follows_from_the_code():
    fix = "stale: run `python -m orbax_bench_core.suite_files` in the repository"
    assert PUBLISHED.read_text() == schema_text(), fix


@pytest.mark.slow
def test_it_is_a_schema(validator):
    validator.check_schema(suite_schema())
    assert validator.schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.stem)
def test_every_example_conforms_and_names_it(file, wrong_keys):
    text = file.read_text()
    assert wrong_keys(text) == set()
    start = modeline("")
    (line,) = (line for line in text.splitlines() if line.startswith(start))
    assert text.startswith(line)
    assert (file.parent / line.removeprefix(start)).resolve() == PUBLISHED


@pytest.mark.slow
def test_every_suite_that_orbax_publishes_conforms(wrong_keys):
    name = "orbax.checkpoint._src.testing.benchmarks"
    (folder,) = importlib.util.find_spec(name).submodule_search_locations
    found = [file for file in Path(folder).rglob("*.yaml") if "configs" in file.parts]
    assert len(found) >= 73
    assert {file.name: wrong_keys(file.read_text()) for file in found} == {
        file.name: set() for file in found
    }


SUITE = "suite_name: s\nbenchmarks:\n- {generator: save_restore, options: {%s}}\n%s"


@pytest.mark.parametrize(
    ("options", "extra", "where"),
    [
        ("use_ocdtb: true", "", "$.benchmarks[0].options"),
        ("use_ocdbt: 3", "", "$.benchmarks[0].options.use_ocdbt"),
        ("use_ocdbt: []", "", "$.benchmarks[0].options.use_ocdbt"),
        ("chunk_byte_size: [1, many]", "", "$.benchmarks[0].options.chunk_byte_size"),
        ("", "num_repeat: 3", "$"),
        ("", "num_repeats: 0", "$.num_repeats"),
        ("", "mesh_config: {axes: [data]}", "$.mesh_config"),
        ("", "mesh_configs: []", "$.mesh_configs"),
        ("", "checkpoint_config: {spec: {w: float32}}", "$.checkpoint_config"),
        ("", "checkpoint_config: {spec: {w: {dtype: float32}}}", "$.checkpoint_config"),
        ("", "checkpoint_config: {spec: {w: {dtype: f33, shape: []}}}", "$.checkpoint_config"),
        ("", "checkpoint_config: {path: /a, model: gpt2}", "$.checkpoint_config"),
        ("", "checkpoint_config: {scale: 0.1}", "$.checkpoint_config"),
        ("", "checkpoint_config: {model: gpt3}", "$.checkpoint_config"),
        ("", "checkpoint_config: {model: gpt2, dtypes: {all: int8}}", "$.checkpoint_config"),
        ("", "checkpoint_config: {nnx: my.model.Make}", "$.checkpoint_config"),
        ("", "execution: {cache: hot}", "$.execution.cache"),
        ("", "execution: {processes: []}", "$.execution.processes"),
        ("", "environments: [{name: a}]", "$.environments[0]"),
        ("", "arms: {baseline: {option: {}}}", "$.arms"),
        ("", "gate: {alpha: 2}", "$.gate.alpha"),
        ("", "gate: {metrics: {save: {margins: 1}}}", "$.gate.metrics.save"),
    ],
)
def test_what_the_loader_refuses_the_schema_refuses_in_its_place(options, extra, where, wrong_keys):
    text = SUITE % (options, extra)
    with pytest.raises(SuiteError):
        expand_here(parse_suite(text))
    assert wrong_keys(text) == {where}


SHARDED = "{w: {dtype: int8, shape: [2], sharding: [[x]]}}"
MESH = "{mesh_axes: [x], ici_parallelism: {x: 2}}"


@pytest.mark.parametrize("generator", ["save_restor", "7"])
def test_a_generator_is_a_built_in_or_an_import_path(generator, wrong_keys):
    text = f"suite_name: s\nbenchmarks: [{{generator: {generator}, options: {{}}}}]"
    assert wrong_keys(text) == {"$.benchmarks[0].generator"}


@pytest.mark.parametrize(
    "extra",
    [
        "execution: {cache: [warm, cold], processes: [1, 2], verify: off, host_memory: fresh}",
        "mesh_config: null\nmesh_configs: null",
        "checkpoint_config: {path: null, spec: {a: {dtype: {b: int}, shape: {x: str}}}}",
        "checkpoint_config: {model: null, scale: null, spec: {w: {dtype: bool_, shape: []}}}",
        f"checkpoint_config: {{spec: {{a: {SHARDED}}}}}\nmesh_config: {MESH}",
        "reuse_checkpoint: true",
    ],
)
def test_what_the_loader_takes_the_schema_takes(extra, wrong_keys):
    text = SUITE % ("use_zarr3: [true, false], save_concurrent_gb: [1, 0.5, null]", extra)
    assert expand_here(parse_suite(text)).points
    assert wrong_keys(text) == set()


def test_every_key_says_what_it_means():
    schema = json.loads(PUBLISHED.read_text())
    blocks = {"suite": schema, **schema["$defs"]}
    silent = [
        f"{name}.{key}"
        for name, block in blocks.items()
        for key, field in block.get("properties", {}).items()
        if not field.get("description")
    ]
    assert silent == []
