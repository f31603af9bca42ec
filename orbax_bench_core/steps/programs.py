"""Programs for notebooks and scripts: a run, and a comparison of two arms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from orbax_bench_core.config import LoadedSuite, load_suite, parse_suite, with_keys
from orbax_bench_core.errors import UserError
from orbax_bench_core.execute import DEFAULTS, RunSettings, Say, silent
from orbax_bench_core.records import Run, RunDirectory
from orbax_bench_core.steps.comparison import Comparison
from orbax_bench_core.steps.experiments import perform
from orbax_bench_core.steps.sweeping import Sweep


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
    perform(Sweep(limits=limits), suite, directory, overrides=overrides, settings=settings, say=say)
    return Run(RunDirectory(directory))


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
    loaded = _with_arms(load_suite(suite, overrides), arms)
    perform(Comparison(), loaded, directory, settings=settings, say=say)
    return Run(RunDirectory(directory))


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
