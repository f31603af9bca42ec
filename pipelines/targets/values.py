"""Values of settings: what a flag or a key of a settings file may hold, and how it is written."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self

import pydantic

from orbax_bench_core.config import ConfigModel
from orbax_bench_core.errors import UserError, did_you_mean

OTHERS: Final = "others"
"""In place of the name of a step: every step that does not measure."""
MEASURING: Final = "run-sweep-point"
_IMAGE = re.compile(
    r"(?P<name>[a-z0-9]+([._:-]+[a-z0-9]+)*(/[a-z0-9]+([._-]+[a-z0-9]+)*)*)"
    r"(:(?P<tag>\w[\w.-]{0,127}))?(?P<digest>@sha256:[0-9a-f]{64})?"
)
_CPU = re.compile(r"\d+(\.\d+)?m?")
_MEMORY = re.compile(r"\d+(\.\d+)?([EPTGMK]i?)?")
_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
_VARIABLE = re.compile(r"[A-Za-z_]\w*")
_NUMBERS: Final = ("retries", "timeout_s")
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_UNITS: Final = {"": 1, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18} | {
    f"{letter}i": 1024 ** (power + 1) for power, letter in enumerate("KMGTPE")
}
_EXPRESSION = re.compile(r"(?P<key>\S+)\s+(?P<word>in|notin|exists|absent)(\s+(?P<values>\S+))?")
_OPERATORS: Final = {"in": "In", "notin": "NotIn", "exists": "Exists", "absent": "DoesNotExist"}


def _as_tuple(given: Any) -> Any:
    return tuple(given) if isinstance(given, list) else given


class Toleration(ConfigModel):
    """A taint that the steps which measure may be scheduled in spite of, as in Kubernetes."""

    key: str
    operator: Literal["Equal", "Exists"] = "Exists"
    value: str | None = None
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = None

    @classmethod
    def parse(cls, text: str) -> Self:
        """Reads a toleration as `kubectl taint` writes taints: `KEY[=VALUE][:EFFECT]`.

        Args:
            text: Such as `google.com/tpu:NoSchedule`.

        Raises:
            ValueError: The effect is not one of Kubernetes'.
        """
        taint, separator, effect = text.partition(":")
        if separator and effect not in _EFFECTS:
            raise ValueError(f"unknown effect {effect!r} in {text!r}; known: {', '.join(_EFFECTS)}")
        key, equals, value = taint.partition("=")
        return cls.model_validate(
            {
                "key": key,
                "operator": "Equal" if equals else "Exists",
                "value": value if equals else None,
                "effect": effect or None,
            }
        )


class VolumeClaim(ConfigModel):
    """A persistent volume claim that every step mounts."""

    name: str
    path: str

    @classmethod
    def parse(cls, text: str) -> Self:
        """Reads a claim as the command line takes it: `NAME:/MOUNT/PATH`.

        Args:
            text: Such as `bench:/mnt/bench`.

        Raises:
            ValueError: It is written differently.
        """
        name, _, path = text.partition(":")
        if not name or not path.startswith("/") or path.rstrip("/") == "":
            raise ValueError(
                f"a volume claim is NAME:/MOUNT/PATH, such as bench:/mnt/bench; got {text!r}"
            )
        return cls(name=name, path=path.rstrip("/"))


class Secret(ConfigModel):
    """A secret of Kubernetes, as a variable or as a folder of every step.

    Attributes:
        name: The secret.
        key: Which of its keys is the variable; None for a folder.
        variable: The variable.
        path: Where the folder is mounted, with a file for each key; None for a variable.
    """

    name: str
    key: str | None = None
    variable: str | None = None
    path: str | None = None

    @classmethod
    def parse(cls, text: str) -> Self:
        """Reads a secret as the command line takes it: `NAME:KEY=VARIABLE` or `NAME:/PATH`.

        Args:
            text: Such as `storage:key=AWS_SECRET_ACCESS_KEY`.

        Raises:
            ValueError: It is written differently.
        """
        name, _, rest = text.partition(":")
        key, equals, variable = rest.partition("=")
        if _NAME.fullmatch(name) and rest.startswith("/") and rest.rstrip("/"):
            return cls(name=name, path=rest.rstrip("/"))
        if _NAME.fullmatch(name) and key and equals and _VARIABLE.fullmatch(variable):
            return cls(name=name, key=key, variable=variable)
        raise ValueError(
            f"a secret is NAME:KEY=VARIABLE or NAME:/MOUNT/PATH, such as storage:key=AWS_KEY; got "
            f"{text!r}"
        )


class Scratch(ConfigModel):
    """A volume that comes and goes with the pod of a step that measures."""

    path: str
    size: str
    storage_class: str | None = None

    @classmethod
    def parse(cls, text: str) -> Self:
        """Reads a volume as the command line takes it: `/PATH:SIZE[:STORAGE-CLASS]`.

        Args:
            text: Such as `/scratch:200Gi:premium-rwo`.

        Raises:
            ValueError: It is written differently.
        """
        path, _, rest = text.partition(":")
        size, _, storage_class = rest.partition(":")
        if not path.startswith("/") or not path.rstrip("/") or not _MEMORY.fullmatch(size):
            raise ValueError(
                "a scratch volume is /PATH:SIZE or /PATH:SIZE:STORAGE-CLASS, such as "
                f"/scratch:200Gi; got {text!r}"
            )
        return cls(path=path.rstrip("/"), size=size, storage_class=storage_class or None)


class NodeAffinity(ConfigModel):
    """A condition on the labels of the nodes that measure.

    Attributes:
        key: The label.
        operator: How it is compared, as in Kubernetes.
        values: With what.
        weight: How much it is preferred, 1 to 100; None requires it.
    """

    key: str
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"] = "In"
    values: Annotated[tuple[str, ...], pydantic.BeforeValidator(_as_tuple)] = ()
    weight: int | None = pydantic.Field(default=None, ge=1, le=100)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Reads a condition: `KEY in A,B`, `KEY notin A,B`, `KEY exists` or `KEY absent`.

        Args:
            text: Such as `topology.kubernetes.io/zone in us-central1-a,us-central1-b`.

        Raises:
            ValueError: It is written differently.
        """
        found = _EXPRESSION.fullmatch(text.strip())
        if found is None or (found["word"] in ("in", "notin")) != bool(found["values"]):
            raise ValueError(
                "a node affinity is KEY in A,B or KEY notin A,B or KEY exists or KEY absent, such "
                f"as 'topology.kubernetes.io/zone in us-central1-a'; got {text!r}"
            )
        values = tuple(filter(None, (found["values"] or "").split(",")))
        return cls(key=found["key"], operator=_operator(found["word"]), values=values)


