"""Save and preservation policies of Orbax's `CheckpointManager`, over many steps."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Self

from orbax_bench_core.authoring import (
    BenchmarksGenerator,
    Sweepable,
    TestContext,
    TestResult,
    VerificationError,
    benchmark_options,
)
from orbax_bench_core.benchmarks.support.needs import require_tree
from orbax_bench_core.benchmarks.support.options import BoundedOptions
from orbax_bench_core.benchmarks.support.v0 import Policies, open_checkpoint_manager, restore_target
from orbax_bench_core.measure import Metrics


@dataclasses.dataclass(frozen=True, kw_only=True)
class CheckpointPolicyOptions(BoundedOptions):
    """Options of `checkpoint_policy`.

    Attributes:
        checkpoint_policies_options: Mappings, one per sweep point, with preservation_policies
            (LatestN, EveryNSeconds, EveryNSteps, CustomSteps), save_decision_policies
            (FixedIntervalPolicy, SpecificStepsPolicy, ContinuousCheckpointingPolicy,
            InitialSavePolicy, PreemptionSavePolicy) and, if wanted, expected_preserve_checkpoints:
            steps that must be there at the end. Each policy has a policy_type and its parameter: n,
            interval_secs, interval_steps, custom_steps or minimum_interval_secs.
        num_checkpoints: How many steps to offer to the manager.
    """

    checkpoint_policies_options: Sweepable[Policies]
    num_checkpoints: Sweepable[int] = 1000

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Builds the policies of one combination."""
        policies = Policies.from_dict(values.get("checkpoint_policies_options"))
        return cls(**{**values, "checkpoint_policies_options": policies})

    least = {"num_checkpoints": 1}


@benchmark_options(CheckpointPolicyOptions)
class CheckpointPolicy(BenchmarksGenerator[CheckpointPolicyOptions]):
    """Measures `save_blocking` of each step that the policies save, and `skip` of each other one.

    A save that is still going on when the next one begins is waited for there, as in training;
    `save_background` waits for the last. Which steps are kept is checked, and the latest is
    restored and verified, outside the clock.
    """

    def test_fn(self, context: TestContext[CheckpointPolicyOptions]) -> TestResult:
        """Offers every step to the manager."""
        import jax
        import orbax.checkpoint as ocp

        from orbax_bench_core.state import tree_bytes

        metrics, options = Metrics(), context.options
        policies = options.checkpoint_policies_options
        tree = jax.block_until_ready(require_tree(context, "checkpoint_policy"))
        num_bytes, arguments = tree_bytes(tree), ocp.args.PyTreeSave(tree)
        with open_checkpoint_manager(
            context.path / "steps", **policies.manager_options()
        ) as manager:
            for step in range(options.num_checkpoints):
                if manager.should_save(step):
                    operation, moved = "save_blocking", num_bytes
                else:
                    operation, moved = "skip", None
                with metrics.measure(operation, num_bytes=moved):
                    manager.save(step, args=arguments)
            with metrics.measure("save_background"):
                manager.wait_until_finished()
            _check_steps(manager.all_steps(), policies)
            if context.verifier is not None:
                target = restore_target(tree)
                restored = manager.restore(
                    manager.latest_step(),
                    args=ocp.args.PyTreeRestore(
                        target,
                        restore_args=ocp.checkpoint_utils.construct_restore_args(target),
                    ),
                )
                context.verify(restored)
        return TestResult(metrics=metrics)


def _check_steps(kept: list[int], policies: Policies) -> None:
    if not kept:
        raise VerificationError("the policies saved no step at all, or kept none")
    missing = sorted(set(policies.expected_preserve_checkpoints) - set(kept))
    if missing:
        raise VerificationError(
            f"the policies should have kept the steps {missing}; they kept {sorted(kept)}"
        )
