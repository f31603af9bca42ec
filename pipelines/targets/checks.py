"""Checks of settings and packages: a setting that a target would silently drop is refused."""

import importlib.util
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from orbax_bench_core.errors import Problem, UserError
from orbax_bench_core.launchers import (
    GPU_KINDS,
    Gpus,
    Launch,
    SliceShape,
    is_digest,
    job_name,
    place_named,
    place_settings,
    require_bounded,
    require_one_capacity,
)
from orbax_bench_pipelines.target import SERVICES, Target
from orbax_bench_pipelines.targets.honoured import dropped
from orbax_bench_pipelines.targets.settings import Settings, launcher_of, launcher_settings
from orbax_bench_pipelines.targets.values import MEASURING, StepSettings

_NEEDS = {
    Target.LOCAL: {"kfp": "kfp"},
    Target.DOCKER: {"kfp": "kfp", "docker": "kfp"},
    Target.KFP: {"kfp": "kfp", "kfp.kubernetes": "kfp", "cronsim": "kfp"},
    Target.VERTEX: {"kfp": "kfp", "cronsim": "kfp", "google.cloud.aiplatform": "vertex"},
}
"""Packages that only some targets need, and the extra that brings each."""
_KUBERNETES_KEY = re.compile(r"([a-z0-9.-]{1,253}/)?[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?")
_KUBERNETES_VALUE = re.compile(r"([A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?)?")
_FORMS: Final[Mapping[Target, Sequence[tuple[str, str, str]]]] = {
    Target.KFP: (
        (
            "service_account",
            r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?",
            "the name of a Kubernetes service account",
        ),
        ("pipeline_root", r"(gs|s3|minio)://.+", "gs://, s3:// or minio://"),
    ),
    Target.VERTEX: (
        ("service_account", r".*@.*", "NAME@PROJECT.iam.gserviceaccount.com"),
        ("pipeline_root", r"gs://.+", "gs://BUCKET/FOLDER"),
        ("experiment", r"[a-z0-9][a-z0-9-]{0,127}", "lower case, digits and -"),
        (
            "tensorboard",
            r"projects/[^/]+/locations/[^/]+/tensorboards/[^/]+",
            "projects/PROJECT/locations/LOCATION/tensorboards/ID",
        ),
        (
            "network",
            r"projects/\d+/global/networks/[^/]+",
            "projects/NUMBER/global/networks/NAME",
        ),
        (
            "encryption_key",
            r"projects/[^/]+/locations/[^/]+/keyRings/[^/]+/cryptoKeys/[^/]+",
            "projects/P/locations/L/keyRings/R/cryptoKeys/K",
        ),
    ),
}
"""How a target has settings that are text."""
_GOOGLE_KEY = re.compile(r"[a-z][a-z0-9_-]{0,62}")
_GOOGLE_VALUE = re.compile(r"[a-z0-9_-]{0,63}")
_EXAMPLES = {"project": "my-project", "location": "us-central1"}
_VERTEX_CPUS = 96
_VERTEX_BYTES = 624e9
"""Memory of the largest machine of Vertex AI Pipelines, which has that many CPUs."""
_NOT_OF_HOSTS: Final = {
    "secrets": "; give their service account access to what they would open",
    "pull_secrets": "; give them to their service account",
    "shared_memory": "",
    "scratch": "",
    "node_affinity": "; give node_selectors",
    "priority": "; their own is launcher_settings.priority_class=NAME",
}
"""Settings of a pod that Kubeflow or our launcher hands on to no other, and what to do instead."""
_OF_JOBS: Final = {
    "spot": "spot machines",
    "reservation": "reservation",
    "flex_start": "flex-start",
    "max_run_s": "time limit",
}
"""Settings that custom jobs of Vertex AI have, and steps do not."""
_POINT = "0" * 12
_STEP_NAME = job_name(_POINT)
"""Id of a point, and the name under which a step launches its hosts, as long as they all are."""
_PUSH = "push the image to a registry that it can reach and give its full name"


def check_settings(settings: Settings, target: Target) -> None:
    """Refuses settings that the target cannot honour, alone or together."""
    problems = [_problem(name, said) for name, said in dropped(settings, target)]
    if target is Target.KFP:
        problems += [*_templates(settings), *_kubernetes(settings)]
    if target is Target.VERTEX:
        problems += [*_vertex(settings)]
    problems += [*_forms(settings, target), *_machines(settings, target)]
    if problems:
        raise UserError(*problems)
    _check_launches(settings, target)


