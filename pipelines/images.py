"""`orbax-bench image`: the container images that components run in.

Recipes and build arguments are those of `images/docker-bake.json`, and `docker build` does the
work: the legacy builder is enough.
"""

from __future__ import annotations

import dataclasses
import json
import os
import shlex
import shutil
import string
import subprocess
import tomllib
import urllib.parse
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    help="Build the container images of the components.",
)

BAKE_FILE = Path("images/docker-bake.json")
UNKNOWN = "unknown"

_INDEX_SETTINGS = ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "UV_DEFAULT_INDEX", "UV_INDEX")
"""Handed on by name alone, so that no address or password is printed or kept in the image."""


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


@dataclasses.dataclass(frozen=True, slots=True)
class Image:
    """One image that can be built.

    Attributes:
        variant: Its name in the bake file, for example `cpu`.
        dockerfile: Its recipe, relative to the checkout.
        arguments: Build arguments.
        tag: What the image is called.
    """

    variant: str
    dockerfile: str
    arguments: Mapping[str, str]
    tag: str

    @property
    def base(self) -> str:
        """The image that it is built on."""
        return self.arguments["BASE_IMAGE"]


def find_checkout(start: Path) -> Path:
    """Returns the checkout of orbax-bench that holds `start`.

    Raises:
        UserError: There is none; an installed package has no recipe in it.
    """
    from orbax_bench_core.config import UserError

    for folder in (start.absolute(), *start.absolute().parents):
        if (folder / BAKE_FILE).is_file() and (folder / "Dockerfile").is_file():
            return folder
    raise UserError(
        f"no checkout of orbax-bench holds {start}: images are built from its sources, so call "
        "this inside a checkout or name one with --context"
    )


def variants(checkout: Path) -> list[str]:
    """Returns the names of the images that the bake file of `checkout` describes."""
    targets = json.loads((checkout / BAKE_FILE).read_text())["target"]
    return [name for name in targets if not name.startswith("_")]


def describe(
    checkout: Path, variant: str, *, base_image: str | None = None, tag: str | None = None
) -> Image:
    """Returns one image of the bake file, with this checkout's version and revision.

    Args:
        checkout: Root of a checkout.
        variant: Name of the image in the bake file.
        base_image: What to build it on instead of the usual base.
        tag: What to call it instead of `orbax-bench:<version>`.

    Raises:
        UserError: There is no such variant, or it has no usual base and none is given.
    """
    from orbax_bench_core.config import UserError, did_you_mean

    bake = json.loads((checkout / BAKE_FILE).read_text())
    known = variants(checkout)
    if variant not in known:
        raise UserError(f"unknown variant {variant!r}; {did_you_mean(variant, known)}")
    target = _inherited(bake["target"], variant)
    values = {name: variable["default"] for name, variable in bake["variable"].items()}
    values |= revision_of(checkout)
    arguments = {
        name: string.Template(value).substitute(values) for name, value in target["args"].items()
    }
    if base_image is not None:
        arguments["BASE_IMAGE"] = base_image
    if not arguments["BASE_IMAGE"]:
        raise UserError(
            f"the variant {variant!r} has no usual base image; name one with --base-image "
            "(images/README.md says which)"
        )
    return Image(
        variant=variant,
        dockerfile=target["dockerfile"],
        arguments=arguments,
        tag=tag or string.Template(target["tags"][0]).substitute(values),
    )


def build_command(image: Image, checkout: Path) -> list[str]:
    """Returns the command that builds an image, with BuildKit or the legacy builder."""
    command = ["docker", "build", "--tag", image.tag]
    command += ["--file", str(checkout / image.dockerfile)]
    for name, value in image.arguments.items():
        command += ["--build-arg", f"{name}={value}"]
    for name in _INDEX_SETTINGS:
        if name in os.environ:
            command += ["--build-arg", name]
    return [*command, str(checkout)]


