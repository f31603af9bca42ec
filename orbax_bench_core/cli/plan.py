"""Commands that need no run: `plan`, `goodput`, `inspect` and `sharding`."""

from __future__ import annotations

import dataclasses
import json
import sys
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from orbax_bench_core.cli.arguments import Override, PageFlags, parse_size, takes_flags
from orbax_bench_core.cli.terminal import publish
from orbax_bench_core.exit_codes import exit_code

if TYPE_CHECKING:
    from orbax_bench_core.plan import Speeds


def _mesh(about: str) -> Any:
    return typer.Option(metavar="AXIS=SIZE,...", help=about)


def _duration(about: str) -> Any:
    return typer.Option(metavar="DURATION", help=about)


Checkpoint = Annotated[
    str,
    typer.Argument(
        metavar="CHECKPOINT",
        help="Root of a checkpoint, the directory of one item, or .safetensors files; local "
        "or gs://.",
    ),
]
_GIB: Final = 2**30


@dataclasses.dataclass(frozen=True, kw_only=True)
class SaveFlags:
    """How a save is made, where the source does not say it or another way is asked for."""

    ocdbt: Annotated[bool | None, typer.Option(help="Store arrays in OCDBT.")] = None
    compression: Annotated[bool | None, typer.Option(help="Compress with zstd.")] = None
    replica_parallel: Annotated[
        bool | None, typer.Option(help="Have each replica write a part.")
    ] = None
    chunk_bytes: Annotated[str | None, typer.Option(help="Largest chunk, such as 1MiB.")] = None
    target_file_bytes: Annotated[
        str | None, typer.Option(help="Size at which OCDBT begins another data file.")
    ] = None
    on_gcs: Annotated[
        bool, typer.Option("--on-gcs", help="The checkpoint goes to Cloud Storage.")
    ] = False
    save_concurrent_gb: Annotated[
        float | None, typer.Option(help="Most GiB in flight while saving.")
    ] = None
    restore_concurrent_gb: Annotated[
        float | None, typer.Option(help="Most GiB in flight while loading.")
    ] = None
    compression_ratio: Annotated[
        float | None,
        typer.Option(
            help="Stored bytes over array bytes, as 5_inventory/save_compression_ratio of a run."
        ),
    ] = None

    def changes(self) -> dict[str, Any]:
        """Returns the options of the save that were given."""
        options = {
            "use_ocdbt": self.ocdbt,
            "use_compression": self.compression,
            "use_replica_parallel": self.replica_parallel,
            "chunk_byte_size": _size("--chunk-bytes", self.chunk_bytes),
            "target_file_size": _size("--target-file-bytes", self.target_file_bytes),
            "on_gcs": self.on_gcs or None,
            "save_concurrent_gb": self.save_concurrent_gb,
            "restore_concurrent_gb": self.restore_concurrent_gb,
            "compression_ratio": self.compression_ratio,
        }
        return {name: value for name, value in options.items() if value is not None}


@dataclasses.dataclass(frozen=True, kw_only=True)
class SpeedFlags:
    """How fast the storage is: as a run has found it, or as given."""

    run: Annotated[
        str | None, typer.Option(metavar="DIR", help="A run whose limits give the storage's speed.")
    ] = None
    write_speed: Annotated[float | None, typer.Option(help="Storage of one host, GiB/s.")] = None
    read_speed: Annotated[float | None, typer.Option(help="Storage of one host, GiB/s.")] = None

    def given(self) -> Speeds:
        """Returns the speeds in GiB/s of one host, and where each is from."""
        from orbax_bench_core.errors import UserError
        from orbax_bench_core.plan import Speeds, speeds_of_run

        write, read = self.write_speed, self.read_speed
        for flag, speed in (("--write-speed", write), ("--read-speed", read)):
            if speed is not None and not 0 < speed < float("inf"):
                raise UserError(f"{flag}: must be a positive number of GiB/s, got {speed}")
        found = Speeds() if self.run is None else speeds_of_run(self.run)
        if write is not None:
            found = dataclasses.replace(found, write=write, write_source="given")
        if read is not None:
            found = dataclasses.replace(found, read=read, read_source="given")
        return found


def _size(flag: str, text: str | None) -> int | None:
    return None if text is None else parse_size(text, flag)