def _machines(settings: Settings, target: Target) -> Iterable[Problem]:
    """Yields what no machine of a target has."""
    if settings.tpu and settings.gpu is not None:
        yield _problem("gpu", "a machine has TPUs or GPUs; give tpu or gpu")
    if settings.gpu_hosts is not None and settings.gpu is None:
        yield _problem("gpu_hosts", "says how many machines with GPUs; give gpu=KIND:COUNT too")
    if settings.priority is not None and settings.queue is None:
        yield _problem(
            "priority",
            "Kubeflow cannot set the priority class of a pod, only Kueue's, which needs a "
            "queue; give queue as well",
        )
    if settings.gpu is not None:
        yield from _gpus(settings.gpu, target)
    if target is Target.KFP:
        yield from _capacity(settings)
    if target is Target.VERTEX:
        yield from _vertex_machines(settings)


def _capacity(settings: Settings) -> Iterable[Problem]:
    """Yields what GKE cannot give, and what only hosts of a launcher can be given."""
    spot, flex_start = bool(settings.spot), bool(settings.flex_start)
    try:
        require_one_capacity(settings.reservation, spot=spot, flex_start=flex_start)
    except ValueError as error:
        name = "flex_start" if flex_start and spot else "reservation"
        yield _problem(name, str(error))
    try:
        require_bounded(settings.max_run_s, settings.queue, flex_start=flex_start)
    except ValueError as error:
        yield _problem("max_run_s", str(error))
    launched = any(launcher_of(Target.KFP, settings, shape) for shape in settings.machines)
    if settings.ephemeral_storage is not None and not launched:
        yield _problem(
            "ephemeral_storage",
            "a step of Kubeflow cannot request it, only hosts that a launcher starts; scratch "
            "gives a step a volume",
        )
    context = settings.security_context
    if context is not None and context.of_hosts and not settings.tpu:
        yield _problem(
            "security_context",
            "privileged and capabilities are for containers with TPUs; give tpu too, or leave "
            "them out",
        )


def _gpus(gpus: Gpus, target: Target) -> Iterable[Problem]:
    if gpus.kind is None:
        if target is Target.VERTEX:
            kinds = ", ".join(gpu.name for gpu in GPU_KINDS)
            yield _problem("gpu", f"Vertex AI needs the kind, as KIND:{gpus}; known: {kinds}")
        return
    counts = gpus.kind.counts
    named = " or ".join(map(str, counts))
    if target is Target.VERTEX and gpus.count not in counts:
        yield _problem("gpu", f"Vertex AI has machines with {named} {gpus.kind.name}, not {gpus}")
    elif gpus.count > max(counts):
        yield _problem("gpu", f"a step is one machine, which has at most {max(counts)}, not {gpus}")


def _vertex_machines(settings: Settings) -> Iterable[Problem]:
    from kubernetes.utils.quantity import parse_quantity

    launched = any(launcher_of(Target.VERTEX, settings, shape) for shape in settings.machines)
    for name, what in _OF_JOBS.items():
        if getattr(settings, name) and not launched:
            yield _problem(
                name,
                f"the steps of Vertex AI Pipelines have no {what}; the custom jobs of tpu and "
                "gpu_hosts do",
            )
    if settings.spot and settings.flex_start:
        yield _problem("flex_start", "a custom job has spot machines or flex-start; give one")
    asked = {"": StepSettings(cpu=settings.cpu, memory=settings.memory), **settings.steps}
    for step, own in asked.items():
        above = f"steps.{step}." if step else ""
        if own.cpu is not None and parse_quantity(own.cpu) > _VERTEX_CPUS:
            yield Problem(
                f"a step of Vertex AI has at most {_VERTEX_CPUS} CPUs, got {own.cpu}",
                key=f"{above}cpu",
            )
        if own.memory is not None and parse_quantity(own.memory) > _VERTEX_BYTES:
            yield Problem(
                f"a step of Vertex AI has at most 624 GB of memory, got {own.memory}",
                key=f"{above}memory",
            )


def _check_launches(settings: Settings, target: Target) -> None:
    """Refuses slices whose hosts a launcher could not start, and settings that no launcher gets."""
    launched = [shape for shape in settings.machines if launcher_of(target, settings, shape)]
    if settings.launcher_settings and not launched:
        raise UserError(
            _problem(
                "launcher_settings",
                "no launcher starts hosts here; it needs tpu, on Kubeflow of several hosts, or "
                "gpu_hosts",
            )
        )
    for name in ("cpu", "memory"):
        if target is Target.VERTEX and launched and getattr(settings, name) is not None:
            whose = "a TPU slice" if settings.tpu else "launcher_settings.machine_type=NAME"
            raise UserError(_problem(name, f"the machines of {whose} say it; leave it out"))
    for shape in launched:
        _check_launch(shape, settings, target)


