"""Policies as a suite file describes them."""

import pytest

from orbax_bench_core.benchmarks.support.v0 import Policies

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
