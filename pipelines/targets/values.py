"""Values of settings: what a key of a settings file may hold, and how it is written."""

import re
from collections.abc import Callable
from typing import Annotated, Any, Final, Literal, Self

import pydantic

from orbax_bench_core.config import ConfigModel
from orbax_bench_core.errors import UserError, did_you_mean
from orbax_bench_core.launchers import Bytes, Cpu, Name, Variable

OTHERS: Final = "others"
"""In place of the name of a step: every step that does not measure."""
MEASURING: Final = "run-sweep-point"
STEPS: Final = (
    "begin-run",
    MEASURING,
    "judge-run",
    "aggregate",
    "enforce-verdict",
    "compare-baseline",
    "study-async",
    "calibrate",
    "finish",
)
"""The steps that a pipeline of ours may have."""
_IMAGE = re.compile(
    r"(?P<name>[a-z0-9]+([._:-]+[a-z0-9]+)*(/[a-z0-9]+([._-]+[a-z0-9]+)*)*)"
    r"(:(?P<tag>\w[\w.-]{0,127}))?(?P<digest>@sha256:[0-9a-f]{64})?"
)


def _mount_path(given: str) -> str:
    path = given.rstrip("/")
    if not path.startswith("/"):
        raise ValueError(f"expected a folder such as /mnt/bench, got {given!r}")
    return path


def listed(parse: Callable[[str], Any] | None = None) -> pydantic.BeforeValidator:
    """Returns a validator for a list, or for one item of it; `parse` reads items that are text."""

    def read(given: Any) -> Any:
        items = given if isinstance(given, (list, tuple)) else [given]
        return tuple(_read(parse, item) if isinstance(item, str) else item for item in items)

    return pydantic.BeforeValidator(read)


def parsed_text(parse: Callable[[str], Any]) -> pydantic.BeforeValidator:
    """Returns a validator for one value that is text, or a number, which `parse` reads."""

    def read(given: Any) -> Any:
        is_text = isinstance(given, (str, int)) and not isinstance(given, bool)
        return _read(parse, str(given)) if is_text else given

    return pydantic.BeforeValidator(read)


def _read(parse: Callable[[str], Any] | None, text: str) -> Any:
    try:
        return text if parse is None else parse(text)
    except UserError as error:
        raise ValueError(str(error)) from None


MountPath = Annotated[str, pydantic.AfterValidator(_mount_path)]


class Toleration(ConfigModel):
    """A taint that the steps which measure may be scheduled in spite of, as in Kubernetes."""

    key: str
    operator: Literal["Equal", "Exists"] = "Exists"
    value: str | None = None
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = None


class VolumeClaim(ConfigModel):
    """A persistent volume claim that every step mounts."""

    name: Name
    path: MountPath


class Secret(ConfigModel):
    """A secret of Kubernetes, as a variable or as a folder of every step."""

    name: Name
    key: str | None = None  # which of its keys is the variable; None for a folder
    variable: Variable | None = None
    path: MountPath | None = None  # of the folder, with a file for each key; None for a variable

    @pydantic.model_validator(mode="after")
    def _one_way(self) -> Self:
        """Refuses a secret that is neither a variable nor a folder, or both."""
        given = (self.key is not None, self.variable is not None, self.path is not None)
        if given not in ((True, True, False), (False, False, True)):
            raise ValueError("a secret has key and variable, or path")
        return self


class Scratch(ConfigModel):
    """A volume that comes and goes with the pod of a step that measures."""

    path: MountPath
    size: Bytes
    storage_class: str | None = None


class SecurityContext(ConfigModel):
    """Who the processes of a step are, and what a container with TPUs may do beyond others."""

    run_as_user: pydantic.NonNegativeInt | None = None
    run_as_group: pydantic.NonNegativeInt | None = None
    privileged: bool = False
    capabilities: Annotated[tuple[str, ...], listed()] = ()

    @property
    def of_hosts(self) -> bool:
        """Whether it says what Kubeflow gives no step, which a launcher gives hosts."""
        return self.privileged or bool(self.capabilities)


class NodeAffinity(ConfigModel):
    """A condition on the labels of the nodes that measure, as in Kubernetes."""

    key: str
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"] = "In"
    values: Annotated[tuple[str, ...], listed()] = ()
    weight: int | None = pydantic.Field(default=None, ge=1, le=100)  # None requires it

    @pydantic.model_validator(mode="after")
    def _with_values(self) -> Self:
        """Refuses values without a comparison, and a comparison without values."""
        if (self.operator in ("In", "NotIn")) != bool(self.values):
            raise ValueError("In and NotIn have values, Exists and DoesNotExist have none")
        return self


def image_reference(given: str) -> str:
    """Returns the name of an image."""
    if re.fullmatch(r"(sha256:)?[0-9a-f]{64}", given):
        raise ValueError(
            f"{given!r} is an image id, which cannot be pulled; give NAME@sha256:DIGEST"
        )
    if not _IMAGE.fullmatch(given):
        raise ValueError(
            f"{given!r} is not an image reference; expected NAME, NAME:TAG or "
            "NAME@sha256:DIGEST in lower case, such as "
            "europe-docker.pkg.dev/project/repository/orbax-bench:0.1.0"
        )
    return given


def _variables(given: dict[str, str]) -> dict[str, str]:
    for name in given:
        if name.startswith("ORBAX_BENCH_"):
            raise ValueError(f"{name} is set by orbax-bench itself; leave it out")
    return given


Image = Annotated[str, pydantic.AfterValidator(image_reference)]
Variables = Annotated[dict[Variable, str], pydantic.AfterValidator(_variables)]


class StepSettings(ConfigModel):
    """Settings for one step alone, in place of those for all."""

    image: Image | None = None
    cpu: Cpu | None = None
    memory: Bytes | None = None
    retries: pydantic.NonNegativeInt | None = None
    timeout_s: pydantic.PositiveInt | None = None

    @property
    def given(self) -> dict[str, Any]:
        """The fields that are set."""
        return self.model_dump(exclude_none=True)


def _known_steps(given: dict[str, StepSettings]) -> dict[str, StepSettings]:
    known = [*STEPS, OTHERS]
    for name in given:
        if name not in known:
            raise ValueError(f"there is no step {name!r}; {did_you_mean(name, known)}")
    if MEASURING in given and {"cpu", "memory"} & given[MEASURING].given.keys():
        raise ValueError(f"CPUs and memory of {MEASURING} are the settings cpu and memory")
    return given


Steps = Annotated[dict[str, StepSettings], pydantic.AfterValidator(_known_steps)]
