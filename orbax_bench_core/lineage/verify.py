"""From a file of a run directory back to all that it was made from."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, Literal

from orbax_bench_core.config import UserError
from orbax_bench_core.lineage.digests import (
    PointRecords,
    digest_of_all,
    digest_of_file,
    digests_of_records,
)
from orbax_bench_core.lineage.manifest import (
    BASELINE,
    CHECKPOINT,
    CONFIG,
    RECORDS,
    Lineage,
    Made,
    Ran,
    checkpoint_digest,
    checkpoint_paths,
    digest_of_config,
    read_lineage,
)
from orbax_bench_core.records import UNKNOWN, RunDirectory, RunInfo

VERDICTS: Final = "verdicts.json"
SAMPLES: Final = "samples.parquet"
_SHOWN: Final = 3

BaselineDigest = Callable[[str], str]


class RunLineage:
    """The lineage of one run directory, with every digest computed anew, each once."""

    def __init__(self, run: RunDirectory, baseline_digest: BaselineDigest) -> None:
        """Reads what the run says of itself.

        Args:
            run: The run directory.
            baseline_digest: Returns the digest of a stored baseline as it is now, or raises
                `UserError`.

        Raises:
            UserError: There is no run here.
        """
        self._run = run
        self._baseline_digest = baseline_digest
        self._info: RunInfo = run.read_info()
        lineage = read_lineage(run)
        self.recorded = lineage is not None
        self._lineage = lineage or Lineage(
            run_id=self._info.run_id, config_hash=self._info.suite_identity
        )

    def names(self) -> list[str]:
        """Returns what can be asked for, what is furthest from the records first."""
        known = [name for name in self._lineage.made if name != RECORDS]
        first = [name for name in (VERDICTS, SAMPLES) if name in known]
        return [*first, *(name for name in known if name not in first), RECORDS]

    def chain(self, name: str, recorded: str | None = None) -> Link:
        """Returns something of the run with all that it was made from.

        Args:
            name: A file of the run directory, or another name that `lineage.json` has.
            recorded: The digest that it had when something was made of it; by default what was
                noted when it was written.

        Raises:
            UserError: A record is of another schema version.
        """
        if name == RECORDS:
            return self._records(recorded)
        if name == CONFIG:
            return self._config(recorded or UNKNOWN)
        if name.startswith(CHECKPOINT):
            return self._checkpoint(name.removeprefix(CHECKPOINT), recorded or UNKNOWN)
        if name.startswith(BASELINE):
            return self._baseline(name.removeprefix(BASELINE), recorded or UNKNOWN)
        return self._file(name, recorded)

    def record(self, path: str) -> Link:
        """Returns one record with all that it was made from.

        Its own digest is part of that of its point, so that the point's says whether it changed.

        Args:
            path: Where it lies in the run directory: `records/<point>/repeat_<r>/host_<h>.json`.

        Raises:
            UserError: A record is of another schema version.
        """
        every, point_id = self._records(None), path.split("/")[1]
        before, now = self._lineage.points.get(point_id), self._points_now.get(point_id)
        names = {point.id: point.name for point in self._info.expansion.points}
        return Link(
            what="record",
            name=path,
            status=status_of("" if before is None else before.digest, now.digest if now else ""),
            digest=self._digest_of_file(path),
            recorded=UNKNOWN,
            details={"point": names.get(point_id, point_id), "checked by": "all of its point"},
            made_from=every.made_from,
        )

    def named(self, digest: str) -> str | None:
        """Returns the name of what was written here with a digest; None when nothing was."""
        found = (name for name, made in self._lineage.made.items() if made.digest == digest)
        return next(found, None)

    def _file(self, name: str, recorded: str | None) -> Link:
        made = self._lineage.made.get(name, Made(digest=UNKNOWN))
        recorded = recorded or made.digest
        now = self._digest_of_file(name)
        inputs = made.inputs or ({} if self.recorded or name == RECORDS else {RECORDS: ""})
        return Link(
            what="page" if name.endswith((".html", ".md")) else name.partition(".")[0],
            name=name,
            status=status_of(recorded, now),
            digest=now,
            recorded=recorded,
            details=_made_with(made),
            made_from=tuple(
                self.chain(each, digest or None) for each, digest in self._direct(inputs).items()
            ),
        )

    def _direct(self, inputs: Mapping[str, str]) -> dict[str, str]:
        """Returns the inputs that are not those of another input too, which comes between."""
        of_inputs = {
            (name, digest)
            for each, given in inputs.items()
            if each in self._lineage.made and self._lineage.made[each].digest == given
            for name, digest in self._lineage.made[each].inputs.items()
        }
        return {name: digest for name, digest in inputs.items() if (name, digest) not in of_inputs}

    def _records(self, recorded: str | None) -> Link:
        made = self._lineage.made.get(RECORDS, Made(digest=UNKNOWN))
        recorded, now = recorded or made.digest, self._points_now
        files = sum(point.files for point in now.values())
        digest = digest_of_all(now) if files else ""
        status = status_of(recorded, digest)
        details = {"files": str(files), "points": str(len(now))}
        if status == "changed":
            details["differs"] = self._difference(recorded == made.digest)
        inputs = made.inputs or {CONFIG: UNKNOWN}
        return Link(
            what=RECORDS,
            name=RECORDS,
            status=status,
            digest=digest,
            recorded=recorded,
            details=details,
            made_from=(
                *self._contents(),
                *(self.chain(name, given) for name, given in inputs.items() if name != CONFIG),
                *map(environment_link, self._lineage.ran),
                self._config(inputs.get(CONFIG, UNKNOWN)),
            ),
        )

    def _difference(self, latest: bool) -> str:
        if not latest:
            return "these records are not those that it was made from"
        before, now = self._lineage.points, self._points_now
        names = {point.id: point.name for point in self._info.expansion.points}
        found = [
            f"{names.get(point_id, point_id)} {point_id}"
            for point_id in {**before, **now}
            if before.get(point_id) != now.get(point_id)
        ]
        more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
        return f"{', '.join(found[:_SHOWN])}{more}"

    def _contents(self) -> list[Link]:
        """Returns what was saved, where no checkpoint was there before."""
        if checkpoint_paths(self._info):
            return []
        generated = {
            digest: {"bytes": str(size)} for digest, size in self._lineage.contents.items()
        }
        return [
            Link(
                what="checkpoint",
                name="generated from the suite",
                status="not checked",
                recorded=digest,
                details=details,
            )
            for digest, details in (generated or {"": {}}).items()
        ]

    def _checkpoint(self, path: str, recorded: str) -> Link:
        found = checkpoint_digest(path)
        now = "" if found == UNKNOWN else found
        status = status_of(recorded, now)
        return Link(
            what="checkpoint",
            name=path,
            # Where samples were put together, the checkpoint may have been out of reach.
            status="not checked" if recorded == UNKNOWN else status,
            digest=now,
            recorded=recorded,
            details={"digest of": "names, sizes and metadata files"},
        )

    def _baseline(self, path: str, recorded: str) -> Link:
        try:
            now = self._baseline_digest(path)
        except UserError as error:
            return Link(
                what="baseline",
                name=path,
                status="missing",
                recorded=recorded,
                details={"reason": str(error)},
            )
        return Link(
            what="baseline",
            name=path,
            status=status_of(recorded, now),
            digest=now,
            recorded=recorded,
            details={"digest of": "the records that it means"},
        )

    def _config(self, recorded: str) -> Link:
        info, now = self._info, digest_of_config(self._run)
        return Link(
            what=CONFIG,
            name=f"{info.suite_name} in run.json",
            status=status_of(recorded, now),
            digest=now,
            recorded=recorded,
            details={
                "hash": info.suite_identity,
                "run": info.run_id,
                **({"file": self._suite_file()} if info.suite_file else {}),
            },
        )

    def _suite_file(self) -> str:
        file = self._info.suite_file
        try:
            same = Path(file).read_text() == self._info.suite_text
        except (OSError, ValueError):
            return f"{file} (not here; run.json holds its text)"
        return f"{file} ({'still the same' if same else 'edited since; run.json holds what ran'})"

    def _digest_of_file(self, name: str) -> str:
        try:
            return digest_of_file(self._run.root / name)
        except OSError:
            return ""

    @functools.cached_property
    def _points_now(self) -> dict[str, PointRecords]:
        point_ids = [point.id for point in self._info.expansion.points]
        return digests_of_records(self._run.root, point_ids)


def environment_link(ran: Ran) -> Link:
    """Returns what records were measured with, and the image that it was in."""
    image, _, digest = ran.image.partition("@")
    found = {
        "python": ran.python,
        **{name: version for name, version in ran.versions.items() if version != UNKNOWN},
        "commit": ran.commit,
    }
    return Link(
        what="environment",
        name=ran.environment or "of the command",
        status="not checked",
        details=found,
        made_from=(
            Link(what="image", name=image, status="not checked", recorded=digest or UNKNOWN),
        ),
    )


def _made_with(made: Made) -> dict[str, str]:
    version = made.versions.get("orbax-bench")
    found = {} if version is None else {"made by": f"orbax-bench {version}"}
    return found if made.image == UNKNOWN else {**found, "in image": made.image}


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
