"""Plans for people: bytes of a save and a load on each host, memory, time, and what will fail."""

from collections.abc import Iterator, Sequence
from typing import Final

from orbax_bench_core import pages
from orbax_bench_core.config import CheckpointConfig, LoadedSuite
from orbax_bench_core.errors import command
from orbax_bench_core.plan.planning import Plan

_SHOWN: Final = 12
_READING: Final = """\
Bytes are those of the values: metadata come on top, and `_sharding` names every device for every \
array. With compression they are at most as many; take the ratio from \
`5_inventory/save_compression_ratio` of a run (`--compression-ratio`).
A load reads each chunk at least once if a device of the host needs a part of it, and at most once \
for each of its shards.
Memory is an upper bound, time a lower one: the bytes of the host that has most, at the best speed \
of its storage.
Where `JAX_PLATFORMS` names GPUs, replicas write in parallel only if Orbax is told to \
(use_replica_parallel=True): `--no-replica-parallel` plans its default there."""
"""Reading aid, one line each."""


def plans_document(
    plans: Sequence[Plan], source: LoadedSuite | CheckpointConfig, given: str
) -> pages.Document:
    """Returns one plan, or several side by side; `given` names what was planned."""
    failures = tuple(dict.fromkeys(failure for plan in plans for failure in plan.failures))
    first = plans[0]
    if len(plans) == 1:
        summary: tuple[pages.Element, ...] = (_hosts(first), pages.Text(items=tuple(_facts(first))))
    else:
        summary = (_side_by_side(plans),)
    return pages.Document(
        about=f"Plan of {given}, {pages.count(len(plans), 'save')}",
        headline=_headline(plans, failures),
        summary=(*summary, pages.Text(items=failures[1:], role="bad")),
        following=None if failures else _following(source, given),
        details=(
            *(element for plan in plans for element in _details(plan)),
            pages.Details("How to read this", (pages.Text(items=tuple(_READING.splitlines())),)),
        ),
    )


def _headline(plans: Sequence[Plan], failures: Sequence[str]) -> pages.Callout:
    if failures:
        fail = sum(bool(plan.failures) for plan in plans)
        which = f" ({fail} of {len(plans)} plans)" if len(plans) > 1 else ""
        word, _, why = failures[0].partition(": ")
        return pages.Callout(word.upper(), f"{why}{which}", "bad")
    plan = max(plans, key=lambda plan: int(plan.layout.host_bytes.max()))
    takes = "" if plan.time.save_s is None else f", in {pages.seconds(plan.time.save_s)} or more"
    which = f", the largest of {len(plans)}," if len(plans) > 1 else ""
    hosts = plan.mesh.num_hosts
    each = f", at most {_most_written(plan)} by one of {hosts:,} hosts" if hosts > 1 else ""
    said = (
        f"save of {plan.tree.label} from {plan.mesh.label}{which} writes {_stored(plan)}{each}"
        f"{takes}; each device holds {pages.num_bytes(plan.device_bytes)}."
    )
    if any(map(_is_whole, plans)):
        return pages.Callout("NOTHING IS SHARDED", f"a {said}", "unsure")
    return pages.Callout("", f"A {said}")


def _is_whole(plan: Plan) -> bool:
    """Returns whether a mesh of several devices cuts no array, so that each device holds all."""
    arrays = plan.layout.arrays
    return plan.mesh.num_devices > 1 and all(each.shard_shape == each.shape for each in arrays)


def _following(source: LoadedSuite | CheckpointConfig, given: str) -> pages.Code | None:
    """Returns how to measure what was planned, where this machine may be able to."""
    if isinstance(source, LoadedSuite):
        return pages.Code(command("run", given, "-o", "results"), "Measure it.")
    if source.path is not None:
        return pages.Code(command("inspect", given), "How it is stored, and whether it is whole.")
    if source.nnx is not None:
        return pages.Code(command("init", "--nnx", given), "A suite that measures it here.")
    if source.model is not None:
        preset = command("init", "--preset", source.model)
        return pages.Code(preset, "A suite that measures it here, scaled down.")
    return None


def _stored(plan: Plan) -> str:
    """Returns the bytes on storage, or the bytes of all values, which compression stays below."""
    if plan.stored_bytes is None:
        return f"at most {pages.num_bytes(plan.tree.num_bytes)}"
    return pages.num_bytes(plan.stored_bytes)


def _most_written(plan: Plan) -> str:
    return pages.num_bytes(int(plan.layout.host_bytes.max()))


