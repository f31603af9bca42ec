"""Save and preservation policies of Orbax's `CheckpointManager`, over many steps."""

import dataclasses
import datetime
from collections.abc import Mapping, Sequence
from typing import Any, Final, Self

from orbax_bench_core import interface
from orbax_bench_core.benchmarks.support import saving
from orbax_bench_core.benchmarks.support.needs import require_orbax_module, require_tree
from orbax_bench_core.benchmarks.support.options import BoundedOptions
from orbax_bench_core.measure import Metrics

_NEEDED: Final = object()
"""Stands for the value of a parameter that has to be given."""

_TAKES: Final[Mapping[str, Mapping[str, Mapping[str, object]]]] = {
    "preservation_policies": {
        "LatestN": {"n": None},
        "LatestDuration": {"duration_secs": _NEEDED},
        "BestN": {"n": None, "best_fn": _NEEDED},
        "EveryNSeconds": {"interval_secs": _NEEDED},
        "EveryNSteps": {"interval_steps": _NEEDED, "max_to_keep": None},
        "EveryNStepsClosest": {"interval_steps": _NEEDED, "max_to_keep": None},
        "CustomSteps": {"custom_steps": _NEEDED},
    },
    "save_decision_policies": {
        "FixedIntervalPolicy": {"interval_steps": _NEEDED},
        "SpecificStepsPolicy": {"custom_steps": _NEEDED},
        "ContinuousCheckpointingPolicy": {"minimum_interval_secs": None},
        "InitialSavePolicy": {},
        "PreemptionSavePolicy": {},
    },
}
"""The parameters of each policy."""
_CLASS: Final = {"PreemptionSavePolicy": "PreemptionCheckpointingPolicy"}
_FIELD: Final = {
    ("FixedIntervalPolicy", "interval_steps"): "interval",
    ("SpecificStepsPolicy", "custom_steps"): "steps",
    ("CustomSteps", "custom_steps"): "steps",
}


@dataclasses.dataclass(frozen=True)
class Policy:
    """One policy, and the values of its parameters that are given."""

    policy_type: str
    given: Mapping[str, Any]

    def make(self) -> Any:
        """Returns Orbax's policy.

        Raises:
            UnmetNeed: The installed Orbax lacks the policy, or one of its parameters.
        """
        orbax = require_orbax_module("checkpoint_managers", "checkpoint_policy")
        name = _CLASS.get(self.policy_type, self.policy_type)
        kind = getattr(orbax, name, None)
        if kind is None:
            raise interface.UnmetNeed(
                f"policy_type: {self.policy_type} needs ocp.checkpoint_managers.{name}, which the "
                "installed Orbax lacks"
            )
        arguments: dict[str, Any] = {}
        for parameter, value in self.given.items():
            if parameter == "duration_secs":
                arguments["duration"] = datetime.timedelta(seconds=value)
            elif parameter == "best_fn":
                arguments |= {"get_metric_fn": saving.LOSS_OF, "reverse": value == "min"}
            else:
                arguments[_FIELD.get((self.policy_type, parameter), parameter)] = value
        try:
            return kind(**arguments)
        except TypeError as error:
            raise interface.UnmetNeed(
                f"policy_type: {self.policy_type}: the installed Orbax refuses {self.given}: "
                f"{error}"
            ) from None


@dataclasses.dataclass(frozen=True)
class Policies:
    """Policies of a manager: which steps it saves, and which of them it keeps."""

    preservation_policies: Sequence[Policy]
    save_decision_policies: Sequence[Policy]
    expected_preserve_checkpoints: Sequence[int] = ()

    @classmethod
    def from_dict(cls, given: Any) -> Self:
        """Reads one entry of `checkpoint_policies_options`."""
        if not isinstance(given, Mapping):
            raise ValueError(f"checkpoint_policies_options takes mappings, got {given!r}")
        lists = {}
        for key in _TAKES:
            if not isinstance(given.get(key), list | tuple) or not given[key]:
                raise ValueError(f"checkpoint_policies_options needs a list of {key}")
            lists[key] = tuple(_policy(key, entry) for entry in given[key])
        unknown = set(given) - {*_TAKES, "expected_preserve_checkpoints"}
        if unknown:
            raise ValueError(f"checkpoint_policies_options has no {', '.join(sorted(unknown))}")
        return cls(
            **lists, expected_preserve_checkpoints=given.get("expected_preserve_checkpoints") or ()
        )

    def manager_options(self) -> dict[str, Any]:
        """Returns the fields of `CheckpointManagerOptions` that these policies are."""
        orbax = require_orbax_module("checkpoint_managers", "checkpoint_policy")
        return {
            "preservation_policy": orbax.AnyPreservationPolicy(
                [policy.make() for policy in self.preservation_policies]
            ),
            "save_decision_policy": orbax.AnySavePolicy(
                [policy.make() for policy in self.save_decision_policies]
            ),
            # Without it a manager leaves the metrics away that BestN goes by.
            **({"best_fn": saving.LOSS_OF} if self.best else {}),
        }

    @property
    def best(self) -> list[Policy]:
        """Policies that go by the loss."""
        return [policy for policy in self.preservation_policies if policy.policy_type == "BestN"]


