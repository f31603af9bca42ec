"""`checkpoint_policy`: policies as a suite describes them decide, and that is checked."""

import pytest

from orbax_bench_core.authoring import VerificationError
from orbax_bench_core.benchmarks.checkpoint_policy import (
    CheckpointPolicy,
    CheckpointPolicyOptions,
    Policies,
)


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


KEEP = [{"policy_type": "LatestN", "n": 2}]
SAVE = [{"policy_type": "InitialSavePolicy"}]


def policies(keep=KEEP, save=SAVE, **more):
    return Policies.from_dict(
        {"preservation_policies": keep, "save_decision_policies": save, **more}
    )


@pytest.mark.parametrize(
    ("described", "field", "value"),
    [
        ({"policy_type": "LatestN", "n": 3}, "n", 3),
        ({"policy_type": "LatestN"}, "n", None),
        ({"policy_type": "EveryNSeconds", "interval_secs": 5}, "interval_secs", 5),
        ({"policy_type": "EveryNSteps", "interval_steps": 7}, "interval_steps", 7),
        ({"policy_type": "CustomSteps", "custom_steps": [1, 2]}, "_steps_set", {1, 2}),
    ],
)
def test_preservation_policies(described, field, value):
    (made,) = policies(keep=[described]).manager_options()["preservation_policy"].policies
    assert type(made).__name__ == described["policy_type"]
    assert getattr(made, field) == value


@pytest.mark.parametrize(
    ("described", "name", "field", "value"),
    [
        (
            {"policy_type": "FixedIntervalPolicy", "interval_steps": 4},
            "FixedIntervalPolicy",
            "interval",
            4,
        ),
        (
            {"policy_type": "SpecificStepsPolicy", "custom_steps": [3]},
            "SpecificStepsPolicy",
            "steps",
            [3],
        ),
        (
            {"policy_type": "ContinuousCheckpointingPolicy", "minimum_interval_secs": 2},
            "ContinuousCheckpointingPolicy",
            "minimum_interval_secs",
            2,
        ),
        ({"policy_type": "InitialSavePolicy"}, "InitialSavePolicy", None, None),
        ({"policy_type": "PreemptionSavePolicy"}, "PreemptionCheckpointingPolicy", None, None),
    ],
)
def test_save_decision_policies(described, name, field, value):
    (made,) = policies(save=[described]).manager_options()["save_decision_policy"].policies
    assert type(made).__name__ == name
    assert field is None or getattr(made, field) == value


@pytest.mark.parametrize(
    ("keep", "save", "said"),
    [
        ([], SAVE, "needs a list of preservation_policies"),
        (KEEP, None, "needs a list of save_decision_policies"),
        ([{"policy_type": "LastN"}], SAVE, "must be one of LatestN, EveryNSeconds"),
        ([{"n": 3}], SAVE, "must be one of LatestN"),
        (["LatestN"], SAVE, "must be one of LatestN"),
        ([{"policy_type": "LatestN", "interval_steps": 3}], SAVE, "takes n, got interval_steps"),
        ([{"policy_type": "EveryNSteps"}], SAVE, "EveryNSteps needs interval_steps"),
        (KEEP, [{"policy_type": "InitialSavePolicy", "n": 1}], "takes no parameter, got n"),
    ],
)
def test_what_is_no_policy_is_refused(keep, save, said):
    with pytest.raises(ValueError, match=said):
        policies(keep, save)


def test_an_unknown_key_is_refused():
    with pytest.raises(ValueError, match="has no expected_steps"):
        policies(expected_steps=[1])


def test_what_is_no_mapping_is_refused():
    with pytest.raises(ValueError, match="takes mappings, got 3"):
        Policies.from_dict(3)
