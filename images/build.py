"""Build of an image that docker-bake.json describes, with buildx or else `docker build`.

    python images/build.py [TARGET] [--tag TAG] [--base-image IMAGE] [--platform OS/ARCH] [--push]

It fills in what git knows, and the digest of the base. Needs no package, and no network of its own.
"""

from __future__ import annotations

import argparse
import dataclasses
import datetime
import json
import os
import re
import shlex
import shutil
import string
import subprocess
import sys
import tomllib
import urllib.parse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

CHECKOUT = Path(__file__).resolve().parents[1]
BAKE_FILE = Path("images/docker-bake.json")
UNKNOWN = "unknown"
INDEX_SETTINGS = ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "UV_DEFAULT_INDEX", "UV_INDEX")
"""Handed on without being printed: they may hold a password. None gets into the image."""


class Refused(Exception):
    """A mistake that the person who builds can correct."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Wanted:
    """Request for an image.

    Attributes:
        target: Name of the image in the bake file.
        tag: What to call it; empty for `orbax-bench:<version>`.
        base_image: What to build it on; empty for the usual base.
        platform: For which machines, such as `linux/arm64`; empty for this one.
        push: Whether it goes to the registry that the tag names.
    """

    target: str = "cpu"
    tag: str = ""
    base_image: str = ""
    platform: str = ""
    push: bool = False


def variables(
    wanted: Wanted, bake: Mapping[str, Any], checkout: Path, digest: str = ""
) -> dict[str, str]:
    """Returns the variables of the bake file: those of the environment, git's, and what is asked.

    Raises:
        Refused: There is no such target.
    """
    known = [name for name in bake["target"] if not name.startswith("_")]
    if wanted.target not in known:
        raise Refused(f"there is no target {wanted.target!r}; there are {', '.join(known)}")
    values = {name: one["default"] for name, one in bake["variable"].items()}
    values |= {name: os.environ[name] for name in values if os.environ.get(name)}
    values |= described(checkout)
    base = base_variable(bake, wanted.target)
    values[base] = wanted.base_image or values[base]
    return values | {"BASE_DIGEST": digest or digest_in(values[base]) or UNKNOWN}


def base_variable(bake: Mapping[str, Any], target: str) -> str:
    """Returns the variable of the bake file that names the base of a target."""
    return str(bake["target"][target]["args"]["BASE_IMAGE"]).strip("${}")


def described(checkout: Path) -> dict[str, str]:
    """Returns version, revision, source and time; what git does not know is `unknown`."""
    project = tomllib.loads((checkout / "pyproject.toml").read_text())["project"]
    revision = _git(checkout, "rev-parse", "HEAD") or UNKNOWN
    if revision != UNKNOWN and _git(checkout, "status", "--porcelain"):
        revision += "-dirty"
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    now = datetime.datetime.now(datetime.UTC)
    made = now if not epoch else datetime.datetime.fromtimestamp(int(epoch), datetime.UTC)
    return {
        "VERSION": str(project["version"]),
        "REVISION": revision,
        "SOURCE": os.environ.get("SOURCE")
        or web_address(_git(checkout, "remote", "get-url", "origin")),
        "CREATED": f"{made:%Y-%m-%dT%H:%M:%SZ}",
    }


def web_address(remote: str) -> str:
    """Returns where people find a repository, without credentials; `unknown` for a local path."""
    if copied := re.fullmatch(r"(?:\w+@)?([\w.-]+\.\w+):(?!//)(.+)", remote):
        remote = f"https://{copied[1]}/{copied[2]}"
    parts = urllib.parse.urlsplit(remote)
    if parts.scheme not in ("http", "https", "ssh", "git") or not parts.hostname:
        return UNKNOWN
    secure = parts.scheme in ("ssh", "git")
    port = "" if parts.port is None or secure else f":{parts.port}"
    scheme = "https" if secure else parts.scheme
    return f"{scheme}://{parts.hostname}{port}{parts.path.removesuffix('.git')}"


def digest_in(image: str) -> str:
    """Returns the digest that a reference to an image is pinned by; empty when it is not."""
    return image.partition("@")[2]


def bake_command(wanted: Wanted) -> list[str]:
    """Returns the command for buildx, which takes the variables from its environment."""
    name = wanted.target
    command = ["docker", "buildx", "bake", "--file", str(BAKE_FILE), "--file", "-"]
    command += [f"--set={name}.tags={wanted.tag}"] if wanted.tag else []
    command += [f"--set={name}.platform={wanted.platform}"] if wanted.platform else []
    return [*command, "--push" if wanted.push else "--load", name]


def index_arguments(target: str) -> str:
    """Returns a bake file, for standard input, with the site's package index."""
    given = {name: os.environ[name] for name in INDEX_SETTINGS if name in os.environ}
    return json.dumps({"target": {target: {"args": given}}})


def build_command(
    wanted: Wanted, bake: Mapping[str, Any], values: Mapping[str, str], checkout: Path
) -> list[str]:
    """Returns the same for the builder of an engine without buildx."""
    target = _inherited(bake["target"], wanted.target)
    tag = wanted.tag or _usual_tag(wanted, bake, values)
    command = ["docker", "build", "--tag", tag, "--file", str(checkout / target["dockerfile"])]
    command += ["--platform", wanted.platform] if wanted.platform else []
    for name, value in target["args"].items():
        command += ["--build-arg", f"{name}={string.Template(value).substitute(values)}"]
    for name in INDEX_SETTINGS:
        command += ["--build-arg", name] if name in os.environ else []
    return [*command, str(checkout)]


