"""Verification of a run directory's lineage: every digest recomputed and compared.

A chain is a tree of links: each thing with all that it was made from.
"""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal, Self

from orbax_bench_core.config import UserError
from orbax_bench_core.lineage.batches import NotedBatch, lost_batches
from orbax_bench_core.lineage.digests import (
    PointRecords,
    baseline_digest,
    bytes_digest,
    checkpoint_digest,
    config_digest,
    file_digest,
    point_digests,
    records_digest,
)
from orbax_bench_core.lineage.manifest import (
    BASELINE,
    CHECKPOINT,
    CONFIG,
    LINEAGE_VERSION,
    RECORDS,
    SAMPLES,
    Made,
    Manifest,
    MeasuredWith,
    checkpoint_name,
    checkpoint_paths,
    read_manifest,
)
from orbax_bench_core.records import (
    UNKNOWN,
    VERDICTS_FILE,
    Run,
    RunDirectory,
    read_batch,
)

_SHOWN: Final = 3
_RECORD: Final = re.compile(r"records/[^/]+/[^/]+/host_\d+\.json")
_NOT_READ: Final = "names and sizes unchanged; contents not read: --deep"
_NEVER_NOTED: Final = (
    "names and sizes unchanged; contents unknown, for nobody noted a digest of all bytes"
)

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
        """Returns a link whose status follows from its digests.

        Args:
            what: What it is.
            name: Its name or path.
            recorded: The digest that was noted; `unknown` or empty when none was.
            digest: The digest that it has now; empty when it is not there.
            **more: `details` and `made_from`.
        """
        status = _status(recorded, digest)
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