@takes_flags()
def plan(
    source: Annotated[
        str,
        typer.Argument(
            metavar="SOURCE",
            help="A suite file; a file with a spec or checkpoint_config; a preset such as "
            "llama-8b@0.1+adamw; a Flax NNX factory, module:factory; or a checkpoint.",
        ),
    ],
    mesh: Annotated[
        str | None,
        _mesh(
            "The mesh that is saved from, such as data=16,fsdp=16. By default that of the "
            "suite or the checkpoint."
        ),
    ] = None,
    devices_per_host: Annotated[
        int | None, typer.Option(min=1, help="Devices of one process; needed above 8 devices.")
    ] = None,
    onto: Annotated[str | None, _mesh("The mesh that is loaded onto; by default the same.")] = None,
    onto_devices_per_host: Annotated[
        int | None, typer.Option(min=1, help="Devices of one process of that mesh.")
    ] = None,
    *,
    save: SaveFlags,
    speeds: SpeedFlags,
    override: Override = None,
    pages: PageFlags,
) -> None:
    """Predict a save, without a run and without an accelerator.

    Bytes per device and host and on storage, shards, replicas, the most host memory of a save and a
    load, what each host reads to load onto another mesh, the least time at a given speed, and what
    will fail.

    orbax-bench plan llama-8b+adamw --mesh data=16,fsdp=16 --devices-per-host 4

    orbax-bench plan /ckpt/100 --onto fsdp=8

    Exit codes: 0; 1 the save or the load will fail; 2 the source or the mesh cannot be used.
    """
    from orbax_bench_core.plan import plan_source, plans_document, read_source

    found = read_source(source, tuple(override or ()))
    plans = plan_source(
        found,
        suite_file=source,
        mesh=mesh,
        changes=save.changes(),
        devices_per_host=devices_per_host,
        restore_mesh=onto,
        restore_devices_per_host=onto_devices_per_host,
        speeds=speeds.given(),
    )
    document = plans_document(plans, found, source)
    numbers = [plan.numbers() for plan in plans]
    publish(document, numbers, pages)
    raise typer.Exit(exit_code(incomplete=any(plan.failures for plan in plans)))


@dataclasses.dataclass(frozen=True, kw_only=True)
class JobFlags:
    """What is known of a training job."""

    mtbf: Annotated[str | None, _duration("Mean time between failures of the job.")] = None
    host_mtbf: Annotated[
        str | None, _duration("Mean time between failures of one host; needs --hosts.")
    ] = None
    hosts: Annotated[int | None, typer.Option(min=1, max=10**9, help="Hosts of the job.")] = None
    save_blocking: Annotated[
        str | None, _duration("How long a save in the background blocks training.")
    ] = None
    save_background: Annotated[str | None, _duration("How long its background part takes.")] = None
    slowdown: Annotated[
        float | None,
        typer.Option(help="Share of the speed lost during the background part, 0 to 1."),
    ] = None
    save_sync: Annotated[str | None, _duration("How long a save takes that blocks as a whole.")] = (
        None
    )
    recovery: Annotated[str | None, _duration("From a failure to the first step after it.")] = None
    step_time: Annotated[str | None, _duration("A training step.")] = None
    interval: Annotated[
        str | None, _duration("Useful time between saves today, to compare with.")
    ] = None
    local_save: Annotated[
        str | None, _duration("How long a save to local disks blocks training.")
    ] = None
    local_recovery: Annotated[str | None, _duration("A recovery from local disks.")] = None
    local_share: Annotated[
        float | None, typer.Option(help="Share of failures that local disks survive, 0 to 1.")
    ] = None
    devices: Annotated[
        int | None, typer.Option(min=1, max=10**9, help="Accelerators of the job.")
    ] = None

    def given(self) -> dict[str, Any]:
        """Returns the values given, durations in seconds, by the names that `job_of` takes."""
        from orbax_bench_core.plan.goodput import seconds_of

        durations = {
            "mtbf_s": ("--mtbf", self.mtbf),
            "host_mtbf_s": ("--host-mtbf", self.host_mtbf),
            "blocking_s": ("--save-blocking", self.save_blocking),
            "background_s": ("--save-background", self.save_background),
            "save_s": ("--save-sync", self.save_sync),
            "recovery_s": ("--recovery", self.recovery),
            "step_s": ("--step-time", self.step_time),
            "local_blocking_s": ("--local-save", self.local_save),
            "local_recovery_s": ("--local-recovery", self.local_recovery),
        }
        given: dict[str, Any] = {
            field: None if text is None else seconds_of(text, flag)
            for field, (flag, text) in durations.items()
        }
        numbers = ("slowdown", "hosts", "devices", "local_share")
        return given | {name: getattr(self, name) for name in numbers}


