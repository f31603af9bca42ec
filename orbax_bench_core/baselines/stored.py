"""Baselines that Orbax's own framework wrote: statistics of each metric, and no samples."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, Literal

import pydantic

from orbax_bench_core.baselines import store
from orbax_bench_core.baselines.captures import Capture, is_capture_id, read_baseline
from orbax_bench_core.baselines.capturing import capture_run, resolved
from orbax_bench_core.baselines.naming import resolve_baseline
from orbax_bench_core.config import Arm
from orbax_bench_core.errors import Problem, UserError, first_fault
from orbax_bench_core.files import AnyPath, ResultModel, at_once, read_at_most
from orbax_bench_core.records import Record, Run, RunDirectory
from orbax_bench_core.sweep import Pair, SweepPoint, is_builtin, names_of, short_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


_KEY: Final = re.compile(r"(.+?)(?:::|_(?=\d+_\w+/))(\w+/.+)")
"""Operation and metric: `save::0_basics/time_s`, or `save_0_basics/time_s` as its guide has it."""
_SURROUNDINGS: Final = {
    "jax_device_kind": "kind",
    "jax_device_count": "count",
    "jax_process_count": "processes",
}
_POINT: Final = re.compile(r"_[0-9a-f]{12}$")


class Summary(ResultModel):
    """Baseline of one benchmark of Orbax's own framework, of its schema version 1."""

    model_config = pydantic.ConfigDict(extra="ignore", frozen=True)

    schema_version: Literal[1] = 1  # version of that layout
    # statistics over the hosts of the mean over the repeats, by operation and metric
    metrics: dict[str, dict[str, pydantic.FiniteFloat]]
    # class of the benchmark and digest of its options; empty if it is unknown
    benchmark_name: str = ""
    config: dict[str, Any] = {}  # the options
    manifest: dict[str, Any] = {}  # what ran, and on what

    @property
    def means(self) -> Mapping[tuple[str, str], float]:
        """Means by operation and metric; a metric that is told otherwise is left out."""
        found = ((_KEY.fullmatch(key), stats.get("mean")) for key, stats in self.metrics.items())
        return {(key[1], key[2]): mean for key, mean in found if key and mean is not None}

    def differs(self, point: SweepPoint) -> tuple[str, ...]:
        """Returns in what a point is not the one that the baseline is of: benchmark and options."""
        cls = _POINT.sub("", self.benchmark_name)
        name = short_name(point.benchmark)
        paths = names_of(name) if is_builtin(point.benchmark) else (point.benchmark,)
        if cls and cls not in {path.rsplit(".", 1)[-1] for path in paths}:
            return (f"benchmark: {cls} instead of {name}",)
        plain = json.loads(json.dumps(point.options))
        return tuple(
            f"{option}: {value!r} instead of {plain[option]!r}"
            for option, value in self.config.items()
            if option in plain and plain[option] != value
        )

    def moved(self, provenance: Mapping[str, Any]) -> list[str]:
        """Returns in what the surroundings of a record are known to be others."""
        devices = provenance.get("devices")
        here = devices if isinstance(devices, Mapping) else {}
        return [
            f"{key}: {here[ours]}, was {self.manifest[key]}"
            for key, ours in _SURROUNDINGS.items()
            if ours in here and self.manifest.get(key, here[ours]) != here[ours]
        ]


def read_summary(path: str) -> Summary | None:
    """Returns the baseline that Orbax's own framework wrote into a file; None for anything else.

    Raises:
        UserError: The file looks like one, and has another schema.
    """
    file = store.registry_path(path)
    if file.suffix != ".json":
        return None
    try:
        raw = json.loads(read_at_most(file))
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(raw, dict) or "metrics" not in raw:
        return None
    try:
        return Summary.model_validate(raw)
    except pydantic.ValidationError as error:  # its versions are not those of orbax-bench
        said = f"not a baseline of Orbax's own framework of schema version 1: {first_fault(error)}"
        raise UserError(Problem(said, file=str(file))) from None