def _hosts(plan: Plan) -> pages.Table:
    """Returns bytes, memory and time of the save and the load on a host."""
    reading, memory, time = plan.reading, plan.memory, plan.time
    needed = pages.num_bytes(int(reading.need.max()))
    read = _range(int(reading.least.max()), int(reading.most.max()))
    written = plan.layout.host_bytes
    accelerators = pages.num_bytes(memory.save_accelerator)
    rows = (
        (
            "bytes",
            _range(int(written.min()), int(written.max())),
            read if read == needed else f"{read}, needs {needed}",
        ),
        (
            "memory, at most",
            f"{pages.num_bytes(memory.save)} more, {accelerators} from accelerators",
            f"{pages.num_bytes(memory.load)} more, its arrays included",
        ),
        (
            "time, at least",
            _time(time.save_s, plan.speeds.write, plan.speeds.write_source, "write"),
            _time(time.load_s, plan.speeds.read, plan.speeds.read_source, "read"),
        ),
    )
    headings = pages.columns("of a host", "save", f"load onto {plan.restore_mesh.label}")
    return pages.Table(headings, tuple(map(pages.Row, rows)))


def _range(least: int, most: int) -> str:
    low, high = pages.num_bytes(least), pages.num_bytes(most)
    return low if low == high else f"{low} to {high}"


def _time(least: float | None, speed: float | None, source: str, kind: str) -> str:
    if speed is None:
        return f"unknown: give --run or --{kind}-speed"
    if least is None:
        return "unknown: give --compression-ratio"
    return f"{pages.seconds(least)} at {speed:.3g} GiB/s per host ({source})"


def _facts(plan: Plan) -> Iterator[str]:
    """Yields what a reader should know of one plan, a line each."""
    mesh, device = plan.mesh, pages.num_bytes(plan.device_bytes)
    if mesh.num_devices > 1:
        if _is_whole(plan):
            yield (
                f"No axis of {mesh.label} is in the partition of an array and divides it, so that "
                f"each of the {mesh.num_devices:,} devices holds all {device}."
            )
        else:
            copies = pages.percent(plan.replicated_share)
            yield f"{copies} of all device memory holds another copy."
    if idle := int((plan.layout.host_bytes == 0).sum()):
        yield f"{idle:,} of {mesh.num_hosts:,} hosts write nothing."
    if plan.reading.most_ratio > 1:
        low, high = f"{plan.reading.least_ratio:.2f}", f"{plan.reading.most_ratio:.2f}"
        times = low if low == high else f"{low} to {high}"
        yield f"The host that is worst off reads {times} times what it needs."
    yield from (f"{note}." for note in plan.notes)


def _side_by_side(plans: Sequence[Plan]) -> pages.Table:
    headings = ("options~", "arrays#", "stored#", "by a host#", "on a device#", "fails#")
    rows = (
        pages.Row(
            (
                plan.options.label,
                pages.num_bytes(plan.tree.num_bytes),
                _stored(plan),
                _most_written(plan),
                pages.num_bytes(plan.device_bytes),
                pages.Cell("yes", "bad") if plan.failures else "no",
            ),
            pages.code(f"{plan.tree.label} on {plan.mesh.label}"),
        )
        for plan in plans
    )
    return pages.Table(pages.columns(*headings), tuple(rows))


def _details(plan: Plan) -> Iterator[pages.Element]:
    tree, mesh = plan.tree, plan.mesh
    devices, hosts = pages.count(mesh.num_devices, "device"), pages.count(mesh.num_hosts, "host")
    kinds = ((tree.arrays, "array"), (tree.numbers, "number"), (tree.strings, "string"))
    counts = ", ".join(pages.count(len(found), kind) for found, kind in kinds if found)
    elements = (
        f"{counts}; the arrays have {pages.num_bytes(tree.num_bytes)} and {plan.elements:,} "
        f"elements. An even share of {devices} is {plan.even_share:,.1f}, each really holds "
        f"{plan.largest_share:,}."
    )
    facts = (
        elements,
        f"{devices} on {hosts} of {mesh.devices_per_host}.",
        f"Saved with {plan.options.label}.",
    )
    largest = sorted(plan.layout.arrays, key=lambda array: -array.num_bytes)
    headings = ("array`", "shape", "dtype", "shard", "replicas#", "chunk", "bytes#")
    rows = (
        pages.Row(
            (
                array.name,
                _shape(array.shape),
                array.dtype,
                _shape(array.shard_shape),
                str(array.replicas),
                _shape(array.chunk_shape),
                pages.num_bytes(array.num_bytes),
            )
        )
        for array in largest[:_SHOWN]
    )
    rest = len(largest) - _SHOWN
    yield pages.Details(
        f"{pages.code(tree.label)} on {mesh.label}: its arrays",
        (
            pages.Text(items=facts),
            pages.Table(pages.columns(*headings), tuple(rows)),
            pages.Text(f"And {rest} smaller ones; `--json` has all." if rest > 0 else "", "dim"),
        ),
    )


def _shape(shape: tuple[int, ...]) -> str:
    return "×".join(map(str, shape)) or "scalar"
