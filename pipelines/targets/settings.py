"""Settings of a submission: where and how a pipeline runs, not what it measures."""

import json
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Annotated, Any, Final

import pydantic

from orbax_bench_core.config import ConfigModel, SuiteSource, explain, read_value
from orbax_bench_core.errors import Problem, UserError, did_you_mean
from orbax_bench_core.files import checked_path, read_at_most
from orbax_bench_core.launchers import (
    Bytes,
    Cpu,
    Gpus,
    Name,
    SliceShape,
    parse_gpus,
    parse_slice,
)
from orbax_bench_pipelines.target import Target
from orbax_bench_pipelines.targets import values

_OF_HOSTS: Final[Mapping[str, Sequence[str]]] = {
    "jobset": (
        *("service_account", "queue", "spot", "ephemeral_storage", "reservation", "flex_start"),
        *("max_run_s", "cpu", "memory", "environment"),
    ),
    "vertex": (
        *("project", "location", "service_account", "endpoint", "network", "encryption_key"),
        *("reservation", "environment"),
    ),
}
"""Settings of steps that hold for the hosts of a launcher as well, and are called so there."""
_OF_SUBMISSIONS: Final = (
    *("service_account", "pipeline_root", "experiment", "tensorboard", "network"),
    "encryption_key",
)
"""Settings of a submission that are no part of a package."""
_MODELS: Final[Mapping[str, type[ConfigModel]]] = {
    "node_affinity": values.NodeAffinity,
    "pvc": values.VolumeClaim,
    "scratch": values.Scratch,
    "secrets": values.Secret,
    "security_context": values.SecurityContext,
    "steps": values.StepSettings,
    "tolerations": values.Toleration,
}
"""Keys below a key, where it has some itself."""
_NOTHING: Final[tuple[object, ...]] = (None, (), {})


def _field(meaning: str, default: Any) -> Any:
    """Returns a field with its meaning, which the documentation shows."""
    return pydantic.Field(default=default, description=meaning)


