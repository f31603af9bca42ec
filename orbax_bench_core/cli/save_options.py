"""Options of `orbax-bench plan` for one save: its meshes, its format, and the speed of storage."""

from __future__ import annotations

from typing import Annotated

import typer

Mesh = Annotated[
    str | None,
    typer.Option(
        metavar="AXIS=SIZE,...",
        help="The mesh that is saved from, such as data=16,fsdp=16. By default that of the "
        "suite or the checkpoint.",
    ),
]
DevicesPerHost = Annotated[
    int | None,
    typer.Option(
        "--devices-per-host", min=1, help="Devices of one process; needed above 8 devices."
    ),
]
Onto = Annotated[
    str | None,
    typer.Option(
        metavar="AXIS=SIZE,...", help="The mesh that is loaded onto; by default the same."
    ),
]
OntoDevicesPerHost = Annotated[
    int | None,
    typer.Option("--onto-devices-per-host", min=1, help="Devices of one process of that mesh."),
]
Ocdbt = Annotated[bool | None, typer.Option("--ocdbt/--no-ocdbt", help="Store arrays in OCDBT.")]
Zarr3 = Annotated[bool | None, typer.Option("--zarr3/--zarr2", help="Version of Zarr.")]
Compression = Annotated[
    bool | None, typer.Option("--compression/--no-compression", help="Compress with zstd.")
]
ReplicaParallel = Annotated[
    bool | None,
    typer.Option(
        "--replica-parallel/--no-replica-parallel", help="Have each replica write a part."
    ),
]
SeparateFolder = Annotated[
    bool | None,
    typer.Option(
        "--separate-folder/--no-separate-folder",
        help="Give these parts folders of their own.",
    ),
]
ChunkBytes = Annotated[
    str | None, typer.Option("--chunk-bytes", help="Largest chunk, such as 1MiB.")
]
TargetFileBytes = Annotated[
    str | None,
    typer.Option("--target-file-bytes", help="Size from which on OCDBT begins another data file."),
]
OnGcs = Annotated[bool, typer.Option("--on-gcs", help="The checkpoint goes to Cloud Storage.")]
SaveConcurrentGb = Annotated[
    float | None, typer.Option("--save-concurrent-gb", help="Most GiB in flight while saving.")
]
RestoreConcurrentGb = Annotated[
    float | None,
    typer.Option("--restore-concurrent-gb", help="Most GiB in flight while loading."),
]
CompressionRatio = Annotated[
    float | None,
    typer.Option(
        "--compression-ratio",
        help="Stored bytes over array bytes, as 5_inventory/save_compression_ratio of a run.",
    ),
]
LimitsOfRun = Annotated[
    str | None,
    typer.Option("--run", metavar="DIR", help="A run whose limits say what the storage can."),
]
WriteSpeed = Annotated[
    float | None, typer.Option("--write-speed", help="Storage of one host, GiB/s.")
]
ReadSpeed = Annotated[
    float | None, typer.Option("--read-speed", help="Storage of one host, GiB/s.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print every number as JSON.")]
Html = Annotated[str | None, typer.Option("--html", metavar="FILE", help="Also write a page.")]
Markdown = Annotated[
    str | None, typer.Option("--markdown", metavar="FILE", help="Also write Markdown.")
]
