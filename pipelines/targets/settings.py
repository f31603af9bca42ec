"""Targets and settings of a submission: where and how a pipeline runs, not what it measures."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal, Self

import pydantic

from orbax_bench_core.config import (
    ConfigModel,
    Problem,
    Source,
    UserError,
    checked_path,
    explain,
)
from orbax_bench_core.launchers import SliceShape, parse_slice
from orbax_bench_pipelines.target import Target

_IMAGE = re.compile(
    r"(?P<name>[a-z0-9]+([._:-]+[a-z0-9]+)*(/[a-z0-9]+([._-]+[a-z0-9]+)*)*)"
    r"(:(?P<tag>\w[\w.-]{0,127}))?(?P<digest>@sha256:[0-9a-f]{64})?"
)
_CPU = re.compile(r"\d+(\.\d+)?m?")
_MEMORY = re.compile(r"\d+(\.\d+)?([EPTGMK]i?)?")
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_SINGULAR = {
    "node_selectors": "node-selector",
    "tolerations": "toleration",
    "labels": "label",
    "launcher_settings": "launcher-set",
}
_OF_CUSTOM_JOBS = ("project", "location", "service_account", "endpoint")


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


def _image(given: str) -> str:
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


def _parsed(parse: Callable[[str], Any]) -> Callable[[Any], Any]:
    """Returns a validator for a list whose items may be text that `parse` reads."""

    def read(given: Any) -> Any:
        if not isinstance(given, (list, tuple)):
            raise ValueError(f"expected a list, got {given!r}")
        try:
            return tuple(parse(item) if isinstance(item, str) else item for item in given)
        except UserError as error:
            raise ValueError(str(error)) from None

    return read


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


Pairs = Annotated[dict[str, str], pydantic.BeforeValidator(_pairs)]


class Settings(ConfigModel):
    """Everything that is set at submit time.

    Each field is a flag of the command line and a key of a settings file. Which target can honour
    which of them is in `checks`.
    """

    model_config = pydantic.ConfigDict(arbitrary_types_allowed=True)

    image: Annotated[str, pydantic.AfterValidator(_image)] | None = None
    parallelism: pydantic.NonNegativeInt | None = None
    tpu: Annotated[tuple[SliceShape, ...], pydantic.BeforeValidator(_parsed(parse_slice))] = ()
    launcher_settings: Pairs = {}
    node_selectors: Pairs = {}
    tolerations: Annotated[
        tuple[Toleration, ...], pydantic.BeforeValidator(_parsed(Toleration.parse))
    ] = ()
    service_account: str | None = None
    pvc: Annotated[
        tuple[VolumeClaim, ...], pydantic.BeforeValidator(_parsed(VolumeClaim.parse))
    ] = ()
    cpu: Annotated[
        str | None, pydantic.BeforeValidator(_matching(_CPU, "CPUs, such as 8 or 500m"))
    ] = None
    memory: Annotated[
        str | None, pydantic.BeforeValidator(_matching(_MEMORY, "bytes, such as 64Gi"))
    ] = None
    labels: Pairs = {}
    pipeline_root: str | None = None
    experiment: str | None = None
    tensorboard: str | None = None
    project: str | None = None
    location: str | None = None
    endpoint: str | None = None
    namespace: str | None = None

    @property
    def given(self) -> list[str]:
        """The names of the fields that are set to something."""
        return [name for name in Settings.model_fields if getattr(self, name) not in (None, (), {})]


def launcher_of(target: Target, shape: SliceShape | None) -> str:
    """Returns the launcher that starts the hosts of a slice; empty where a step measures itself."""
    if shape is None:
        return ""
    if target is Target.VERTEX:
        return "vertex"
    return "jobset" if target is Target.KFP and shape.hosts > 1 else ""


def launcher_settings(launcher: str, settings: Settings) -> dict[str, str]:
    """Returns the settings of a launcher: what is set for steps and holds for hosts, and its own.

    Args:
        launcher: `jobset` or `vertex`.
        settings: What was set; its `launcher_settings` come first.
    """
    names = ("service_account",) if launcher == "jobset" else _OF_CUSTOM_JOBS
    shared = {name: getattr(settings, name) for name in names}
    given = {name: value for name, value in shared.items() if value is not None}
    labels = {"labels": json.dumps(settings.labels)} if settings.labels else {}
    return {**given, **(labels if launcher == "vertex" else {}), **settings.launcher_settings}


def flag_of(name: str) -> str:
    """Returns the flag that sets a field."""
    return "--" + _SINGULAR.get(name, name.replace("_", "-"))


def read_settings(file: str | None, flags: Mapping[str, Any]) -> Settings:
    """Returns the settings of a file, with what flags say in place of it.

    Args:
        file: A YAML file whose keys are those of `Settings`, local or `gs://`; None for none.
        flags: Values by field; None and empty lists are not given.

    Raises:
        UserError: The file cannot be read, or a value cannot be used.
    """
    data = {} if file is None else _settings_of(file)
    given = {name: value for name, value in flags.items() if value not in (None, [], ())}
    return _validated({**data, **given}, lambda path: Problem("", key=_flag(path)))


def read_text(path: str, what: str) -> str:
    """Returns the text of a file.

    Args:
        path: A local path or a `gs://` URI.
        what: What the file should be, for messages.

    Raises:
        UserError: It cannot be read.
    """
    from etils import epath
    from google.auth.exceptions import GoogleAuthError

    quiet = logging.getLogger("gcsfs")
    level = quiet.level
    quiet.setLevel(logging.CRITICAL)  # it logs a traceback of its own before it raises
    try:
        text: str = epath.Path(checked_path(path)).read_bytes().decode()
    except UnicodeDecodeError:
        raise UserError(Problem(f"not a text file; a {what} is YAML", file=path)) from None
    except FileNotFoundError:
        raise UserError(
            Problem(f"cannot read the {what}: there is no such file", file=path)
        ) from None
    except (OSError, ImportError, ValueError, GoogleAuthError) as error:
        raise UserError(Problem(f"cannot read the {what}: {error}", file=path)) from None
    finally:
        quiet.setLevel(level)
    return text


def _settings_of(file: str) -> dict[str, Any]:
    source = Source(read_text(file, "settings file"), file)
    if not isinstance(source.data, dict):
        raise UserError(source.problem("settings are a mapping of keys to values", ()))
    _validated(source.data, lambda path: source.problem("", path))
    return dict(source.data)


def _validated(data: dict[str, Any], place: Callable[[tuple[str | int, ...]], Problem]) -> Settings:
    try:
        return Settings.model_validate(data)
    except pydantic.ValidationError as error:
        problems = []
        for detail in error.errors():
            at = place(tuple(part for part in detail["loc"] if part != "[key]"))
            message = explain(detail, Settings.model_fields)
            problems.append(Problem(message, key=at.key, file=at.file, line=at.line))
        raise UserError(*dict.fromkeys(problems)) from None


def _flag(path: tuple[str | int, ...]) -> str:
    return flag_of(str(path[0])) if path else ""
