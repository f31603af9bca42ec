"""Contents of a run directory: what this program writes into one, by name, and all else."""

import dataclasses
import errno
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import Final, Literal, Self

from orbax_bench_core import files
from orbax_bench_core.answers import ANSWERS
from orbax_bench_core.inventory import walk

RUN_JSON: Final = "run.json"
NAMES: Final = (
    *(RUN_JSON, "engine_run.json", "limits.json", "limits_of_hosts.json"),
    *("records/*/repeat_#/host_#.json", "records/*/warmup_#/host_#.json"),
    *("records/*/repeat_#/.host_#.json.%", "records/*/warmup_#/.host_#.json.%"),
    *("samples.parquet", "summary.csv", "metrics.json", "report.md", "report.html"),
    *(name for each in ANSWERS for name in (each.file, *each.pages)),
    *("lineage.json", "lineage.json.sig"),
    "ending.md",
    *("leases/*.#.json", ".orbax-bench/leases/*.#.json", "heartbeats/*.json"),
    *("batches/planned.json", "batches/*.#.json", "retries/*-%.json"),
    *("cluster*/token", "cluster*/place", "cluster*/suite.zip"),
    *("logs/worker_*.log", "logs/pods/*.log", "hlo_dump/**", ".orbax-bench-limits-%/**"),
    *("tensorboard/**/events.out.tfevents.*", "tensorboard/*__*/**"),
    *("*_%/repeat_#/**", "*_%/warmup_#/**"),
)
"""All that is written into a run directory, relative to it: the only names that are ever removed.

`#` is a number, `%` the 12 hexadecimal digits of an id or digest, `*` any part of a name, and `**`
any path: at the end of a name, in folders whose files Orbax, XLA or JAX's profiler name.
"""

_WORDS: Final = {"#": r"(?:0|[1-9]\d*)", "%": r"[0-9a-f]{12}", "*": r"[^/]*", "**": r".+"}


def _expression(names: Iterable[str]) -> re.Pattern[str]:
    """Returns a pattern that matches any of some names."""
    parts = (part for name in names for part in (*re.split(r"(\*\*|[*#%])", name), "|"))
    found = "".join("|" if part == "|" else _WORDS.get(part, re.escape(part)) for part in parts)
    return re.compile(found.rstrip("|"))


_WHOLE: Final = tuple(name for name in NAMES if name.endswith("/**"))
_PARENTS: Final = {str(parent) for name in NAMES for parent in PurePosixPath(name).parents} - {"."}
_OURS: Final = _expression(NAMES)
_IN_WHOLE: Final = _expression(_WHOLE)
_FOLDERS: Final = _expression([*sorted(_PARENTS), *_WHOLE])

Kind = Literal["file", "folder", "link"]


def is_ours(path: str, kind: Kind = "file") -> bool:
    """Returns whether this program makes something of this path, relative to a run directory.

    It makes no links; a library may, in the folders that are its own.
    """
    if kind != "file":
        return (_FOLDERS if kind == "folder" else _IN_WHOLE).fullmatch(path) is not None
    folder, slash, name = path.rpartition("/")
    return _OURS.fullmatch(f"{folder}{slash}{files.meant_name(name)}") is not None


@dataclasses.dataclass(frozen=True, kw_only=True)
class Contents:
    """What lies in a run directory; paths are relative to it.

    Attributes:
        root: The run directory, local or gs://.
        ours: Files that this program has made.
        others: All else: files, links and empty folders.
        num_bytes: Bytes of `ours`; None in a bucket, which would be asked for each.
    """

    root: files.AnyPath
    ours: tuple[str, ...]
    others: tuple[str, ...]
    num_bytes: int | None

    @classmethod
    def of(cls, root: files.AnyPath) -> Self:
        """Lists a run directory, in which no link is followed.

        Raises:
            OSError: A folder cannot be listed.
        """
        remote = "://" in os.fspath(root)
        found: list[tuple[str, Kind, int]]
        with files.answered(root):
            if remote:
                found = [(name, "file", 0) for name, _ in walk(str(root))]
            else:
                found = list(_below(os.fspath(root), ""))
        ours = [each for each in found if each[1] != "folder" and is_ours(*each[:2])]
        return cls(
            root=root,
            ours=tuple(sorted(path for path, _, _ in ours)),
            others=tuple(sorted(path for path, kind, _ in found if not is_ours(path, kind))),
            num_bytes=None if remote else sum(size for _, _, size in ours),
        )

    def remove(self) -> None:
        """Removes what is ours, `run.json` last, and folders of ours that are empty then.

        Whatever else lies there keeps its folder. No link is followed, also not one that takes the
        place of a folder meanwhile. What is removed in part still has its `run.json`.

        Raises:
            OSError: A file cannot be removed.
        """
        going, top = {*self.ours} - {RUN_JSON}, os.fspath(self.root)
        if "://" in top:
            with files.answered(self.root):
                for paths in (going, {RUN_JSON}):
                    files.at_once(lambda path: (self.root / path).unlink(missing_ok=True), paths)
            return
        for here, folders, names, opened in os.fwalk(top, topdown=False, onerror=_refuse):
            below = f"{here[len(top) :].strip('/')}/".lstrip("/")
            for name in (*names, *folders):
                if f"{below}{name}" in going:
                    os.unlink(name, dir_fd=opened)
                elif name in folders and is_ours(f"{below}{name}", "folder"):
                    _remove_empty(name, opened)
        Path(top, RUN_JSON).unlink(missing_ok=True)
        _remove_empty(top)


def _below(root: str, folder: str) -> Iterator[tuple[str, Kind, int]]:
    """Yields files, links and empty folders in a local folder: path, kind and bytes."""
    with os.scandir(f"{root}/{folder}") as listed:
        entries = list(listed)
    if folder and not entries:
        yield folder, "folder", 0
    for entry in entries:
        path = f"{folder}/{entry.name}" if folder else entry.name
        if entry.is_dir(follow_symlinks=False):
            yield from _below(root, path)
        else:
            kind: Kind = "link" if entry.is_symlink() else "file"
            yield path, kind, entry.stat(follow_symlinks=False).st_size


def _refuse(error: OSError) -> None:
    raise error


def _remove_empty(folder: str, within: int | None = None) -> None:
    try:
        os.rmdir(folder, dir_fd=within)
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOENT, errno.ENOTDIR):
            raise
