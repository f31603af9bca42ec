"""Task groups: a sweep, and a regression test."""

from __future__ import annotations

from typing import Any, Final

from airflow.configuration import conf
from airflow.sdk import Asset, TaskGroup, task

from orbax_bench_airflow.outcome import TellFailure, tell_failure
from orbax_bench_airflow.places import Local, Place

_RETRIES: Final = 2
_NOT_AGAIN: Final = {"retries": 0}
_MAX_MAP_LENGTH: Final = 1024
"""Airflow's own default."""
_RUN_ID: Final = "{{ run_id }}"
RUN: Final = "{{ run_id | replace(':', '') | replace('+', '_') }}"
"""Template for the name of the folder of a run: that of its `run_id`, which a manual trigger has
too, and which no two runs of a day share."""


def sweep(
    suite: str,
    directory: str,
    *,
    place: Place | None = None,
    group_id: str = "sweep",
    points_per_task: int = 0,
    parallelism: int = 1,
    retries: int = _RETRIES,
) -> TaskGroup:
    """Measures every point of a suite in mapped tasks, and writes the report.

    A lost point does not lose the report: `finish` writes it from what is there, and the run of the
    DAG fails.

    Args:
        suite: Path of the suite where the steps run: local there, or gs://.
        directory: The run directory that they share, of each run its own: `RUN` is a template for
            its name. A retried or cleared task goes on in it; that of another run is refused.
        place: Where the steps run; None for the Airflow worker itself.
        group_id: Id of the group.
        points_per_task: Points that one task measures; 0 for so many that it takes minutes, and
            that Airflow maps all tasks (`[core] max_map_length`). A number with which it would not
            is refused by `plan`.
        parallelism: Tasks that measure at a time; on one machine 1, or points disturb each other.
        retries: How often a task is tried again that failed for a reason which may pass.

    Returns:
        The group; its tasks are `plan`, `checkpoint`, `batches`, `measure` and `report`, and the
        teardown `finish`, which runs whatever became of these, and does not count among them.
    """
    where = place or Local()
    with TaskGroup(group_id=group_id) as group:
        measured = _measured(where, suite, directory, "", points_per_task, parallelism, retries)
        _finish(where, suite, directory, retries, measured)
    return group


def regression(
    suite: str,
    directory: str,
    *,
    place: Place | None = None,
    group_id: str = "regression",
    arms: str = "",
    baseline: str = "",
    registry: str = "",
    allow_inconclusive: bool = False,
    verdict: Asset | None = None,
    points_per_task: int = 0,
    parallelism: int = 1,
    retries: int = _RETRIES,
) -> TaskGroup:
    """Measures a suite and fails on a regression, at once and without a retry.

    Args:
        suite: As in `sweep`.
        directory: As in `sweep`.
        place: As in `sweep`.
        group_id: Id of the group.
        arms: An `arms` block, as YAML, for a suite that has none.
        baseline: A stored baseline to compare with, which only warns below 2x: what looks slower
            is not captured, and nothing fails. Empty for a run of both arms.
        registry: Registry in which the candidate is captured when the verdict is good enough.
        allow_inconclusive: Whether INCONCLUSIVE is as good as PASS.
        verdict: An asset with an event for each verdict, whose extra has the word as `returned`.
        points_per_task: As in `sweep`.
        parallelism: As in `sweep`.
        retries: As in `sweep`.

    Returns:
        The group; its tasks are those of `sweep`, and before `finish` `compare`, `enforce`, and
        `capture` with a registry.
    """
    where = place or Local()
    operator, given = where.operator()
    compared = ["--baseline", baseline] if baseline else []
    tolerant = ["--allow-inconclusive"] if allow_inconclusive else []
    with TaskGroup(group_id=group_id) as group:
        measured = _measured(where, suite, directory, arms, points_per_task, parallelism, retries)
        compare = operator(
            task_id="compare",
            arguments=where.words("compare-baseline", "-o", directory, *compared),
            outlets=[] if verdict is None else [verdict],
            **_NOT_AGAIN,
            **given,
        )
        enforce = operator(
            task_id="enforce",
            arguments=where.words(
                "enforce-verdict",
                compare.output,
                *("--verdicts", f"{directory}/verdicts.json"),
                *tolerant,
            ),
            **_NOT_AGAIN,
            **given,
        )
        tasks = [*measured, compare, enforce]
        measured[-1] >> compare >> enforce
        if registry:
            capture = operator(
                task_id="capture",
                arguments=where.words(
                    *("publish-baseline", registry, "-o", directory),
                    *("--verdict", compare.output, *tolerant),
                ),
                retries=retries,
                **given,
            )
            enforce >> capture
            tasks.append(capture)
        _finish(where, suite, directory, retries, tasks)
    return group


def _measured(
    place: Place,
    suite: str,
    directory: str,
    arms: str,
    points_per_task: int,
    parallelism: int,
    retries: int,
) -> list[Any]:
    """Adds the tasks that plan, measure and report; returns the last two."""
    operator, given = place.operator()
    most = conf.getint("core", "max_map_length", fallback=_MAX_MAP_LENGTH)
    added = [
        *("--points-per-step", str(points_per_task), "--most-steps", str(most)),
        *("--engine-run", _RUN_ID),
        *(["--arms", arms] if arms else []),
    ]
    planned = operator(
        task_id="plan",
        arguments=place.words("plan-sweep", suite, "-o", directory, *added),
        retries=retries,
        **given,
    )
    checkpoint = operator(
        task_id="checkpoint",
        arguments=place.words("generate-checkpoint", suite),
        retries=retries,
        **given,
    )
    end = place.words("run-sweep-point", "-o", directory)

    @task(task_id="batches")
    def batches(planned: list[str], words: list[str]) -> list[list[str]]:
        return [[*words, *points.split()] for points in planned]

    measured = operator.partial(
        task_id="measure",
        retries=retries,
        max_active_tis_per_dagrun=parallelism,
        **given,
    ).expand(arguments=batches(planned.output, end))
    report = operator(
        task_id="report",
        arguments=place.words("aggregate", "-o", directory),
        **_NOT_AGAIN,
        **given,
    )
    planned >> checkpoint >> measured >> report
    return [measured, report]


def _finish(place: Place, suite: str, directory: str, retries: int, tasks: list[Any]) -> None:
    """Adds the task that runs when all others are done, and leaves the state of the run to them.

    It waits for each of them: after one lost point the later tasks are given up at once, while
    other points are still measured. Where it cannot run, the DAG calls back.
    """
    operator, given = place.operator()
    words = ("finish", "-o", directory, "--suite", suite, "--engine-run", _RUN_ID)
    finish = operator(
        task_id="finish",
        arguments=place.words(*words),
        retries=retries,
        **given,
    )
    tasks >> finish.as_teardown()
    callback = TellFailure(
        finish=finish.task_id,
        words=words,
        suite=suite,
        directory=directory,
        command=getattr(place, "command", ""),
        environment=getattr(place, "environment", {}),
    )
    tell_failure(finish.dag, callback)
