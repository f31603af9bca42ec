"""Inspections for people: whether a checkpoint is whole, its format, its loads, and advice."""

from collections.abc import Iterator
from typing import Final

from orbax_bench_core import pages
from orbax_bench_core.errors import command
from orbax_bench_core.inspection.look import Inspection, by_writer

_SHOWN: Final = 12
_UNKNOWN: Final = "unknown"
_UNREAD: Final = "No value was read: only a load finds a flipped bit in one."


def inspection_document(found: Inspection) -> pages.Document:
    """Returns an inspection for people."""
    stored, wrong = found.stored, (*found.problems, *found.stored.unloadable)
    has_arrays = not all(array.is_scalar for array in stored.arrays)
    sound = pages.Code(
        command("init", "--checkpoint", stored.path), "A suite that measures how long it loads."
    )
    return pages.Document(
        about=f"Checkpoint {stored.path}",
        headline=_headline(found),
        summary=(
            pages.Text(items=wrong[1:], role="bad"),
            pages.Text(items=stored.notes, role="unsure"),
            pages.Text(items=(*_facts(found), *_loads(found), _UNREAD)),
            pages.Section("Advice", (pages.Text(items=found.advice),)),
        ),
        following=sound if has_arrays and not wrong else None,
        details=(
            pages.Details("Files", (_files(found),)),
            pages.Details("Arrays", _arrays(found)),
            pages.Details("Loads by number of hosts", (_hosts(found),)),
        ),
    )


def _headline(found: Inspection) -> pages.Callout:
    stored = found.stored
    kinds = ((found.problems, "NOT WHOLE"), (stored.unloadable, "NOT LOADABLE"))
    for reasons, word in kinds:
        if reasons:
            more = f" (and {len(reasons) - 1} more)" if len(reasons) > 1 else ""
            return pages.Callout(word, f"{reasons[0]}{more}", "bad")
    processes = stored.processes
    by = "" if processes is None else f" by {pages.count(processes, 'process', 'processes')}"
    took = "" if stored.save_s is None else f" in {pages.seconds(stored.save_s)}"
    saved = f", saved{by}{took}" if by or took else ""
    arrays = pages.count(sum(not array.is_scalar for array in stored.arrays), "array")
    of = "what was looked at, " if stored.notes else ""
    text = f"nothing is missing of {of}{arrays} with {pages.num_bytes(found.array_bytes)}{saved}"
    return pages.Callout("WHOLE", text, "good")


def _facts(found: Inspection) -> Iterator[str]:
    stored, inventory = found.stored, found.inventory
    yield f"Committed: {stored.commit}; item: {stored.item or 'the root itself'}."
    zarrs = [array.zarr for array in stored.arrays if array.zarr is not None]
    versions = sorted({f"Zarr {zarr.zarr_format}" for zarr in zarrs if zarr.zarr_format})
    codecs = sorted({zarr.compressor or "no compression" for zarr in zarrs})
    folders = "safetensors" if stored.is_safetensors else "a folder per array"
    place = "OCDBT" if stored.ocdbt else folders
    ratio = "" if found.ratio is None else f", {found.ratio:.3g} of the bytes on storage"
    yield f"Format: {', '.join([place, *versions, *codecs])}{ratio}."
    files = pages.count(inventory.file_count, "file")
    numbers = sum(array.is_scalar for array in stored.arrays)
    counts = ((numbers, "number"), (len(stored.strings), "string"))
    more = "".join(f", {pages.count(number, kind)}" for number, kind in counts if number)
    yield f"Content: {files} with {pages.num_bytes(inventory.total_bytes)}{more}."
    writers = by_writer(stored)
    if len(writers) > 1:
        low, high = min(writers.values()), max(writers.values())
        each = f"{pages.num_bytes(low)} to {pages.num_bytes(high)}"
        yield f"Written: {each} by each of {len(writers)} databases."


def _loads(found: Inspection) -> Iterator[str]:
    if found.stored.is_safetensors:
        yield "Of this format a load reads any range of bytes: only a measurement tells how much."
    elif found.mesh is None:
        yield "No mesh is known: give --mesh to see what hosts would read."
    elif not found.reads:
        yield "Nothing is left to load."
    else:
        reading, unfit = found.reads[0].reading, len(found.unfit)
        most = pages.num_bytes(int(reading.most.max()))
        need = pages.num_bytes(int(reading.need.max()))
        yield (
            f"A load onto {found.mesh.label} reads at most {most} on a host, which needs {need}; "
            f"{unfit} of {len(found.stored.arrays)} arrays have chunks across shards."
        )
        if found.replicated_share is not None:
            share = pages.percent(found.replicated_share)
            yield f"{share} of all device memory holds another copy there."


def _files(found: Inspection) -> pages.Table:
    inventory = found.inventory
    rows = [
        pages.Row((kind.replace("_", " "), f"{kept.files:,}", pages.num_bytes(kept.num_bytes)))
        for kind, kept in inventory.kinds.items()
    ]
    whole = ("all", f"{inventory.file_count:,}", pages.num_bytes(inventory.total_bytes))
    return pages.Table(pages.columns("kind", "files#", "bytes#"), (*rows, pages.Row(whole)))


def _arrays(found: Inspection) -> tuple[pages.Element, ...]:
    headings = ("array`", "shape", "dtype", "chunk", "chunks#", "bytes#", "stored#", "ratio#")
    largest = sorted(found.stored.arrays, key=lambda array: -array.num_bytes)
    rows = []
    for array in largest[:_SHOWN]:
        zarr = array.zarr
        missing = f", {array.num_missing} missing" if array.num_missing else ""
        cells = (
            array.label,
            _UNKNOWN if zarr is None else _shape(zarr.shape),
            _UNKNOWN if zarr is None else zarr.dtype,
            _UNKNOWN if zarr is None else _shape(zarr.chunk_shape),
            f"{len(array.chunks)}{missing}",
            pages.num_bytes(array.num_bytes),
            pages.num_bytes(array.stored_bytes),
            f"{array.stored_bytes / array.num_bytes:.3g}" if array.num_bytes else "–",
        )
        rows.append(pages.Row(cells))
    rest = len(largest) - _SHOWN
    more = f"And {rest} smaller ones; `--json` has all." if rest > 0 else ""
    return (pages.Table(pages.columns(*headings), tuple(rows)), pages.Text(more, "dim"))


def _shape(shape: tuple[int, ...]) -> str:
    return "×".join(map(str, shape)) or "scalar"


def _hosts(found: Inspection) -> pages.Table:
    measured = ("needs", "reads at least", "reads at most", "times what it needs", "memory at most")
    rows = tuple(
        pages.Row(
            (
                f"{reads.mesh.num_hosts:,}",
                str(reads.mesh.devices_per_host),
                pages.num_bytes(int(reads.reading.need.max())),
                pages.num_bytes(int(reads.reading.least.max())),
                pages.num_bytes(int(reads.reading.most.max())),
                _times(reads.reading.least_ratio, reads.reading.most_ratio),
                pages.num_bytes(reads.memory),
            )
        )
        for reads in sorted(found.reads, key=lambda reads: reads.mesh.num_hosts)
    )
    headings = (f"{each}#" for each in ("hosts", "devices each", *measured))
    return pages.Table(pages.columns(*headings), rows)


def _times(least: float, most: float) -> str:
    low, high = f"{least:.2f}", f"{most:.2f}"
    return low if low == high else f"{low} to {high}"
