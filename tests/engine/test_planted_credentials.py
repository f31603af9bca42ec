"""Credentials that libraries put into what is recorded: no output of a run has them."""

import gzip
from pathlib import Path

import pytest

from orbax_bench_core.errors import redacted
from orbax_bench_core.lineage import trace
from orbax_bench_core.publishing import publish
from orbax_bench_core.records import Attempt, ErrorInfo, OptionEffect, Record
from tests.conftest import NOON, PROVENANCE
from tests.golden.support import orbax_bench

PLANTED = "https://u:planted@h/x?X-Goog-Signature=planted&access_token=planted&sig=planted"


@pytest.fixture
def run(make_run, make_record, make_point):
    """A run in which everything that a library can say has credentials."""
    error = ErrorInfo(type="OSError", message=PLANTED, traceback=f"Traceback\n{PLANTED}")
    effect = OptionEffect(option="use_ocdbt", asked=True, state="in effect", proof=PLANTED)
    told = {
        "notes": {"save": [PLANTED]},
        "provenance": {
            **PROVENANCE,
            "environment": {"TENSORSTORE_GCS_HTTP_URL": PLANTED},
            "storage": {"type": "gs", "mount": PLANTED},
        },
        "attempts": (Attempt(error=error, started_at=NOON, duration_s=1.0),),
        "effects": (effect,),
    }
    points = [make_point(options={"use_ocdbt": value}) for value in (True, False)]
    records = [
        make_record(points[0], times={"save": 1.0}, **told),
        make_record(points[1], status="failed", error=error, **told),
    ]
    return make_run(records)


@pytest.mark.slow
def test_no_file_and_no_command_has_them(run):
    publish(run)
    said = [
        orbax_bench(*words)
        for words in (
            ("report", run.root),
            ("history", run.root),
            ("site", run.root, "-o", run.root / "site"),
            ("lineage", run.root, "--json"),
            ("compare", run.root, run.root),
        )
    ]
    assert [one for one in said if "planted" in one.out + one.err] == []
    assert "planted" not in str(trace(str(run.root)))
    root = Path(run.root)
    files = {str(path.relative_to(root)): path for path in root.rglob("*") if path.is_file()}
    assert {"samples.parquet", "summary.csv", "report.md", "lineage.json"} <= set(files)
    assert any("tfevents" in name for name in files)
    contents = {name: path.read_bytes() for name, path in files.items()}
    contents |= {
        name: gzip.decompress(data) for name, data in contents.items() if name.endswith(".gz")
    }
    assert [name for name, data in contents.items() if b"planted" in data] == []
    assert b"https://***@h/x" in contents["report.html"]


def test_a_record_that_has_them_is_read_without(make_record):
    clean = make_record(notes={"save": [redacted(PLANTED)]})
    text = clean.model_dump_json().replace(redacted(PLANTED), PLANTED)
    assert Record.model_validate_json(text) == clean
