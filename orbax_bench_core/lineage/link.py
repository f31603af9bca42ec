"""Chain of lineage: a tree of links, each one thing with all that it was made from."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any, Literal, Self

from orbax_bench_core.provenance import UNKNOWN

Status = Literal["unchanged", "changed", "missing", "not recorded", "not checked", "unknown"]
BROKEN: tuple[Status, ...] = ("changed", "missing", "not recorded")
"""Statuses that break a chain: a verdict cannot be traced along it."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Link:
    """One thing of a chain, with what it was made from.

    Attributes:
        what: What it is: `verdicts`, `samples`, `records`, `checkpoint`.
        name: Its name or path.
        status: `unchanged` only when all its bytes were read in this call and have the digest that
            was noted; `changed` when a digest differs; `missing` when it is not where it was; `not
            recorded` when nobody noted its digest; `not checked` when it has none to compare, such
            as an image; `unknown` when nothing differs, but not all bytes were compared.
        compared: What was compared, in words, where that is not all bytes.
        digest: Digest of what is there now; empty where there is none.
        recorded: The digest that it had when the next thing was made of it.
        details: What else is known of it, in words.
        left_out: Files among the records that are not read as records of the run, a line each:
            nothing was made of them.
        made_from: What it was made from.
    """

    what: str
    name: str
    status: Status
    digest: str = ""
    recorded: str = ""
    details: dict[str, str] = dataclasses.field(default_factory=dict)
    compared: str = ""
    left_out: tuple[str, ...] = ()
    made_from: tuple[Link, ...] = ()

    @classmethod
    def checked(cls, what: str, name: str, *, recorded: str, digest: str, **more: Any) -> Self:
        """Returns a link whose status follows from its digests."""
        status = status_of(recorded, digest)
        return cls(what=what, name=name, status=status, digest=digest, recorded=recorded, **more)

    def without(self, left_out: Sequence[str]) -> Link:
        """Returns the link of records, among which some files are not read as records.

        Although all bytes may be what they were, nobody here knows what those files say.
        """
        if not left_out:
            return self
        agree = self.status == "unchanged"
        count = f"{len(left_out)} files are" if len(left_out) > 1 else "1 file is"
        return dataclasses.replace(
            self,
            status="unknown" if agree else self.status,
            compared=f"digests agree; {count} not read as a record" if agree else self.compared,
            left_out=tuple(left_out),
        )

    def all_links(self) -> Iterator[Link]:
        """Yields this link, and every one below it."""
        yield self
        for link in self.made_from:
            yield from link.all_links()

    @property
    def broken(self) -> bool:
        """Whether something on the way has changed, is missing or was never recorded."""
        return any(link.status in BROKEN for link in self.all_links())

    @property
    def lacks_records(self) -> bool:
        """Whether files among the records are not read as records."""
        return any(link.left_out for link in self.all_links())

    @property
    def unchanged(self) -> bool | Literal["unknown"]:
        """Whether all is as it was; unknown when not all bytes were compared."""
        if self.broken:
            return False
        statuses = [link.status for link in self.all_links()]
        return "unknown" if "unknown" in statuses or "unchanged" not in statuses else True

    def as_json(self) -> dict[str, Any]:
        """Returns the link, and all below it, as plain data."""
        return dataclasses.asdict(self)


def status_of(recorded: str, digest: str) -> Status:
    """Returns what the noted digest and that of now, empty where nothing is there, say."""
    if not digest:
        return "missing"
    if recorded in ("", UNKNOWN):
        return "not recorded"
    return "unchanged" if recorded == digest else "changed"
