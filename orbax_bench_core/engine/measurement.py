"""Steps plan-sweep, generate-checkpoint and run-sweep-point."""

import functools
from collections.abc import Callable, Sequence

from orbax_bench_core import lineage
from orbax_bench_core.config import (
    LoadedSuite,
    SuiteSource,
    parse_suite,
    with_keys,
    with_overrides,
)
from orbax_bench_core.engine.outputs import Outputs, StepOutput
from orbax_bench_core.engine.planning import batches, check_modules, ensure_checkpoint, points_in
from orbax_bench_core.engine.point import BatchOutcome, launch_batch, run_batch
from orbax_bench_core.engine.retrying import tried_again
from orbax_bench_core.errors import UserError
from orbax_bench_core.execute import HOST_WAIT_S, RunSettings, Session
from orbax_bench_core.experiments import Experiment, load_for
from orbax_bench_core.launchers import expected_devices
from orbax_bench_core.leases import batch_name
from orbax_bench_core.records import RunDirectory


@tried_again
def plan_sweep(
    suite: str,
    output_directory: str,
    *,
    arms: str = "",
    processes: int = 0,
    file: str = "",
    points_per_step: int = 0,
    most_steps: int = 0,
    engine_run: str = "",
    go_on: bool = False,
) -> Outputs[list[str]]:
    """Expand a suite into points and begin its run directory; returns what each step measures.

    Args:
        suite: The suite file, word for word.
        output_directory: The run directory, reachable from every later step.
        arms: An `arms` block, as YAML, for a suite that has none.
        processes: Host processes of each point, if the suite does not set them; 0 means one.
        file: Where the suite lies, with the classes that it names beside it; empty for nowhere.
        points_per_step: Points that one step measures; 0 for as many as take minutes.
        most_steps: Most steps that the engine takes: the default fits, and a --points-per-step that
            does not is refused; 0 for any number.
        engine_run (ID): The engine's own id of this run, such as Airflow's run_id: a directory of
            another run is then refused.
        go_on: Continue the run in the directory, although its id is another.

    Returns:
        The value has an item for each step: the ids of its points or pairs, separated by spaces;
        `planned` is the suite, as `run.json` holds it.

    Raises:
        UserError: The suite is invalid, this image lacks a module, or the directory cannot be used.
    """
    if arms:
        suite = with_keys(suite, {"arms": SuiteSource(arms, "arms").data})

    def read(overrides: Sequence[str]) -> LoadedSuite:
        return parse_suite(with_overrides(suite, overrides), file)

    loaded = load_for(Experiment(), read, hosts=processes)
    check_modules(loaded.suite)
    session = Session.begin(loaded, output_directory, engine_run=engine_run, go_on=go_on)
    run = session.directory
    repeats = session.info.num_repeats + session.info.execution.warmups
    steps = batches(session.entries, repeats, points_per_step, most_steps)
    ids = [[entry.id for entry in step] for step in steps]
    try:
        lineage.write_planned(run.root, ids)
    except OSError as error:
        raise UserError(f"cannot write to {output_directory}: {error}") from None
    place = str(run.root / "run.json")
    metadata = lineage.artifact_metadata(
        "suite", run, digest=lineage.config_digest(run), path=place
    )
    return Outputs(
        value=[" ".join(step) for step in ids],
        named={"planned": StepOutput(metadata=metadata, place=place)},
    )


@tried_again
def generate_checkpoint(suite: str, *, fixture: str = "") -> Outputs[str | None]:
    """Make the checkpoint that a suite loads, unless it is there; returns its path, or null.

    Args:
        suite: The suite file, word for word.
        fixture (SUITE): A suite whose first checkpoint is made if missing.

    Returns:
        `checkpoint` lies where the suite looks for it; of a suite that loads none it has no place.

    Raises:
        UserError: It is missing and cannot be made.
    """
    path = ensure_checkpoint(suite, fixture)
    metadata = lineage.checkpoint_metadata(path, suite)
    return Outputs(value=path, named={"checkpoint": StepOutput(metadata=metadata, place=path)})


