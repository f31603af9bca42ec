"""Registry of baselines: a folder of captures to which files are only added."""

import contextlib
import datetime
import getpass
import hashlib
import json
import re
import socket
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from orbax_bench_core import files
from orbax_bench_core.baselines.captures import (
    Baseline,
    Capture,
    Promotion,
    is_capture_id,
    read_baseline,
    read_capture,
    read_promotion,
)
from orbax_bench_core.errors import Problem, UserError, shown
from orbax_bench_core.provenance import package_version

_PROMOTIONS: Final = "promotions"
_RESERVED: Final = ("latest", "previous", "nearest", "HEAD")
_REVISION: Final = re.compile(r"[A-Za-z0-9][\w.+-]*")
_NAME: Final = re.compile(r"[\w+-][\w.+-]*")


class Registry:
    """Captured baselines, and which of them count, in a directory: its `root`."""

    def __init__(self, root: str) -> None:
        """Names a registry, local or gs://, which need not exist."""
        self.root: files.AnyPath = registry_path(root)

    def exists(self) -> bool:
        """Returns whether something was captured here, as far as that can be seen."""
        with contextlib.suppress(OSError):
            for name in files.names_in(self.root):
                with contextlib.suppress(OSError):
                    if any(map(_is_capture, files.names_in(self.root / name))):
                        return True
        return False

    def captures(self) -> list[Capture]:
        """Returns every finished capture, the oldest first."""
        found = files.at_once(json_files, [self.root / name for name in _listed(self.root)])
        paths = [file for folder in found for file in folder if _is_capture(file.name)]
        return _in_order(files.at_once(read_capture, paths))

    def captures_of(self, revision: str) -> list[Capture]:
        """Returns every finished capture of one revision, the oldest first."""
        paths = [file for file in json_files(self.root / revision) if _is_capture(file.name)]
        return _in_order(files.at_once(read_capture, paths))

    def baselines(self, wanted: Iterable[tuple[str, str]]) -> list[Baseline]:
        """Reads the samples of points, each by the reference of a capture and a point's id."""
        paths = [self._place(reference, point_id) for reference, point_id in wanted]
        return files.at_once(read_baseline, paths)

    def of_capture(self, capture: Capture) -> list[Baseline]:
        """Reads the samples of every point of a capture."""
        return self.baselines((capture.reference, point.point_id) for point in capture.points)

    def _place(self, reference: str, point_id: str) -> files.AnyPath:
        """Returns the file of a point; no reference leads out of the registry."""
        names = [*reference.split("/"), point_id]
        if len(names) != 3 or not all(_NAME.fullmatch(name) for name in names):
            message = (
                f"{shown(reference)} of point {shown(point_id)} is no capture of this registry, "
                "whose references are REVISION/ID; take that promotion away"
            )
            raise UserError(Problem(message, file=str(self.root)))
        return self.root / reference / f"{point_id}.json"

    def add(self, capture: Capture, baselines: Sequence[Baseline]) -> Capture:
        """Writes a capture and its samples, unless it is there; it exists once all is written.

        Returns:
            The capture as it is in the registry: the earlier one if it was there already.
        """
        check_revision(capture.revision)
        folder = self.root / capture.revision
        file = folder / f"{capture.id}.json"
        for used in (folder, folder / capture.id, self.root / _PROMOTIONS):
            files.sweep_once(str(used))  # where all is there already, nothing is written
        if not file.exists():
            for baseline in baselines:
                path = folder / capture.id / f"{baseline.point_id}.json"
                with self._writing(path):
                    files.write_atomically(path, baseline.model_dump_json(indent=1).encode())
            if self._create(file, capture):
                return capture
        return read_capture(file)

    def promotions(self) -> list[Promotion]:
        """Returns every promotion in the order in which they count."""
        found = files.at_once(read_promotion, json_files(self.root / _PROMOTIONS))
        return sorted(found, key=lambda promotion: (promotion.number, promotion.id))

    def current(self) -> dict[str, str]:
        """Returns the reference of the capture that is each point's baseline, by point id."""
        return state_after(self.promotions())

    def promote(
        self, points: Mapping[str, str | None], log: Sequence[Promotion], *, note: str = ""
    ) -> Promotion:
        """Makes captures the baseline of points, from one moment to the next.

        `points` has the reference of a capture by point id; None takes a point's baseline away. Two
        that say the same after the same `log` of promotions are one, so that `previous` undoes it.
        """
        last = max((promotion.number for promotion in log), default=0)
        said = json.dumps([last + 1, sorted(points.items())])
        promotion = Promotion(
            number=last + 1,
            id=hashlib.sha256(said.encode()).hexdigest()[:8],
            promoted_at=datetime.datetime.now(datetime.UTC),
            points=dict(points),
            by={
                "user": getpass.getuser(),
                "host": socket.gethostname(),
                "orbax-bench": package_version("orbax-bench"),
            },
            note=note,
        )
        name = f"{promotion.number:06}-{promotion.id}.json"
        if self._create(self.root / _PROMOTIONS / name, promotion):
            return promotion
        return next(found for found in self.promotions() if found.id == promotion.id)

    def _create(self, path: files.AnyPath, content: files.ResultModel) -> bool:
        """Writes a file unless it is there, and returns whether it was not."""
        with self._writing(path):
            return files.create_exclusively(path, content.model_dump_json(indent=1).encode())

    @contextlib.contextmanager
    def _writing(self, path: files.AnyPath) -> Iterator[None]:
        """Says of a file what kept it from being written, such as a link on the way to it."""
        try:
            files.refuse_links(path, self.root)
            yield
        except OSError as error:
            raise UserError(f"cannot write the baseline: {error}") from None


