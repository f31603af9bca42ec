"""The commands that build and push a container image, from what `images/docker-bake.json` says."""

from __future__ import annotations

import dataclasses
import json
import os
import string
import subprocess
import tomllib
import urllib.parse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from orbax_bench_core.config import UserError, did_you_mean

BAKE_FILE = Path("images/docker-bake.json")
UNKNOWN = "unknown"

_INDEX_SETTINGS = ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "UV_DEFAULT_INDEX", "UV_INDEX")
"""Handed on by name alone, so that no address or password is printed or kept in the image."""


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

    Args:
        start: A directory in it.

    Raises:
        UserError: There is none; an installed package has no recipe in it.
    """
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
    """Returns the command that builds an image, with BuildKit or the legacy builder.

    Args:
        image: What to build.
        checkout: The build context.
    """
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
    """Returns the version, revision and source of a checkout, as build arguments.

    Args:
        checkout: Root of the checkout; what git does not know of it is `unknown`.
    """
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
