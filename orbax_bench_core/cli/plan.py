"""`orbax-bench plan`: files, bytes, memory and time of a save, without a run."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Annotated

import typer

from orbax_bench_core.cli.arguments import AsJson, Html, Markdown, Override, parse_size
from orbax_bench_core.cli.results import publish
from orbax_bench_core.exit_codes import exit_code

if TYPE_CHECKING:
    from orbax_bench_core.plan import Speeds


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
        typer.Option(
            metavar="AXIS=SIZE,...",
            help="The mesh that is saved from, such as data=16,fsdp=16. By default that of the "
            "suite or the checkpoint.",
        ),
    ] = None,
    devices_per_host: Annotated[
        int | None, typer.Option(min=1, help="Devices of one process; needed above 8 devices.")
    ] = None,
    onto: Annotated[
        str | None,
        typer.Option(
            metavar="AXIS=SIZE,...", help="The mesh that is loaded onto; by default the same."
        ),
    ] = None,
    onto_devices_per_host: Annotated[
        int | None, typer.Option(min=1, help="Devices of one process of that mesh.")
    ] = None,
    ocdbt: Annotated[
        bool | None, typer.Option("--ocdbt/--no-ocdbt", help="Store arrays in OCDBT.")
    ] = None,
    zarr3: Annotated[bool | None, typer.Option("--zarr3/--zarr2", help="Version of Zarr.")] = None,
    compression: Annotated[
        bool | None, typer.Option("--compression/--no-compression", help="Compress with zstd.")
    ] = None,
    replica_parallel: Annotated[
        bool | None,
        typer.Option(
            "--replica-parallel/--no-replica-parallel", help="Have each replica write a part."
        ),
    ] = None,
    separate_folder: Annotated[
        bool | None,
        typer.Option(
            "--separate-folder/--no-separate-folder", help="Put these parts into separate folders."
        ),
    ] = None,
    chunk_bytes: Annotated[str | None, typer.Option(help="Largest chunk, such as 1MiB.")] = None,
    target_file_bytes: Annotated[
        str | None, typer.Option(help="Size at which OCDBT begins another data file.")
    ] = None,
    on_gcs: Annotated[
        bool, typer.Option("--on-gcs", help="The checkpoint goes to Cloud Storage.")
    ] = False,
    save_concurrent_gb: Annotated[
        float | None, typer.Option(help="Most GiB in flight while saving.")
    ] = None,
    restore_concurrent_gb: Annotated[
        float | None, typer.Option(help="Most GiB in flight while loading.")
    ] = None,
    compression_ratio: Annotated[
        float | None,
        typer.Option(
            help="Stored bytes over array bytes, as 5_inventory/save_compression_ratio of a run."
        ),
    ] = None,
    run: Annotated[
        str | None,
        typer.Option("--run", metavar="DIR", help="A run whose limits give the storage's speed."),
    ] = None,
    write_speed: Annotated[float | None, typer.Option(help="Storage of one host, GiB/s.")] = None,
    read_speed: Annotated[float | None, typer.Option(help="Storage of one host, GiB/s.")] = None,
    override: Override = None,
    as_json: AsJson = False,
    html: Html = None,
    markdown: Markdown = None,
) -> None:
    """Predict a save, without a run and without an accelerator.

    Parameters, bytes per device and host, files and bytes on storage, chunks, replicas, the most
    host memory that a save and a load take, what each host reads to load onto another mesh, the
    least time at a given speed, and what will fail.

    orbax-bench plan llama-8b+adamw --mesh data=16,fsdp=16 --devices-per-host 4

    orbax-bench plan /ckpt/100 --onto fsdp=8

    Exit codes: 0; 1 the save or the load will fail; 2 the source or the mesh cannot be used.
    """
    from orbax_bench_core.plan import plan_source, plans_document

    options = {
        "use_ocdbt": ocdbt,
        "use_zarr3": zarr3,
        "use_compression": compression,
        "use_replica_parallel": replica_parallel,
        "enable_replica_parallel_separate_folder": separate_folder,
        "chunk_byte_size": _size("--chunk-bytes", chunk_bytes),
        "target_file_size": _size("--target-file-bytes", target_file_bytes),
        "on_gcs": on_gcs or None,
        "save_concurrent_gb": save_concurrent_gb,
        "restore_concurrent_gb": restore_concurrent_gb,
        "compression_ratio": compression_ratio,
    }
    plans = plan_source(
        source,
        mesh=mesh,
        changes={name: value for name, value in options.items() if value is not None},
        overrides=tuple(override or ()),
        devices_per_host=devices_per_host,
        restore_mesh=onto,
        restore_devices_per_host=onto_devices_per_host,
        speeds=_speeds(run, write_speed, read_speed),
    )
    document = plans_document(plans, f"Plans of {source}")
    publish(document, [plan.numbers() for plan in plans], html, markdown, as_json=as_json)
    raise typer.Exit(exit_code(incomplete=any(plan.failures for plan in plans)))


def _size(flag: str, text: str | None) -> int | None:
    return None if text is None else parse_size(text, flag)


def _speeds(run: str | None, write: float | None, read: float | None) -> Speeds:
    from orbax_bench_core.errors import UserError
    from orbax_bench_core.plan import Speeds, speeds_of_run

    for flag, speed in (("--write-speed", write), ("--read-speed", read)):
        if speed is not None and not 0 < speed < float("inf"):
            raise UserError(f"{flag}: must be a positive number of GiB/s, got {speed}")
    found = Speeds() if run is None else speeds_of_run(run)
    if write is not None:
        found = dataclasses.replace(found, write=write, write_source="given")
    if read is not None:
        found = dataclasses.replace(found, read=read, read_source="given")
    return found
