"""Manifest of a run directory, `lineage.json`: digests of its files and of what they came from."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, Literal, Self

import pydantic

from orbax_bench_core.answers import ANSWERS
from orbax_bench_core.config import Arm
from orbax_bench_core.errors import UserError
from orbax_bench_core.files import AnyPath, ResultModel, is_there, read_at_most, write_atomically
from orbax_bench_core.lineage import digests
from orbax_bench_core.lineage.batches import NotedBatch, note_batches
from orbax_bench_core.provenance import PACKAGES, UNKNOWN, image_that_runs, package_version
from orbax_bench_core.records import Record, Run, RunDirectory, RunFile, RunInfo
from orbax_bench_core.sweep import SweepEntry, SweepPoint, is_builtin, sides

LINEAGE_FILE: Final = "lineage.json"
SMALL: Final = 2**28
"""Bytes of a checkpoint up to which all of them are read for its digest, without being asked."""
RECORDS: Final = "records"
CONFIG: Final = "config"
_PATH_OPTIONS: Final = ("checkpoint_path", "reference_checkpoint_path")
"""Options of built-ins that name a checkpoint to load."""

CHECKPOINT: Final = "checkpoint:"
"""Begins the name of a checkpoint; its path follows."""
BASELINE: Final = "baseline:"
"""Begins the name of what a run was compared with; its path follows."""
SAMPLES: Final = "samples.parquet"

TENSORBOARD: Final = "tensorboard"
METRICS: Final = RunFile.METRICS
_TABLES: Final = (SAMPLES, "summary.csv", METRICS)
_PAGES: Final = ("report.md", "report.html")
_CONCLUSIONS: Final[Mapping[str, tuple[str, ...]]] = {
    each.file: each.pages for each in ANSWERS if each.pages
}
"""Files drawn from the records of a run, and the pages that show them; a folder has figures."""
ENDING: Final = "ending.md"
"""The state of a run and its reasons, which the last step of a pipeline writes."""
OURS: Final = (
    *(RunFile.LIMITS, RunFile.HOST_LIMITS, *_TABLES, RunFile.BEST, TENSORBOARD, *_PAGES, ENDING),
    *(name for data, pages in _CONCLUSIONS.items() for name in (data, *pages)),
)
"""All that may be noted: where one is there that is not, nobody knows where it came from."""
_MOST: Final = 64
"""As many different environments or contents of checkpoints are kept."""


class MeasuredWith(ResultModel):
    """The software that records were measured with."""

    environment: str  # name of the environment; empty for that of the command
    image: str  # the container image, or `unknown`
    python: str  # version of Python
    versions: dict[str, str]  # versions of packages
    commit: str  # commit of the code, or `unknown`

    @classmethod
    def of(cls, record: Record) -> Self:
        """Returns the facts of a record."""
        provenance = record.provenance
        environment, git = record.measured.environment, provenance.get("git")
        return cls(
            environment="" if environment is None else environment.name,
            image=str(provenance.get("image", UNKNOWN)),
            python=str(provenance.get("python", UNKNOWN)),
            versions={k: str(version) for k, version in provenance.get("versions", {}).items()},
            commit=str(git.get("commit", UNKNOWN)) if isinstance(git, dict) else UNKNOWN,
        )


class Made(ResultModel):
    """One thing that was made, and what from."""

    digest: str  # SHA-256 of its content
    # digest of each thing that it was made from, at that time, by name: a file of the run
    # directory, `records`, `config`, `checkpoint:<path>` or `baseline:<path>`
    inputs: dict[str, str] = {}
    versions: dict[str, str] = {}  # versions of the packages that made it
    image: str = UNKNOWN  # the image that it was made in, or `unknown`


class Manifest(ResultModel):
    """All of `lineage.json`."""

    schema_version: Literal[2] = 2  # version of this layout
    run_id: str
    config_hash: str  # identity of its suite
    points: dict[str, digests.PointDigest] = {}  # the records of each sweep point
    made: dict[str, Made] = {}  # what was made, by name
    ran: tuple[MeasuredWith, ...] = ()  # what the records were measured with, each combination once
    # bytes of the different contents that were saved or loaded, by digest
    contents: dict[str, int] = {}
    # digest over all bytes of each checkpoint that was loaded, by its name; none of one that was
    # too large to be read without being asked
    all_bytes: dict[str, str] = {}
    # what each step of a pipeline measured, by name; a step that was lost has no file
    batches: dict[str, NotedBatch] = {}


class ManifestWriter:
    """The next manifest of a run: create it, make files from the records, then note these.

    Digests of the records and of what they were made from are taken as it is created, so that a
    record which is written meanwhile shows as a change.
    """

    def __init__(
        self, run: RunDirectory, info: RunInfo | None = None, *, deep: bool = False
    ) -> None:
        """Takes the digests of a run's suite, checkpoints and records; `deep` reads all bytes."""
        self._run, self._info = run, info or run.read_info()
        self._earlier = read_manifest(run)
        entries = self._info.expansion.points
        self._points = digests.point_digests(run.root, (entry.id for entry in entries))
        paths = {checkpoint_name(path): path for path in checkpoint_paths(entries)}
        checkpoints = {name: digests.checkpoint_digest(path) for name, path in paths.items()}
        self._made = {
            RECORDS: Made(
                digest=digests.records_digest(self._points),
                inputs={CONFIG: digests.config_digest(run), **checkpoints},
            )
        }
        of_all = {name: self._all_bytes(name, path, deep=deep) for name, path in paths.items()}
        self._of_all = {name: digest for name, digest in of_all.items() if digest != UNKNOWN}
        self._batches = note_batches(run)
        self._ran: dict[str, MeasuredWith] = {}
        self._contents: dict[str, int] = {}
        self._last: tuple[str, Arm | None] | None = None
        self._said: object = None

    def _all_bytes(self, name: str, path: str, *, deep: bool) -> str:
        """Returns the digest over all bytes; of a large checkpoint the noted one, if alike."""
        now = self._made[RECORDS].inputs[name]
        digest = digests.bytes_digest(path, None if deep else SMALL) if now != UNKNOWN else UNKNOWN
        if digest != UNKNOWN or self._earlier is None or RECORDS not in self._earlier.made:
            return digest
        same = self._earlier.made[RECORDS].inputs.get(name) == now
        return self._earlier.all_bytes.get(name, UNKNOWN) if same else UNKNOWN

    def add(self, record: Record) -> None:
        """Notes what a record was measured with."""
        point = (record.point_id, record.arm)
        said = (point, record.provenance)  # of which the repeats of a point mostly share one
        if len(self._ran) < _MOST and said != self._said:
            self._said = said
            with_ = MeasuredWith.of(record)
            self._ran.setdefault(with_.model_dump_json(), with_)
        if record.state is not None and point != self._last:
            self._last = point  # repeats of one point save the same
            if record.state.digest and len(self._contents) < _MOST:
                self._contents[f"sha256:{record.state.fingerprint}"] = record.state.num_bytes

    def note_report(self) -> None:
        """Writes what tables and pages were just made from; all records have been added."""
        self._add([RunFile.LIMITS, RunFile.HOST_LIMITS], {})
        self._add([*_TABLES, RunFile.BEST, TENSORBOARD], self._digests(RECORDS))
        self._add(_PAGES, self._digests(RECORDS, RunFile.LIMITS, RunFile.HOST_LIMITS))
        earlier = {} if self._earlier is None else self._earlier.made
        # A conclusion keeps what it was made from, so that it shows when there are other records.
        conclusions = (name for data, pages in _CONCLUSIONS.items() for name in (data, *pages))
        kept = (*conclusions, ENDING)
        self._made |= {name: earlier[name] for name in kept if name in earlier}
        self._write()

    def note_conclusion(self, file: str, *, baseline: str | None = None) -> None:
        """Writes what a verdict or a study was just made from.

        Args:
            file: The file of the conclusion, such as `verdicts.json`.
            baseline: What the run was compared with; None for arms of its own.
        """
        if self._earlier is None:
            for record in Run(self._run).records():
                self.add(record)
        else:
            self._made = {**self._earlier.made, RECORDS: self._made[RECORDS]}
            self._ran = {with_.model_dump_json(): with_ for with_ in self._earlier.ran}
            self._contents = self._earlier.contents
        inputs = self._digests(RECORDS)
        if SAMPLES in self._made and self._made[SAMPLES].inputs == inputs:
            inputs = self._digests(RECORDS, SAMPLES)
        if baseline is not None:
            inputs[f"{BASELINE}{_absolute(baseline)}"] = _digest_if_there(baseline)
        for name in (file, *_CONCLUSIONS[file]):
            self._made.pop(name, None)  # one may have no figures this time
        self._add([file], inputs)
        self._add(_CONCLUSIONS[file], self._digests(file))
        self._write()

    def _add(self, names: Sequence[str], inputs: dict[str, str]) -> None:
        """Notes files that this process has just made; one that is not there is left out."""
        for name in names:
            path = self._run.root / name
            if path.exists():
                self._made[name] = _made(path, inputs)

    def _digests(self, *names: str) -> dict[str, str]:
        return {name: self._made[name].digest for name in names if name in self._made}

    def _write(self) -> None:
        manifest = Manifest(
            run_id=self._info.run_id,
            config_hash=self._info.suite_identity,
            points=self._points,
            made=self._made,
            ran=tuple(self._ran.values()),
            contents=self._contents,
            all_bytes=self._of_all,
            batches=self._batches,
        )
        _write(self._run, manifest)


