"""Document of an inspection: commit, damage, format, files, arrays, loads, advice."""

from typing import Final

from orbax_bench_core import document as doc
from orbax_bench_core.inspection.look import Inspection, by_writer

_SHOWN: Final = 12
_UNKNOWN: Final = "unknown"


def inspection_document(found: Inspection) -> doc.Document:
    """Returns an inspection for people."""
    elements: tuple[doc.Element, ...] = (
        doc.Heading(f"Checkpoint {found.stored.path}", level=1),
        *(doc.Paragraph(problem, "bad", mark="wrong:") for problem in found.problems),
        *(doc.Paragraph(why, "unsure", mark="not loadable:") for why in found.stored.unloadable),
        *(doc.Paragraph(note, "dim", mark="note:") for note in found.stored.notes),
        doc.Facts((*_state(found), *_format(found))),
        doc.Section("Files", (_files(found),)),
        *((doc.Section("Arrays", _arrays(found)),) if found.stored.arrays else ()),
        doc.Section("Loads", _loads(found)),
        *((doc.Section("Advice", (doc.Items(found.advice),)),) if found.advice else ()),
        doc.Paragraph(
            "No value was read: a flipped bit in one is not seen here, but by a load.", "dim"
        ),
    )
    return doc.Document(title=f"Checkpoint {found.stored.path}", elements=elements)


def _state(found: Inspection) -> tuple[tuple[str, doc.Text], ...]:
    stored = found.stored
    took = _UNKNOWN if stored.save_s is None else doc.seconds(stored.save_s)
    writers = _UNKNOWN if stored.processes is None else doc.count(stored.processes, "process")
    return (
        ("committed", stored.commit),
        ("item", stored.item or "the root itself"),
        ("saved", f"in {took}, by {writers.replace('processs', 'processes')}"),
    )


def _format(found: Inspection) -> tuple[tuple[str, doc.Text], ...]:
    stored = found.stored
    zarrs = [array.zarr for array in stored.arrays if array.zarr is not None]
    versions = sorted({f"Zarr {zarr.zarr_format}" for zarr in zarrs if zarr.zarr_format})
    codecs = sorted({zarr.compressor or "no compression" for zarr in zarrs})
    ratio = "" if found.ratio is None else f", {found.ratio:.3g} of it on storage"
    numbers = sum(array.is_scalar for array in stored.arrays)
    more = f", {doc.count(numbers, 'number')}" if numbers else ""
    more += f", {doc.count(len(stored.strings), 'string')}" if stored.strings else ""
    folders = "safetensors" if stored.is_safetensors else "a folder per array"
    place = "OCDBT" if stored.ocdbt else folders
    writers = by_writer(stored)
    facts: list[tuple[str, doc.Text]] = [
        ("format", ", ".join([place, *versions, *codecs])),
        (
            "arrays",
            f"{len(stored.arrays) - numbers} with {doc.num_bytes(found.array_bytes)}{ratio}{more}",
        ),
    ]
    if len(writers) > 1:
        low, high = min(writers.values()), max(writers.values())
        each = f"{doc.num_bytes(low)} to {doc.num_bytes(high)}"
        facts.append(("written", f"{each} by each of {len(writers)} databases"))
    return tuple(facts)


def _files(found: Inspection) -> doc.Table:
    inventory = found.inventory
    columns = (
        doc.Column("kind", "fixed"),
        doc.Column("files", "number"),
        doc.Column("bytes", "number"),
    )
    rows = [
        doc.Row((kind.replace("_", " "), f"{kept.files:,}", doc.num_bytes(kept.num_bytes)))
        for kind, kept in inventory.kinds.items()
    ]
    whole = doc.Row(("all", f"{inventory.file_count:,}", doc.num_bytes(inventory.total_bytes)))
    return doc.Table(columns, (*rows, whole))


def _arrays(found: Inspection) -> tuple[doc.Element, ...]:
    columns = (
        doc.Column("array", apart=True),
        doc.Column("shape", "fixed"),
        doc.Column("dtype", "fixed", spare=True),
        doc.Column("chunk", "fixed"),
        doc.Column("chunks", "number"),
        doc.Column("bytes", "number"),
        doc.Column("stored", "number"),
        doc.Column("ratio", "number", spare=True),
    )
    largest = sorted(found.stored.arrays, key=lambda array: -array.num_bytes)
    rows = []
    for array in largest[:_SHOWN]:
        zarr = array.zarr
        missing = f", {array.num_missing} missing" if array.num_missing else ""
        ratio = array.stored_bytes / array.num_bytes if array.num_bytes else None
        rows.append(
            doc.Row(
                (
                    doc.Span(array.label, code=True),
                    _UNKNOWN if zarr is None else _shape(zarr.shape),
                    _UNKNOWN if zarr is None else zarr.dtype,
                    _UNKNOWN if zarr is None else _shape(zarr.chunk_shape),
                    f"{len(array.chunks)}{missing}",
                    doc.num_bytes(array.num_bytes),
                    doc.num_bytes(array.stored_bytes),
                    "–" if ratio is None else f"{ratio:.3g}",
                )
            )
        )
    rest = len(largest) - _SHOWN
    more = (doc.Paragraph(f"and {rest} smaller ones; --json has all", "dim"),) if rest > 0 else ()
    return (doc.Table(columns, tuple(rows)), *more)


def _shape(shape: tuple[int, ...]) -> str:
    return "×".join(map(str, shape)) or "scalar"


def _loads(found: Inspection) -> tuple[doc.Element, ...]:
    if found.stored.is_safetensors:
        said = "Of this format a load reads any range of bytes: only a measurement tells how much."
        return (doc.Paragraph(said),)
    if found.mesh is None:
        return (doc.Paragraph("No mesh is known: give --mesh to see what hosts would read."),)
    if not found.reads:
        return (doc.Paragraph("Nothing is left that a load could be told of."),)
    fit = f"{len(found.unfit)} of {len(found.stored.arrays)} arrays have chunks across shards"
    share = "" if found.replicated_share is None else doc.percent(found.replicated_share)
    columns = (
        doc.Column("hosts", "number"),
        doc.Column("devices each", "number"),
        doc.Column("needs", "number"),
        doc.Column("reads at least", "number"),
        doc.Column("reads at most", "number"),
        doc.Column("times what it needs", "fixed"),
        doc.Column("memory at most", "number"),
    )
    rows = tuple(
        doc.Row(
            (
                f"{reads.mesh.num_hosts:,}",
                str(reads.mesh.devices_per_host),
                doc.num_bytes(int(reads.reading.need.max())),
                doc.num_bytes(int(reads.reading.least.max())),
                doc.num_bytes(int(reads.reading.most.max())),
                _times(reads.reading.least_ratio, reads.reading.most_ratio),
                doc.num_bytes(reads.memory),
            )
        )
        for reads in sorted(found.reads, key=lambda reads: reads.mesh.num_hosts)
    )
    copies = f"{share} of all device memory holds another copy"
    return (
        doc.Facts((("mesh", found.mesh.label), ("chunk fit", fit), ("replicas", copies))),
        doc.Table(columns, rows),
    )


def _times(least: float, most: float) -> str:
    low, high = f"{least:.2f}", f"{most:.2f}"
    return low if low == high else f"{low} to {high}"
