"""Steps that answer a question: options, plan, checkpoint, noise, ways to save, leaks, recovery."""

import dataclasses
from collections.abc import Sequence
from typing import Any, Final

import pydantic

from orbax_bench_core import pages
from orbax_bench_core.analysis import noise
from orbax_bench_core.analysis.best import best as choose
from orbax_bench_core.analysis.best import best_document
from orbax_bench_core.analysis.recovery import lacking
from orbax_bench_core.analysis.soak import LIMIT_MIB, SoakWord
from orbax_bench_core.answers import ASYNC_STUDY, RECOVERY, SOAK
from orbax_bench_core.config import explain, parse_suite, read_value, with_overrides
from orbax_bench_core.engine import outputs
from orbax_bench_core.engine.point import say
from orbax_bench_core.engine.retrying import tried_again
from orbax_bench_core.errors import UserError, check_amounts, shortened, shown
from orbax_bench_core.execute import RunSettings
from orbax_bench_core.experiments import Drills, Experiment, SoakGoal, Soaking, perform, study
from orbax_bench_core.files import write_atomically
from orbax_bench_core.inspection import inspect_checkpoint as look
from orbax_bench_core.inspection import inspection_document
from orbax_bench_core.lineage import bounded_metrics
from orbax_bench_core.plan import (
    Speeds,
    StorageOptions,
    plan_source,
    plans_document,
    read_source,
    speeds_of_run,
)
from orbax_bench_core.records import RunDirectory

_GIB: Final = 2**30


@tried_again
def best(
    output_directory: str,
    *,
    goal: str = "",
    peak_memory_bytes: int = 0,
    answer: str = "",
    summary: str = "",
    report: str = "",
) -> outputs.Outputs[list[str]]:
    """Choose the options of a sweep; returns the id of the best point of each case.

    If no point can be recommended for a case, its id is empty.

    Args:
        output_directory: The run directory of the sweep, which aggregate has been through.
        goal (GOAL): What to make small: blocking, save, load, bytes, memory, an operation, or
            several with weights, such as blocking=3,load=1; empty for save, or the first that was
            measured.
        peak_memory_bytes: Most host memory that a point may take; 0 for any.
        answer (FILE): Write ranking, effects, Pareto front and recommendation here, as JSON.
        summary (FILE): Write the same as Markdown, with the recommendation as Orbax code.
        report (FILE): Write the same with figures, as a page that needs no other file.

    Returns:
        The id of the recommended point of each case, empty for a case that has none.

    Raises:
        UserError: There is no sweep here, the goal was not measured, or a file cannot be written.
    """
    check_amounts(peak_memory_bytes=peak_memory_bytes)
    found = choose(output_directory, goal=goal or None, peak_memory=peak_memory_bytes or None)
    named = outputs.write_answer(
        "best",
        best_document(found, output_directory),
        found,
        (answer, summary, report),
        RunDirectory(output_directory),
    )
    ids = [case.recommendation.point_id if case.recommendation else "" for case in found.cases]
    return outputs.Outputs(value=ids, named=named)


@tried_again
def inspect_checkpoint(
    checkpoint: str,
    *,
    mesh: str = "",
    devices_per_host: int = 0,
    restore_concurrent_gb: float = 0.0,
    answer: str = "",
    summary: str = "",
    report: str = "",
) -> outputs.Outputs[list[str]]:
    """Look at a checkpoint without loading it; returns what is wrong with it, as a list.

    It finds an unfinished save and missing files, from metadata and file sizes alone.

    Args:
        checkpoint (CHECKPOINT): Its root, or the directory of one item; local or gs://.
        mesh (AXIS=SIZE,...): The mesh that it is loaded onto; empty for that of the save.
        devices_per_host: Devices of one process there; 0 for those of the save.
        restore_concurrent_gb: Most GiB in flight while loading; 0 for any.
        answer (FILE): Write all numbers here, as JSON.
        summary (FILE): Write what was found here, as Markdown.
        report (FILE): Write the same as a page that needs no other file.

    Returns:
        What is wrong with it, a line each.

    Raises:
        UserError: There is no checkpoint, the mesh cannot hold it, or a file cannot be written.
    """
    check_amounts(restore_concurrent_gb=restore_concurrent_gb)
    found = look(
        checkpoint,
        mesh=mesh or None,
        devices_per_host=devices_per_host or None,
        restore_limit=int(min(restore_concurrent_gb, _GIB) * _GIB) or None,
    )
    named = outputs.write_answer(
        "inspection",
        inspection_document(found),
        found.numbers(),
        (answer, summary, report),
    )
    return outputs.Outputs(value=list(found.problems), named=named)