class Verifier:
    """The chains of one run directory. Each digest is computed once, when it is first needed."""

    def __init__(self, run: RunDirectory, *, deep: bool = False) -> None:
        """Reads what the run says of itself; with `deep` all bytes of checkpoints are read.

        Raises:
            UserError: There is no run here.
        """
        self._run, self._info, self._deep = run, run.read_info(), deep
        manifest = read_manifest(run)
        self.recorded = manifest is not None
        self._manifest = manifest or Manifest(
            run_id=self._info.run_id, config_hash=self._info.suite_identity
        )

    def names(self) -> list[str]:
        """Returns what can be asked for, what is furthest from the records first."""
        made = self._manifest.made
        first = [name for name in (VERDICTS_FILE, SAMPLES) if name in made]
        return [*first, *(name for name in made if name not in (*first, RECORDS)), RECORDS]

    def name_of(self, digest: str) -> str | None:
        """Returns the name of what was written here with a digest; None when nothing was."""
        made = self._manifest.made
        return next((name for name in made if made[name].digest == digest), None)

    def chain(self, name: str, recorded: str = "") -> Link:
        """Returns something of the run with all that it was made from.

        Args:
            name: A file of the run directory, or another name that `lineage.json` has.
            recorded: The digest that it had when something was made of it; empty for what was
                noted when it was written.

        Raises:
            UserError: A record cannot be read.
        """
        if name == RECORDS:
            return self._records(recorded)
        if name == CONFIG:
            return self._config(recorded or UNKNOWN)
        if name.startswith(CHECKPOINT):
            path, noted = name.removeprefix(CHECKPOINT), self._manifest.all_bytes.get(name, UNKNOWN)
            return _checkpoint(path, recorded or UNKNOWN, noted, deep=self._deep)
        if name.startswith(BASELINE):
            old = self._manifest.schema_version < LINEAGE_VERSION
            return _baseline(name.removeprefix(BASELINE), recorded or UNKNOWN, old=old)
        return self._file(name, recorded)

    def record(self, path: str) -> Link:
        """Returns one record with all that it was made from.

        Its own digest is part of that of its point, so that the point's says whether it changed.

        Args:
            path: Where it lies in the run directory: `records/<point>/repeat_<r>/host_<h>.json`.

        Raises:
            UserError: A record cannot be read, or this is no record.
        """
        point_id = path.split("/")[1]
        if not _RECORD.fullmatch(path) and "." in path.rpartition("/")[2]:
            raise UserError(f"{self._run.root} says nothing of {path}: it is no record")
        before, now = self._manifest.points.get(point_id), self._points.get(point_id)
        status = _status("" if before is None else before.digest, "" if now is None else now.digest)
        link = Link(
            what="record",
            name=path,
            status=status,
            digest=self._digest(path),
            recorded=UNKNOWN,
            details={
                "point": self._point_names.get(point_id, point_id),
                "checked by": "all of its point",
            },
            made_from=self._origins(),
        )
        folder = f"{self._run.root}/records/{point_id}/"
        return link.without([line for line in self._left_out if line.startswith(folder)])

    def batch(self, path: str) -> Link:
        """Returns what a step of a pipeline said of its points, with all that these were made from.

        Args:
            path: Where it lies in the run directory: `batches/<name>.<n>.json`.

        Raises:
            UserError: `lineage.json` does not know it, or a record cannot be read.
        """
        for name, noted in self._manifest.batches.items():
            if noted.file == path:
                link = self._batch(name, noted)
                return dataclasses.replace(link, made_from=(self.chain(RECORDS),))
        raise UserError(f"{self._run.root} says nothing of {path}")

    def _steps(self) -> Iterator[Link]:
        """Yields one link over all batches, those that are not as they were first."""
        noted = self._manifest.batches
        if not noted:
            return
        links = sorted(
            (self._batch(name, batch) for name, batch in noted.items()),
            key=lambda link: link.status not in BROKEN,
        )
        lost = sum(not batch.file for batch in noted.values())
        details = {"left nothing": str(lost)} if lost else {}
        yield Link(
            what="steps",
            name=f"{len(links)} batches of points",
            status="not checked",
            details=details,
            made_from=tuple(links),
        )

    def _batch(self, name: str, noted: NotedBatch) -> Link:
        details = {"points": str(noted.points)} if noted.points else {}
        if not noted.file:
            return self._lost(name, details)
        link = Link.checked(
            "batch",
            noted.file,
            recorded=noted.digest,
            digest=self._digest(noted.file),
            details=details,
        )
        said = read_batch(self._run.root / noted.file) if link.status == "unchanged" else None
        if said is None:
            return link
        others = [
            point_id
            for point_id, digest in said.points.items()
            if point_id not in self._points or self._points[point_id].digest != digest
        ]
        if not others:
            return link
        many = f" and {len(others) - _SHOWN} more" if len(others) > _SHOWN else ""
        differs = f"its records of {', '.join(others[:_SHOWN])}{many}"
        return dataclasses.replace(link, status="changed", details={**details, "differs": differs})

    def _lost(self, name: str, details: dict[str, str]) -> Link:
        """Returns the link of a batch whose step left nothing; others may have measured it."""
        lacking = lost_batches(self._run, self._points).get(name, ())
        if not lacking:
            said = {"its step named nothing": "its points have records"}
            return Link(what="batch", name=name, status="not checked", details=details | said)
        shown = ", ".join(lacking[:_SHOWN])
        more = f" and {len(lacking) - _SHOWN} more" if len(lacking) > _SHOWN else ""
        return Link(
            what="batch",
            name=name,
            status="missing",
            details={**details, "its step left nothing": f"no record of {shown}{more}"},
        )

    def _file(self, name: str, recorded: str) -> Link:
        made = self._made(name)
        inputs = made.inputs or ({} if self.recorded else {RECORDS: ""})
        version = made.versions.get("orbax-bench")
        details = {} if version is None else {"made by": f"orbax-bench {version}"}
        if made.image != UNKNOWN:
            details["in image"] = made.image
        return Link.checked(
            "page" if name.endswith((".html", ".md")) else name.partition(".")[0],
            name,
            recorded=recorded or made.digest,
            digest=self._digest(name),
            details=details,
            made_from=tuple(self.chain(*each) for each in self._direct(inputs).items()),
        )

    def _direct(self, inputs: Mapping[str, str]) -> dict[str, str]:
        """Returns the inputs that are not those of another input too, which comes between."""
        of_inputs = {
            each
            for name, digest in inputs.items()
            if self._made(name).digest == digest
            for each in self._made(name).inputs.items()
        }
        return {name: digest for name, digest in inputs.items() if (name, digest) not in of_inputs}

    def _records(self, recorded: str) -> Link:
        noted, now = self._made(RECORDS).digest, self._points
        link = Link.checked(
            RECORDS,
            RECORDS,
            recorded=recorded or noted,
            digest=records_digest(now) if now else "",
            details={
                "files": str(sum(point.files for point in now.values())),
                "points": str(len(now)),
            },
            made_from=(*self._steps(), *self._origins()),
        )
        if link.status == "changed":
            latest = link.recorded == noted
            other = "these records are not those that it was made from"
            link.details["differs"] = self._difference() if latest else other
        return link.without(self._left_out)

    def _difference(self) -> str:
        """Returns the points whose records are not those of the manifest."""
        before, now = self._manifest.points, self._points
        points = [
            f"{self._point_names.get(point_id, point_id)} {point_id}"
            for point_id in {**before, **now}
            if before.get(point_id) != now.get(point_id)
        ]
        more = f" and {len(points) - _SHOWN} more" if len(points) > _SHOWN else ""
        return f"{', '.join(points[:_SHOWN])}{more}"

    def _origins(self) -> tuple[Link, ...]:
        """Returns what the records were made from."""
        inputs = self._made(RECORDS).inputs
        loaded = dict.fromkeys(map(checkpoint_name, self._loaded), UNKNOWN)
        return (
            *self._generated(),
            *(self.chain(*each) for each in {**loaded, **inputs}.items() if each[0] != CONFIG),
            *environments(self._manifest.ran),
            self._config(inputs.get(CONFIG, UNKNOWN)),
        )

    def _generated(self) -> Iterator[Link]:
        """Yields what was saved, where no checkpoint was there before."""
        if self._loaded:
            return
        contents = self._manifest.contents
        for digest in contents or [""]:
            yield Link(
                what="checkpoint",
                name="generated from the suite",
                status="not checked",
                recorded=digest,
                details={"bytes": str(contents[digest])} if contents else {},
            )

    def _config(self, recorded: str) -> Link:
        info = self._info
        details = {"hash": info.suite_identity, "run": info.run_id}
        if info.suite_file:
            details["file"] = self._suite_file(info.suite_file)
        return Link.checked(
            CONFIG,
            f"{info.suite_name} in run.json",
            recorded=recorded,
            digest=config_digest(self._run),
            details=details,
        )

    def _suite_file(self, file: str) -> str:
        try:
            same = Path(file).read_text() == self._info.suite_text
        except (OSError, ValueError):
            return f"{file} (not here; run.json holds its text)"
        return f"{file} ({'still the same' if same else 'edited since; run.json holds what ran'})"

    def _made(self, name: str) -> Made:
        return self._manifest.made.get(name, Made(digest=UNKNOWN))

    def _digest(self, name: str) -> str:
        path = self._run.root / name
        try:
            if path.is_dir():
                digest = bytes_digest(str(path))
                return "" if digest == UNKNOWN else digest
            return file_digest(path)
        except OSError:
            return ""

    @functools.cached_property
    def _loaded(self) -> list[str]:
        """The checkpoints that were there before."""
        return checkpoint_paths(self._info.expansion.points)

    @functools.cached_property
    def _left_out(self) -> tuple[str, ...]:
        """Files among the records that are not read as records of the run, a line each."""
        return Run(self._run).strays()

    @functools.cached_property
    def _points(self) -> dict[str, PointRecords]:
        """The records that are there now, by point."""
        return point_digests(self._run.root, self._point_names)

    @functools.cached_property
    def _point_names(self) -> dict[str, str]:
        return {point.id: point.name for point in self._info.expansion.points}


