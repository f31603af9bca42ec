"""Limits of a machine and a storage for people: what they can do at best."""

from orbax_bench_core import pages
from orbax_bench_core.errors import command
from orbax_bench_core.limits.model import Limits, ProbeName, ProbeResult
from orbax_bench_core.limits.probes import PROBES
from orbax_bench_core.limits.reasons import SENTENCES
from orbax_bench_core.reasons import in_words


def limits_document(found: Limits) -> pages.Document:
    """Returns limits for people."""
    measured = [result for result in found.probes if result.seconds]
    others = [result for result in found.probes if not result.seconds]
    capped_by = in_words(SENTENCES, *found.capped_by)
    repeats = pages.count(max(len(result.seconds) for result in found.probes), "repeat")
    moved = f"{pages.num_bytes(found.num_bytes)} of {found.dtype} in {found.num_threads} parts"
    columns = pages.columns("probe", "GiB/s#", "spread#", "bounds")
    return pages.Document(
        about=f"Limits of {found.path}, {moved} at once",
        headline=pages.Callout("", _said(found)),
        summary=(
            pages.Table(columns, tuple(map(_row, measured))),
            pages.Text(f"Fewer bytes than asked for: {capped_by}." if capped_by else ""),
        ),
        following=_following(found),
        details=(
            pages.Details("Not measured", (pages.Table(columns, tuple(map(_row, others))),)),
            pages.Text(
                f"Median of {repeats}, spread is the interquartile range over it; load "
                f"average {found.surroundings.load_average:.2g}.",
                "dim",
            ),
        ),
    )


def _said(found: Limits) -> str:
    """Returns the speeds that bound most saves and loads, with and without TensorStore."""
    kinds: tuple[tuple[str, ProbeName, ProbeName], ...] = (
        ("files are", "write_fsync", "read_cold"),
        ("arrays of TensorStore", "tensorstore_write", "tensorstore_read_cold"),
    )
    said = []
    for what, write, read in kinds:
        speeds = [
            f"{done} at {speed:.3g} GiB/s"
            for done, probe in (("written", write), ("read cold", read))
            if (speed := _speed(found, probe)) is not None
        ]
        if speeds:
            said.append(f"{what} {' and '.join(speeds)}")
    return f"{found.path}: {', '.join(said) or 'nothing could be measured'}."


def _speed(found: Limits, name: ProbeName) -> float | None:
    return next((result.gib_per_s for result in found.probes if result.name == name), None)


def _row(result: ProbeResult) -> pages.Row:
    speed = "–" if result.gib_per_s is None else f"{result.gib_per_s:.3g}"
    probe = PROBES[result.name]
    said = in_words(SENTENCES, *result.reason) or probe.bounds
    return pages.Row((probe.title, speed, pages.percent(result.spread), said))


def _following(found: Limits) -> pages.Code | None:
    write, read = _speed(found, "write_fsync"), _speed(found, "read_cold")
    if write is None or read is None:
        return None
    speeds = ("--write-speed", f"{write:.3g}", "--read-speed", f"{read:.3g}")
    return pages.Code(
        command("plan", "llama-8b", *speeds),
        "How long a save and a load of your model take at least at these speeds; name it.",
    )
