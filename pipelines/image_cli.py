"""`orbax-bench image`: the container images that components run in."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(no_args_is_help=True, help="Build the container images of the components.")


@app.callback()
def _image() -> None:
    """Build the container images of the components."""


@app.command("build")
def build(
    variant: Annotated[
        str, typer.Option(help="cpu, tpu, cuda, pathways or pathways-sidecar.")
    ] = "cpu",
    base_image: Annotated[
        str | None, typer.Option(help="Build on this image instead of the usual Python image.")
    ] = None,
    tag: Annotated[
        str | None, typer.Option(help="Call the image this; by default orbax-bench:VERSION.")
    ] = None,
    push: Annotated[bool, typer.Option("--push", help="Also push it, to where the tag says.")] = (
        False
    ),
    run: Annotated[
        bool, typer.Option("--run/--dry-run", help="Run the commands, or only print them.")
    ] = False,
    context: Annotated[
        Path | None, typer.Option(help="A checkout; by default the one around this directory.")
    ] = None,
) -> None:
    """Print the commands that build an image, or run them with --run.

    Needs a checkout, since the image is built from the sources and requirements.lock.
    """
    import shlex

    from orbax_bench_pipelines.docker_cli import build_image, push_image, size_of
    from orbax_bench_pipelines.image import build_command, describe, find_checkout, push_command

    checkout = find_checkout(Path() if context is None else context)
    image = describe(checkout, variant, base_image=base_image, tag=tag)
    if not run:
        typer.echo(shlex.join(build_command(image, checkout)))
        if push:
            typer.echo(shlex.join(push_command(image)))
        return
    build_image(image, checkout)
    if push:
        push_image(image)
    typer.echo(f"{image.tag}: {size_of(image.tag) / 1e6:.0f} MB")
