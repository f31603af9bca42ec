"""The flag `--rule`: changes of single rules of a gate."""

from collections.abc import Sequence
from typing import Any, Final

import pydantic

from orbax_bench_core.config.base import explain
from orbax_bench_core.config.gate import GateConfig, MetricRule
from orbax_bench_core.config.source import read_value
from orbax_bench_core.errors import UserError, did_you_mean, shortened

FLAG: Final = "--rule"


def changed_gate(gate: GateConfig, rules: Sequence[str]) -> GateConfig:
    """Returns a gate with some of its rules changed.

    Args:
        gate: The rules of the suite.
        rules: Changes as `--rule` takes them: `margin=0.3`, or `metrics.save.margin=0.3`.

    Raises:
        UserError: There is no such rule, or it does not take the value.
    """
    if not rules:
        return gate
    content = gate.model_dump(mode="json", exclude_unset=True)
    for rule in rules:
        path, value = _parse_rule(rule)
        target = content
        for name in path[:-1]:
            target = target.setdefault(name, {})
        target[path[-1]] = value
    try:
        return GateConfig.model_validate(content)
    except pydantic.ValidationError as error:
        raise UserError(*(_describe_problem(detail, rules) for detail in error.errors())) from None


def _parse_rule(rule: str) -> tuple[list[str], Any]:
    key, equals, text = rule.partition("=")
    names = key.strip().split(".")
    if not equals or not all(names):
        raise UserError(f"{FLAG} {shortened(rule)}: expected KEY=VALUE, such as margin=0.3")
    if names[0] not in GateConfig.model_fields:
        raise UserError(
            f"{FLAG} {shortened(rule)}: `gate` has no key {names[0]!r}; "
            f"{did_you_mean(names[0], GateConfig.model_fields)}"
        )
    if names[0] == "metrics" and len(names) == 1:
        raise UserError(
            f"{FLAG} {shortened(rule)}: name the operation and its rule, as metrics.save.margin="
        )
    if len(names) != (3 if names[0] == "metrics" else 1):
        raise UserError(
            f"{FLAG} {shortened(rule)}: expected a key of `gate`, such as margin=0.3 or "
            "metrics.save.margin=0.3"
        )
    return names, read_value(text, f"{FLAG} {shortened(rule)}")


def _describe_problem(detail: Any, rules: Sequence[str]) -> str:
    path = ".".join(str(part) for part in detail["loc"])
    fields = MetricRule.model_fields if path.startswith("metrics.") else GateConfig.model_fields
    guilty = [rule for rule in rules if rule.partition("=")[0].strip() == path.partition("[")[0]]
    given = " ".join(f"{FLAG} {shortened(rule)}" for rule in guilty or rules)
    return f"{given}: {explain(detail, fields)}"
