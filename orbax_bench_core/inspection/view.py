"""Document of an inspection: commit, damage, format, files, arrays, loads, advice."""

from __future__ import annotations

from typing import Final

from orbax_bench_core.document import (
    Column,
    Document,
    Element,
    Facts,
    Heading,
    Items,
    Paragraph,
    Row,
    Section,
    Span,
    Table,
    Text,
    count,
    num_bytes,
    percent,
    seconds,
)
from orbax_bench_core.inspection.look import Inspection, by_writer

_SHOWN: Final = 12
_UNKNOWN: Final = "unknown"


def inspection_document(found: Inspection) -> Document:
    """Returns an inspection for people."""
    elements: tuple[Element, ...] = (
        Heading(f"Checkpoint {found.stored.path}", level=1),
        *(Paragraph(problem, "bad", mark="wrong:") for problem in found.problems),
        Facts((*_state(found), *_format(found))),
        Section("Files", (_files(found),)),
        *((Section("Arrays", _arrays(found)),) if found.stored.arrays else ()),
        Section("Loads", _loads(found)),
        *((Section("Advice", (Items(found.advice),)),) if found.advice else ()),
        Paragraph(
            "No value was read: a flipped bit in one is not seen here, but by a load.", "dim"
        ),
    )
    return Document(title=f"Checkpoint {found.stored.path}", elements=elements)


def _state(found: Inspection) -> tuple[tuple[str, Text], ...]:
    stored = found.stored
    took = _UNKNOWN if stored.save_s is None else seconds(stored.save_s)
    writers = _UNKNOWN if stored.processes is None else count(stored.processes, "process")
    return (
        ("committed", stored.commit),
        ("item", stored.item or "the root itself"),
        ("saved", f"in {took}, by {writers.replace('processs', 'processes')}"),
    )


def _format(found: Inspection) -> tuple[tuple[str, Text], ...]:
    stored = found.stored
    zarrs = [array.zarr for array in stored.arrays if array.zarr is not None]
    versions = sorted({f"Zarr {zarr.zarr_format}" for zarr in zarrs})
    codecs = sorted({zarr.compressor or "no compression" for zarr in zarrs})
    ratio = "" if found.ratio is None else f", {found.ratio:.3g} of it on storage"
    numbers = sum(array.is_scalar for array in stored.arrays)
    more = f", {count(numbers, 'number')}" if numbers else ""
    more += f", {count(len(stored.strings), 'string')}" if stored.strings else ""
    place = "OCDBT" if stored.ocdbt else "a folder per array"
    writers = by_writer(stored)
    facts: list[tuple[str, Text]] = [
        ("format", ", ".join([place, *versions, *codecs])),
        (
            "arrays",
            f"{len(stored.arrays) - numbers} with {num_bytes(found.array_bytes)}{ratio}{more}",
        ),
    ]
    if len(writers) > 1:
        low, high = min(writers.values()), max(writers.values())
        facts.append(
            (
                "written",
                f"{num_bytes(low)} to {num_bytes(high)} by each of {len(writers)} databases",
            )
        )
    return tuple(facts)


def _files(found: Inspection) -> Table:
    inventory = found.inventory
    columns = (Column("kind", "fixed"), Column("files", "number"), Column("bytes", "number"))
    rows = [
        Row((kind.replace("_", " "), f"{kept.files:,}", num_bytes(kept.num_bytes)))
        for kind, kept in inventory.kinds.items()
    ]
    whole = Row(("all", f"{inventory.file_count:,}", num_bytes(inventory.total_bytes)))
    return Table(columns, (*rows, whole))


def _arrays(found: Inspection) -> tuple[Element, ...]:
    columns = (
        Column("array", apart=True),
        Column("shape", "fixed"),
        Column("dtype", "fixed", spare=True),
        Column("chunk", "fixed"),
        Column("chunks", "number"),
        Column("bytes", "number"),
        Column("stored", "number"),
        Column("ratio", "number", spare=True),
    )
    largest = sorted(found.stored.arrays, key=lambda array: -array.num_bytes)
    rows = []
    for array in largest[:_SHOWN]:
        zarr = array.zarr
        missing = f", {array.num_missing} missing" if array.num_missing else ""
        ratio = array.stored_bytes / array.num_bytes if array.num_bytes else None
        rows.append(
            Row(
                (
                    Span(array.name, code=True),
                    _UNKNOWN if zarr is None else _shape(zarr.shape),
                    _UNKNOWN if zarr is None else zarr.dtype,
                    _UNKNOWN if zarr is None else _shape(zarr.chunk_shape),
                    f"{len(array.chunks)}{missing}",
                    num_bytes(array.num_bytes),
                    num_bytes(array.stored_bytes),
                    "–" if ratio is None else f"{ratio:.3g}",
                )
            )
        )
    rest = len(largest) - _SHOWN
    more = (Paragraph(f"and {rest} smaller ones; --json has all", "dim"),) if rest > 0 else ()
    return (Table(columns, tuple(rows)), *more)


def _shape(shape: tuple[int, ...]) -> str:
    return "×".join(map(str, shape)) or "scalar"


def _loads(found: Inspection) -> tuple[Element, ...]:
    if found.mesh is None:
        return (Paragraph("No mesh is known: give --mesh to see what hosts would read."),)
    if not found.reads:
        return (Paragraph("Nothing is left that a load could be told of."),)
    fit = f"{len(found.unfit)} of {len(found.stored.arrays)} arrays have chunks across shards"
    share = "" if found.replicated_share is None else percent(found.replicated_share)
    columns = (
        Column("hosts", "number"),
        Column("devices each", "number"),
        Column("needs", "number"),
        Column("reads at least", "number"),
        Column("reads at most", "number"),
        Column("times what it needs", "fixed"),
        Column("memory at most", "number"),
    )
    rows = tuple(
        Row(
            (
                f"{reads.mesh.num_hosts:,}",
                str(reads.mesh.devices_per_host),
                num_bytes(int(reads.reading.need.max())),
                num_bytes(int(reads.reading.least.max())),
                num_bytes(int(reads.reading.most.max())),
                _times(reads.reading.least_ratio, reads.reading.most_ratio),
                num_bytes(reads.memory),
            )
        )
        for reads in sorted(found.reads, key=lambda reads: reads.mesh.num_hosts)
    )
    copies = f"{share} of all device memory holds another copy"
    return (
        Facts((("mesh", found.mesh.label), ("chunk fit", fit), ("replicas", copies))),
        Table(columns, rows),
    )


def _times(least: float, most: float) -> str:
    low, high = f"{least:.2f}", f"{most:.2f}"
    return low if low == high else f"{low} to {high}"
