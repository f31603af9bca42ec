"""Results of a command without what differs from run to run: times of day, ids and paths."""

import csv
import json
from pathlib import Path
from typing import Any, Final

_ROW: Final = (
    *("point_id", "repeat", "warmup", "host", "arm", "block", "life", "status"),
    *("operation", "occurrence", "metric", "value", "unit"),
)
_TIME: Final = "0_basics/time_s"
"""The metric that every operation has; others depend on what a machine tells."""


def results(place: Path, *, seconds: bool) -> dict[str, Any]:
    """Returns what a command has left below a folder.

    Warm-ups are left out: a run that goes on in a new worker warms it up once more. So are tries
    that failed, which are kept with those that took their place.

    Args:
        place: The folder.
        seconds: Whether values are known in advance, and belong to it.
    """
    found: dict[str, Any] = {}
    for run in sorted(path.parent for path in place.rglob("run.json")):
        name = str(run.relative_to(place))
        found |= {f"{name}/{what}": held for what, held in _run(run, seconds=seconds).items()}
    registry = place / "registry"
    if registry.is_dir():
        found |= {f"registry/{what}": held for what, held in _registry(registry).items()}
    search = place / "out" / "bisect.json"
    if search.exists():
        found["bisect.json"] = json.loads(search.read_text())
    return found


def doubled(found: dict[str, Any]) -> list[str]:
    """Returns what is there twice, of results."""
    again = []
    for name, rows in found.items():
        if isinstance(rows, list):
            keys = [
                json.dumps(row[: len(_ROW) - 2] if name.endswith("/samples") else row)
                for row in rows
            ]
            again += [f"{name}: {key}" for key in sorted(set(keys)) if keys.count(key) > 1]
    return again


def _run(run: Path, *, seconds: bool) -> dict[str, Any]:
    import pyarrow.parquet

    info = json.loads((run / "run.json").read_text())
    found: dict[str, Any] = {"status": info["status"]}
    table = run / "samples.parquet"
    if table.exists():
        columns = pyarrow.parquet.read_table(table).to_pylist()
        names = [name for name in _ROW if columns and name in columns[0]]
        counting = (row for row in columns if row["status"] == "passed" and not row["warmup"])
        rows = [[row[name] for name in names] for row in counting]
        value, metric = (names.index(name) for name in ("value", "metric"))
        if not seconds:
            rows = [row[:value] + row[value + 1 :] for row in rows if row[metric] == _TIME]
        found["samples"] = sorted(rows, key=json.dumps)
    summary = run / "summary.csv"
    if summary.exists():
        rows = list(csv.reader(summary.read_text().splitlines()))
        found["summary"] = rows if seconds else [row[:7] for row in rows if row[3] == _TIME]
    found["records"] = _records(run, counted=seconds)
    verdicts = run / "verdicts.json"
    if verdicts.exists():
        found["verdicts"] = [
            [
                *(point[name] for name in ("point_id", "word", "blocks")),
                *(operation[name] for name in ("operation", "verdict")),
            ]
            for point in json.loads(verdicts.read_text())["points"]
            for operation in point["operations"]
        ]
    return found


def _records(run: Path, *, counted: bool) -> list[str]:
    """Returns the measured records, each with its status and, perhaps, how many samples it has."""
    found = []
    for path in sorted(run.glob("records/*/repeat_*/host_*.json")):
        record = json.loads(path.read_text())
        samples = len(record["samples"]) if counted else "some"
        found.append(f"{path.relative_to(run)} {record['status']} with {samples} samples")
    return found


def _registry(registry: Path) -> dict[str, Any]:
    """Returns captures and promotions, which have ids and times of their own."""
    captures = [one for one in _held(registry, "*/*.json") if "captured_at" in one]
    promotions = _held(registry, "promotions/*.json")
    return {
        "captures": [[point["point_id"] for point in capture["points"]] for capture in captures],
        "baselines": sorted(path.name for path in registry.glob("*/*/*.json")),
        "promotions": [sorted(promotion["points"]) for promotion in promotions],
    }


def _held(folder: Path, pattern: str) -> list[Any]:
    return [json.loads(path.read_text()) for path in sorted(folder.glob(pattern))]
