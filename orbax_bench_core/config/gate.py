"""The `gate` block: tolerance, margin, error levels and looks of the statistical gate."""

from __future__ import annotations

import hashlib
import json
from typing import Annotated, Any, Final, Literal, Self

import pydantic

from orbax_bench_core.config.base import ConfigModel

Share = Annotated[float, pydantic.Field(gt=0, lt=1)]

MAX_PRIMARY = 3


class GateRule(ConfigModel):
    """When one metric has regressed, and when it has not.

    Attributes:
        tolerance: Largest relative slow-down that nobody minds: REGRESSION says that the true one
            is larger. Called delta in the method.
        margin: Smallest relative slow-down that nobody may miss: PASS says that the true one is
            smaller. Called Delta in the method.
        alpha: Probability of a REGRESSION when the slow-down is within the tolerance, over all
            looks together.
        pass_alpha: Probability of a PASS when the slow-down is the margin, over all looks together.
        looks: Operations per arm after which the data are looked at, ascending.
        draws: Random orders that stand in for all of them when there are too many to list.
    """

    tolerance: Annotated[float, pydantic.Field(ge=0)] = 0.03
    margin: Annotated[float, pydantic.Field(gt=0)] = 0.15
    alpha: Share = 0.01
    pass_alpha: Share = 0.05
    looks: Annotated[
        tuple[pydantic.PositiveInt, ...], pydantic.Field(min_length=1, strict=False)
    ] = (
        10,
        20,
        40,
        60,
    )
    draws: Annotated[int, pydantic.Field(ge=999)] = 1999

    @pydantic.model_validator(mode="after")
    def _check(self) -> Self:
        if self.margin <= self.tolerance:
            raise ValueError(
                f"margin {self.margin:g} must be larger than tolerance {self.tolerance:g}: "
                "between them no verdict is owed"
            )
        if list(self.looks) != sorted(set(self.looks)):
            raise ValueError(f"looks must ascend, got {list(self.looks)}")
        if odd := [look for look in self.looks if look % 2]:
            raise ValueError(f"looks must be even, for a block has two per arm; got {odd}")
        return self


class MetricRule(ConfigModel):
    """What one metric has different from the rule for all; None takes that."""

    tolerance: Annotated[float, pydantic.Field(ge=0)] | None = None
    margin: Annotated[float, pydantic.Field(gt=0)] | None = None


class GateConfig(GateRule):
    """How arms are compared. Every key is optional.

    Attributes:
        primary: Operations whose times decide the verdict, at most 3; those that a benchmark does
            not have are left out. All others are shown, and decide nothing.
        metrics: What single operations have different, by name.
        family: What `alpha` is shared among: the operations of one `point`, or of all points of
            the `suite`.
    """

    primary: Annotated[
        tuple[str, ...], pydantic.Field(min_length=1, max_length=MAX_PRIMARY, strict=False)
    ] = (
        "save_blocking",
        "save",
        "load",
    )
    metrics: dict[str, MetricRule] = {}
    family: Literal["point", "suite"] = "point"

    def rule(self, operation: str) -> GateRule:
        """Returns the rule for the time of one operation."""
        common = {name: getattr(self, name) for name in GateRule.model_fields}
        own = self.metrics.get(operation, MetricRule()).model_dump(exclude_none=True)
        return GateRule(**{**common, **own})

    @property
    def fingerprint(self) -> str:
        """SHA-256 of all rules, in hex: the same for the same rules, however they are written."""
        canonical = json.dumps(_canonical(self), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(canonical.encode()).hexdigest()

    @pydantic.model_validator(mode="after")
    def _rules_hold(self) -> Self:
        for operation in self.metrics:
            try:
                self.rule(operation)
            except pydantic.ValidationError as error:
                raise ValueError(f"metrics.{operation}: {error.errors()[0]['msg']}") from None
        return self


def gate_changes(before: GateConfig, after: GateConfig) -> str:
    """Returns what differs between two gates, such as `margin 15 % -> 30 %`; empty if nothing."""
    old, new = _canonical(before), _canonical(after)
    names = [*old, *(name for name in new if name not in old)]
    changed = (
        f"{name} {_written(name, old.get(name))} -> {_written(name, new.get(name))}"
        for name in names
        if old.get(name) != new.get(name)
    )
    return ", ".join(changed)


_SHARES: Final = ("tolerance", "margin", "max_stalls", "alpha", "pass_alpha")


def _canonical(gate: GateConfig) -> dict[str, Any]:
    """Returns all rules, flat, without what is written and changes nothing."""
    found = gate.model_dump(mode="json", exclude={"metrics"})
    found["primary"] = sorted(set(gate.primary))
    for operation in sorted(gate.metrics):
        own = gate.metrics[operation].model_dump(exclude_none=True)
        for name, value in own.items():
            if value != getattr(gate, name):
                found[f"metrics.{operation}.{name}"] = value
    return found


def _written(name: str, value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, list):
        return " ".join(map(str, value))
    key = name.rpartition(".")[2]
    if key in _SHARES:
        return f"{100 * value:.3g} %"
    return f"{value:g} s" if key == "min_effect_s" else str(value)
