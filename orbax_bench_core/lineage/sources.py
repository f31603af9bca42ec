"""Links of what lies outside a run directory: environments, checkpoints, baselines."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Final

from orbax_bench_core.errors import UserError
from orbax_bench_core.lineage.digests import baseline_digest, bytes_digest, checkpoint_digest
from orbax_bench_core.lineage.link import Link
from orbax_bench_core.lineage.manifest import MeasuredWith
from orbax_bench_core.provenance import UNKNOWN

_NOT_READ: Final = "names and sizes unchanged; contents not read: --deep"
_NEVER_NOTED: Final = (
    "names and sizes unchanged; contents unknown, for nobody noted a digest of all bytes"
)


def environment_links(ran: Iterable[MeasuredWith]) -> tuple[Link, ...]:
    """Returns what records were measured with, each combination once, with its image."""
    return tuple(map(_environment, {each.model_dump_json(): each for each in ran}.values()))


def _environment(ran: MeasuredWith) -> Link:
    image, _, digest = ran.image.partition("@")
    versions = {name: version for name, version in ran.versions.items() if version != UNKNOWN}
    return Link(
        what="environment",
        name=ran.environment or "of the command",
        status="not checked",
        details={"python": ran.python, **versions, "commit": ran.commit},
        made_from=(
            Link(what="image", name=image, status="not checked", recorded=digest or UNKNOWN),
        ),
    )


def checkpoint_link(path: str, recorded: str, noted: str, *, deep: bool) -> Link:
    """Returns the link of a checkpoint."""
    digest = checkpoint_digest(path)
    link = Link.checked(
        "checkpoint",
        path,
        recorded=recorded,
        digest="" if digest == UNKNOWN else digest,
        details={"digest of": "names, sizes and metadata files"},
    )
    # Where samples were put together, the checkpoint may have been out of reach.
    if recorded == UNKNOWN:
        return dataclasses.replace(link, status="not checked")
    if link.status != "unchanged":
        return link
    if not deep or noted == UNKNOWN:
        said = _NEVER_NOTED if deep else _NOT_READ
        return dataclasses.replace(link, status="unknown", compared=said)
    now = bytes_digest(path)
    of = {"digest of": "all bytes"}
    if now == UNKNOWN:  # it went away, or cannot be read
        return dataclasses.replace(link, status="missing", digest="", recorded=noted, details=of)
    return Link.checked("checkpoint", path, recorded=noted, digest=now, details=of)


def baseline_link(path: str, recorded: str, *, old: bool) -> Link:
    """Returns the link of a baseline; `old` when a release noted its digest that had other records.

    A digest of records depends on all that a record has, so that one of an earlier version cannot
    be computed again.
    """
    digest, details = "", {"digest of": "the records that it means"}
    try:
        digest = baseline_digest(path)
    except UserError as error:
        details = {"reason": str(error)}
    link = Link.checked("baseline", path, recorded=recorded, digest=digest, details=details)
    if old and link.status == "changed":
        said = "noted by an earlier release, whose digests of records cannot be computed again"
        return dataclasses.replace(link, status="unknown", compared=said)
    return link