@tried_again
def plan_save(
    source: str,
    *,
    mesh: str = "",
    devices_per_host: int = 0,
    onto: str = "",
    onto_devices_per_host: int = 0,
    options: str = "",
    run: str = "",
    answer: str = "",
    summary: str = "",
    report: str = "",
) -> outputs.Outputs[list[str]]:
    """Plan a save and the load of it, without a run; returns what will fail, as a list.

    It needs no accelerator.

    Args:
        source (SOURCE): A suite file, a file with a spec, a preset such as llama-8b@0.1+adamw, a
            Flax NNX factory or a checkpoint.
        mesh (AXIS=SIZE,...): The mesh that is saved from; empty for that of the source.
        devices_per_host: Devices of one process there; 0 for all, up to 8.
        onto (AXIS=SIZE,...): The mesh that is loaded onto; empty for the same.
        onto_devices_per_host: Devices of one process of that.
        options (YAML): Options of the save by name, such as '{use_ocdbt: false}'; empty for those
            of the source.
        run (DIR): A run whose limits give the storage's speed; empty for no times.
        answer (FILE): Write bytes, memory and times here, as JSON.
        summary (FILE): Write the same as Markdown.
        report (FILE): Write the same as a page that needs no other file.

    Returns:
        What will fail, a line each.

    Raises:
        UserError: The source cannot be read, a mesh cannot hold it, options are wrong, or a file
            cannot be written.
    """
    found = read_source(source)
    plans = plan_source(
        found,
        suite_file=source,
        mesh=mesh or None,
        changes=_storage_options(options),
        devices_per_host=devices_per_host or None,
        restore_mesh=onto or None,
        restore_devices_per_host=onto_devices_per_host or None,
        speeds=speeds_of_run(run) if run else Speeds(),
    )
    named = outputs.write_answer(
        "plan",
        plans_document(plans, found, source),
        [plan.numbers() for plan in plans],
        (answer, summary, report),
    )
    return outputs.Outputs(value=[line for plan in plans for line in plan.failures], named=named)


def _storage_options(text: str) -> dict[str, Any]:
    given = read_value(text, f"options: {shortened(text)}")
    given = {} if given is None else given
    known = {field.name for field in dataclasses.fields(StorageOptions)}
    if not isinstance(given, dict):
        raise UserError(f"options: {shown(text)} is no mapping such as {{use_ocdbt: false}}")
    if unknown := sorted(str(name) for name in given if name not in known):
        raise UserError(
            f"options: no such option of a save: {', '.join(unknown)}; there are "
            f"{', '.join(sorted(known))}"
        )
    try:
        taken = pydantic.TypeAdapter(StorageOptions).validate_python(given)
    except pydantic.ValidationError as error:
        first = error.errors(include_url=False)[0]
        name = ".".join(map(str, first["loc"]))
        raise UserError(f"options: {name}: {explain(first, known)}") from None
    return {name: getattr(taken, name) for name in given}


@tried_again
def calibrate(
    runs: Sequence[str], *, passport: str, report: str, save: str = ""
) -> outputs.Outputs[None]:
    """Count false alarms of identical arms, and write the noise passport.

    Args:
        runs: Run directories of A/A comparisons, directories that hold some, or patterns.
        passport (FILE): Write the noise passport here, which `orbax-bench ab --passport` takes.
        report (FILE): Write reject rate and noise as text here.
        save (FILE): Where to write the passport too; empty for nowhere.

    Returns:
        Nothing; `rate` has the number of A/A tests, how many said REGRESSION, and the share.

    Raises:
        UserError: A place holds no A/A comparison.
    """
    found = noise.calibration_of(runs)
    write_atomically(passport, found.passport.model_dump_json(indent=1).encode())
    write_atomically(report, pages.to_markdown(noise.calibration_document(found)).encode())
    if save:
        noise.save(found.passport, save)
    of_runs = {"runs": ",".join(filter(None, runs))} | ({"path": save} if save else {})
    rate: dict[str, float] = {"tests": len(found.tests), "rejected": found.rejected}
    if found.tests:
        rate["reject rate"] = found.rejected / len(found.tests)
    named = {"rate": outputs.StepOutput(metadata=rate)}
    named["passport"] = outputs.StepOutput.of_file("passport", passport, more=of_runs)
    named["report"] = outputs.StepOutput.of_file("calibration", report, more=of_runs)
    return outputs.Outputs(value=None, named=named)