@takes_flags()
def goodput(
    *,
    job: JobFlags,
    from_log: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Log of ml-goodput-measurement as JSON: step, interval, stalls, failures.",
        ),
    ] = None,
    checkpoint: Annotated[
        str | None, typer.Option(metavar="PATH", help="A checkpoint of the job: tree and mesh.")
    ] = None,
    pages: PageFlags,
) -> None:
    """Say how often to save, and what failures cost.

    For saves that block, in the background, continuous and in two tiers. Durations are 90s, 15min,
    4h or 2d.

    orbax-bench goodput --mtbf 4h --recovery 5min --save-blocking 2s --save-background 2min
    --slowdown 0.1

    Exit codes: 0; 2 something is missing or out of range.
    """
    from orbax_bench_core.plan.goodput import (
        checkpoint_facts,
        goodput_document,
        job_of,
        plan_goodput,
        read_log,
        seconds_of,
    )

    log = None if from_log is None else read_log(from_log)
    facts = None if checkpoint is None else checkpoint_facts(checkpoint)
    tau = None if job.interval is None else seconds_of(job.interval, "--interval")
    if tau is None and log is not None and log.interval_s is not None:
        tau = max(1e-3, log.interval_s - (log.blocking_s or 0.0))
    plan = plan_goodput(job_of(job.given(), log, facts), interval_s=tau)
    found = {
        "job": dataclasses.asdict(plan.job),
        "young_s": plan.young_s,
        "log": None if log is None else dataclasses.asdict(log),
        "checkpoint": None if facts is None else dataclasses.asdict(facts),
        "strategies": json.loads(plan.table().to_json(orient="records")),
    }
    document = goodput_document(plan, log)
    publish(document, found, pages)


@takes_flags()
def inspect(
    checkpoint: Checkpoint,
    mesh: Annotated[
        str | None,
        _mesh("The mesh to load it onto; by default the mesh of the save."),
    ] = None,
    devices_per_host: Annotated[
        int | None, typer.Option(min=1, help="Devices of one process of that mesh.")
    ] = None,
    restore_concurrent_gb: Annotated[
        float | None, typer.Option(help="Most GiB in flight while loading.")
    ] = None,
    *,
    pages: PageFlags,
) -> None:
    """Look at a checkpoint without loading an array.

    Whether its save finished and what is missing, its format, files and compression, how its
    chunks fit a mesh, what each host would read and hold for a load, and what could be better.

    orbax-bench inspect /ckpt/100 --mesh fsdp=8

    Exit codes: 0; 1 it is damaged or its save has not finished; 2 there is no checkpoint.
    """
    from orbax_bench_core.errors import UserError
    from orbax_bench_core.inspection import inspect_checkpoint, inspection_document

    limit = restore_concurrent_gb
    if limit is not None and not 0 < limit < float("inf"):
        raise UserError(f"--restore-concurrent-gb: must be a positive number, got {limit}")
    found = inspect_checkpoint(
        checkpoint,
        mesh=mesh,
        devices_per_host=devices_per_host,
        restore_limit=None if limit is None else int(limit * _GIB),
    )
    document = inspection_document(found)
    publish(document, found.numbers(), pages)
    raise typer.Exit(exit_code(incomplete=bool(found.problems)))


def sharding(
    checkpoint: Checkpoint,
    mesh: Annotated[
        str,
        _mesh("The mesh to load onto, such as fsdp=8 or data=2,fsdp=4,tensor=2."),
    ],
) -> None:
    """Print a sharding file made from a checkpoint's metadata.

    An axis called fsdp, or with an unknown name, shards the first dimension of arrays of two or
    more; tensor, tp and model the last; data and replica none. Give the file as
    sharding_config_path:

    orbax-bench sharding /ckpt/items --mesh fsdp=8 > sharding.json
    """
    from orbax_bench_core.plan import plan_shardings, read_mesh

    place = read_mesh(mesh, 1)
    content, stored = plan_shardings(checkpoint, dict(zip(place.axes, place.sizes, strict=True)))
    for note in stored.notes:
        print(f"note: {note}", file=sys.stderr)
    # A line for each array, so that people can read the file and compare two.
    entries = (f"{json.dumps(name)}: {json.dumps(entry)}" for name, entry in content.items())
    print("{\n" + ",\n".join(entries) + "\n}")
