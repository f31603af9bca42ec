"""Gets a checkpoint ready to be loaded: `python -m orbax_bench_core.benchmarks.prepare --help`.

prepare --repo ORGANIZATION/MODEL --gcs gs://bucket/model
prepare --local-dir model --sharding-out fsdp8.json --axis-size 8 --strategy fsdp
prepare --checkpoint step_100/state --sharding-out tp8.json --axis-size 8 --strategy tp_inner
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from orbax_bench_core.benchmarks.needs import UnmetNeed

if TYPE_CHECKING:
    from etils import epath

_INVALID = 2
_AXES = {"fsdp": "fsdp", "tp_inner": "tp"}
"""Name of the mesh's one axis, by strategy; it decides which dimension is split."""

_WANTED = ["*.safetensors", "*.safetensors.index.json"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Fetches a model, mirrors it to a bucket, and writes its sharding file, as asked.

    Args:
        arguments: Command line without the program; None takes the process's own.

    Returns:
        0 when all is done; 2 when something that was given cannot be used.
    """
    parser = _parser()
    given = parser.parse_args(arguments)
    if not given.gcs and not given.sharding_out:
        parser.error("there is nothing to do: give --gcs, --sharding-out or both")
    if given.sharding_out and given.axis_size is None:
        parser.error("--sharding-out needs --axis-size, the number of devices")
    if given.axis_size is not None and given.axis_size < 1:
        parser.error(f"--axis-size must be 1 or more, got {given.axis_size}")
    try:
        _prepare(given)
    except (UnmetNeed, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return _INVALID
    return 0


def _parser() -> argparse.ArgumentParser:
    about = "Fetches a model, mirrors it to a bucket, and writes its sharding file, as asked."
    parser = argparse.ArgumentParser(prog="prepare", description=about)
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--repo", help="a model of the Hugging Face hub, to be downloaded")
    source.add_argument(
        "--local-dir", "--local_dir", help="a directory of safetensors files, local or gs://"
    )
    parser.add_argument("--gcs", help="mirror the safetensors files to this gs:// directory")
    parser.add_argument(
        "--sharding-out",
        "--sharding_out",
        help="write the sharding file here, local or gs://",
    )
    parser.add_argument(
        "--axis-size", "--axis_size", type=int, help="size of the mesh's one axis, in devices"
    )
    parser.add_argument(
        "--strategy",
        choices=sorted(_AXES),
        default="fsdp",
        help="fsdp splits the first dimension, tp_inner the last (default: fsdp)",
    )
    parser.add_argument(
        "--download-dir",
        "--download_dir",
        help="where --repo puts the model (default: a new folder)",
    )
    return parser


def _prepare(given: argparse.Namespace) -> None:
    from orbax_bench_core.benchmarks.safetensors_files import read_arrays
    from orbax_bench_core.state.locating import absolute
    from orbax_bench_core.state.sharding_plan import plan

    model = _download(given) if given.repo else absolute(given.local_dir)
    arrays = read_arrays(model)  # a wrong directory shows before anything is copied
    if given.gcs:
        _mirror(model, given.gcs)
    if given.sharding_out:
        file = absolute(given.sharding_out)
        file.parent.mkdir(parents=True, exist_ok=True)
        content = plan(arrays, {_AXES[given.strategy]: given.axis_size})
        file.write_text(json.dumps(content, indent=2))
        print(f"wrote the shardings of {len(arrays)} arrays to {file}")


def _download(given: argparse.Namespace) -> epath.Path:
    from etils import epath

    from orbax_bench_core.benchmarks import needs

    hub = needs.module("huggingface_hub", "hub", "--repo")
    folder = given.download_dir or tempfile.mkdtemp(prefix=f"{given.repo.replace('/', '--')}-")
    print(f"downloading {given.repo} to {folder}")
    found = hub.snapshot_download(
        repo_id=given.repo, local_dir=str(Path(folder).absolute()), allow_patterns=_WANTED
    )
    return epath.Path(found)


def _mirror(model: epath.Path, uri: str) -> None:
    if not uri.startswith("gs://"):
        raise ValueError(f"--gcs takes a gs:// directory, got {uri!r}")
    gcloud = shutil.which("gcloud")
    if gcloud is None:
        raise UnmetNeed("--gcs needs the gcloud command; install the Google Cloud CLI")
    print(f"mirroring {model} to {uri}")
    command = [gcloud, "storage", "rsync", str(model), uri, "--recursive"]
    code = subprocess.run(command, check=False).returncode
    if code:
        raise ValueError(f"gcloud storage rsync ended with code {code}; see above")


if __name__ == "__main__":
    sys.exit(main())
