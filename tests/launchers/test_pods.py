"""What a pipeline sets on a task, as settings of a launcher on Kubernetes."""

import pytest

from orbax_bench_core.errors import UserError
from orbax_bench_core.launchers import pod_settings

NOTHING = dict.fromkeys(
    ("affinity", "tolerations", "node_selector", "env", "volumes", "volume_mounts", "resources")
)


def test_what_was_not_set_says_nothing():
    assert pod_settings(NOTHING) == {}


def test_what_was_set_on_a_task_is_said_of_the_hosts():
    tolerations = [{"key": "only", "operator": "Equal", "value": "bench"}]
    fragments = {
        "node_selector": {"pool": "bench"},
        "tolerations": tolerations,
        "resources": {
            "limits": {"cpu": "8", "memory": "64Gi", "nvidia.com/gpu": "4"},
            "requests": {"cpu": "4"},
        },
        "env": [{"name": "A", "value": "1"}, {"name": "B"}],
        "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "runs"}}],
        "volume_mounts": [{"name": "v", "mountPath": "/runs"}],
    }
    assert pod_settings(NOTHING | fragments) == {
        "node_selector": {"pool": "bench"},
        "tolerations": tolerations,
        "cpu": "8",
        "memory": "64Gi",
        "gpus": 4,
        "environment": {"A": "1", "B": ""},
        "volume": "runs:/runs",
    }


def test_the_slice_says_how_many_chips_a_host_has():
    assert pod_settings({"resources": {"limits": {"google.com/tpu": "4"}}}) == {}


@pytest.mark.parametrize(
    ("fragments", "said"),
    [
        ({"resources": {"limits": {"amd.com/gpu": 1}}}, "cannot ask for amd.com/gpu"),
        ({"env": [{"name": "A", "valueFrom": {}}]}, "A takes its own from Kubernetes"),
        ({"volumes": [{"name": "v", "emptyDir": {}}]}, "1 volumes with 0 claims and 0 mounts"),
        ({"affinity": {"nodeAffinity": {}}}, "cannot hand affinity on"),
    ],
)
def test_what_no_setting_says_is_refused(fragments, said):
    with pytest.raises(UserError, match=said):
        pod_settings(fragments)
