"""Verification of a run directory's lineage: every digest recomputed and compared."""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Iterator, Mapping
from typing import Final

from orbax_bench_core.errors import Problem, UserError, shown
from orbax_bench_core.files import read_at_most
from orbax_bench_core.lineage.batch_files import read_batch
from orbax_bench_core.lineage.batches import NotedBatch, lost_batches
from orbax_bench_core.lineage.digests import (
    PointRecords,
    config_digest,
    output_digest,
    point_digests,
    records_digest,
)
from orbax_bench_core.lineage.link import BROKEN, Link, status_of
from orbax_bench_core.lineage.manifest import (
    BASELINE,
    CHECKPOINT,
    CONFIG,
    LINEAGE_FILE,
    LINEAGE_VERSION,
    RECORDS,
    SAMPLES,
    Made,
    Manifest,
    checkpoint_name,
    checkpoint_paths,
    read_manifest,
)
from orbax_bench_core.lineage.sources import baseline_link, checkpoint_link, environment_links
from orbax_bench_core.provenance import UNKNOWN
from orbax_bench_core.records import Run, RunDirectory, RunFile

_SHOWN: Final = 3
_MOST_DEEP: Final = 20
"""Things that are made from each other; a page is the fifth."""
_MOST_LINKS: Final = 300_000
_RECORD: Final = re.compile(r"records/[^/]+/[^/]+/host_\d+\.json")


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
        self._above: list[str] = []
        self._followed = 0

    def names(self) -> list[str]:
        """Returns what can be asked for, what is furthest from the records first."""
        made = self._manifest.made
        first = [name for name in (RunFile.VERDICTS, SAMPLES) if name in made]
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
            UserError: A record cannot be read, or the manifest says of something that it was made
                from itself, or more than one can follow.
        """
        self._followed = self._followed + 1 if self._above else 0
        deep = len(self._above) > _MOST_DEEP or self._followed > _MOST_LINKS
        if deep or name in self._above:
            what = "more than one can follow" if deep else "itself"
            said = f"damaged: it says that {shown(name)} was made from {what}; report the run again"
            raise UserError(Problem(said, file=f"{self._run.root}/{LINEAGE_FILE}"))
        self._above.append(name)
        try:
            return self._chain(name, recorded)
        finally:
            self._above.pop()

    def _chain(self, name: str, recorded: str) -> Link:
        if name == RECORDS:
            return self._records(recorded)
        if name == CONFIG:
            return self._config(recorded or UNKNOWN)
        if name.startswith(CHECKPOINT):
            path, noted = name.removeprefix(CHECKPOINT), self._manifest.all_bytes.get(name, UNKNOWN)
            return checkpoint_link(path, recorded or UNKNOWN, noted, deep=self._deep)
        if name.startswith(BASELINE):
            old = self._manifest.schema_version < LINEAGE_VERSION
            return baseline_link(name.removeprefix(BASELINE), recorded or UNKNOWN, old=old)
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
        status = status_of(
            "" if before is None else before.digest, "" if now is None else now.digest
        )
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
            *environment_links(self._manifest.ran),
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
            same = read_at_most(file).decode() == self._info.suite_text
        except (OSError, ValueError):
            return f"{file} (not here; run.json holds its text)"
        return f"{file} ({'still the same' if same else 'edited since; run.json holds what ran'})"

    def _made(self, name: str) -> Made:
        return self._manifest.made.get(name, Made(digest=UNKNOWN))

    def _digest(self, name: str) -> str:
        if ".." in name.split("/") or name.startswith("/"):
            return ""  # nothing that a run has made lies outside of it
        digest = output_digest(self._run.root / name)
        return "" if digest == UNKNOWN else digest

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