class Settings(ConfigModel):
    """Everything that is set at submit time.

    Each field is a key of a settings file and of `--set`. Which target can honour which of them is
    in `honoured`; its description is that of the table in the documentation.
    """

    model_config = pydantic.ConfigDict(arbitrary_types_allowed=True)

    image: values.Image | None = _field("what every step runs in", None)
    steps: values.Steps = _field(
        "of one step, or of `others` than those that measure: `image`, `cpu`, `memory`, `retries`, "
        "`timeout_s`",
        {},
    )
    parallelism: pydantic.NonNegativeInt | None = _field(
        "steps that measure at a time, 0 for all; by default 1 on a service", None
    )
    tpu: Annotated[tuple[SliceShape, ...], values.listed(parse_slice)] = _field(
        "the slices to measure on", ()
    )
    gpu: Annotated[Gpus | None, values.parsed_text(parse_gpus)] = _field(
        "the GPUs of each step that measures, such as `h100-80gb:8`", None
    )
    gpu_hosts: pydantic.PositiveInt | None = _field(
        "machines with such GPUs that measure a point together, started by a launcher", None
    )
    launcher_settings: dict[str, str] = _field("of the launcher that starts hosts", {})
    cpu: Cpu | None = _field("of the steps that measure", None)
    memory: Bytes | None = _field("of the steps that measure", None)
    retries: pydantic.NonNegativeInt | None = _field(
        "how often a step is tried again; by default those that measure 2 times, on a service", None
    )
    backoff_s: pydantic.PositiveInt | None = _field(
        "seconds until a step is tried again, 60 by default", None
    )
    backoff_factor: Annotated[float, pydantic.Field(ge=1)] | None = _field(
        "by how much they grow each time, 2 by default", None
    )
    timeout_s: pydantic.PositiveInt | None = _field("seconds that a step may take", None)
    environment: values.Variables = _field("variables of every step", {})
    secrets: Annotated[tuple[values.Secret, ...], values.listed()] = _field(
        "secrets of every step, as variable or folder", ()
    )
    pull_secrets: Annotated[tuple[Name, ...], values.listed()] = _field(
        "with which every step's image is pulled", ()
    )
    pvc: Annotated[tuple[values.VolumeClaim, ...], values.listed()] = _field(
        "a volume claim that every step mounts", ()
    )
    shared_memory: Bytes | None = _field("size of `/dev/shm` in the steps that measure", None)
    ephemeral_storage: Bytes | None = _field(
        "disk of the node for each host that a launcher starts", None
    )
    scratch: Annotated[tuple[values.Scratch, ...], values.listed()] = _field(
        "a volume that lives as long as the pod of a step that measures", ()
    )
    node_selectors: dict[str, str] = _field("labels of the nodes that measure", {})
    node_affinity: Annotated[tuple[values.NodeAffinity, ...], values.listed()] = _field(
        "conditions on the labels of the nodes that measure",
        (),
    )
    tolerations: Annotated[tuple[values.Toleration, ...], values.listed()] = _field(
        "taints that the steps which measure tolerate", ()
    )
    spot: bool | None = _field("whether to measure on spot machines of Google Cloud", None)
    reservation: str | None = _field(
        "of Google Cloud to measure on: `NAME`, `projects/P/reservations/NAME` of another project, "
        "on Vertex AI `projects/P/zones/Z/reservations/NAME`",
        None,
    )
    flex_start: bool | None = _field(
        "whether to wait for machines of Google Cloud's flex-start", None
    )
    max_run_s: pydantic.PositiveInt | None = _field(
        "seconds for which flex-start or Kueue gives machines", None
    )
    queue: Name | None = _field("Kueue's local queue, which admits the steps that measure", None)
    priority: Name | None = _field("Kueue's priority class in that queue", None)
    security_context: values.SecurityContext | None = _field(
        "`run_as_user` and `run_as_group` of every step and host; `privileged` and `capabilities` "
        "of hosts with TPUs, which a launcher then starts for slices of one host too",
        None,
    )
    labels: dict[str, str] = _field("of the pods or, on Vertex AI, of the run", {})
    annotations: dict[str, str] = _field("of the pods", {})
    service_account: str | None = _field("of the steps", None)
    pipeline_root: str | None = _field("where artifacts are stored", None)
    experiment: str | None = _field("made when it is missing", None)
    tensorboard: str | None = _field("the TensorBoard of the experiment", None)
    project: str | None = _field("or `GOOGLE_CLOUD_PROJECT`", None)
    location: str | None = _field("or `GOOGLE_CLOUD_LOCATION`", None)
    network: str | None = _field("VPC network, `projects/NUMBER/global/networks/NAME`", None)
    encryption_key: str | None = _field(
        "Cloud KMS key, `projects/P/locations/L/keyRings/R/cryptoKeys/K`", None
    )
    endpoint: str | None = _field(
        "address of Kubeflow Pipelines, or another one of Vertex AI", None
    )
    namespace: str | None = _field("of the user, in a multi-user Kubeflow", None)

    @property
    def given(self) -> list[str]:
        """The names of the fields that are set to something."""
        return [name for name in Settings.model_fields if getattr(self, name) not in _NOTHING]

    @property
    def machines(self) -> tuple[SliceShape | None, ...]:
        """The slices to measure on; one None for machines without TPUs."""
        return self.tpu or (None,)

    def hosts_of(self, shape: SliceShape | None) -> int:
        """Returns how many hosts measure a point together, on a slice or, with None, on others."""
        return (self.gpu_hosts or 1) if shape is None else shape.hosts

    @property
    def images(self) -> list[str]:
        """The images that are given, each once."""
        own = (step.image for step in self.steps.values())
        return list(dict.fromkeys(image for image in (self.image, *own) if image is not None))

    def of_step(self, name: str) -> values.StepSettings:
        """Returns the settings of one step: its own before those for others, and for all."""
        of_all = {key: getattr(self, key) for key in ("image", "retries", "timeout_s")}
        names = (name,) if name == values.MEASURING else (values.OTHERS, name)
        for each in names:
            of_all |= self.steps.get(each, values.StepSettings()).given
        return values.StepSettings().model_copy(update=of_all)


def launcher_of(target: Target, settings: Settings, shape: SliceShape | None) -> str:
    """Returns the launcher that starts the hosts of points; empty if a step measures itself."""
    several = settings.hosts_of(shape) > 1
    if target is Target.VERTEX:
        return "vertex" if several or shape is not None else ""
    # Kubeflow drops every capability of its steps, and makes none of them privileged.
    context = settings.security_context
    allowed = shape is not None and context is not None and context.of_hosts
    return "jobset" if target is Target.KFP and (several or allowed) else ""


def launcher_settings(launcher: str, settings: Settings) -> list[str]:
    """Returns settings of a launcher as `KEY=VALUE`: of steps that hold for hosts, and its own."""
    shared: dict[str, Any] = {name: getattr(settings, name) for name in _OF_HOSTS[launcher]}
    gpus = settings.gpu
    if launcher == "vertex":
        shared |= {"timeout_s": settings.max_run_s, "labels": settings.labels}
        shared["strategy"] = "SPOT" if settings.spot else None
        shared["strategy"] = "FLEX_START" if settings.flex_start else shared["strategy"]
        if gpus is not None:
            shared["accelerator_count"] = gpus.count
            shared["accelerator_type"] = gpus.kind and gpus.kind.vertex
    else:
        # Not by `dsl.TaskConfig`: kfp 2.17 loses what is set on the task of a component that was
        # loaded from its YAML, and reads node selectors by another name than the driver writes.
        shared["node_selector"] = settings.node_selectors
        tolerations = (each.model_dump(exclude_none=True) for each in settings.tolerations)
        shared["tolerations"] = tuple(tolerations)
        if settings.security_context is not None:
            context = settings.security_context
            shared |= context.model_dump(mode="json", exclude_defaults=True)
        if settings.pvc:
            shared["volume"] = f"{settings.pvc[0].name}:{settings.pvc[0].path}"
        if gpus is not None:
            shared["gpus"], shared["gpu"] = gpus.count, gpus.kind and gpus.kind.gke
    given = {
        name: value if isinstance(value, str) else json.dumps(value)
        for name, value in shared.items()
        if value not in _NOTHING
    }
    return [f"{name}={value}" for name, value in {**given, **settings.launcher_settings}.items()]