def _policy(key: str, entry: Any) -> Policy:
    known = _TAKES[key]
    name = str(entry.get("policy_type")) if isinstance(entry, Mapping) else ""
    if name not in known:
        raise ValueError(f"{key}: policy_type must be one of {', '.join(known)}; got {entry!r}")
    parameters = known[name]
    unknown = set(entry) - {"policy_type", *parameters}
    if unknown:
        takes = f"takes {' and '.join(parameters) or 'no parameter'}"
        raise ValueError(f"{key}: {name} {takes}, got {', '.join(sorted(unknown))}")
    given = {each: entry[each] for each in parameters if entry.get(each) is not None}
    for parameter, default in parameters.items():
        if default is _NEEDED and parameter not in given:
            raise ValueError(f"{key}: {name} needs {parameter}")
    if given.get("best_fn", "min") not in ("min", "max"):
        raise ValueError(f"{key}: best_fn must be min or max, got {given['best_fn']!r}")
    return Policy(name, given)


@dataclasses.dataclass(frozen=True, kw_only=True)
class CheckpointPolicyOptions(BoundedOptions):
    """Options of `checkpoint_policy`.

    Attributes:
        checkpoint_policies_options: Mappings, one per sweep point, with preservation_policies
            (LatestN, LatestDuration, BestN, EveryNSeconds, EveryNSteps, EveryNStepsClosest,
            CustomSteps), save_decision_policies (FixedIntervalPolicy, SpecificStepsPolicy,
            ContinuousCheckpointingPolicy, InitialSavePolicy, PreemptionSavePolicy) and, if wanted,
            expected_preserve_checkpoints: steps that must be there at the end. Each policy has a
            policy_type and its parameters: n, duration_secs, best_fn (`min` or `max` of a loss that
            is saved with each step), interval_secs, interval_steps, max_to_keep, custom_steps or
            minimum_interval_secs. Of several preservation policies each keeps what it would keep
            alone.
        num_checkpoints: How many steps to offer to the manager.
    """

    checkpoint_policies_options: interface.Sweepable[Policies]
    num_checkpoints: interface.Sweepable[int] = 1000

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Builds the policies of one combination."""
        policies = Policies.from_dict(values.get("checkpoint_policies_options"))
        return cls(**{**values, "checkpoint_policies_options": policies})

    least = {"num_checkpoints": 1}


@interface.benchmark_options(CheckpointPolicyOptions)
class CheckpointPolicy(interface.BenchmarksGenerator[CheckpointPolicyOptions]):
    """Measures `save_blocking` of each step that the policies save, and `skip` of each other one.

    A save that is still going on when the next one begins is waited for there, as in training;
    `save_background` waits for the last. Which steps are kept is checked, and the latest is
    restored and verified, outside the clock.
    """

    def test_fn(
        self, context: interface.TestContext[CheckpointPolicyOptions]
    ) -> interface.TestResult:
        """Offers every step to the manager."""
        import jax
        import orbax.checkpoint as ocp

        from orbax_bench_core.state import tree_bytes, without_host_copies

        metrics, options = Metrics(), context.options
        policies = options.checkpoint_policies_options
        tree = jax.block_until_ready(require_tree(context, "checkpoint_policy"))
        num_bytes = tree_bytes(tree)
        with saving.open_checkpoint_manager(
            context.path / "steps", **policies.manager_options()
        ) as manager:
            saved = []
            for step in range(options.num_checkpoints):
                if manager.should_save(step):
                    operation, moved = "save_blocking", num_bytes
                else:
                    operation, moved = "skip", None
                loss = {"metrics": saving.loss_at(step)} if policies.best else {}
                given = ocp.args.PyTreeSave(without_host_copies(tree))
                with metrics.measure(operation, num_bytes=moved):
                    saved += [step] * bool(manager.save(step, args=given, **loss))
            with metrics.measure("save_background"):
                manager.wait_until_finished()
            _check_steps(manager.all_steps(), saved, policies)
            if context.verifier is not None:
                target = saving.restore_target(tree)
                arguments = saving.pytree_restore(target, item=target)
                context.verify(manager.restore(manager.latest_step(), args=arguments))
        return interface.TestResult(metrics=metrics)


def _check_steps(kept: list[int], saved: list[int], policies: Policies) -> None:
    if not kept:
        raise interface.VerificationError("the policies saved no step at all, or kept none")
    expected = set(policies.expected_preserve_checkpoints)
    for policy in policies.best:
        expected.update(saving.best_steps(saved, policy.given["best_fn"], policy.given.get("n")))
    missing = sorted(expected - set(kept))
    if missing:
        raise interface.VerificationError(
            f"the policies should have kept the steps {missing}; they kept {sorted(kept)}"
        )
