"""Programs for notebooks and scripts: a run, and a comparison of two arms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from orbax_bench_core.analysis.verdicts import compare_stored
from orbax_bench_core.baselines import capture_into, check_baseline
from orbax_bench_core.config import LoadedSuite, load_suite, parse_suite, with_keys
from orbax_bench_core.errors import UserError
from orbax_bench_core.execute import DEFAULTS, RunSettings, Say, Session, silent
from orbax_bench_core.records import Run
from orbax_bench_core.steps.comparison import compare_arms
from orbax_bench_core.steps.conclusions import publish_verdicts
from orbax_bench_core.steps.measuring import measure_points
from orbax_bench_core.steps.reporting import load_writers, publish


def run(
    suite: str | LoadedSuite,
    directory: str,
    *,
    overrides: Sequence[str] = (),
    limits: bool = True,
    settings: RunSettings = DEFAULTS,
    say: Say = silent,
) -> Run:
    """Measures every point of a suite, writes all reports, and returns what was found.

    As `orbax-bench run`: what is in the directory already is not measured again, and a repeat that
    fails is a record like any other.

        run = orbax_bench_core.run("suite.yaml", "out")
        run.times().groupby(["option.use_ocdbt", "operation"])["seconds"].median()

    Args:
        suite: Path of the suite file, local or gs://, or a suite that was loaded.
        directory: The run directory, local or gs://.
        overrides: Keys of a suite file to change, each `key=value`, as `--override` takes them.
        limits: Whether to measure what the machine and the storage can do, once per run.
        settings: How to measure, beside what the suite says.
        say: Takes lines for people; by default nothing is said.

    Returns:
        The run, read from its records.

    Raises:
        UserError: The suite is invalid or has arms, the directory cannot be used, or there is no
            baseline where the suite says.
        CannotRecord: A record could not be written.
    """
    loaded = load_suite(suite, overrides) if isinstance(suite, str) else suite
    if loaded.suite.arms is not None:
        raise UserError(
            loaded.source.problem("a suite with arms is a comparison: use ab", ("arms",))
        )
    baseline = loaded.suite.baseline_path
    if baseline is not None:
        check_baseline(baseline)
    session = Session.begin(loaded, directory, settings=settings, say=say)
    measure_points(session, limits=limits, meanwhile=load_writers)
    publish(session.directory)
    if baseline is not None:
        found = compare_stored(baseline, str(session.directory.root))
        publish_verdicts(session.directory, found)
    if loaded.suite.baseline_capture_path is not None:
        capture_into(session.directory, loaded.suite.baseline_capture_path)
    return Run(session.directory)


def ab(
    suite: str,
    directory: str,
    *,
    arms: Mapping[str, Mapping[str, Any]] | None = None,
    overrides: Sequence[str] = (),
    settings: RunSettings = DEFAULTS,
    say: Say = silent,
) -> Run:
    """Compares two arms of a suite until every point has a verdict, and writes all reports.

    As `orbax-bench ab`. `orbax_bench_core.read_verdicts` gives what was found:

        arms = {"candidate": {"options": {"use_ocdbt": False}}}
        run = orbax_bench_core.ab("suite.yaml", "out", arms=arms)
        orbax_bench_core.read_verdicts(run).word

    Args:
        suite: Path of the suite file, local or gs://.
        directory: The run directory, local or gs://.
        arms: The `arms` block of a suite that has none; `{}` compares it with itself.
        overrides: Keys of the suite to change, each `key=value`, as `--override` takes them.
        settings: How to measure, beside what the suite says.
        say: Takes lines for people; by default nothing is said.

    Returns:
        The run, read from its records.

    Raises:
        UserError: The suite is invalid, has no arms or other ones, or the directory cannot be used.
        CannotRecord: A record could not be written.
    """
    session = Session.begin(
        _with_arms(load_suite(suite, overrides), arms), directory, settings=settings, say=say
    )
    verdicts = compare_arms(session)
    publish(session.directory)
    publish_verdicts(session.directory, verdicts)
    return Run(session.directory)


def _with_arms(loaded: LoadedSuite, arms: Mapping[str, Mapping[str, Any]] | None) -> LoadedSuite:
    if loaded.suite.arms is not None:
        if arms is not None:
            raise UserError(
                loaded.source.problem("the suite has arms of its own: leave out `arms`", ("arms",))
            )
        return loaded
    if arms is None:
        raise UserError(
            loaded.source.problem(
                "nothing to compare: give the suite an `arms` block, or pass one, such as "
                "arms={'candidate': {'options': {'use_ocdbt': False}}}; arms={} compares the "
                "suite with itself",
                (),
            )
        )
    text = with_keys(loaded.text, {"arms": arms}, loaded.source.file)
    return parse_suite(text, loaded.source.file)
