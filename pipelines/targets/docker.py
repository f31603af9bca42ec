"""Docker target: a pipeline on this machine, each step in a container."""

import os
import socket
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any

from orbax_bench_core.config import parse_suite
from orbax_bench_core.errors import UserError
from orbax_bench_core.execute import LOCK_FILE
from orbax_bench_core.files import checked_path
from orbax_bench_core.provenance import IMAGE, NODE
from orbax_bench_pipelines.target import Target
from orbax_bench_pipelines.targets.checks import require_extras
from orbax_bench_pipelines.targets.local import PipelineFailed, run_with, steps_at_a_time

_HANDED_ON = (
    *("GOOGLE_", "JAX_", "LIBTPU_", "PYTHONPATH", "STORAGE_EMULATOR_HOST"),
    *("TENSORSTORE_", "TPU_", "XLA_"),
)
"""Variables that begin like this change what a benchmark does, and reach the containers."""
_OF_THE_IMAGE = frozenset(
    Path("/", name)
    for name in (
        *("", "bin", "dev", "etc", "lib", "lib64", "opt", "opt/orbax-bench"),
        *("proc", "run", "sbin", "sys", "usr", "var"),
    )
)
"""Folders that cannot be handed to a container whole: they would hide the image's own files."""


def run_in_docker(
    pipeline: Callable[..., Any],
    arguments: dict[str, Any],
    *,
    log: IO[str],
    say: Callable[[str], None],
    user: str | None = None,
    network: str | None = None,
    container: Mapping[str, Any] | None = None,
    at_a_time: int | None = None,
) -> None:
    """Runs a pipeline in containers of the image that its components name.

    The run directory, the local paths of the suite and the machine's measuring lock are the same
    files inside and outside, so that the results are here and no other run measures meanwhile.

    Args:
        pipeline: A `@dsl.pipeline` function over lightweight components.
        arguments: Its parameters.
        log: Where everything goes that kfp and the steps print.
        say: Called with each line that a step has for people.
        user: User and group of the steps, as `docker run --user` takes them; by default those of
            this process, to whom the results then belong.
        network: A network of Docker, for example `host` to reach servers on this machine's loopback
            interface; by default Docker's bridge.
        container: Further arguments of docker-py's `containers.run`, such as `mem_limit`,
            `cpuset_cpus` or `device_requests`.
        at_a_time: How many steps of a loop may run at once; None leaves that to kfp.

    Raises:
        UserError: Docker cannot be reached, or an image can be neither found nor pulled.
        PipelineFailed: A step failed; the log says why.
    """
    require_extras(Target.DOCKER)
    import docker
    from kfp import local

    rootless = _name_images(pipeline)
    if user is None:
        # In a rootless engine this process's user is called root.
        user = "0:0" if rootless else f"{os.getuid()}:{os.getgid()}"
    runner = local.DockerRunner(
        mounts=[
            docker.types.Mount(str(path), str(path), type="bind", read_only=not writable)
            for path, writable in shared_paths(arguments).items()
        ],
        environment=handed_on(os.environ),
        user=user,
        init=True,  # workers that lose their parent are reaped
        **({} if network is None else {"network_mode": network}),
        **(container or {}),
    )
    # What a container leaves here can belong to a user that this process may not act for.
    with tempfile.TemporaryDirectory(
        prefix="orbax-bench-pipeline-", ignore_cleanup_errors=True
    ) as root:
        Path(root).chmod(0o777)
        try:
            with steps_at_a_time(at_a_time):
                run_with(runner, root, pipeline, arguments, log, say)
        except docker.errors.DockerException as error:
            raise PipelineFailed(f"Docker refused a step: {error}") from None


def shared_paths(arguments: Mapping[str, Any]) -> dict[Path, bool]:
    """Returns the paths that containers share with this machine, and whether they write there."""
    LOCK_FILE.touch()
    return {LOCK_FILE: True, **host_paths(arguments, os.environ)}


