"""Document of a plan: what is saved, what lies on storage, what hosts need, what will fail."""

from typing import Final

from orbax_bench_core import document as doc
from orbax_bench_core.plan.layout import Amount
from orbax_bench_core.plan.planning import Plan

_SHOWN: Final = 12
_UNKNOWN: Final = "unknown"


def plan_document(plan: Plan) -> doc.Document:
    """Returns a plan for people."""
    remarks = (*plan.layout.reasons, *plan.notes)
    elements: tuple[doc.Element, ...] = (
        doc.Heading(f"Plan: {plan.tree.label} on {plan.mesh.label}", level=1),
        *(doc.Paragraph(failure, "bad", mark="error:") for failure in plan.failures),
        *_whole_copies(plan),
        doc.Facts(_tree(plan)),
        doc.Section("On storage", (doc.Facts(_storage(plan)),)),
        doc.Section("Hosts", (doc.Facts(_hosts(plan)),)),
        doc.Section("Arrays", _arrays(plan)),
        *((doc.Section("Notes", (doc.Items(remarks),)),) if remarks else ()),
    )
    return doc.Document(title=f"Plan of {plan.tree.label}", elements=elements)


def plans_document(plans: tuple[Plan, ...], title: str) -> doc.Document:
    """Returns several plans as a table of one row each, or the one that there is in full."""
    if len(plans) == 1:
        return plan_document(plans[0])
    numbers = ("array bytes", "per device", "most by a host", "files", "stored", "fails")
    columns = (
        *map(doc.Column, ("tree", "mesh", "options")),
        *(doc.Column(name, "number") for name in numbers),
    )
    rows = tuple(
        doc.Row(
            (
                plan.tree.label,
                plan.mesh.label,
                plan.options.label,
                doc.num_bytes(plan.tree.num_bytes),
                doc.num_bytes(plan.device_bytes),
                doc.num_bytes(int(plan.layout.host_bytes.max())),
                files_text(plan.files),
                stored_text(plan),
                str(len(plan.failures)),
            )
        )
        for plan in plans
    )
    failures = dict.fromkeys(failure for plan in plans for failure in plan.failures)
    return doc.Document(
        title=title,
        elements=(
            doc.Heading(title, level=1),
            doc.Table(columns, rows),
            *((doc.Section("What will fail", (doc.Items(tuple(failures)),)),) if failures else ()),
        ),
    )


def files_text(files: Amount) -> str:
    """Returns a number of files, with its bounds where it is not exact."""
    if files.is_exact:
        return f"{files.expected:,}"
    if files.expected == files.most:
        return f"at most {files.most:,}"
    return f"about {files.expected:,} ({files.least:,} to {files.most:,})"


def stored_text(plan: Plan) -> str:
    """Returns the bytes on storage, or the payload that compression stays below."""
    if plan.stored_bytes is None:
        return f"<= {doc.num_bytes(plan.layout.num_bytes)}"
    return doc.num_bytes(plan.stored_bytes)


def _whole_copies(plan: Plan) -> tuple[doc.Element, ...]:
    """Says that a mesh of several devices cuts nothing, which all figures below follow from."""
    if plan.mesh.num_devices == 1 or any(
        array.shard_shape != array.shape for array in plan.layout.arrays
    ):
        return ()
    each = (
        f"each of the {plan.mesh.num_devices} devices holds all {doc.num_bytes(plan.device_bytes)}"
    )
    reason = f"no axis of {plan.mesh.label} is in the partition of an array and divides it"
    return (doc.Paragraph(f"nothing is sharded: {reason}, so that {each}", "unsure", mark="note:"),)


def _tree(plan: Plan) -> tuple[tuple[str, doc.Text], ...]:
    tree, mesh = plan.tree, plan.mesh
    more = "".join(
        f", {doc.count(len(found), kind)}"
        for found, kind in ((tree.numbers, "number"), (tree.strings, "string"))
        if found
    )
    devices, hosts = doc.count(mesh.num_devices, "device"), doc.count(mesh.num_hosts, "host")
    copies = doc.percent(plan.replicated_share)
    even, largest = f"{plan.even_share:,.1f}", f"{plan.largest_share:,}"
    return (
        ("arrays", f"{len(tree.arrays)} with {doc.num_bytes(tree.num_bytes)}{more}"),
        (
            "elements",
            f"{plan.elements:,}; an even share of {devices} is {even}, each really holds {largest}",
        ),
        ("mesh", f"{devices} on {hosts} of {mesh.devices_per_host}"),
        (
            "per device",
            f"{doc.num_bytes(plan.device_bytes)}; {copies} of all device memory holds another copy",
        ),
    )