def environments(ran: Iterable[MeasuredWith]) -> tuple[Link, ...]:
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


def _checkpoint(path: str, recorded: str, noted: str, *, deep: bool) -> Link:
    """Returns the link of a checkpoint.

    Args:
        path: Where it is.
        recorded: The digest of names, sizes and metadata files that was noted.
        noted: The digest of all bytes that was noted, or `unknown`.
        deep: Whether to read all bytes.
    """
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


def _baseline(path: str, recorded: str, *, old: bool) -> Link:
    """Returns the link of a baseline; `old` when a release noted its digest that had other records.

    A digest of records depends on all that a record has, so that one of an earlier version cannot
    be computed anew.
    """
    digest, details = "", {"digest of": "the records that it means"}
    try:
        digest = baseline_digest(path)
    except UserError as error:
        details = {"reason": str(error)}
    link = Link.checked("baseline", path, recorded=recorded, digest=digest, details=details)
    if old and link.status == "changed":
        said = "noted by an earlier release, whose digests of records cannot be computed anew"
        return dataclasses.replace(link, status="unknown", compared=said)
    return link


def _status(recorded: str, digest: str) -> Status:
    if not digest:
        return "missing"
    if recorded in ("", UNKNOWN):
        return "not recorded"
    return "unchanged" if recorded == digest else "changed"