def handed_on(environment: Mapping[str, str]) -> dict[str, str]:
    """Returns the variables of `environment` that containers are given, with the name of theirs.

    Containers of one machine have names of their own, and measure on the same one.
    """
    given = {name: value for name, value in environment.items() if name.startswith(_HANDED_ON)}
    return {NODE: environment.get(NODE) or socket.gethostname(), **given}


def images_of(pipeline: Any) -> list[str]:
    """Returns the images that the steps of a pipeline name, each once."""
    executors = pipeline.pipeline_spec.deployment_spec["executors"]
    return list({executor["container"]["image"]: None for executor in executors.values()})


def _name_images(pipeline: Any) -> bool:
    """Tells each step its image with its digest; returns whether Docker's engine is rootless."""
    import docker

    try:
        client = docker.from_env()
        engine = client.info()
    except docker.errors.DockerException as error:
        raise UserError(
            f"docker cannot reach an engine: {error}; start one (`systemctl start docker`), set "
            "DOCKER_HOST, or run the pipeline without containers"
        ) from None
    try:
        named = {image: _named_exactly(client, image) for image in images_of(pipeline)}
    finally:
        client.close()
    tell_images(pipeline, named)
    return any("name=rootless" in option for option in engine.get("SecurityOptions") or ())


def tell_images(pipeline: Any, named: Mapping[str, str]) -> None:
    """Tells each step of a pipeline by its environment which image it runs in."""
    for executor in pipeline.pipeline_spec.deployment_spec["executors"].values():
        container = executor["container"]
        others = [each for each in container.get_or_create_list("env") if each["name"] != IMAGE]
        container["env"] = [*others, {"name": IMAGE, "value": named[container["image"]]}]


def _named_exactly(client: Any, image: str) -> str:
    import docker

    try:
        found = client.images.get(image)
    except docker.errors.ImageNotFound:
        try:
            found = client.images.pull(image)
        except docker.errors.APIError as error:
            raise UserError(
                f"there is no image {image} here, and it cannot be pulled: {error.explanation}; "
                "build it with `python images/build.py` in a checkout, or name another in "
                "ORBAX_BENCH_IMAGE"
            ) from None
    return f"{image}@{found.id}"


def host_paths(arguments: Mapping[str, Any], environment: Mapping[str, str]) -> dict[Path, bool]:
    """Returns the paths that steps use on this machine, and whether they write there.

    They are the run directory, baselines and their registry, a passport, earlier runs, every local
    path in a suite, the folders of benchmark classes, and the credentials of Google Cloud. The run
    directory is made here, so that it belongs to the caller. Paths that do not exist yet are stood
    for by the nearest folder that does.
    """
    found: dict[Path, bool] = {}
    if output := _local(arguments.get("output_directory", "")):
        if output in _OF_THE_IMAGE:
            raise UserError(
                f"a container cannot write its results to {output}: that would hide the files of "
                "its image; name a folder below it"
            )
        output.mkdir(parents=True, exist_ok=True)
        found[output] = True
    for suite in ("suite", "fixture"):
        found |= dict.fromkeys(_paths_in(arguments.get(suite, "")), True)
    for written in ("registry", "passport"):
        found |= dict.fromkeys(_existing([arguments.get(written, "")]), True)
    for path in (
        *_existing([arguments.get("baseline", ""), arguments.get("earlier", "")]),
        *_existing(environment.get("PYTHONPATH", "").split(os.pathsep)),
        *_existing([environment.get("GOOGLE_APPLICATION_CREDENTIALS", "")]),
    ):
        found.setdefault(path, False)
    return found


def _paths_in(suite_text: str) -> Iterator[Path]:
    if suite_text:
        suite = parse_suite(suite_text).suite.model_dump(mode="json")
        yield from _existing(text for text in _texts(suite) if text.startswith("/"))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)


def _existing(paths: Iterable[str]) -> Iterator[Path]:
    for given in paths:
        path = _local(given)
        while path is not None and not path.exists():
            path = path.parent
        if path is not None and path not in _OF_THE_IMAGE:
            yield path


def _local(path: str) -> Path | None:
    return None if not path or "://" in path else Path(checked_path(path))
