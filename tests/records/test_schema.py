"""The published layout of results."""

import hashlib
import json
import math
from pathlib import Path

import jsonschema
import pydantic
import pytest

import orbax_bench_core.baselines  # noqa: F401 - its files hold records
from orbax_bench_core.inventory import FileCount, Inventory
from orbax_bench_core.measure import TIME, Sample
from orbax_bench_core.records import schema
from orbax_bench_core.records.errors import ErrorInfo
from orbax_bench_core.records.record import Attempt, State
from orbax_bench_core.records.samples import COLUMNS_AND_MEANINGS
from orbax_bench_core.records.versions import SCHEMA_VERSION, Versioned

LAYOUTS = Path(__file__).parents[1] / "data" / "record_layouts.json"
PUBLISHED = Path(__file__).parents[2] / "docs" / "schema"
AS_PUBLISHED = pytest.mark.skipif(
    tuple(map(int, pydantic.VERSION.split(".")[:2])) < (2, 14),
    reason="earlier releases of pydantic make another schema; the published one is of the lock",
)
ERROR = ErrorInfo(type="ValueError", message="no")


@pytest.fixture(scope="module")
def documents():
    return schema.documents()


@pytest.fixture(scope="module")
def validate(documents):
    """Checks a model's JSON against the published schema of that name."""

    def check(model, name):
        data = model if isinstance(model, dict) else json.loads(model.model_dump_json())
        jsonschema.validate(data, json.loads(documents[name]))

    return check


@pytest.fixture
def full_record(make_record):
    return make_record(
        samples=(Sample("save", 0, TIME, 1.0, "s"), Sample("save", 0, "x/y", math.nan, "")),
        status="failed",
        error=ERROR,
        state=State(num_bytes=1, digest={"a": "b"}, verified="saved"),
        inventory=Inventory(
            total_bytes=1,
            file_count=1,
            largest_bytes=1,
            kinds={"zarr3_chunk": FileCount(files=1, num_bytes=1)},
        ),
        attempts=(Attempt(error=ERROR, started_at="2026-01-02T03:04:05Z", duration_s=1.0),),
    )


@AS_PUBLISHED
@pytest.mark.parametrize("name", ["record.json", "run.json", "samples.md"])
def test_what_is_published_follows_from_the_code(documents, name):
    fix = "stale: run `python -m orbax_bench_core.records.schema` in the repository"
    assert (PUBLISHED / name).read_text() == documents[name], fix


@AS_PUBLISHED
def test_the_number_rises_when_a_layout_changes():
    """Earlier releases tell what is newer from what is damaged by the number."""
    models = Versioned.__subclasses__()
    layouts = {model.__name__: model.model_json_schema(mode="serialization") for model in models}
    layouts["samples.parquet"] = {name: kind for name, (kind, _) in COLUMNS_AND_MEANINGS.items()}
    found = {name: layout_digest(layout) for name, layout in sorted(layouts.items())}
    numbers = json.loads(LAYOUTS.read_text())
    known = numbers.get(str(SCHEMA_VERSION), {})
    changed = [name for name in found if found[name] != known.get(name)]
    assert not changed, (
        f"the layout of {', '.join(changed)} is not that of version {SCHEMA_VERSION}: in "
        "orbax_bench_core/records/versions.py raise SCHEMA_VERSION, and let Versioned read the new "
        "number as well as the earlier ones; give each new key a default; add the new number to "
        f"tests/data/{LAYOUTS.name} with {json.dumps(found)}, and runs of version {SCHEMA_VERSION} "
        "to tests/data/run_directories; run `python -m orbax_bench_core.records.schema`"
    )
    assert max(map(int, numbers)) == SCHEMA_VERSION


def layout_digest(layout):
    """Returns a digest of keys, types and limits; files have all values, whatever the defaults."""

    def bare(value, names=False):
        if isinstance(value, list):
            return [bare(each) for each in value]
        if not isinstance(value, dict):
            return value
        left_out = () if names else ("default", "description", "title")
        inner = {key: each for key, each in value.items() if key not in left_out}
        return {key: bare(each, key in ("properties", "$defs")) for key, each in inner.items()}

    return hashlib.sha256(json.dumps(bare(layout), sort_keys=True).encode()).hexdigest()[:12]


@pytest.mark.parametrize("name", ["record.json", "run.json"])
def test_schemas_are_valid_themselves(documents, name):
    jsonschema.Draft202012Validator.check_schema(json.loads(documents[name]))


@AS_PUBLISHED
def test_a_record_with_everything_conforms(full_record, validate):
    validate(full_record, "record.json")


def test_a_record_with_the_least_conforms(make_record, validate):
    validate(make_record(), "record.json")


def test_a_run_conforms(make_run, make_record, validate):
    validate(make_run([make_record()]).read_info(), "run.json")


SAMPLE = {"operation": "save", "occurrence": 0, "metric": TIME, "unit": "s"}


@pytest.mark.parametrize(
    "change",
    [
        {"status": "odd"},
        {"repeat": "first"},
        {"surprise": 1},
        {"schema_version": 999},
        {"samples": [SAMPLE | {"value": "many"}]},
    ],
)
def test_what_is_no_record_does_not(make_record, validate, change):
    data = json.loads(make_record().model_dump_json())
    validate({**data, "samples": [SAMPLE | {"value": 1.0}]}, "record.json")
    with pytest.raises(jsonschema.ValidationError):
        validate({**data, **change}, "record.json")


def test_every_field_of_a_record_is_described(documents):
    document = json.loads(documents["record.json"])
    blocks = {"Record": document, **document["$defs"]}
    missing = [
        f"{block}.{name}"
        for block, definition in blocks.items()
        for name, field in definition.get("properties", {}).items()
        if not field.get("description")
    ]
    assert missing == []


def test_the_command_writes_them_all(tmp_path, documents):
    schema.main([str(tmp_path / "schema")])
    written = {path.name: path.read_text() for path in (tmp_path / "schema").iterdir()}
    assert written == documents
