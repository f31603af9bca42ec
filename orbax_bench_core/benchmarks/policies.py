"""Policies of Orbax's `CheckpointManager`, as a suite file describes them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Final

_NEEDS: Final[Mapping[str, Mapping[str, str | None]]] = {
    "preservation_policies": {
        "LatestN": "n",
        "EveryNSeconds": "interval_secs",
        "EveryNSteps": "interval_steps",
        "CustomSteps": "custom_steps",
    },
    "save_decision_policies": {
        "FixedIntervalPolicy": "interval_steps",
        "SpecificStepsPolicy": "custom_steps",
        "ContinuousCheckpointingPolicy": "minimum_interval_secs",
        "InitialSavePolicy": None,
        "PreemptionSavePolicy": None,
    },
}
_MAY_BE_ABSENT: Final = {"n", "minimum_interval_secs"}
_CLASS: Final = {"PreemptionSavePolicy": "PreemptionCheckpointingPolicy"}
_FIELD: Final = {
    ("FixedIntervalPolicy", "interval_steps"): "interval",
    ("SpecificStepsPolicy", "custom_steps"): "steps",
    ("CustomSteps", "custom_steps"): "steps",
}


@dataclasses.dataclass(frozen=True)
class Policy:
    """One policy.

    Attributes:
        policy_type: Name of the policy.
        parameter: Name of its parameter; None for a policy without one.
        value: Value of the parameter.
    """

    policy_type: str
    parameter: str | None = None
    value: Any = None

    def make(self) -> Any:
        """Returns Orbax's policy.

        Raises:
            UnmetNeed: The installed Orbax has no policies.
        """
        from orbax_bench_core.benchmarks import needs

        orbax = needs.part_of_orbax("checkpoint_managers", "checkpoint_policy")
        kind = getattr(orbax, _CLASS.get(self.policy_type, self.policy_type))
        if self.parameter is None:
            return kind()
        field = _FIELD.get((self.policy_type, self.parameter), self.parameter)
        return kind(**{field: self.value})


@dataclasses.dataclass(frozen=True)
class Policies:
    """What a manager saves and what it keeps.

    Attributes:
        preservation_policies: A checkpoint is kept if any of these wants it.
        save_decision_policies: A step is saved if any of these wants it.
        expected_preserve_checkpoints: Steps that must be there at the end.
    """

    preservation_policies: Sequence[Policy]
    save_decision_policies: Sequence[Policy]
    expected_preserve_checkpoints: Sequence[int] = ()

    @classmethod
    def from_dict(cls, given: Any) -> Policies:
        """Reads one entry of `checkpoint_policies_options`.

        Args:
            given: The entry.

        Raises:
            ValueError: It has another form; the message says what is allowed.
        """
        if not isinstance(given, Mapping):
            raise ValueError(f"checkpoint_policies_options takes mappings, got {given!r}")
        lists = {}
        for key in _NEEDS:
            if not isinstance(given.get(key), list | tuple) or not given[key]:
                raise ValueError(f"checkpoint_policies_options needs a list of {key}")
            lists[key] = tuple(_policy(key, entry) for entry in given[key])
        unknown = set(given) - {*_NEEDS, "expected_preserve_checkpoints"}
        if unknown:
            raise ValueError(f"checkpoint_policies_options has no {', '.join(sorted(unknown))}")
        return cls(
            **lists, expected_preserve_checkpoints=given.get("expected_preserve_checkpoints") or ()
        )

    def manager_options(self) -> dict[str, Any]:
        """Returns the fields of `CheckpointManagerOptions` that these policies are."""
        from orbax_bench_core.benchmarks import needs

        orbax = needs.part_of_orbax("checkpoint_managers", "checkpoint_policy")
        return {
            "preservation_policy": orbax.AnyPreservationPolicy(
                [policy.make() for policy in self.preservation_policies]
            ),
            "save_decision_policy": orbax.AnySavePolicy(
                [policy.make() for policy in self.save_decision_policies]
            ),
        }


def _policy(key: str, entry: Any) -> Policy:
    known = _NEEDS[key]
    name = str(entry.get("policy_type")) if isinstance(entry, Mapping) else ""
    if name not in known:
        raise ValueError(f"{key}: policy_type must be one of {', '.join(known)}; got {entry!r}")
    parameter = known[name]
    unknown = set(entry) - {"policy_type", parameter}
    if unknown:
        takes = f"takes {parameter}" if parameter else "takes no parameter"
        raise ValueError(f"{key}: {name} {takes}, got {', '.join(sorted(unknown))}")
    if parameter is None:
        return Policy(name)
    value = entry.get(parameter)
    if value is None and parameter not in _MAY_BE_ABSENT:
        raise ValueError(f"{key}: {name} needs {parameter}")
    return Policy(name, parameter, value)
