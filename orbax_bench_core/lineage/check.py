"""Check of a run directory against its manifest: every digest computed again and compared."""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Literal, Self

from orbax_bench_core.errors import UserError, did_you_mean, listed
from orbax_bench_core.files import read_at_most
from orbax_bench_core.lineage import digests, manifest
from orbax_bench_core.lineage.batches import BATCHES, NotedBatch, lost_batches, read_batch
from orbax_bench_core.provenance import UNKNOWN
from orbax_bench_core.records import Run, RunDirectory

Status = Literal[
    "unchanged", "changed", "missing", "not recorded", "not trusted", "not checked", "unknown"
]
BROKEN: tuple[Status, ...] = ("changed", "missing", "not recorded", "not trusted")
"""Statuses that break a chain: a verdict cannot be traced along it."""

_SHOWN: Final = 3
_MOST_DEEP: Final = 6
"""Things that are made from each other; a page is the fourth."""
_RECORD: Final = re.compile(r"records/[^/]+/[^/]+/host_\d+\.json")
_NOT_READ: Final = "names and sizes unchanged; contents not read: --deep"
_NEVER_NOTED: Final = (
    "names and sizes unchanged; contents unknown, for nobody noted a digest of all bytes"
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Finding:
    """One thing that was checked."""

    what: str  # what it is: `verdicts`, `samples`, `records`, `checkpoint`
    name: str  # its name or path
    # `unchanged` only when all its bytes were read in this call and have the digest that was noted;
    # `changed` when a digest differs; `missing` when it is not where it was; `not recorded` when
    # nobody noted its digest; `not trusted` of a signature that does not hold, or is by another
    # key; `not checked` when it has none to compare, such as an image; `unknown` when nothing
    # differs, but not all bytes were compared
    status: Status = "not checked"
    depth: int = 0  # how many things were made from it, one of the other, up to what was asked for
    digest: str = ""  # digest of what is there now; empty if there is none
    recorded: str = ""  # the digest that it had when the next thing was made of it
    # what else is known of it, in words
    details: dict[str, str] = dataclasses.field(default_factory=dict)
    compared: str = ""  # what was compared, in words, where that is not all bytes
    # files among the records that are not read as records of the run, a line each: nothing was made
    # of them
    left_out: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()  # names of what it was made from

    @classmethod
    def checked(cls, what: str, name: str, *, recorded: str, digest: str, **more: Any) -> Self:
        """Returns a finding whose status follows from its digests."""
        status = _status_of(recorded, digest)
        return cls(what=what, name=name, status=status, digest=digest, recorded=recorded, **more)

    def without(self, left_out: Sequence[str]) -> Finding:
        """Returns the finding on records; some files among them are not read as records."""
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


def is_unchanged(findings: Sequence[Finding]) -> bool | Literal["unknown"]:
    """Returns whether all is as it was; unknown when not all bytes were compared.

    Returns:
        False if any input is known to differ; True if none is and something was compared in full;
        `unknown` otherwise, also if there is no finding at all.
    """
    statuses = {finding.status for finding in findings}
    if not statuses.isdisjoint(BROKEN):
        return False
    return "unknown" if "unknown" in statuses or "unchanged" not in statuses else True


def check(run: RunDirectory, name: str = "", *, deep: bool = False) -> tuple[Finding, ...]:
    """Compares a run directory, or its file `name`, with what was noted; `deep` reads all bytes.

    Args:
        run: The run directory.
        name: A file, a record or a batch in it; empty for all that was noted.
        deep: Whether all bytes of checkpoints are read, and not only names, sizes and metadata
            files.

    Returns:
        What was asked for, then what it was made from, and so on.

    Raises:
        UserError: Nothing was noted of `name`.
    """
    return tuple(_Check(run, deep=deep).findings(name))


def environment_findings(ran: Iterable[manifest.MeasuredWith], depth: int) -> Iterator[Finding]:
    """Yields what records were measured with, each combination once, with its image.

    Args:
        ran: What each record was measured with.
        depth: How deep the findings lie in the tree of inputs.
    """
    for each in {each.model_dump_json(): each for each in ran}.values():
        image, _, digest = each.image.partition("@")
        versions = {name: value for name, value in each.versions.items() if value != UNKNOWN}
        yield Finding(
            what="environment",
            name=each.environment or "of the command",
            depth=depth,
            details={"python": each.python, **versions, "commit": each.commit},
            inputs=(image,),
        )
        yield Finding(what="image", name=image, depth=depth + 1, recorded=digest or UNKNOWN)


class _Check:
    """One check. Each digest is computed once, when it is first needed."""

    def __init__(self, run: RunDirectory, *, deep: bool) -> None:
        self._run, self._info, self._deep = run, run.read_info(), deep
        self._noted = manifest.read_manifest(run)
        self._manifest = self._noted or manifest.Manifest(
            run_id=self._info.run_id, config_hash=self._info.suite_identity
        )

    def findings(self, name: str) -> Iterator[Finding]:
        if name.startswith(f"{manifest.RECORDS}/"):
            yield self._record(name)
            yield from self._origins(1)
            return
        if name.startswith(f"{BATCHES}/"):
            yield self._batch(*self._noted_batch(name))
            name, above = manifest.RECORDS, 1
        else:
            above = 0
        made = self._manifest.made
        if name and self._noted is not None and name not in (*made, manifest.CONFIG):
            hint = did_you_mean(name, list(made))
            raise UserError(f"{self._run.root} says nothing of {name}: {hint}")
        depths = self._depths([name] if name else [*made] or [manifest.RECORDS])
        consumers = self._consumers(depths)
        for each, depth in sorted(depths.items(), key=lambda item: item[1]):
            if each == manifest.CONFIG and manifest.RECORDS in depths:
                continue  # it stands below the records, with all else that they were made from
            yield from self._of(each, depth + above, consumers.get(each, []))
        if not name and self._noted is not None:
            # Such as a verdict that somebody has put beside the records of a run without any.
            for each in manifest.OURS:
                if each not in made and (self._run.root / each).exists():
                    yield self._file(each, 0, ())

    def _depths(self, roots: Sequence[str]) -> dict[str, int]:
        """Returns all that some things were made from, by how far it is from them at most."""
        depths = dict.fromkeys(roots, 0)
        waiting = list(roots)
        while waiting:
            name = waiting.pop()
            below = depths[name] + 1
            for each in (
                self._inputs(name) if name != manifest.RECORDS and below <= _MOST_DEEP else ()
            ):
                # The longest way counts: a thing stands below all that was made from it.
                if depths.get(each, -1) < below:
                    depths[each] = below
                    waiting.append(each)
        return depths

    def _consumers(self, names: Iterable[str]) -> dict[str, list[str]]:
        """Returns the digests that things had when others of `names` were made from them."""
        found: dict[str, list[str]] = {}
        for name in names:
            for each, digest in self._inputs(name).items():
                found.setdefault(each, []).append(digest)
        return found

    def _inputs(self, name: str) -> Mapping[str, str]:
        made = self._made(name)
        return made.inputs or (
            {}
            if self._noted or name in (manifest.RECORDS, manifest.CONFIG)
            else {manifest.RECORDS: ""}
        )

    def _of(self, name: str, depth: int, recorded: Sequence[str]) -> Iterator[Finding]:
        if name == manifest.RECORDS:
            yield dataclasses.replace(self._records(recorded), depth=depth)
            yield from self._steps(depth + 1)
            yield from self._origins(depth + 1)
        elif name == manifest.CONFIG:
            yield self._config(depth, UNKNOWN)
        elif name.startswith(manifest.BASELINE):
            for digest in recorded or [UNKNOWN]:
                yield _baseline(name.removeprefix(manifest.BASELINE), digest, depth)
        else:
            yield self._file(name, depth, recorded)

    def _file(self, name: str, depth: int, recorded: Sequence[str]) -> Finding:
        made = self._made(name)
        version = made.versions.get("orbax-bench")
        details = {} if version is None else {"made by": f"orbax-bench {version}"}
        if made.image != UNKNOWN:
            details["in image"] = made.image
        digest = self._digest(name)
        return Finding.checked(
            _kind(name),
            name,
            recorded=_other_than(digest, [*recorded, made.digest]),
            digest=digest,
            depth=depth,
            details=details,
            inputs=tuple(self._inputs(name)),
        )

    def _record(self, path: str) -> Finding:
        """Returns the finding on one record; the digest of its point says whether it changed."""
        point_id = path.split("/")[1]
        if not _RECORD.fullmatch(path) and "." in path.rpartition("/")[2]:
            raise UserError(f"{self._run.root} says nothing of {path}: it is no record")
        before, now = self._manifest.points.get(point_id), self._points.get(point_id)
        finding = Finding(
            what="record",
            name=path,
            status=_status_of(
                "" if before is None else before.digest, "" if now is None else now.digest
            ),
            digest=self._digest(path),
            recorded=UNKNOWN,
            details={
                "point": self._point_names.get(point_id, point_id),
                "checked by": "all of its point",
            },
        )
        folder = f"{self._run.root}/records/{point_id}/"
        return finding.without([line for line in self._left_out if line.startswith(folder)])

    def _records(self, recorded: Sequence[str]) -> Finding:
        noted, now = self._made(manifest.RECORDS), self._points
        digest = digests.records_digest(now) if now else ""
        finding = Finding.checked(
            manifest.RECORDS,
            manifest.RECORDS,
            recorded=_other_than(digest, [*recorded, noted.digest]),
            digest=digest,
            details={
                "files": str(sum(point.files for point in now.values())),
                "points": str(len(now)),
            },
            inputs=tuple(noted.inputs),
        )
        if finding.status == "changed":
            latest = finding.recorded == noted.digest
            other = "these records are not those that it was made from"
            finding.details["differs"] = self._difference() if latest else other
        return finding.without(self._left_out)

    def _difference(self) -> str:
        """Returns the points whose records are not those of the manifest."""
        before, now = self._manifest.points, self._points
        return listed(
            [
                f"{self._point_names.get(point_id, point_id)} {point_id}"
                for point_id in {**before, **now}
                if before.get(point_id) != now.get(point_id)
            ],
            _SHOWN,
        )

    def _steps(self, depth: int) -> Iterator[Finding]:
        """Yields the batches of a pipeline, those that are not as they were first."""
        found = [self._batch(name, noted) for name, noted in self._manifest.batches.items()]
        for finding in sorted(found, key=lambda finding: finding.status not in BROKEN):
            yield dataclasses.replace(finding, depth=depth)

    def _noted_batch(self, path: str) -> tuple[str, NotedBatch]:
        for name, noted in self._manifest.batches.items():
            if noted.file == path:
                return name, noted
        raise UserError(f"{self._run.root} says nothing of {path}")

    def _batch(self, name: str, noted: NotedBatch) -> Finding:
        details = {"points": str(noted.points)} if noted.points else {}
        if not noted.file:
            lacking = lost_batches(self._run, self._points).get(name, ())
            if not lacking:
                details["its step named nothing"] = "its points have records"
                return Finding(what="batch", name=name, details=details)
            details["its step left nothing"] = f"no record of {listed(lacking, _SHOWN)}"
            return Finding(what="batch", name=name, status="missing", details=details)
        digest = self._digest(noted.file)
        finding = Finding.checked(
            "batch", noted.file, recorded=noted.digest, digest=digest, details=details
        )
        said = read_batch(self._run.root / noted.file) if finding.status == "unchanged" else None
        others = [
            point_id
            for point_id, digest in ({} if said is None else said.points).items()
            if point_id not in self._points or self._points[point_id].digest != digest
        ]
        if not others:
            return finding
        details["differs"] = f"its records of {listed(others, _SHOWN)}"
        return dataclasses.replace(finding, status="changed", details=details)

    def _origins(self, depth: int) -> Iterator[Finding]:
        """Yields what the records were made from."""
        inputs = self._made(manifest.RECORDS).inputs
        before = manifest.checkpoint_paths(self._info.expansion.points)
        loaded = dict.fromkeys(map(manifest.checkpoint_name, before), UNKNOWN)
        if not loaded:  # what was saved, where no checkpoint was there before
            contents = self._manifest.contents
            for digest in contents or [""]:
                details = {"bytes": str(contents[digest])} if contents else {}
                yield Finding(
                    what="checkpoint",
                    name="generated from the suite",
                    depth=depth,
                    recorded=digest,
                    details=details,
                )
        for name, digest in {**loaded, **inputs}.items():
            if name.startswith(manifest.CHECKPOINT):
                yield dataclasses.replace(self._checkpoint(name, digest), depth=depth)
        yield from environment_findings(self._manifest.ran, depth)
        yield self._config(depth, inputs.get(manifest.CONFIG, UNKNOWN))

    def _checkpoint(self, name: str, recorded: str) -> Finding:
        path = name.removeprefix(manifest.CHECKPOINT)
        noted = self._manifest.all_bytes.get(name, UNKNOWN)
        digest = digests.checkpoint_digest(path)
        finding = Finding.checked(
            "checkpoint",
            path,
            recorded=recorded,
            digest="" if digest == UNKNOWN else digest,
            details={"digest of": "names, sizes and metadata files"},
        )
        # Where samples were put together, the checkpoint may have been out of reach.
        if recorded == UNKNOWN:
            return dataclasses.replace(finding, status="not checked")
        if finding.status != "unchanged":
            return finding
        if not self._deep or noted == UNKNOWN:
            said = _NEVER_NOTED if self._deep else _NOT_READ
            return dataclasses.replace(finding, status="unknown", compared=said)
        now = digests.bytes_digest(path)
        return Finding.checked(
            "checkpoint",
            path,
            recorded=noted,
            digest="" if now == UNKNOWN else now,  # it went away, or cannot be read
            details={"digest of": "all bytes"},
        )

    def _config(self, depth: int, recorded: str) -> Finding:
        info = self._info
        details = {"hash": info.suite_identity, "run": info.run_id}
        if info.suite_file:
            details["file"] = self._suite_file(info.suite_file)
        return Finding.checked(
            manifest.CONFIG,
            f"{info.suite_name} in run.json",
            recorded=recorded,
            digest=digests.config_digest(self._run),
            depth=depth,
            details=details,
        )

    def _suite_file(self, file: str) -> str:
        try:
            same = read_at_most(file).decode() == self._info.suite_text
        except (OSError, ValueError):
            return f"{file} (not here; run.json holds its text)"
        if same:
            return f"{file} (still the same)"
        return f"{file} (not what ran: edited since, or overridden; run.json holds what ran)"

    def _made(self, name: str) -> manifest.Made:
        return self._manifest.made.get(name, manifest.Made(digest=UNKNOWN))

    def _digest(self, name: str) -> str:
        if ".." in name.split("/") or name.startswith("/"):
            return ""  # nothing that a run has made lies outside of it
        digest = digests.output_digest(self._run.root / name)
        return "" if digest == UNKNOWN else digest

    @functools.cached_property
    def _left_out(self) -> tuple[str, ...]:
        """Files among the records that are not read as records of the run, a line each."""
        return Run(self._run).strays()

    @functools.cached_property
    def _points(self) -> dict[str, digests.PointDigest]:
        return digests.point_digests(self._run.root, self._point_names)

    @functools.cached_property
    def _point_names(self) -> dict[str, str]:
        return {point.id: point.name for point in self._info.expansion.points}


def _kind(name: str) -> str:
    """Returns the kind of a file or folder that was made of the records."""
    if name.endswith((".html", ".md")):
        return "page"
    return "figures" if f"{name}.md" in manifest.OURS else name.partition(".")[0]


def _baseline(path: str, recorded: str, depth: int) -> Finding:
    digest, details = "", {"digest of": "the records that it means"}
    try:
        digest = digests.baseline_digest(path)
    except UserError as error:
        details = {"reason": str(error)}
    return Finding.checked(
        "baseline", path, recorded=recorded, digest=digest, depth=depth, details=details
    )


def _status_of(recorded: str, digest: str) -> Status:
    """Compares the noted digest with the one of now; empty if nothing is there."""
    if not digest:
        return "missing"
    if recorded in ("", UNKNOWN):
        return "not recorded"
    return "unchanged" if recorded == digest else "changed"


def _other_than(digest: str, recorded: Iterable[str]) -> str:
    """Returns a digest that was noted and is not that of now, or one that is; empty for none."""
    known = [each for each in recorded if each not in ("", UNKNOWN)]
    return next((each for each in known if each != digest), known[0] if known else "")
