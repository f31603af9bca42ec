"""What a chain of lineage looks like, wherever it was read from."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any, Literal

Status = Literal["unchanged", "changed", "missing", "not recorded", "not checked"]
BROKEN: tuple[Status, ...] = ("changed", "missing", "not recorded")
"""What makes a chain one that a verdict cannot be traced along."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Link:
    """One thing of a chain, with what it was made from.

    Attributes:
        what: What it is: `verdicts`, `samples`, `records`, `checkpoint`.
        name: Its name or path.
        status: `unchanged` and `changed` by its digest; `missing` when it is not where it was;
            `not recorded` when nobody noted its digest; `not checked` when it has none to compare,
            such as an image.
        digest: Digest of what is there now; empty where there is none.
        recorded: The digest that it had when the next thing was made of it.
        details: What else is known of it, in words.
        made_from: What it was made from.
    """

    what: str
    name: str
    status: Status
    digest: str = ""
    recorded: str = ""
    details: dict[str, str] = dataclasses.field(default_factory=dict)
    made_from: tuple[Link, ...] = ()

    def all_links(self) -> Iterator[Link]:
        """Yields this link, and every one below it."""
        yield self
        for link in self.made_from:
            yield from link.all_links()

    @property
    def broken(self) -> bool:
        """Whether something on the way has changed, is missing or was never recorded."""
        return any(link.status in BROKEN for link in self.all_links())

    def as_json(self) -> dict[str, Any]:
        """Returns the link, and all below it, as plain data."""
        return dataclasses.asdict(self)


def status_of(recorded: str, now: str) -> Status:
    """Compares the digest that something had with the one that it has.

    Args:
        recorded: What was noted of it; `unknown` or empty when nothing was.
        now: What it has now; empty when it is not there.
    """
    if not now:
        return "missing"
    if recorded in ("", "unknown"):
        return "not recorded"
    return "unchanged" if recorded == now else "changed"
