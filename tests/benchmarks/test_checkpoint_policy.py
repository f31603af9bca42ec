"""`checkpoint_policy`: the policies decide, and what they decided is checked."""

import pytest

from orbax_bench_core.authoring import VerificationError
from orbax_bench_core.benchmarks.checkpoint_policy import CheckpointPolicy, CheckpointPolicyOptions
from orbax_bench_core.benchmarks.support.v0 import Policies


def described(expected=None, steps=None):
    return {
        "preservation_policies": [
            {"policy_type": "LatestN", "n": 1},
            {"policy_type": "CustomSteps", "custom_steps": [2]},
        ],
        "save_decision_policies": [
            {"policy_type": "SpecificStepsPolicy", "custom_steps": steps or [0, 2, 4]}
        ],
        "expected_preserve_checkpoints": expected,
    }


@pytest.fixture
def policy(run):
    def repeat(given, number=6):
        return run(
            CheckpointPolicy,
            checkpoint_policies_options=Policies.from_dict(given),
            num_checkpoints=number,
        )

    return repeat


@pytest.mark.slow
def test_saved_and_skipped_steps_have_names_of_their_own(policy):
    outcome = policy(described())
    assert outcome.blocks == [*["save_blocking", "skip"] * 3, "save_background"]
    assert outcome.verified


def test_policies_that_save_nothing_are_said(policy):
    with pytest.raises(VerificationError, match="saved no step at all"):
        policy(described(steps=[99]))


def test_options_come_from_plain_values():
    options = CheckpointPolicyOptions.from_dict(
        {"checkpoint_policies_options": described([2]), "num_checkpoints": 7}
    )
    assert options.num_checkpoints == 7
    assert options.checkpoint_policies_options.expected_preserve_checkpoints == [2]


@pytest.mark.parametrize("number", [0, "many"])
def test_a_wrong_number_is_refused(number):
    with pytest.raises(ValueError, match="num_checkpoints must be 1 or more"):
        CheckpointPolicyOptions.from_dict(
            {"checkpoint_policies_options": described(), "num_checkpoints": number}
        )