def note_ending(run: RunDirectory) -> None:
    """Writes what the ending of a run was just made from, the page that it names."""
    manifest = read_manifest(run)
    if manifest is None:
        return
    page = RunFile.VERDICTS if RunFile.VERDICTS in manifest.made else _PAGES[0]
    inputs = {name: manifest.made[name].digest for name in (page,) if name in manifest.made}
    made = {**manifest.made, ENDING: _made(run.root / ENDING, inputs)}
    _write(run, manifest.model_copy(update={"made": made}))


def _write(run: RunDirectory, manifest: Manifest) -> None:
    write_atomically(run.root / LINEAGE_FILE, manifest.model_dump_json(indent=1).encode())


def _made(path: AnyPath, inputs: dict[str, str]) -> Made:
    return Made(
        digest=digests.output_digest(path),
        inputs=inputs,
        versions=package_versions(),
        image=image_that_runs(),
    )


def read_manifest(run: RunDirectory) -> Manifest | None:
    """Returns the content of `lineage.json`, or None if it is missing or cannot be read."""
    try:
        return Manifest.model_validate_json(read_at_most(run.root / LINEAGE_FILE))
    except (OSError, pydantic.ValidationError):
        return None


def compared_with(run: RunDirectory) -> dict[str, str] | None:
    """Returns the baselines that a run was compared with, by place, each with its digest then.

    None where `lineage.json` does not say so of an existing comparison: it is missing or of before
    that, or cannot be read.
    """
    manifest = read_manifest(run)
    if manifest is None and is_there(run.root / LINEAGE_FILE):
        return None
    made = {} if manifest is None else manifest.made
    if RunFile.VERDICTS not in made and is_there(run.root / RunFile.VERDICTS):
        return None
    return {
        name.removeprefix(BASELINE): digest
        for each in made.values()
        for name, digest in each.inputs.items()
        if name.startswith(BASELINE)
    }