def _check_launch(shape: SliceShape | None, settings: Settings, target: Target) -> None:
    launcher = launcher_of(target, settings, shape)
    whose = f"gpu_hosts={settings.gpu_hosts}" if shape is None else f"TPU {shape}"
    image = settings.of_step(MEASURING).image
    if image is None or not is_digest(image):
        given = "" if image is None else f", got {image}"
        raise UserError(
            _problem(
                "image",
                f"{whose} is started by a launcher, whose hosts all need the same image: "
                f"give NAME@sha256:DIGEST{given}",
            )
        )
    if target is Target.VERTEX:
        check_connection(settings, target)
        _ = None if shape is None else shape.vertex_machine_spec
    problems = [
        _problem(name, f"the hosts of {whose} do not get it{instead}")
        for name, instead in _NOT_OF_HOSTS.items()
        if launcher == "jobset" and getattr(settings, name) not in (None, ())
    ]
    if problems:
        raise UserError(*problems)
    if len(settings.pvc) > 1:
        raise UserError(_problem("pvc", f"the hosts of {whose} mount one claim only"))
    place_settings(launcher, launcher_settings(launcher, settings))


def check_launchers(settings: Settings, target: Target, directory: str) -> None:
    """Refuses what the launchers of slices refuse, before a step asks them on the cluster."""
    for shape in settings.machines:
        launcher = launcher_of(target, settings, shape)
        if not launcher:
            continue
        launch = Launch(
            name=_STEP_NAME,
            command=("orbax-bench", "step", "run-sweep-point", _POINT, "-o", directory),
            output_directory=directory,
            hosts=settings.hosts_of(shape),
            image=settings.of_step(MEASURING).image,
            tpu=shape,
        )
        chosen = place_settings(launcher, launcher_settings(launcher, settings))
        place_named(launcher).launcher(launch, chosen)


def check_connection(settings: Settings, target: Target) -> None:
    """Refuses to submit without what says where to."""
    if target is Target.VERTEX:
        for name in ("project", "location"):
            if getattr(settings, name) is None:
                raise UserError(_problem(name, "Vertex AI needs it, such as " + _EXAMPLES[name]))


def check_directory(path: str, settings: Settings, target: Target, flag: str) -> None:
    """Refuses a path that the steps of a pipeline cannot share."""
    if target not in SERVICES or path.startswith("gs://"):
        return
    mounts = [claim.path for claim in settings.pvc]
    if any(path == mount or path.startswith(f"{mount}/") for mount in mounts):
        return
    how = "give gs://"
    if target is Target.KFP:
        below = f"a path below {' or '.join(mounts)}"
        how += f" or {below if mounts else 'mount a claim by the setting pvc'}"
    raise UserError(
        Problem(f"{path} is local to one machine, and each step runs on another; {how}", key=flag)
    )


def _templates(settings: Settings) -> Iterable[Problem]:
    """Yields what Argo would read as a template of its own, in whatever it stands."""
    for name in settings.given:
        if "{{" in str(getattr(settings, name)):
            yield _problem(name, "{{ begins a template of Argo, which runs the steps; leave it out")


def _forms(settings: Settings, target: Target) -> Iterable[Problem]:
    for name, pattern, expected in _FORMS.get(target, ()):
        given = getattr(settings, name)
        if given is not None and not re.fullmatch(pattern, given):
            yield _problem(name, f"expected {expected}, got {given!r}")


def _kubernetes(settings: Settings) -> Iterable[Problem]:
    for name in ("labels", "node_selectors"):
        for key, value in getattr(settings, name).items():
            if not (_KUBERNETES_KEY.fullmatch(key) and _KUBERNETES_VALUE.fullmatch(value)):
                yield _problem(name, f"{key}={value} is not a Kubernetes label")
    for key in settings.annotations:
        if not _KUBERNETES_KEY.fullmatch(key):
            yield _problem("annotations", f"{key!r} is not the key of an annotation of Kubernetes")


def _vertex(settings: Settings) -> Iterable[Problem]:
    for key, value in settings.labels.items():
        if not (_GOOGLE_KEY.fullmatch(key) and _GOOGLE_VALUE.fullmatch(value)):
            yield _problem(
                "labels",
                f"{key}={value} is not a label of Google Cloud: lower case, digits, - and _, at "
                "most 63, beginning with a letter",
            )
    if settings.tensorboard is not None and settings.experiment is None:
        yield _problem("tensorboard", "belongs to an experiment; give experiment as well")
    for image in settings.images:
        if "/" not in image:
            yield _problem("image", f"Vertex AI cannot pull {image!r}; {_PUSH}")


def check_image(image: str, target: Target) -> str | None:
    """Returns a warning about an image that only this machine may have, if it is one."""
    if target not in SERVICES or "/" in image:
        return None
    if target is Target.VERTEX:
        raise UserError(_problem("image", f"Vertex AI cannot pull {image!r}; {_PUSH}"))
    return (
        f"the nodes of the cluster must have the image {image!r}, which names no registry; "
        "otherwise push it and set image"
    )


def _problem(name: str, message: str) -> Problem:
    return Problem(message, key=name)


def require_extras(target: Target) -> None:
    """Checks that what a target needs is installed."""
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