def _operator(word: str) -> Any:
    return _OPERATORS[word]


def image_reference(given: str) -> str:
    """Returns the name of an image.

    Raises:
        ValueError: It is none that a registry knows.
    """
    if re.fullmatch(r"(sha256:)?[0-9a-f]{64}", given):
        raise ValueError(
            f"{given!r} is an image id, which nothing can pull; give NAME@sha256:DIGEST"
        )
    if not _IMAGE.fullmatch(given):
        raise ValueError(
            f"{given!r} is no image reference; expected NAME, NAME:TAG or NAME@sha256:DIGEST in "
            "lower case, such as europe-docker.pkg.dev/project/repository/orbax-bench:0.1.0"
        )
    return given


def _matching(pattern: re.Pattern[str], expected: str) -> Callable[[Any], str]:
    def check(given: Any) -> str:
        if not pattern.fullmatch(str(given)):
            raise ValueError(f"expected {expected}, got {given!r}")
        return str(given)

    return check


def parsed(parse: Callable[[str], Any]) -> pydantic.BeforeValidator:
    """Returns a validator for a list whose items may be text that `parse` reads."""

    def read(given: Any) -> Any:
        if not isinstance(given, (list, tuple)):
            raise ValueError(f"expected a list, got {given!r}")
        try:
            return tuple(parse(item) if isinstance(item, str) else item for item in given)
        except UserError as error:
            raise ValueError(str(error)) from None

    return pydantic.BeforeValidator(read)


def parsed_text(parse: Callable[[str], Any]) -> pydantic.BeforeValidator:
    """Returns a validator for one value that is text, or a number, which `parse` reads."""

    def read(given: Any) -> Any:
        if not isinstance(given, (str, int)) or isinstance(given, bool):
            return given
        try:
            return parse(str(given))
        except UserError as error:
            raise ValueError(str(error)) from None

    return pydantic.BeforeValidator(read)