def made_from_these_records(run: RunDirectory, *names: str) -> bool:
    """Returns whether files are there, and were made from the existing records now.

    Args:
        run: The run directory.
        *names: The files; each must exist.

    Raises:
        UserError: `run.json` cannot be read.
    """
    manifest = read_manifest(run)
    if manifest is None:
        return False
    points = digests.point_digests(
        run.root, [entry.id for entry in run.read_info().expansion.points]
    )
    now, unknown = digests.records_digest(points), Made(digest=UNKNOWN)
    made = (manifest.made.get(name, unknown).inputs.get(RECORDS) for name in names)
    return all(digest == now for digest in made) and all(
        (run.root / name).exists() for name in names
    )


def checkpoint_paths(entries: Iterable[SweepEntry]) -> list[str]:
    """Returns the existing checkpoints that points load, by their config or as an option."""
    points = (point for entry in entries for point in sides(entry).values())
    found = (path for point in points for path in (point.checkpoint.path, *_option_paths(point)))
    return list(dict.fromkeys(filter(None, found)))


def _option_paths(point: SweepPoint) -> Iterator[str | None]:
    # Nobody knows what a user's own class means by an option of this name.
    if is_builtin(point.benchmark):
        yield from (point.options.get(name) for name in _PATH_OPTIONS)


def checkpoint_name(path: str) -> str:
    """Returns the name of a checkpoint among the inputs of records."""
    return f"{CHECKPOINT}{_absolute(path)}"


def package_versions() -> dict[str, str]:
    """Returns the versions of the packages in this process."""
    return {name: package_version(name) for name in PACKAGES}


def _absolute(path: str) -> str:
    """Returns a path that means the same wherever a command is called; a URI as it is."""
    return path if "://" in path else str(Path(path).absolute())


def _digest_if_there(baseline: str) -> str:
    try:
        return digests.baseline_digest(baseline)
    except UserError:  # it was there a moment ago, and a verdict is not lost for that
        return UNKNOWN
