"""Settings of every place on Kubernetes, and what their values may be."""

import re
from pathlib import Path
from typing import Annotated, Any, Final

import pydantic

from orbax_bench_core.config import ConfigModel
from orbax_bench_core.execute import TOKEN

# What Kubernetes and Kubeflow Pipelines both take: of fractions of bytes, and of K, one does not.
_CPU: Final = re.compile(r"[0-9]+(\.[0-9]+)?m?")
_BYTES: Final = re.compile(r"[0-9]+([EPTGM]i?|Ki)?")
_LABEL: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_NAME: Final = re.compile(rf"(?=.{{1,253}}$){_LABEL}(\.{_LABEL})*")
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def _matching(pattern: re.Pattern[str], expected: str) -> pydantic.BeforeValidator:
    """Returns a validator for text of a pattern; YAML may have read it as a number."""

    def check(given: Any) -> str:
        if not pattern.fullmatch(str(given)):
            raise ValueError(f"expected {expected}, got {given!r}")
        return str(given)

    return pydantic.BeforeValidator(check)


def _without_a_token(environment: dict[str, str]) -> dict[str, str]:
    if TOKEN in environment:
        raise ValueError(f"{TOKEN} in a manifest can be read by anyone who may see the pod")
    return environment


Text = Annotated[
    str,
    pydantic.BeforeValidator(lambda value: str(value) if type(value) in (int, float) else value),
]
"""Text that may be written as a number: YAML reads `cpu=4` as one."""
Cpu = Annotated[str, _matching(_CPU, "CPUs, such as 8 or 500m")]
Bytes = Annotated[str, _matching(_BYTES, "bytes, a whole number such as 64Gi")]
Name = Annotated[str, _matching(_NAME, "a name of Kubernetes")]
Variable = Annotated[str, _matching(_VARIABLE, "the name of a variable")]
Environment = Annotated[dict[Variable, Text], pydantic.AfterValidator(_without_a_token)]
"""Variables of hosts, which are written into a manifest in plain."""


class KubernetesSettings(ConfigModel):
    """Settings of every place on Kubernetes, which docs/launch/jobset.md explains."""

    namespace: Name | None = None
    context: str | None = None
    kubeconfig: str | None = None
    service_account: Name | None = None
    queue: Name | None = None
    priority_class: Name | None = None
    volume: str | None = None
    run_as_user: int | None = pydantic.Field(default=None, ge=0)
    run_as_group: int | None = pydantic.Field(default=None, ge=0)
    fs_group: int | None = pydantic.Field(default=None, ge=0)
    privileged: bool = False
    capabilities: list[str] | None = None
    cpu: Cpu | None = None
    memory: Bytes | None = None
    ephemeral_storage: Bytes | None = None
    environment: Environment = {}
    suite_in_image: str | None = None
    timeout_s: float | None = pydantic.Field(default=None, gt=0)
    start_timeout_s: float = pydantic.Field(default=1800, gt=0)
    keep: bool = False

    @pydantic.field_validator("volume")
    @classmethod
    def _a_claim_and_a_path(cls, volume: str | None) -> str | None:
        claim, _, path = (volume or "a:/a").partition(":")
        if not _NAME.fullmatch(claim) or not path.startswith("/") or path == "/":
            raise ValueError(f"expected CLAIM:/PATH, such as runs:/runs, got {volume!r}")
        return volume

    @property
    def mounted(self) -> str | None:
        """Path at which hosts mount the volume; None without one."""
        return None if self.volume is None else self.volume.partition(":")[2]

    @property
    def mounted_here(self) -> bool:
        """Whether this machine has the folder of the volume as well."""
        return self.mounted is not None and Path(self.mounted).is_dir()
