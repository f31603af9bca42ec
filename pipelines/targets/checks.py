"""Checks of settings and packages: a setting that a target would silently drop is refused."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterable

from orbax_bench_core.config import Problem, UserError
from orbax_bench_core.launchers import SliceShape, is_digest, place_named, place_settings
from orbax_bench_pipelines.target import Target
from orbax_bench_pipelines.targets.settings import (
    Settings,
    flag_of,
    launcher_of,
    launcher_settings,
)

_NEEDS = {
    Target.LOCAL: {"kfp": "kfp"},
    Target.DOCKER: {"kfp": "kfp", "docker": "kfp"},
    Target.KFP: {"kfp": "kfp", "kfp.kubernetes": "kfp", "cronsim": "kfp"},
    Target.VERTEX: {"kfp": "kfp", "cronsim": "kfp", "google.cloud.aiplatform": "vertex"},
}
"""Packages that only some targets need, and the extra that brings each."""
_EVERYWHERE = {"image", "parallelism", "service_account", "labels", "cpu", "memory"}
_CLUSTER = {*_EVERYWHERE, "pipeline_root", "experiment", "endpoint"}
_SLICES = {"tpu", "launcher_settings"}
_HONOURED: dict[Target, set[str]] = {
    Target.LOCAL: set(),
    Target.DOCKER: {"image"},
    Target.KFP: {*_CLUSTER, *_SLICES, "node_selectors", "tolerations", "pvc", "namespace"},
    Target.VERTEX: {*_CLUSTER, *_SLICES, "tensorboard", "project", "location"},
}
_REASONS = {
    (Target.VERTEX, "node_selectors"): "the steps of Vertex AI do not run on nodes of yours",
    (Target.VERTEX, "tolerations"): "the steps of Vertex AI do not run on nodes of yours",
    (Target.VERTEX, "pvc"): "Vertex AI has no volume claims; give gs:// paths",
    (Target.LOCAL, "image"): "every step runs in this environment",
}
_KUBERNETES_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
_KUBERNETES_KEY = re.compile(r"([a-z0-9.-]{1,253}/)?[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?")
_KUBERNETES_VALUE = re.compile(r"([A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?)?")
_GOOGLE_KEY = re.compile(r"[a-z][a-z0-9_-]{0,62}")
_GOOGLE_VALUE = re.compile(r"[a-z0-9_-]{0,63}")
_EXPERIMENT = re.compile(r"[a-z0-9][a-z0-9-]{0,127}")
_TENSORBOARD = re.compile(r"projects/[^/]+/locations/[^/]+/tensorboards/[^/]+")
_EXAMPLES = {"project": "--project my-project", "location": "--location us-central1"}
_PUSH = "push the image to a registry that it can reach and give its full name"


def check_settings(settings: Settings, target: Target) -> None:
    """Refuses settings that the target cannot honour.

    Raises:
        UserError: With one problem per setting.
    """
    problems = [*_dropped(settings, target)]
    if target is Target.KFP:
        problems += [*_kubernetes(settings)]
    if target is Target.VERTEX:
        problems += [*_vertex(settings)]
    if problems:
        raise UserError(*problems)
    _check_launches(settings, target)


def _check_launches(settings: Settings, target: Target) -> None:
    """Refuses slices whose hosts a launcher could not start, and settings that no launcher gets.

    Raises:
        UserError: With what the launcher would say, or what it needs.
    """
    launched = [(shape, launcher_of(target, shape)) for shape in settings.tpu]
    if settings.launcher_settings and not any(launcher for _, launcher in launched):
        raise UserError(
            _problem(
                "launcher_settings",
                "no launcher starts hosts here; it needs --tpu, on Kubeflow of several hosts",
            )
        )
    for name in ("cpu", "memory"):
        if target is Target.VERTEX and settings.tpu and getattr(settings, name) is not None:
            raise UserError(_problem(name, "the machines of a TPU slice say it; leave it out"))
    for shape in (shape for shape, launcher in launched if launcher):
        _check_launch(shape, settings, target)


def _check_launch(shape: SliceShape, settings: Settings, target: Target) -> None:
    launcher = launcher_of(target, shape)
    if settings.image is None or not is_digest(settings.image):
        given = "" if settings.image is None else f", got {settings.image}"
        raise UserError(
            _problem(
                "image",
                f"TPU {shape} is started by a launcher, whose hosts all need the same image: "
                f"give NAME@sha256:DIGEST{given}",
            )
        )
    if target is Target.VERTEX:
        check_connection(settings, target)
        _ = shape.vertex_machine_spec
    if len(settings.pvc) > 1:
        raise UserError(_problem("pvc", f"the hosts of TPU {shape} mount one claim only"))
    pairs = [f"{key}={value}" for key, value in launcher_settings(launcher, settings).items()]
    place_settings(place_named(launcher), pairs)


def check_connection(settings: Settings, target: Target) -> None:
    """Refuses to submit without what says where to.

    Raises:
        UserError: Something is missing.
    """
    if target is Target.VERTEX:
        for name in ("project", "location"):
            if getattr(settings, name) is None:
                raise UserError(_problem(name, "Vertex AI needs it, such as " + _EXAMPLES[name]))


def check_directory(path: str, settings: Settings, target: Target, flag: str) -> None:
    """Refuses a path that the steps of a pipeline cannot share.

    Args:
        path: A directory that one step writes and another reads.
        settings: What was set; volume claims count for Kubeflow.
        target: Where the pipeline is to run.
        flag: The flag it came from, for the message.

    Raises:
        UserError: The path is local to one machine.
    """
    if target in (Target.LOCAL, Target.DOCKER) or path.startswith("gs://"):
        return
    mounts = [claim.path for claim in settings.pvc]
    if any(path == mount or path.startswith(f"{mount}/") for mount in mounts):
        return
    how = "give gs://"
    if target is Target.KFP:
        how += (
            f" or a path below {' or '.join(mounts)}" if mounts else " or mount a claim with --pvc"
        )
    raise UserError(
        Problem(f"{path} is local to one machine, and each step is another one; {how}", key=flag)
    )


def _dropped(settings: Settings, target: Target) -> Iterable[Problem]:
    for name in settings.given:
        if name not in _HONOURED[target]:
            reason = _REASONS.get((target, name))
            takers = [each.value for each in Target if name in _HONOURED[each]]
            yield _problem(
                name,
                f"the target {target.value} cannot honour it"
                + (f": {reason}" if reason else "")
                + f"; leave it out or use --target {' or '.join(takers)}",
            )


def _kubernetes(settings: Settings) -> Iterable[Problem]:
    account = settings.service_account
    if account is not None and not _KUBERNETES_NAME.fullmatch(account):
        yield _problem(
            "service_account", f"expected the name of a Kubernetes service account, got {account!r}"
        )
    root = settings.pipeline_root
    if root is not None and not re.match(r"(gs|s3|minio)://.", root):
        yield _problem("pipeline_root", f"expected gs://, s3:// or minio://, got {root!r}")
    for name in ("labels", "node_selectors"):
        for key, value in getattr(settings, name).items():
            if not (_KUBERNETES_KEY.fullmatch(key) and _KUBERNETES_VALUE.fullmatch(value)):
                yield _problem(name, f"{key}={value} is not a Kubernetes label")
    for claim in settings.pvc:
        if not _KUBERNETES_NAME.fullmatch(claim.name):
            yield _problem("pvc", f"{claim.name!r} is not the name of a volume claim")


def _vertex(settings: Settings) -> Iterable[Problem]:
    account = settings.service_account
    if account is not None and "@" not in account:
        yield _problem(
            "service_account",
            f"expected NAME@PROJECT.iam.gserviceaccount.com, got {account!r}",
        )
    root = settings.pipeline_root
    if root is not None and not re.match(r"gs://.", root):
        yield _problem("pipeline_root", f"expected gs://BUCKET/FOLDER, got {root!r}")
    for key, value in settings.labels.items():
        if not (_GOOGLE_KEY.fullmatch(key) and _GOOGLE_VALUE.fullmatch(value)):
            yield _problem(
                "labels",
                f"{key}={value} is not a label of Google Cloud: lower case, digits, - and _, at "
                "most 63, beginning with a letter",
            )
    if settings.experiment is not None and not _EXPERIMENT.fullmatch(settings.experiment):
        yield _problem(
            "experiment", f"expected lower case, digits and -, got {settings.experiment!r}"
        )
    if settings.tensorboard is not None:
        if settings.experiment is None:
            yield _problem("tensorboard", "belongs to an experiment; give --experiment as well")
        if not _TENSORBOARD.fullmatch(settings.tensorboard):
            yield _problem(
                "tensorboard",
                "expected projects/PROJECT/locations/LOCATION/tensorboards/ID, got "
                f"{settings.tensorboard!r}",
            )
    if settings.image is not None and "/" not in settings.image:
        yield _problem("image", f"Vertex AI cannot pull {settings.image!r}; {_PUSH}")


def check_image(image: str, target: Target) -> str | None:
    """Returns a warning about an image that only this machine may have, if it is one.

    Raises:
        UserError: The target has no way to get it.
    """
    if target in (Target.LOCAL, Target.DOCKER) or "/" in image:
        return None
    if target is Target.VERTEX:
        raise UserError(_problem("image", f"Vertex AI cannot pull {image!r}; {_PUSH}"))
    return (
        f"the nodes of the cluster must have the image {image!r}, which names no registry; "
        "otherwise push it and give --image"
    )


def _problem(name: str, message: str) -> Problem:
    return Problem(message, key=flag_of(name))


def require_extras(target: Target) -> None:
    """Checks that what a target needs is installed.

    Raises:
        UserError: A package is missing; the message names the extra to install.
    """
    missing = {module: extra for module, extra in _NEEDS[target].items() if not _is_there(module)}
    if missing:
        extras = ",".join(dict.fromkeys(missing.values()))
        raise UserError(
            f"the target {target} needs {', '.join(missing)}: pip install 'orbax-bench[{extras}]'"
        )


def _is_there(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False  # its parent is not there