def state_after(promotions: Iterable[Promotion]) -> dict[str, str]:
    """Returns the baseline of each point after promotions, given in their order.

    Returns:
        Reference of the capture that is the baseline, by id of the point.
    """
    state: dict[str, str | None] = {}
    for promotion in promotions:
        state |= promotion.points
    return {point_id: reference for point_id, reference in state.items() if reference is not None}


def check_revision(revision: str) -> None:
    """Checks that a revision can be a folder of its own, here and on an object store.

    Raises:
        UserError: It cannot; the message says which characters are allowed.
    """
    if revision in _RESERVED:
        raise UserError(f"{revision!r} cannot be a label: it already means some capture")
    if _REVISION.fullmatch(revision) and revision != _PROMOTIONS and revision[-5:] != ".json":
        return
    raise UserError(
        f"{revision!r} cannot be a label: it names a folder, so give letters, digits and . _ + - "
        f"only, beginning with a letter or digit, and neither {_PROMOTIONS!r} nor a name in .json"
    )


def _in_order(captures: Iterable[Capture]) -> list[Capture]:
    return sorted(captures, key=lambda capture: (capture.captured_at, capture.id))


def registry_path(path: str) -> files.AnyPath:
    """Returns a path, local or gs://.

    Raises:
        UserError: It is no path, or the storage that it names cannot be used here.
    """
    try:
        return files.place(files.checked_path(path))
    except (OSError, ValueError) as error:
        raise UserError(str(error)) from None


def json_files(folder: files.AnyPath) -> list[files.AnyPath]:
    """Returns the JSON files directly in a folder, by name; none where there is no folder."""
    return [folder / name for name in _listed(folder) if _is_json(name)]


def _listed(folder: files.AnyPath) -> list[str]:
    """Returns the names in a folder as they are now: `glob` on gs:// lists from memory."""
    try:
        return files.names_in(folder)
    except NotADirectoryError:  # such as a file of notes beside the revisions
        return []
    except OSError as error:
        raise UserError(Problem(f"cannot be listed: {error}", file=str(folder))) from None


def _is_json(name: str) -> bool:
    return name.endswith(".json") and not name.startswith(".")


def _is_capture(name: str) -> bool:
    return _is_json(name) and is_capture_id(name.removesuffix(".json"))


def registry_around(baseline: str) -> Registry | None:
    """Returns the registry that a baseline is or lies in; None for a run directory and others."""
    path = Registry(baseline).root
    if (path / "run.json").exists():
        return None
    near = (Registry(str(folder)) for folder in (path, path.parent, path.parent.parent))
    return next((registry for registry in near if registry.exists()), None)


def in_use(registry: Registry) -> list[tuple[str, str]]:
    """Returns the captures that are, or were before the last promotion, a baseline, and of what."""
    promotions = registry.promotions()
    used: dict[str, str] = {}
    states = {
        "the baseline before the last promotion": state_after(promotions[:-1]),
        "the baseline": state_after(promotions),
    }
    for said, points in states.items():
        for reference in points.values():
            count = sum(each == reference for each in points.values())
            used[reference] = f"{said}, of {count} point{'s' if count > 1 else ''}"
    return [(f"{registry.root}/{reference}", why) for reference, why in used.items()]


def files_of_capture(folder: files.AnyPath) -> tuple[list[str], list[str]]:
    """Returns the names in the folder of a capture: of its samples, and all others."""
    capture = read_capture(folder.with_name(f"{folder.name}.json"))
    ours = {f"{point.point_id}.json" for point in capture.points}
    names = files.names_in(folder)
    return (
        [name for name in names if files.meant_name(name) in ours],
        [name for name in names if files.meant_name(name) not in ours],
    )


def remove_capture(registry: Registry, reference: str) -> str:
    """Removes a capture, unless it is a baseline by now, and returns why it is.

    Args:
        registry: The registry.
        reference: The capture in it, as `<revision>/<id>`.

    Returns:
        Of what it is the baseline, if it stays; empty if it was removed.
    """
    used = dict(in_use(registry))
    if f"{registry.root}/{reference}" in used:
        return used[f"{registry.root}/{reference}"]
    folder = registry.root / reference
    file = folder.with_name(f"{folder.name}.json")
    for path in (file, folder):
        files.refuse_links(path, registry.root)
    samples, others = files_of_capture(folder)
    file.unlink(missing_ok=True)  # first, for nobody finds a capture without it
    for name in samples:
        (folder / name).unlink(missing_ok=True)
    if not others and "://" not in str(folder) and folder.is_dir():
        folder.rmdir()
    return ""
