"""Preparation of a safetensors model: download, mirror, and sharding file."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from orbax_bench_core.authoring import UnmetNeed, optional_module
from orbax_bench_core.files import matching

if TYPE_CHECKING:
    from etils import epath

Arrays = Mapping[str, tuple[Sequence[int], str]]

AXES: Final = {"fsdp": "fsdp", "tp_inner": "tp"}
"""Name of the mesh's one axis, by strategy; it decides which dimension is split."""

_WANTED: Final = ["*.safetensors", "*.safetensors.index.json"]
_CHUNK_BYTES: Final = 16 * 2**20


def download(repo: str, folder: str | None) -> epath.Path:
    """Downloads the safetensors files of a model; what is there already is not fetched again.

    Args:
        repo: A model of the Hugging Face hub.
        folder: Where it goes; None for a new temporary folder.

    Returns:
        Where it is.

    Raises:
        UnmetNeed: The hub's own package is missing.
        ValueError: The hub does not give it.
    """
    from etils import epath

    hub = optional_module("huggingface_hub", "hub", "--repo")
    where = folder or tempfile.mkdtemp(prefix=f"{repo.replace('/', '--')}-")
    try:
        found = hub.snapshot_download(
            repo_id=repo, local_dir=str(Path(where).absolute()), allow_patterns=_WANTED
        )
    except BaseException as error:
        if folder is None:  # nobody knows of it, so that nobody could go on there
            shutil.rmtree(where, ignore_errors=True)
        if isinstance(error, OSError):  # of the hub, of the network, of the disk
            raise ValueError(f"--repo {repo}: {str(error).strip().splitlines()[0]}") from error
        raise
    return epath.Path(found)


def model_arrays(model: epath.Path) -> Arrays:
    """Returns shape and dtype of each array of a model, by name.

    Raises:
        ValueError: There is no safetensors model in this directory, or it cannot be read.
    """
    from orbax_bench_core.benchmarks.support.safetensors import read_arrays

    return read_arrays(model)


def mirror(model: epath.Path, uri: str) -> None:
    """Copies the safetensors files of a model to a bucket, with gcloud where that is installed.

    Raises:
        UnmetNeed: Nothing here can write to a bucket.
        ValueError: The address is no bucket's, or the copy failed.
    """
    from etils import epath

    if not uri.startswith("gs://"):
        raise ValueError(f"--gcs takes a gs:// directory, got {uri!r}")
    gcloud = shutil.which("gcloud")
    if gcloud is not None:
        command = [gcloud, "storage", "rsync", str(model), uri, "--recursive"]
        code = subprocess.run(command, check=False).returncode
        if code:
            raise ValueError(f"gcloud storage rsync ended with code {code}; see above")
        return
    try:
        copy(model, epath.Path(uri))
    except ImportError as error:
        raise UnmetNeed(
            "--gcs needs the gcloud command, or gcsfs: pip install 'orbax-bench[gcs]'"
        ) from error
    except OSError as error:
        raise ValueError(f"--gcs {uri}: {str(error).strip().splitlines()[0]}") from error


def copy(model: epath.Path, target: epath.Path) -> None:
    """Copies the safetensors files of a model to a folder, which is created, with a progress bar.

    A file that is there in the same size is left alone, so that a copy that was cut short goes on.
    """
    from rich.console import Console
    from rich.progress import Progress

    files = {file: file.stat().length for pattern in _WANTED for file in matching(model, pattern)}
    target.mkdir(parents=True, exist_ok=True)
    with Progress(console=Console(stderr=True)) as progress:
        task = progress.add_task("mirroring", total=sum(files.values()))
        for file, size in sorted(files.items()):
            to = target / file.name
            if to.exists() and to.stat().length == size:
                progress.advance(task, size)
                continue
            with file.open("rb") as source, to.open("wb") as sink:
                while chunk := source.read(_CHUNK_BYTES):
                    sink.write(chunk)
                    progress.advance(task, len(chunk))


def write_shardings(arrays: Arrays, file: epath.Path, strategy: str, axis_size: int) -> None:
    """Writes the sharding file of a model.

    Args:
        arrays: Shape and dtype of each array, by name.
        file: Where the sharding file goes; its folder is created.
        strategy: `fsdp` splits the first dimension, `tp_inner` the last.
        axis_size: Size of the mesh's one axis, in devices.
    """
    from orbax_bench_core.state import plan_shardings

    file.parent.mkdir(parents=True, exist_ok=True)
    content = plan_shardings(arrays, {AXES[strategy]: axis_size})
    file.write_text(json.dumps(content, indent=2))