def at_submission(settings: Settings, target: Target) -> list[str]:
    """Returns the settings that are of a submission, and in no compiled package."""
    launchers = {launcher_of(target, settings, shape) for shape in settings.machines} - {""}
    compiled = {name for launcher in launchers for name in _OF_HOSTS[launcher]}
    of_run = [*_OF_SUBMISSIONS, *(("labels",) if target is Target.VERTEX else ())]
    return [name for name in of_run if name in settings.given and name not in compiled]


def read_changes(changes: Iterable[str], others: Iterable[str] = ()) -> dict[str, Any]:
    """Returns settings that are given as `KEY=VALUE` or `KEY.PATH=VALUE`, as a file has them.

    A value is text, or YAML where it is a list or a mapping, or null, which unsets a key.
    """
    found: dict[str, Any] = {}
    for change in changes:
        path, equals, text = change.partition("=")
        if not (path and equals):
            raise UserError(f"--set takes KEY=VALUE, got {change!r}")
        key, _, rest = path.partition(".")
        if key not in Settings.model_fields:
            hint = did_you_mean(key, [*Settings.model_fields, *others])
            raise UserError(f"--set {key}: unknown key; {hint}")
        inside = rest.split(".") if key == "steps" else [rest]
        *above, last = (key, *filter(None, inside))
        block = found
        for name in above:
            block = block.setdefault(name, {})
            if not isinstance(block, dict):
                raise UserError(f"--set {path}: {key} is given as a whole as well")
        is_yaml = key in (last, "security_context") and (text == "null" or text[:1] in ("[", "{"))
        block[last] = read_value(text, f"--set {path}") if is_yaml else text
    return found


def read_settings(file: str | None, changes: Mapping[str, Any]) -> Settings:
    """Returns the settings of a file, with others in place of them; of mappings, by key."""
    data = {} if file is None else _settings_of(file)
    return _validated(
        _changed(data, changes),
        lambda path: Problem(
            "", key=f"--set {'.'.join(part for part in path if isinstance(part, str))}"
        ),
        strict=False,
    )


def _changed(data: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    found = dict(data)
    for key, value in changes.items():
        inside = isinstance(value, dict) and isinstance(found.get(key), dict)
        found[key] = _changed(found[key], value) if inside else value
    return found


def read_text(path: str, what: str) -> str:
    """Returns the text of a file."""
    from etils import epath
    from google.auth.exceptions import GoogleAuthError

    from orbax_bench_pipelines.targets.job import SubmissionFailed, answered

    quiet = logging.getLogger("gcsfs")
    level = quiet.level
    quiet.setLevel(logging.CRITICAL)  # it logs a traceback of its own before it raises
    try:
        data = answered(lambda: read_at_most(epath.Path(checked_path(path))), "it")
        text = data.decode()
    except UnicodeDecodeError:
        raise UserError(Problem(f"not a text file; a {what} is YAML", file=path)) from None
    except FileNotFoundError:
        raise UserError(
            Problem(f"cannot read the {what}: there is no such file", file=path)
        ) from None
    except (OSError, ImportError, ValueError, GoogleAuthError, SubmissionFailed) as error:
        raise UserError(Problem(f"cannot read the {what}: {error}", file=path)) from None
    finally:
        quiet.setLevel(level)
    return text


def _settings_of(file: str) -> dict[str, Any]:
    source = SuiteSource(read_text(file, "settings file"), file)
    if not isinstance(source.data, dict):
        raise UserError(source.problem("settings are a mapping of keys to values", ()))
    _validated(source.data, lambda path: source.problem("", path), strict=True)
    return dict(source.data)


def _validated(
    data: dict[str, Any], place: Callable[[tuple[str | int, ...]], Problem], *, strict: bool
) -> Settings:
    """Returns settings; those of `--set` are text, of which numbers and truth values are made."""
    try:
        return Settings.model_validate(data, strict=strict)
    except pydantic.ValidationError as error:
        problems = []
        for detail in error.errors():
            at = place(tuple(part for part in detail["loc"] if part != "[key]"))
            message = explain(detail, _keys_at(detail["loc"]))
            problems.append(Problem(message, key=at.key, file=at.file, line=at.line))
        raise UserError(*dict.fromkeys(problems)) from None


def _keys_at(path: tuple[str | int, ...]) -> list[str]:
    """Returns the keys that are allowed where an error is."""
    if len(path) <= 1:
        return list(Settings.model_fields)
    model: type[ConfigModel] = _MODELS.get(str(path[0]), Settings)
    return list(model.model_fields)