def capture_into(run: RunDirectory, directory: str) -> tuple[AnyPath, dict[str, str]]:
    """Captures a run in a registry; returns its folder, and why points were left out."""
    registry = store.Registry(directory)
    captured = capture_run(run, registry)
    folder = registry.root / captured.revision
    if captured.capture is not None:
        folder /= captured.capture.id
    return folder, captured.left_out


def load_baseline(
    path: str, *, arm: Arm = "candidate", left_out: list[str] | None = None
) -> list[Record]:
    """Returns the measured records of a baseline.

    Args:
        path: A run directory, a capture or one point of it, a registry, or a name in one.
        arm: Side of a paired run.
        left_out: Gets a line for each file of a run that is no record of it.

    Raises:
        UserError: There is none, it has no measured repeat, or a file of it is damaged.
    """
    path = resolve_baseline(path)
    folder = store.registry_path(path)
    run = RunDirectory(str(folder))
    if run.exists():
        found = measured_records(Run(run).records(), arm)
        if left_out is not None:
            left_out += run.strays
        if not found:
            raise UserError(
                f"{run.root} has no repeat that was measured yet; run its suite into it first"
            )
        return found
    if folder.suffix == ".json" and not folder.is_dir():
        folder = folder.with_suffix("")
    files = store.json_files(folder)
    points = [file for file in files if not is_capture_id(file.stem)]
    if points:
        return [record for read in at_once(read_baseline, points) for record in read.records]
    if files:
        parent = store.Registry(str(folder.parent))
        return _records(parent, _newest(parent.captures_of(folder.name)))
    return _of_registry(store.Registry(str(folder)), path)


def check_baseline(path: str) -> None:
    """Checks that there is a baseline to compare with, of whatever kind."""
    if read_summary(path) is None:
        load_baseline(path)


@contextlib.contextmanager
def told_before(baseline: str) -> Iterator[None]:
    """Tells what is wrong with a baseline before what is wrong with its candidate, read inside.

    The candidate is read first, for its points choose among captures; a person gave it second.
    """
    try:
        yield
    except UserError as wrong:
        try:
            check_baseline(baseline)
        except UserError as first:
            raise UserError(*first.problems, *wrong.problems) from None
        raise


def measured_records(records: Iterable[Record], arm: Arm) -> list[Record]:
    """Returns the records that are no warm-ups; those of an arm as records of its points."""
    return [
        resolved(record)
        for record in records
        if not record.warmup and (not isinstance(record.point, Pair) or record.arm == arm)
    ]


def _of_registry(registry: store.Registry, path: str) -> list[Record]:
    current = registry.current()
    if current:
        return _records(registry, current)
    captures = registry.captures()
    if not captures and not registry.root.exists():
        raise UserError(
            f"{path} does not exist; give a run directory, a registry of baselines or a capture in "
            "one"
        )
    if not captures:
        raise UserError(
            f"{path} holds no run and no baseline; give a run directory, or store a run in it with "
            "`orbax-bench baseline capture`"
        )
    revisions = sorted({capture.revision for capture in captures})
    if len(revisions) > 1:
        names = ", ".join(f"{path.rstrip('/')}/{revision}" for revision in revisions)
        raise UserError(
            f"{path} holds several baselines, and none is promoted; name one of: {names}, or "
            "choose one for all with `orbax-bench baseline promote`"
        )
    return _records(registry, _newest(captures))


def _newest(captures: Iterable[Capture]) -> dict[str, str]:
    """Returns the reference of the newest capture of each point, by point id."""
    return {point.point_id: capture.reference for capture in captures for point in capture.points}


def _records(registry: store.Registry, chosen: dict[str, str]) -> list[Record]:
    wanted = ((reference, point_id) for point_id, reference in chosen.items())
    return [record for read in registry.baselines(wanted) for record in read.records]
