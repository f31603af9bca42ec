"""`checkpoint_policy`: policies as a suite describes them decide, and that is checked."""

import dataclasses
import datetime

import orbax.checkpoint as ocp
import pytest

from orbax_bench_core.authoring import UnmetNeed, VerificationError
from orbax_bench_core.benchmarks import checkpoint_policy
from orbax_bench_core.benchmarks.support import saving


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
            checkpoint_policy.CheckpointPolicy,
            checkpoint_policies_options=checkpoint_policy.Policies.from_dict(given),
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


def keeping(*policies, **more):
    return described() | {"preservation_policies": list(policies)} | more


@pytest.mark.slow
@pytest.mark.parametrize(
    ("policy_of_keeping", "kept"),
    [
        ({"policy_type": "BestN", "best_fn": "min", "n": 2}, {2, 4}),
        ({"policy_type": "BestN", "best_fn": "max", "n": 1}, {0}),
        ({"policy_type": "BestN", "best_fn": "max"}, {0, 2, 4}),
        ({"policy_type": "LatestDuration", "duration_secs": 600}, {0, 2, 4}),
        ({"policy_type": "LatestDuration", "duration_secs": 0.001}, {4}),
        ({"policy_type": "EveryNSteps", "interval_steps": 2, "max_to_keep": 1}, {4}),
    ],
)
def test_checkpoints_are_deleted_while_the_loop_saves(policy, policy_of_keeping, kept):
    outcome = policy(keeping(policy_of_keeping))
    assert {int(path.name) for path in (outcome.folder / "steps").iterdir()} == kept
    assert outcome.verified


@pytest.mark.slow
def test_a_best_checkpoint_that_is_gone_is_said(policy, monkeypatch):
    monkeypatch.setattr(saving, "best_steps", lambda *given: [3])
    with pytest.raises(VerificationError, match=r"should have kept the steps \[3\]"):
        policy(keeping({"policy_type": "BestN", "best_fn": "min", "n": 1}))


def test_what_an_earlier_orbax_lacks_of_a_policy_is_refused(monkeypatch):
    @dataclasses.dataclass
    class EveryNSteps:
        interval_steps: int

    monkeypatch.setattr(ocp.checkpoint_managers, "EveryNSteps", EveryNSteps)
    monkeypatch.delattr(ocp.checkpoint_managers, "LatestDuration")
    given = {"policy_type": "EveryNSteps", "interval_steps": 2, "max_to_keep": 3}
    with pytest.raises(UnmetNeed, match=r"EveryNSteps: the installed Orbax refuses .*max_to_keep"):
        policies(keep=[given]).manager_options()
    given = {"policy_type": "LatestDuration", "duration_secs": 1}
    with pytest.raises(UnmetNeed, match="LatestDuration needs ocp"):
        policies(keep=[given]).manager_options()


@pytest.mark.parametrize("number", [0, "many"])
def test_a_wrong_number_is_refused(number):
    with pytest.raises(ValueError, match="num_checkpoints must be 1 or more"):
        checkpoint_policy.CheckpointPolicyOptions.from_dict(
            {"checkpoint_policies_options": described(), "num_checkpoints": number}
        )


KEEP = [{"policy_type": "LatestN", "n": 2}]
SAVE = [{"policy_type": "InitialSavePolicy"}]


def policies(keep=KEEP, save=SAVE, **more):
    return checkpoint_policy.Policies.from_dict(
        {"preservation_policies": keep, "save_decision_policies": save, **more}
    )


@pytest.mark.parametrize(
    ("kind", "given", "made"),
    [
        ("LatestN", {"n": 3}, {"n": 3}),
        ("LatestN", {}, {"n": None}),
        ("LatestDuration", {"duration_secs": 5}, {"duration": datetime.timedelta(seconds=5)}),
        ("BestN", {"n": 1, "best_fn": "min"}, {"n": 1, "reverse": True}),
        ("EveryNSeconds", {"interval_secs": 5}, {"interval_secs": 5}),
        ("EveryNSteps", {"interval_steps": 7}, {"interval_steps": 7}),
        ("EveryNStepsClosest", {"interval_steps": 7}, {"interval_steps": 7}),
        ("CustomSteps", {"custom_steps": [1, 2]}, {"_steps_set": {1, 2}}),
        ("FixedIntervalPolicy", {"interval_steps": 4}, {"interval": 4}),
        ("SpecificStepsPolicy", {"custom_steps": [3]}, {"steps": [3]}),
        (
            "ContinuousCheckpointingPolicy",
            {"minimum_interval_secs": 2},
            {"minimum_interval_secs": 2},
        ),
        ("InitialSavePolicy", {}, {}),
        ("PreemptionSavePolicy", {}, {}),
    ],
)
def test_policies_become_those_of_orbax(kind, given, made):
    described = [{"policy_type": kind, **given}]
    place = "save_decision_policy" if kind.endswith("Policy") else "preservation_policy"
    whole = policies(save=described) if kind.endswith("Policy") else policies(keep=described)
    (found,) = whole.manager_options()[place].policies
    name = {"PreemptionSavePolicy": "PreemptionCheckpointingPolicy"}.get(kind, kind)
    assert type(found).__name__ == name
    assert {field: getattr(found, field) for field in made} == made


@pytest.mark.parametrize(
    ("keep", "save", "said"),
    [
        ([], SAVE, "needs a list of preservation_policies"),
        (KEEP, None, "needs a list of save_decision_policies"),
        ([{"policy_type": "LastN"}], SAVE, "must be one of LatestN, LatestDuration"),
        ([{"n": 3}], SAVE, "must be one of LatestN"),
        (["LatestN"], SAVE, "must be one of LatestN"),
        ([{"policy_type": "LatestN", "interval_steps": 3}], SAVE, "takes n, got interval_steps"),
        ([{"policy_type": "EveryNSteps"}], SAVE, "EveryNSteps needs interval_steps"),
        ([{"policy_type": "BestN", "n": 1}], SAVE, "BestN needs best_fn"),
        ([{"policy_type": "BestN", "best_fn": "most"}], SAVE, "must be min or max, got 'most'"),
        (KEEP, [{"policy_type": "InitialSavePolicy", "n": 1}], "takes no parameter, got n"),
    ],
)
def test_what_is_no_policy_is_refused(keep, save, said):
    with pytest.raises(ValueError, match=said):
        policies(keep, save)


def test_unknown_keys_and_what_is_no_mapping_are_refused():
    with pytest.raises(ValueError, match="has no expected_steps"):
        policies(expected_steps=[1])
    with pytest.raises(ValueError, match="takes mappings, got 3"):
        checkpoint_policy.Policies.from_dict(3)
