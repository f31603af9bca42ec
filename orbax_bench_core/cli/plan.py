"""`orbax-bench plan`: files, bytes, memory and time of a save, without a run."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from orbax_bench_core.cli import save_options as saves
from orbax_bench_core.cli.arguments import Override, results_console
from orbax_bench_core.exit_codes import exit_code

if TYPE_CHECKING:
    from orbax_bench_core.document import Document
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
    mesh: saves.Mesh = None,
    devices_per_host: saves.DevicesPerHost = None,
    onto: saves.Onto = None,
    onto_devices_per_host: saves.OntoDevicesPerHost = None,
    ocdbt: saves.Ocdbt = None,
    zarr3: saves.Zarr3 = None,
    compression: saves.Compression = None,
    replica_parallel: saves.ReplicaParallel = None,
    separate_folder: saves.SeparateFolder = None,
    chunk_bytes: saves.ChunkBytes = None,
    target_file_bytes: saves.TargetFileBytes = None,
    on_gcs: saves.OnGcs = False,
    save_concurrent_gb: saves.SaveConcurrentGb = None,
    restore_concurrent_gb: saves.RestoreConcurrentGb = None,
    compression_ratio: saves.CompressionRatio = None,
    run: saves.LimitsOfRun = None,
    write_speed: saves.WriteSpeed = None,
    read_speed: saves.ReadSpeed = None,
    override: Override = None,
    as_json: saves.AsJson = False,
    html: saves.Html = None,
    markdown: saves.Markdown = None,
) -> None:
    """Say what a save will be, without a run and without an accelerator.

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


def publish(
    document: Document, numbers: Any, html: str | None, markdown: str | None, *, as_json: bool
) -> None:
    """Prints a document, or its numbers as JSON, and writes its pages where files were named.

    Raises:
        UserError: A file cannot be written.
    """
    from orbax_bench_core.document import print_document

    _write_pages(document, html, markdown)
    if as_json:
        print(json.dumps(numbers, indent=2))
    else:
        print_document(document, results_console())


def _write_pages(document: Document, html: str | None, markdown: str | None) -> None:
    from orbax_bench_core.document import to_html, to_markdown
    from orbax_bench_core.errors import UserError
    from orbax_bench_core.files import place, write_atomically

    for flag, file, render in (("--html", html, to_html), ("--markdown", markdown, to_markdown)):
        if file is not None:
            try:
                write_atomically(place(file), render(document).encode())
            except OSError as failure:
                raise UserError(f"{flag}: cannot write {file}: {failure}") from None


def _size(flag: str, text: str | None) -> int | None:
    from orbax_bench_core.cli.arguments import parse_size

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
