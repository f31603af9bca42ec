"""`orbax-bench prepare`: fetch and mirror of a model, and its sharding file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import typer

if TYPE_CHECKING:
    from etils import epath


def prepare(
    repo: Annotated[
        str | None,
        typer.Option(metavar="ORGANIZATION/MODEL", help="A model of the Hugging Face hub."),
    ] = None,
    local_dir: Annotated[
        str | None,
        typer.Option(
            "--local-dir",
            "--local_dir",
            metavar="DIR",
            help="A model that is there: a directory of .safetensors files, local or gs://.",
        ),
    ] = None,
    gcs: Annotated[
        str | None,
        typer.Option(metavar="gs://BUCKET/DIR", help="Copy the model to this bucket."),
    ] = None,
    sharding_out: Annotated[
        str | None,
        typer.Option(
            "--sharding-out",
            "--sharding_out",
            metavar="FILE",
            help="Write the model's sharding file here, local or gs://. Needs --axis-size.",
        ),
    ] = None,
    axis_size: Annotated[
        int | None,
        typer.Option(
            "--axis-size", "--axis_size", min=1, help="Devices on the one axis of the mesh."
        ),
    ] = None,
    strategy: Annotated[
        Literal["fsdp", "tp_inner"],
        typer.Option(help="fsdp splits the first dimension of an array, tp_inner the last."),
    ] = "fsdp",
    download_dir: Annotated[
        str | None,
        typer.Option(
            "--download-dir",
            "--download_dir",
            metavar="DIR",
            help="Where --repo puts the model. By default a new temporary folder.",
        ),
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the sharding file if there is one.")
    ] = False,
) -> None:
    """Get a safetensors model ready for safetensors_load: fetch, mirror, plan its shardings.

    Give --repo or --local-dir. The suite then names the two results:

    orbax-bench prepare --repo ORG/MODEL --download-dir model --sharding-out s.json --axis-size 8

    checkpoint_path: model, sharding_config_path: s.json

    For a checkpoint that Orbax wrote, orbax-bench sharding makes the sharding file.
    """
    from orbax_bench_core import steps
    from orbax_bench_core.authoring import UnmetNeed
    from orbax_bench_core.errors import UserError
    from orbax_bench_core.files import absolute

    if (repo is None) == (local_dir is None):
        raise UserError("give --repo or --local-dir, one of them")
    if not gcs and not sharding_out and repo is None:
        raise UserError("there is nothing to do: give --gcs, --sharding-out or both")
    if sharding_out and axis_size is None:
        raise UserError("--sharding-out needs --axis-size, the number of devices")
    file = None if sharding_out is None else _new_file(sharding_out, overwrite=overwrite)
    try:
        if repo is not None:
            model = steps.download(repo, download_dir)
        else:
            assert local_dir is not None
            model = absolute(local_dir)
        arrays = steps.model_arrays(model)  # a wrong directory shows before anything is copied
        print(f"model: {model}, {len(arrays)} arrays")
        if gcs:
            steps.mirror(model, gcs)
            print(f"mirrored to: {gcs}")
        if file is not None and axis_size is not None:
            steps.write_shardings(arrays, file, strategy, axis_size)
            print(f"sharding file: {file}")
    except (UnmetNeed, ValueError) as error:
        raise UserError(str(error)) from error


def _new_file(path: str, *, overwrite: bool) -> epath.Path:
    from orbax_bench_core.errors import UserError
    from orbax_bench_core.files import absolute

    file = absolute(path)
    if file.is_dir():
        raise UserError(f"--sharding-out {path} is a directory; give a file")
    if file.exists() and not overwrite:
        raise UserError(f"--sharding-out {path} is there already; give another, or --overwrite")
    return file