def _storage(plan: Plan) -> tuple[tuple[str, doc.Text], ...]:
    layout, options = plan.layout, plan.options
    chunks = sum(array.num_chunks for array in layout.arrays)
    sizes = sorted(array.chunk_bytes for array in layout.arrays)
    note = ""
    if options.use_compression and options.compression_ratio is None:
        note = "; how far data compress is known only from a measurement (--compression-ratio)"
    each = f"{doc.num_bytes(sizes[0])} to {doc.num_bytes(sizes[-1])}"
    return (
        ("options", options.label),
        ("files", files_text(plan.files)),
        ("bytes", stored_text(plan) + note),
        ("metadata", f"about {doc.num_bytes(layout.metadata_bytes)} of it"),
        ("chunks", f"{chunks:,}, of {each} before compression"),
    )


def _hosts(plan: Plan) -> tuple[tuple[str, doc.Text], ...]:
    written, reading, memory = plan.layout.host_bytes, plan.reading, plan.memory
    idle = int((written == 0).sum())
    silent = f"; {idle:,} of {plan.mesh.num_hosts:,} hosts write nothing" if idle else ""
    needed = doc.num_bytes(int(reading.need.max()))
    read = _range(int(reading.least.max()), int(reading.most.max()))
    from_cpu, from_accelerators = doc.num_bytes(memory.save), doc.num_bytes(memory.save_accelerator)
    return (
        ("written by a host", f"{_range(int(written.min()), int(written.max()))}{silent}"),
        (
            f"read by a host onto {plan.restore_mesh.label}",
            f"{read} where {needed} are needed: at worst {_ratio(plan)} times as much",
        ),
        (
            "memory of a save",
            f"at most {from_cpu} more from CPU devices, {from_accelerators} from accelerators",
        ),
        ("memory of a load", f"at most {doc.num_bytes(memory.load)} more, the arrays included"),
        ("time of a save", _time(plan.time.save_s, plan.speeds.write, plan.speeds.write_source)),
        ("time of a load", _time(plan.time.load_s, plan.speeds.read, plan.speeds.read_source)),
    )


def _range(least: int, most: int) -> str:
    low, high = doc.num_bytes(least), doc.num_bytes(most)
    return low if low == high else f"{low} to {high}"


def _ratio(plan: Plan) -> str:
    low, high = f"{plan.reading.least_ratio:.2f}", f"{plan.reading.most_ratio:.2f}"
    return low if low == high else f"{low} to {high}"


def _time(least: float | None, speed: float | None, source: str) -> str:
    if speed is None:
        return f"{_UNKNOWN}: give --run or the speed of the storage"
    if least is None:
        return f"{_UNKNOWN}: give --compression-ratio"
    return f"at least {least:.3g} s at {speed:.3g} GiB/s per host ({source})"


def _arrays(plan: Plan) -> tuple[doc.Element, ...]:
    columns = (
        doc.Column("array", apart=True),
        doc.Column("shape", "fixed"),
        doc.Column("dtype", "fixed", spare=True),
        doc.Column("shard", "fixed"),
        doc.Column("replicas", "number", spare=True),
        doc.Column("chunk", "fixed"),
        doc.Column("chunks", "number"),
        doc.Column("bytes", "number"),
    )
    largest = sorted(plan.layout.arrays, key=lambda array: -array.num_bytes)
    rows = tuple(
        doc.Row(
            (
                doc.Span(array.name, code=True),
                _shape(array.shape),
                array.dtype,
                _shape(array.shard_shape),
                str(array.replicas),
                _shape(array.chunk_shape),
                f"{array.num_chunks:,}",
                doc.num_bytes(array.num_bytes),
            )
        )
        for array in largest[:_SHOWN]
    )
    rest = len(largest) - _SHOWN
    more = (doc.Paragraph(f"and {rest} smaller ones; --json has all", "dim"),) if rest > 0 else ()
    return (doc.Table(columns, rows), *more)


def _shape(shape: tuple[int, ...]) -> str:
    return "×".join(map(str, shape)) or "scalar"
