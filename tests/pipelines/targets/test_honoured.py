"""Settings that a target cannot honour: each is refused, and none is dropped."""

import pytest

from orbax_bench_core.errors import UserError
from orbax_bench_pipelines.targets import Settings, Target, check_settings, read_settings
from orbax_bench_pipelines.targets.honoured import HONOURED

DIGEST = "a/b@sha256:" + "0" * 64
SOME = {
    "image": "a/b:1",
    "steps": {"aggregate": {"cpu": "4"}},
    "parallelism": 2,
    "tpu": ["v5e:2x4"],
    "gpu": "l4:1",
    "gpu_hosts": 2,
    "launcher_settings": {"queue": "q"},
    "retries": 1,
    "backoff_s": 10,
    "backoff_factor": 2.0,
    "timeout_s": 60,
    "environment": {"A": "b"},
    "secrets": {"name": "s", "path": "/p"},
    "pull_secrets": ["s"],
    "pvc": {"name": "c", "path": "/p"},
    "scratch": {"path": "/p", "size": "1Gi"},
    "node_affinity": {"key": "zone", "operator": "Exists"},
    "node_selectors": {"a": "b"},
    "tolerations": {"key": "a"},
    "spot": True,
    "flex_start": True,
    "max_run_s": 60,
    "ephemeral_storage": "1Gi",
    "security_context": {"run_as_user": 7},
    "labels": {"a": "b"},
    "annotations": {"a": "b"},
    "cpu": "8",
    "memory": "8Gi",
    "shared_memory": "8Gi",
}
"""A value for each setting; of the others any text."""


def refusal(target, **flags):
    with pytest.raises(UserError) as error:
        check_settings(read_settings(None, flags), target)
    return str(error.value)


@pytest.mark.parametrize("target", list(Target))
@pytest.mark.parametrize("name", list(Settings.model_fields))
def test_what_a_target_does_not_honour_is_refused_with_the_target_that_does(target, name):
    if name not in HONOURED[target]:
        said = refusal(target, **{name: SOME.get(name, "text")})
        assert f"the target {target.value} cannot honour it" in said
        assert "use --target" in said


@pytest.mark.parametrize(
    ("target", "flags", "said"),
    [
        (Target.KFP, {"tpu": ["v5e:2x4"], "gpu": "l4:1"}, "gpu: a machine has TPUs or GPUs"),
        (
            Target.KFP,
            {"gpu": "t4:8"},
            "gpu: a step is one machine, which has at most 4, not",
        ),
        (Target.KFP, {"priority": "low"}, "only Kueue's, which needs a queue"),
        (Target.KFP, {"annotations": {"a b": "c"}}, "'a b' is not the key of an annotation"),
        (Target.VERTEX, {"gpu": "8"}, "gpu: Vertex AI needs the kind, as KIND:8; known: t4, p4"),
        (
            Target.VERTEX,
            {"gpu": "h200-141gb:4"},
            "has machines with 8 h200-141gb, not h200",
        ),
        (Target.VERTEX, {"cpu": "128"}, "cpu: a step of Vertex AI has at most 96 CPUs, got 128"),
        (Target.VERTEX, {"memory": "1Ti"}, "memory: a step of Vertex AI has at most 624 GB"),
        (
            Target.VERTEX,
            {"steps": {"aggregate": {"cpu": "97"}}},
            "steps.aggregate.cpu: a step of Vertex",
        ),
        (Target.VERTEX, {"spot": True}, "the steps of Vertex AI Pipelines have no spot machines"),
        (Target.KFP, {"max_run_s": 9}, "max_run_s is a setting of flex_start, or of a queue"),
        (Target.KFP, {"spot": True, "flex_start": True}, "spot and flex_start exclude each"),
        (Target.KFP, {"reservation": "No Name"}, "a reservation is NAME, or projects/PROJECT"),
        (Target.KFP, {"ephemeral_storage": "1Gi"}, "scratch gives a step a volume"),
        (
            Target.KFP,
            {"security_context": {"privileged": True}},
            "are for containers with TPUs; give tpu too",
        ),
        (Target.VERTEX, {"encryption_key": "k"}, "encryption_key: expected projects/P/locations"),
        (Target.VERTEX, {"steps": {"others": {"image": "cpu:1"}}}, "Vertex AI cannot pull 'cpu:1'"),
        (
            Target.DOCKER,
            {"steps": {"aggregate": {"cpu": "4"}}},
            "steps: aggregate.cpu: the target docker",
        ),
    ],
)
def test_what_no_machine_of_a_target_has_is_refused(target, flags, said):
    assert said in refusal(target, **flags)


@pytest.mark.parametrize(
    ("name", "value", "instead"),
    [
        ("secrets", {"name": "s", "path": "/p"}, "give their service account access"),
        ("pull_secrets", ["s"], "give them to their service account"),
        ("scratch", {"path": "/p", "size": "1Gi"}, ""),
        ("node_affinity", {"key": "zone", "operator": "Exists"}, "give node_selectors"),
    ],
)
def test_what_is_not_handed_on_to_the_hosts_of_a_slice_is_refused(name, value, instead):
    said = refusal(Target.KFP, tpu=["v5e:4x8"], image=DIGEST, **{name: value})
    assert "the hosts of TPU v5e:4x8 do not get it" in said
    assert instead in said
