"""The `tensorboard` folder of a run directory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orbax_bench_core.records.files import write_atomically
from orbax_bench_core.records.record import Record
from orbax_bench_core.records.run_directory import Repeat, RunDirectory, RunInfo
from orbax_bench_core.report.tensorboard import hparams
from orbax_bench_core.report.tensorboard.host_log import host_log
from orbax_bench_core.report.tensorboard.log import Log
from orbax_bench_core.report.tensorboard.operations import Operation
from orbax_bench_core.report.tensorboard.point_log import metric_columns, point_log
from orbax_bench_core.sweep.point import SweepPoint

if TYPE_CHECKING:
    from etils import epath

SUMMARY = "__summary__"
_OURS = "orbax-bench"


def write_tensorboard(run: RunDirectory, info: RunInfo) -> None:
    """Writes scalars, HParams and text cards from the records alone.

    Each point has a run `<point>/host_<h>` with what that host measured, a step per repeat, and a
    run `<point>/__summary__` with aggregates over hosts and repeats, cards, and its row of the
    HParams tab. `__summary__` declares the columns of that tab. Warm-ups stay out.

    The same records give the same files under the same names, so this can be repeated at any time.
    Files that an earlier call wrote and that no longer belong are removed; profiler traces stay.

    Args:
        run: The run directory.
        info: What its `run.json` says.
    """
    root = run.root / "tensorboard"
    created = info.created_at.timestamp()
    # TensorBoard wants the word `tfevents` in the name, and reads files in the order of their time.
    name = f"events.out.tfevents.{int(created)}.{info.run_id}.{_OURS}"
    rows = hparams.columns(info.expansion.points)
    operations: list[Operation] = []
    written: set[epath.Path] = set()

    def write(folder: epath.Path, log: Log) -> None:
        write_atomically(folder / name, log.to_bytes())
        written.add(folder / name)

    for point in info.expansion.points:
        repeats = _measured_repeats(run, point)
        if not repeats:
            continue
        folder = root / point.directory
        for host in sorted({host for repeat in repeats.values() for host in repeat.records}):
            records = [one.records[host] for one in repeats.values() if host in one.records]
            write(folder / f"host_{host}", host_log(records, created))
        log, found = point_log(point, info, repeats, rows[point.id])
        write(folder / SUMMARY, log)
        operations += found
    top = Log(created)
    columns = hparams.experiment(info.suite_name, created, rows, metric_columns(operations))
    top.hparams(hparams.EXPERIMENT_TAG, columns)
    write(root / SUMMARY, top)
    _remove_others(root, written)


def _measured_repeats(run: RunDirectory, point: SweepPoint) -> dict[int, Repeat]:
    by_index: dict[int, dict[int, Record]] = {}
    for record in run.point_records(point):
        if not record.warmup:
            by_index.setdefault(record.repeat, {})[record.host] = record
    return {
        index: Repeat(records=records, num_hosts=point.processes)
        for index, records in sorted(by_index.items())
    }


def _remove_others(root: epath.Path, written: set[epath.Path]) -> None:
    for folders in ("*", "*/*"):
        for path in root.glob(f"{folders}/events.out.tfevents.*.{_OURS}"):
            if path not in written:
                path.unlink()
