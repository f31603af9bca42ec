"""Recovery step: every repeat is killed once while it trains, and goes on in new processes."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence

from orbax_bench_core.analysis.recovery import PhaseName, Recovery
from orbax_bench_core.config import LoadedSuite, load_suite
from orbax_bench_core.errors import UserError, check_amounts
from orbax_bench_core.execute import DEFAULTS, Kill, RunSettings, Say, Session, silent
from orbax_bench_core.records import RunDirectory
from orbax_bench_core.steps.comparison import compare_arms
from orbax_bench_core.steps.conclusions import publish_recovery, publish_verdicts
from orbax_bench_core.steps.measuring import measure_points
from orbax_bench_core.steps.reporting import publish
from orbax_bench_core.sweep import sides


def load_drilled(
    suite: str,
    overrides: Sequence[str] = (),
    load: Callable[[str, Sequence[str]], LoadedSuite] = load_suite,
) -> LoadedSuite:
    """Loads a suite that is to be drilled: with arms, the whole recovery decides.

    A suite that names `gate.primary` itself keeps its own.
    """
    loaded = load(suite, overrides)
    if loaded.suite.arms is None or loaded.suite.gate.names_primary:
        return loaded
    return load(suite, [*overrides, "gate.primary=[recovery]"])


def check_drilled(session: Session) -> None:
    """Checks that everything that a session measures can be drilled."""
    for entry in session.entries:
        for point in sides(entry).values():
            if point.is_traced:
                raise UserError(
                    f"{point.name} has `enable_trace: true`: what is traced is a warm-up, and a "
                    "drill has none; leave it out, and trace the suite by `orbax-bench run`"
                )
            Kill.of(point, seed="").check(point, session.settings.host)


def recovery(
    suite: str,
    directory: str,
    *,
    overrides: Sequence[str] = (),
    settings: RunSettings = DEFAULTS,
    say: Say = silent,
) -> Recovery:
    """Drills a suite, and writes all reports; as `orbax-bench recovery`.

    Its `table()` has a row per point or arm, and phase:

        orbax_bench_core.recovery("examples/recovery.yaml", "out").table()

    Args:
        suite: Path of the suite file, local or gs://, with the benchmark `training_job`.
        directory: The run directory.
        overrides: Keys of the suite to change, each `key=value`, as `--override` takes them.
        settings: How to measure, beside what the suite says.
        say: Takes lines for people; by default nothing is said.

    Raises:
        UserError: The suite is invalid or has no trainer, or the directory cannot be used.
        CannotRecord: A record could not be written.
    """
    return drill_suite(load_drilled(suite, overrides), directory, settings=settings, say=say)


def drill_suite(
    loaded: LoadedSuite,
    directory: str,
    *,
    added: Mapping[PhaseName, float] | None = None,
    settings: RunSettings = DEFAULTS,
    say: Say = silent,
    lock: bool = True,
) -> Recovery:
    """Drills a suite that has been read, and writes all reports; see `recovery`."""
    check_amounts(**{str(phase): seconds for phase, seconds in (added or {}).items()})
    settings = dataclasses.replace(settings, drill=True, remove_repeated_dir=True)
    session = Session.begin(loaded, directory, settings=settings, say=say)
    check_drilled(session)
    run = RunDirectory(directory)
    if loaded.suite.arms is None:
        measure_points(session, limits=False, lock=lock)
    else:
        publish_verdicts(run, compare_arms(session, lock=lock))
    found = publish_recovery(run, added)
    publish(run)  # it shows them
    return found