def build(wanted: Wanted, checkout: Path = CHECKOUT, *, dry: bool = False) -> None:
    """Builds an image, with docker's own output on the console, or prints the commands.

    Raises:
        Refused: Docker is missing, has no engine, or failed; or something asked for is wrong.
    """
    bake = json.loads((checkout / BAKE_FILE).read_text())
    with_buildx = _ask("buildx", "version").returncode == 0
    values = variables(wanted, bake, checkout)
    base = values[base_variable(bake, wanted.target)]
    missing = ""
    if not dry:
        _require_engine()
        found, missing = _digest_of(base, with_buildx=with_buildx)
        if found and not digest_in(base):  # what is built on is what the label says
            wanted = dataclasses.replace(wanted, base_image=f"{base}@{found}")
        values = variables(wanted, bake, checkout, found)
    tag = wanted.tag or _usual_tag(wanted, bake, values)
    if not dry:
        builder = "docker buildx bake" if with_buildx else "docker build, as there is no buildx"
        print(f"building {tag} by {builder}", flush=True)
    if with_buildx:
        try:
            _run(bake_command(wanted), checkout, values, index_arguments(wanted.target), dry=dry)
        except Refused as refusal:
            # A builder elsewhere may reach what this machine does not, so it was asked.
            raise Refused(missing or str(refusal)) from None
        return
    if missing:
        raise Refused(missing)
    _run(build_command(wanted, bake, values, checkout), checkout, dry=dry)
    if wanted.push:
        _run(["docker", "push", tag], checkout, dry=dry)


def _usual_tag(wanted: Wanted, bake: Mapping[str, Any], values: Mapping[str, str]) -> str:
    [tag] = bake["target"][wanted.target]["tags"]
    return string.Template(tag).substitute(values)


def _inherited(targets: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Returns a target of the bake file with what it inherits, as `docker buildx bake` does."""
    merged: dict[str, Any] = {"args": {}}
    parents = (_inherited(targets, parent) for parent in targets[name].get("inherits", ()))
    for part in (*parents, targets[name]):
        merged = {**merged, **part, "args": {**merged["args"], **part.get("args", {})}}
    return merged


def _digest_of(base: str, *, with_buildx: bool) -> tuple[str, str]:
    """Returns the digest of a base, empty where it has none, and why it cannot be had, if so."""
    why = ""
    if with_buildx:
        asked = _ask("buildx", "imagetools", "inspect", "--format", "{{.Manifest.Digest}}", base)
        if asked.returncode == 0:
            return asked.stdout.strip(), ""
        why = _last_line(asked.stderr).removeprefix("ERROR: ")
    elif _ask("image", "inspect", base).returncode:
        pulled = _ask("pull", base)
        why = _last_line(pulled.stderr) if pulled.returncode else ""
    answer = _ask("image", "inspect", "--format", '{{join .RepoDigests " "}}', base)
    if answer.returncode == 0:
        return digest_in(answer.stdout.split(" ")[0].strip()), ""
    return "", (
        f"cannot pull the base image {base}: {why}; name another with --base-image, or make one "
        "without a registry: images/base/make.sh TAG"
    )


def _require_engine() -> None:
    if shutil.which("docker") is None:
        raise Refused(
            "docker is not installed: `apt-get install docker.io` on Debian and Ubuntu, Docker "
            "Desktop elsewhere; --dry-run only prints the commands"
        )
    answer = _ask("version", "--format", "{{.Server.Version}}")
    if answer.returncode:
        raise Refused(
            f"docker cannot reach an engine: {_last_line(answer.stderr)}; start one (`systemctl "
            "start docker`) or set DOCKER_HOST to one that runs"
        )


def _run(
    command: Sequence[str],
    checkout: Path,
    variables: Mapping[str, str] | None = None,
    given: str = "",
    *,
    dry: bool,
) -> None:
    if dry:
        words = (f"{name}={shlex.quote(value)}" for name, value in (variables or {}).items())
        print(*words, shlex.join(command))
        return
    environment = {**os.environ, **(variables or {})}
    done = subprocess.run(
        command, cwd=checkout, env=environment, input=given, text=True, check=False
    )
    if done.returncode:
        raise Refused(f"`{shlex.join(command[:3])}` failed; it says why above")


def _ask(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = ["docker", *arguments]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as failure:
        return subprocess.CompletedProcess(command, 127, "", str(failure))


def _git(checkout: Path, *arguments: str) -> str:
    command = ["git", "-C", str(checkout), *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def _last_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1].strip() if lines else "it gave no reason"


def main(words: Sequence[str] | None = None) -> int:
    """Builds what the command line says, and returns the exit code."""
    parser = argparse.ArgumentParser(description="Build an image of docker-bake.json.")
    parser.add_argument("target", nargs="?", default="cpu", help="cpu, tpu, cuda, pathways, ...")
    parser.add_argument("--tag", default="", help="by default orbax-bench:VERSION")
    parser.add_argument("--base-image", default="", help="pin it: NAME@sha256:DIGEST")
    parser.add_argument(
        "--platform", default="", help="such as linux/arm64, or several with buildx"
    )
    parser.add_argument("--push", action="store_true", help="to the registry that the tag names")
    parser.add_argument("--dry-run", action="store_true", help="print the commands")
    given = vars(parser.parse_args(words))
    dry = given.pop("dry_run")
    try:
        build(Wanted(**given), dry=dry)
    except Refused as refusal:
        print(f"error: {refusal}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
