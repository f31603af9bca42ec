"""Step soak: what a process keeps of every save."""

from __future__ import annotations

from orbax_bench_core.analysis.soak import LIMIT_MIB, SoakWord
from orbax_bench_core.config import parse_suite, with_overrides
from orbax_bench_core.errors import check_amounts
from orbax_bench_core.execute import DEFAULTS, RunSettings, Say, silent
from orbax_bench_core.records import RunDirectory, RunFile
from orbax_bench_core.steps.experiments import perform
from orbax_bench_core.steps.pipeline.again import tried_again
from orbax_bench_core.steps.pipeline.outputs import Outputs, conclusion
from orbax_bench_core.steps.soaking import SoakGoal, Soaking


@tried_again
def soak(
    suite: str,
    output_directory: str,
    *,
    saves: int = 0,
    hours: float = 0.0,
    limit_mib: float = LIMIT_MIB,
    file: str = "",
    settings: RunSettings = DEFAULTS,
    say: Say = silent,
    lock: bool = True,
) -> Outputs[SoakWord]:
    """Saves hundreds of times in one process, and judges what it keeps of each save.

    Args:
        suite: The suite file, word for word.
        output_directory: The run directory; the same step goes on with what it holds.
        saves: Saves of one process, or 0 where hours count.
        hours: Hours of one process, or 0.
        limit_mib: Memory that a process may keep of each save, in MiB.
        file: Where the suite lies, with the classes that it names beside it; empty for nowhere.
        settings: How to measure, beside what the suite says.
        say: Takes lines for people.
        lock: Whether to wait until nothing else of ours measures on this machine.

    Returns:
        The value is LEAK, PASS or INCONCLUSIVE; `answer`, `summary` and `report` are files of the
        run directory.

    Raises:
        UserError: The suite cannot be soaked, or the directory cannot be used.
        CannotRecord: A record could not be written.
    """
    check_amounts(limit_mib=limit_mib)
    goal = SoakGoal(saves=saves or None, hours=hours or None)
    found = perform(
        Soaking(goal=goal, limit_mib=limit_mib),
        lambda overrides: parse_suite(with_overrides(suite, overrides, file), file),
        output_directory,
        settings=settings,
        say=say,
        lock=lock,
    )
    word: SoakWord = found.answer.word
    named = conclusion(RunDirectory(output_directory), RunFile.SOAK, verdict=word)
    return Outputs(value=word, named=named)
