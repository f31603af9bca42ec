"""A recording as a run, which `report`, `history`, `compare` and the tables of a run read."""

import datetime
from collections.abc import Iterator

from orbax_bench_core.analysis.recording import Operation, Part, Recording
from orbax_bench_core.config import LoadedSuite, parse_suite
from orbax_bench_core.errors import UserError
from orbax_bench_core.measure import RSS, TIME, Sample, event_metric
from orbax_bench_core.records import Record, RunDirectory
from orbax_bench_core.records import State as SavedState
from orbax_bench_core.sweep import Expansion, SweepPoint

BENCHMARK = "orbax_bench_core.recordings.RecordedJob"
"""Name of the benchmark of recorded jobs, which their ids are hashed from."""


def write_run(found: Recording, suite: LoadedSuite, directory: RunDirectory) -> None:
    """Writes the saves of a job as repeats of one point, a record per save and host.

    Only saves that were committed are repeats: the first one of each life, in which directories and
    threads are made, is left out. Saves of a life are correlated, so a comparison needs past runs.

    Args:
        found: The job.
        suite: A suite that saves the same tree, from which the point has its identity.
        directory: A run directory with nothing in it.

    Raises:
        UserError: There is a run in the directory, or too few saves.
    """
    if directory.exists():
        raise UserError(f"{directory.root} holds a run already; choose another directory")
    firsts = {one.life: one for one in reversed(found.saves)}
    saves = [one for one in found.saves if one.is_whole and firsts[one.life] is not one]
    if not saves:
        raise UserError(f"{found.place}: no save was committed after the first of its life")
    loads = [one for one in found.operations if one.what == "load" and one.is_whole]
    planned = suite.suite
    point = SweepPoint(
        benchmark=BENCHMARK,
        options={"background": saves[0].background},
        checkpoint=planned.checkpoint_configs[0],
        mesh=planned.mesh_configs[0] if planned.mesh_configs else None,
        processes=found.hosts,
        label="job",
    )
    text = suite.text.replace("num_repeats: 5 ", f"num_repeats: {len(saves)} ")
    info = directory.start(parse_suite(text), Expansion(points=(point,)))
    for repeat, save in enumerate(saves):
        for host, part in save.parts.items():
            first = found.lives[save.life].hosts[host]
            samples = list(_samples(save, part))
            if repeat < len(loads) and host in loads[repeat].parts:
                took = loads[repeat].parts[host].call_s or 0.0
                samples.append(Sample("restore", 0, TIME, took, "s"))
            record = Record(
                run_id=info.run_id,
                suite=info.suite_name,
                point_id=point.id,
                point_name=point.name,
                point=point,
                repeat=repeat,
                warmup=False,
                host=host,
                num_hosts=found.hosts,
                status="passed",
                started_at=datetime.datetime.fromtimestamp(part.t, datetime.UTC),
                duration_s=part.total_s or 0.0,
                samples=tuple(samples),
                state=SavedState(num_bytes=part.num_bytes or 0, digest={}),
                worker=f"{host}:{first.pid}:{first.t:.0f}",
                provenance={
                    "versions": {"jax": first.jax, "orbax-checkpoint": first.orbax},
                    "host": {"name": first.node},
                },
            )
            directory.write_record(record)


def _samples(save: Operation, part: Part) -> Iterator[Sample]:
    total = part.total_s or part.call_s or 0.0
    yield Sample("save", 0, TIME, total - part.waited_s, "s")
    yield Sample("save_blocking", 0, TIME, part.blocked_s, "s")
    yield Sample("save_wait", 0, TIME, part.waited_s, "s")
    if save.background:
        yield Sample("save_background", 0, TIME, part.behind_s, "s")
    if part.rss:
        yield Sample("save", 0, RSS.name, part.rss[0] / 2**20, RSS.unit)
    seen = set()
    for event, (_, value, last, _) in part.known_events.items():
        kind = "duration" if event.endswith(("_secs", "_sec", "duration")) else "scalar"
        metric = event_metric(kind, event)  # type: ignore[arg-type]
        if metric is not None and metric.name not in seen:
            seen.add(metric.name)
            given = last if metric.aggregate == "last" else value
            yield Sample("save", 0, metric.name, given, metric.unit)