@tried_again
def run_sweep_point(
    points: Sequence[str],
    output_directory: str,
    *,
    keep_data: bool = False,
    enable_hlo_dump: bool = False,
    measure_limits: bool = True,
    strict: bool = False,
    lock: bool = True,
    host_wait_s: float = HOST_WAIT_S,
    launcher: str = "",
    tpu: str = "",
    slices: int = 1,
    launcher_settings: Sequence[str] | None = None,
    noted: str = "",
    expect: str = "",
) -> Outputs[list[str]]:
    """Measure points in one step; returns "passed" or "failed" for each.

    For a pair, blocks of both arms are measured until it has a verdict. If a launcher has started
    the same line on several hosts, they measure together.

    A file in `batches` of the run directory, which is never replaced, lists the measured points
    with the digests of their records.

    Args:
        points (POINT...): Ids of points, as plan-sweep returned them, points as JSON, or @FILE with
            either, such as the file of --result.
        output_directory: The run directory that plan-sweep began.
        keep_data: Keep the checkpoint data of each repeat, which is deleted otherwise.
        enable_hlo_dump: Write XLA HLO protos to hlo_dump/.
        measure_limits: Whether to measure the limits of machine and storage, once per run.
        strict: Exit with 1 when a repeat failed.
        lock: Whether to wait until nothing else of ours measures on this machine.
        host_wait_s: Seconds for which a lost host is waited for.
        launcher (PLACE): Start hosts at this place of `orbax-bench launch --on`, measure on them,
            and wait; containers run the image of ORBAX_BENCH_IMAGE. By default this host measures.
        tpu: The TPU slice of those hosts.
        slices: How many such slices.
        launcher_settings (KEY=VALUE): A setting of the launcher; repeatable.
        noted: File in which a place of Google Cloud notes what it has created; empty for none.
        expect: The devices that must be there, such as tpu:v5e:8, gpu:h100-80gb:8 or cpu; with
            others it measures nothing and exits with 2. On a slice, by default the slice's devices.

    Returns:
        The value is `passed` or `failed` for each point; `records` is the file that names them.

    Raises:
        UserError: The directory holds no run, or not these points, or hosts cannot be had,
            or have other devices than were expected.
        PointFailed: A repeat failed and `strict` is set, or hosts did not come to their end.
    """
    measure: Callable[..., BatchOutcome] = functools.partial(run_batch, host_wait_s=host_wait_s)
    if launcher:
        measure = functools.partial(
            launch_batch,
            launcher=launcher,
            tpu=tpu,
            slices=slices,
            launcher_settings=launcher_settings or (),
            noted=noted,
            expect=expect,
        )
    elif tpu or launcher_settings:
        given_for = f"the slice {tpu}" if tpu else ", ".join(launcher_settings or ())
        raise UserError(f"{given_for}: name the launcher that it is for, such as jobset or vertex")
    given = [point for text in points for point in points_in(text)]
    if not given:
        raise UserError("there is no point to measure: give ids, as plan-sweep returned them")
    how = RunSettings(
        keep_data=keep_data,
        hlo_dump=enable_hlo_dump,
        expect=expected_devices(expect),
    )
    outcome = measure(
        given, output_directory, settings=how, limits=measure_limits, strict=strict, lock=lock
    )
    return _outputs_of(RunDirectory(output_directory), outcome)


def _outputs_of(run: RunDirectory, outcome: BatchOutcome) -> Outputs[list[str]]:
    """Writes the file of a batch, with the digest of the records of each of its points."""
    ids, failed = list(outcome.records), outcome.failures
    status = "failed" if failed else "passed"
    place = str(run.root / lineage.name_batch(run, batch_name(ids), ids, status))
    more = {"status": status, "points": str(len(ids))}
    written = StepOutput.of_file("records", place, run, more=more)
    statuses = ["failed" if point_id in failed else "passed" for point_id in ids]
    return Outputs(value=statuses, named={"records": written})