@tried_again
def study_async(output_directory: str) -> outputs.Outputs[None]:
    """Compare blocking saves with saves in the background, for each size in a run.

    The report of the run links to the study from then on.

    Args:
        output_directory: The run directory; its suite sweeps `async_enabled: [false, true]`.

    Returns:
        Nothing; `study`, `summary` and `report` are files of the run directory, and `saved` has the
        share of the blocked time that each size saves, from 0 to 1.

    Raises:
        UserError: There is no run, or it saved no checkpoint in both ways.
    """
    run = RunDirectory(output_directory)
    found = study(run).answer
    sizes = [size for series in found.series for size in series.sizes]
    shares = (
        (f"{size.checkpoint} {size.background.point_ids[0]} saved", size.saved.value)
        for size in sizes
    )
    named = outputs.conclusion(run, ASYNC_STUDY, "study", data="study")
    named["saved"] = outputs.StepOutput(metadata=bounded_metrics(shares))
    return outputs.Outputs(value=None, named=named)


@tried_again
def soak(
    suite: str,
    output_directory: str,
    *,
    saves: int = 0,
    hours: float = 0.0,
    limit_mib: float = LIMIT_MIB,
    file: str = "",
    lock: bool = True,
) -> outputs.Outputs[SoakWord]:
    """Save hundreds of times in one process; returns LEAK, PASS or INCONCLUSIVE.

    A restarted step continues the run in its directory.

    Args:
        suite: The suite file, word for word.
        output_directory: The run directory.
        saves (N): End after N saves of a process, 200 at least; 0 where hours count.
        hours (T): End after T hours of a process, instead.
        limit_mib (MIB): MiB that may be kept of each save.
        file: Where the suite lies, with the classes that it names beside it; empty for nowhere.
        lock: Whether to wait until no other orbax-bench measures on the machine.

    Returns:
        LEAK, PASS or INCONCLUSIVE.

    Raises:
        UserError: The suite cannot be soaked, or the directory cannot be used.
        CannotRecord: A record could not be written.
    """
    check_amounts(limit_mib=limit_mib)
    goal = SoakGoal(saves=saves or None, hours=hours or None)
    soaking = Soaking(goal=goal, limit_mib=limit_mib)
    word: SoakWord = _performed(soaking, suite, file, output_directory, lock=lock).word
    named = outputs.conclusion(RunDirectory(output_directory), SOAK, verdict=word)
    return outputs.Outputs(value=word, named=named)


@tried_again
def recovery(
    suite: str,
    output_directory: str,
    *,
    add_notice: float = 0.0,
    add_start: float = 0.0,
    file: str = "",
    lock: bool = True,
) -> outputs.Outputs[list[str]]:
    """Kill a training job again and again; returns what did not come back, as a list.

    With arms, compare-baseline returns the verdict. A restarted step continues the run in its
    directory.

    Args:
        suite: The suite file, word for word, with the benchmark training_job.
        output_directory: The run directory.
        add_notice (S): Seconds until the platform notices a failure, beyond what is measured.
        add_start (S): Seconds to replace a node, to wait for a scheduler and to start accelerators.
        file: Where the suite lies, with the classes that it names beside it; empty for nowhere.
        lock: Whether to wait until no other orbax-bench measures on the machine.

    Returns:
        The points with drills that did not come back, a line each.

    Raises:
        UserError: The suite cannot be drilled, or the directory cannot be used.
        CannotRecord: A record could not be written.
    """
    check_amounts(add_notice=add_notice, add_start=add_start)
    drills = Drills(added={"notice": add_notice, "start": add_start})
    found = _performed(drills, suite, file, output_directory, lock=lock)
    named = outputs.conclusion(RunDirectory(output_directory), RECOVERY)
    return outputs.Outputs(value=lacking(found), named=named)


def _performed(
    experiment: Experiment, suite: str, file: str, output_directory: str, *, lock: bool
) -> Any:
    """Makes an experiment with the text of a suite, and returns its answer."""
    return perform(
        experiment,
        lambda overrides: parse_suite(with_overrides(suite, overrides, file), file),
        output_directory,
        settings=RunSettings(),
        say=say,
        lock=lock,
    ).answer