def _pairs(given: Any) -> Any:
    """Turns `["KEY=VALUE", ...]`, as flags give it, into a mapping."""
    if not isinstance(given, (list, tuple)):
        return given
    found = {}
    for item in given:
        key, equals, value = str(item).partition("=")
        if not key or not equals:
            raise ValueError(f"expected KEY=VALUE, got {item!r}")
        found[key] = value
    return found


def _variables(given: dict[str, str]) -> dict[str, str]:
    for name in given:
        if not _VARIABLE.fullmatch(name):
            raise ValueError(f"{name!r} is not the name of a variable")
        if name.startswith("ORBAX_BENCH_"):
            raise ValueError(f"{name} is set by orbax-bench itself; leave it out")
    return given


Image = Annotated[str, pydantic.AfterValidator(image_reference)]
Cpu = Annotated[str, pydantic.BeforeValidator(_matching(_CPU, "CPUs, such as 8 or 500m"))]
Bytes = Annotated[str, pydantic.BeforeValidator(_matching(_MEMORY, "bytes, such as 64Gi"))]
Name = Annotated[str, pydantic.BeforeValidator(_matching(_NAME, "a name of Kubernetes"))]
Pairs = Annotated[dict[str, str], pydantic.BeforeValidator(_pairs)]
Variables = Annotated[Pairs, pydantic.AfterValidator(_variables)]


class StepSettings(ConfigModel):
    """Settings for one step alone, in place of those for all.

    Attributes:
        image: What it runs in.
        cpu: Its CPUs.
        memory: Its memory.
        retries: How often it is tried again.
        timeout_s: Seconds that it may take.
    """

    image: Image | None = None
    cpu: Cpu | None = None
    memory: Bytes | None = None
    retries: pydantic.NonNegativeInt | None = None
    timeout_s: pydantic.PositiveInt | None = None

    @property
    def given(self) -> list[str]:
        """The names of the fields that are set."""
        return [name for name in StepSettings.model_fields if getattr(self, name) is not None]


def _by_step(given: Any) -> Any:
    """Turns `["STEP.KEY=VALUE", ...]`, as flags give it, into a mapping of mappings."""
    if not isinstance(given, (list, tuple)):
        return given
    found: dict[str, dict[str, Any]] = {}
    for item in given:
        where, equals, value = str(item).partition("=")
        step, dot, key = where.rpartition(".")
        if not (step and dot and key and equals):
            raise ValueError(
                f"expected STEP.KEY=VALUE, such as aggregate.memory=16Gi, got {item!r}"
            )
        if key not in StepSettings.model_fields:
            hint = did_you_mean(key, StepSettings.model_fields)
            raise ValueError(f"unknown key {key!r} in {item!r}; {hint}")
        found.setdefault(step, {})[key] = (
            int(value) if key in _NUMBERS and value.isdigit() else value
        )
    return found


def _known_steps(given: dict[str, StepSettings]) -> dict[str, StepSettings]:
    known = [*step_names(), OTHERS]
    for name in given:
        if name not in known:
            raise ValueError(f"there is no step {name!r}; {did_you_mean(name, known)}")
    if MEASURING in given and {"cpu", "memory"} & set(given[MEASURING].given):
        raise ValueError(f"CPUs and memory of {MEASURING} are --cpu and --memory")
    return given


Steps = Annotated[
    dict[str, StepSettings],
    pydantic.BeforeValidator(_by_step),
    pydantic.AfterValidator(_known_steps),
]


def step_names() -> list[str]:
    """Returns the names of the steps, which are those of the components."""
    import orbax_bench_components

    [folder] = orbax_bench_components.__path__
    found = (path.parent.name for path in Path(folder).glob("*/component.py"))
    return sorted(name.replace("_", "-") for name in found)


def num_cpus(cpu: str) -> float:
    """Returns the number of CPUs that a quantity of Kubernetes says."""
    return float(cpu[:-1]) / 1000 if cpu.endswith("m") else float(cpu)


def num_bytes(amount: str) -> float:
    """Returns the bytes that a quantity of Kubernetes says."""
    number = amount.rstrip("EPTGMKi")
    return float(number) * float(_UNITS[amount[len(number) :]])


def settings_of_step(steps: Mapping[str, StepSettings], name: str) -> StepSettings:
    """Returns what is set for a step: of its own, or else of all that do not measure."""
    own = steps.get(name, StepSettings())
    if name == MEASURING or OTHERS not in steps:
        return own
    shared = steps[OTHERS]
    return shared.model_copy(update={key: getattr(own, key) for key in own.given})