def push_command(image: Image) -> list[str]:
    """Returns the command that pushes an image to the registry that its tag names."""
    return ["docker", "push", image.tag]


def revision_of(checkout: Path) -> dict[str, str]:
    """Returns version, revision and source as build arguments; without git they are `unknown`."""
    project = tomllib.loads((checkout / "pyproject.toml").read_text())["project"]
    revision = _git(checkout, "rev-parse", "HEAD") or UNKNOWN
    if revision != UNKNOWN and _git(checkout, "status", "--porcelain"):
        revision += "-dirty"
    source = _git(checkout, "remote", "get-url", "origin") or UNKNOWN
    return {
        "VERSION": project["version"],
        "REVISION": revision,
        "SOURCE": _without_credentials(source),
    }


def build_image(image: Image, checkout: Path) -> None:
    """Builds an image, with docker's own output on the console.

    Raises:
        UserError: Docker is missing or has no engine, the base image cannot be had, or the build
            failed.
    """
    _require_engine()
    _require_base(image)
    _run(build_command(image, checkout), f"docker could not build {image.tag}; it says why above")


def push_image(image: Image) -> None:
    """Pushes an image to the registry that its tag names.

    Raises:
        UserError: Docker could not push it.
    """
    _run(
        push_command(image),
        f"docker could not push {image.tag}; its tag must name a registry that you are logged in "
        "to, as in --tag HOST/PROJECT/orbax-bench:1",
    )


def size_of(tag: str) -> int:
    """Returns the size of an image's layers together, in bytes, those of its base included."""
    return int(_ask("image", "inspect", "--format", "{{.Size}}", tag).stdout)


def _inherited(targets: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Returns a target of the bake file with what it inherits, as `docker buildx bake` does."""
    merged: dict[str, Any] = {"args": {}}
    inherited = (_inherited(targets, parent) for parent in targets[name].get("inherits", ()))
    for part in (*inherited, targets[name]):
        merged = {**merged, **part, "args": {**merged["args"], **part.get("args", {})}}
    return merged


def _git(checkout: Path, *arguments: str) -> str:
    try:
        process = subprocess.run(
            ["git", "-C", str(checkout), *arguments],  # noqa: S607 - wherever git is installed
            capture_output=True,
            text=True,
            check=False,
        )
    except OSError:
        return ""
    return process.stdout.strip() if process.returncode == 0 else ""


def _without_credentials(url: str) -> str:
    parts = urllib.parse.urlsplit(url)
    if not parts.hostname:
        return url
    port = "" if parts.port is None else f":{parts.port}"
    return parts._replace(netloc=parts.hostname + port).geturl()


def _require_engine() -> None:
    from orbax_bench_core.config import UserError

    if shutil.which("docker") is None:
        raise UserError(
            "docker is not installed: `apt-get install docker.io` on Debian and Ubuntu, Docker "
            "Desktop elsewhere; without --run the commands are only printed"
        )
    answer = _ask("version", "--format", "{{.Server.Version}}")
    if answer.returncode:
        raise UserError(
            f"docker reaches no engine: {_last_line(answer.stderr)}; start one (`systemctl start "
            "docker`) or set DOCKER_HOST to one that runs"
        )


def _require_base(image: Image) -> None:
    from orbax_bench_core.config import UserError

    if _ask("image", "inspect", image.base).returncode == 0:
        return
    answer = _ask("pull", image.base)
    if answer.returncode:
        raise UserError(
            f"cannot pull the base image {image.base}: {_last_line(answer.stderr)}; name another "
            "with --base-image, or make one without a registry: images/base/make.sh TAG"
        )


def _ask(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["docker", *arguments],  # noqa: S607 - whichever docker is first on the path
        capture_output=True,
        text=True,
        check=False,
    )


def _run(command: list[str], problem: str) -> None:
    from orbax_bench_core.config import UserError

    if subprocess.run(command, check=False).returncode:
        raise UserError(problem)


def _last_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1].strip() if lines else "it gave no reason"
